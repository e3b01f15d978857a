"""Edges in six stages: smoothing, Laplacian, zero crossings, gradient, its maximum, choice."""

from relax_mlir.dataflow import (
    Instance,
    Port,
    Scalar,
    Tensor,
    each,
    graph,
    leaf,
    maximum,
    sqrt,
    where,
    whole,
)

SHARE = 0.25
"""How steep an edge is, as a share of the steepest pixel."""


def most(a: Scalar, b: Scalar) -> Scalar:
    """The greater one, as C's `a > b ? a : b`: images have no NaN, which `maximum` would return."""
    return where(a > b, a, b)


def least(a: Scalar, b: Scalar) -> Scalar:
    """The lesser one."""
    return where(a < b, a, b)


@leaf(image="f32[h, w]")
def smooth(at: Instance, image: Tensor) -> Scalar:
    """The binomial mean of a pixel and its eight neighbours."""
    i, j = at.ids(2)
    rows = [image[i, j + s] * 0.5 + 0.25 * (image[i - 1, j + s] + image[i + 1, j + s])
            for s in (-1, 0, 1)]  # fmt: skip
    return rows[1] * 0.5 + 0.25 * (rows[0] + rows[2])


@leaf(image="f32[h, w]")
def laplacian(at: Instance, image: Tensor) -> Scalar:
    """The brightest plus the darkest neighbour, less twice the pixel."""
    i, j = at.ids(2)
    high = low = image[i, j]
    for di, dj in ((0, 1), (0, -1), (1, 0), (-1, 0), (1, 1), (1, -1), (-1, 1), (-1, -1)):
        high = most(high, image[i + di, j + dj])
        low = least(low, image[i + di, j + dj])
    return high + low - 2.0 * image[i, j]


@leaf(curvature="f32[h, w]")
def crossing(at: Instance, curvature: Tensor) -> Scalar:
    """1 where the curvature becomes positive at a neighbour, else 0."""
    i, j = at.ids(2)
    greatest = most(most(curvature[i, j + 1], curvature[i, j - 1]),
                   most(curvature[i + 1, j], curvature[i - 1, j]))  # fmt: skip
    one = greatest * 0.0 + 1.0
    return where((curvature[i, j] <= 0.0) & (greatest > 0.0), one, 0.0)


@leaf(image="f32[h, w]")
def gradient(at: Instance, image: Tensor) -> Scalar:
    """The length of the gradient."""
    i, j = at.ids(2)
    dx = image[i, j + 1] - image[i, j - 1]
    dy = image[i + 1, j] - image[i - 1, j]
    return sqrt(dx * dx + dy * dy)


@leaf(steepness="f32[h, w]")
def steepest(at: Instance, steepness: Tensor) -> Scalar:
    """The steepest pixel of a row."""
    i = at.id()
    return at.loop(steepness.extent(1), 0.0, lambda j, most: maximum(most, steepness[i, j]))


@leaf(rows="f32[h]")
def greatest(at: Instance, rows: Tensor) -> Scalar:
    """The steepest pixel of all."""
    return at.loop(rows.extent(0), 0.0, lambda i, most: maximum(most, rows[i]))


@leaf(crossing="f32", steepness="f32", most="f32")
def chosen(at: Instance, crossing: Scalar, steepness: Scalar, most: Scalar) -> Scalar:
    """A crossing that is steep enough."""
    return where(steepness > SHARE * most, crossing, 0.0)


@graph(image="f32[h, w]")
def edges(image: Port) -> object:
    """1 for the pixels of edges, 0 for others."""
    grid = ("h", "w")
    smoothed = smooth.over(*grid)(whole(image))
    curved = laplacian.over(*grid)(whole(smoothed))
    crossed = crossing.over(*grid)(whole(curved))
    steep = gradient.over(*grid)(whole(smoothed))
    most = greatest.over()(whole(steepest.over("h")(whole(steep))))
    return chosen.over(*grid)(each(crossed), each(steep), whole(most))
