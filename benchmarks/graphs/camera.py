"""A camera's pipeline: demosaicing, denoising, colours, gamut and tones of a raw image."""

from relax_mlir.dataflow import (
    Instance,
    Port,
    Scalar,
    Tensor,
    each,
    graph,
    leaf,
    sqrt,
    where,
    whole,
)

COLOURS = ((1.6, -0.4, -0.2), (-0.3, 1.5, -0.2), (-0.1, -0.5, 1.6))


def most(a: Scalar, b: Scalar | float) -> Scalar:
    """The greater one, as C's `a > b ? a : b`: images have no NaN, which `maximum` would return."""
    return where(a > b, a, b)


def least(a: Scalar, b: Scalar | float) -> Scalar:
    """The lesser one."""
    return where(a < b, a, b)


@leaf(raw="f32[h, w]")
def demosaic(at: Instance, raw: Tensor) -> list[Scalar]:
    """Red, green and blue of a pixel, whose sensor has one of them: rows are RG and GB."""
    i, j = at.ids(2)
    own = raw[i, j]
    across = (raw[i, j - 1] + raw[i, j + 1]) * 0.5
    along = (raw[i - 1, j] + raw[i + 1, j]) * 0.5
    diagonal = (
        raw[i - 1, j - 1] + raw[i - 1, j + 1] + raw[i + 1, j - 1] + raw[i + 1, j + 1]
    ) * 0.25
    row, column = i % 2 == 0, j % 2 == 0
    red = where(row, where(column, own, across), where(column, along, diagonal))
    green = where(row ^ column, own, (across + along) * 0.5)
    blue = where(row, where(column, diagonal, along), where(column, across, own))
    return [red, green, blue]


@leaf(x="f32[h, w]")
def denoise(at: Instance, x: Tensor) -> Scalar:
    """A pixel between the least and the greatest of its four neighbours."""
    i, j = at.ids(2)
    a, b, c, d = x[i, j - 1], x[i, j + 1], x[i - 1, j], x[i + 1, j]
    low = least(least(a, b), least(c, d))
    high = most(most(a, b), most(c, d))
    return least(most(x[i, j], low), high)


@leaf(r="f32", g="f32", b="f32")
def colours(at: Instance, r: Scalar, g: Scalar, b: Scalar) -> list[Scalar]:
    """The colours of the sensor as those of a screen."""
    return [r * x + g * y + b * z for x, y, z in COLOURS]


@leaf(r="f32", g="f32", b="f32")
def gamut(at: Instance, r: Scalar, g: Scalar, b: Scalar) -> list[Scalar]:
    """Colours within what a screen has."""
    return [least(most(x, 0.0), 1.0) for x in (r, g, b)]


@leaf(r="f32", g="f32", b="f32")
def tones(at: Instance, r: Scalar, g: Scalar, b: Scalar) -> list[Scalar]:
    """Brighter shades."""
    return [sqrt(x) * (1.25 - 0.25 * x) for x in (r, g, b)]


@graph(raw="f32[h, w]")
def camera(raw: Port) -> object:
    """Red, green and blue of each pixel."""
    grid = ("h", "w")
    planes = demosaic.over(*grid)(whole(raw))
    calm = [denoise.over(*grid)(whole(plane)) for plane in planes]
    mixed = colours.over(*grid)(*map(each, calm))
    clipped = gamut.over(*grid)(*map(each, mixed))
    return tones.over(*grid)(*map(each, clipped))
