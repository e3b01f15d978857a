"""Operators that are reshapes and permutations: meshgrid, depth_to_space, layout_transform."""

import re

from relax_mlir.bindings import ir
from relax_mlir.dialects.graph import ShapeError, dims_differ
from relax_mlir.symbolic import Expr, const

from .emit import broadcast_to, dims_of, permute, rank_of, reshape


def meshgrid(*inputs: ir.Value, indexing: str = "ij") -> list[ir.Value]:
    """Coordinates of a grid: each vector along an axis of its own, the first two exchanged in "xy".

    Source: array API 2023.12 `meshgrid`; TVM `relax.meshgrid`.
    """
    if indexing not in ("ij", "xy"):
        raise ShapeError(f"expects indexing ij or xy, but got '{indexing}'")
    for value in inputs:
        if rank_of(value) != 1:
            raise ShapeError(f"expects vectors, but got rank {rank_of(value)}")
    axes = list(range(len(inputs)))
    if indexing == "xy" and len(inputs) > 1:
        axes[:2] = [1, 0]
    extents = [dims_of(inputs[axes[i]])[0] for i in range(len(inputs))]
    results = []
    for value, axis in zip(inputs, axes):
        alone = [extent if i == axis else 1 for i, extent in enumerate(extents)]
        results.append(broadcast_to(reshape(value, alone), extents))
    return results


def _images(value: ir.Value, block: int) -> tuple[Expr, Expr, Expr, Expr]:
    if block < 1 or rank_of(value) != 4:
        raise ShapeError(f"expects images and a positive block, but got {block}")
    n, c, h, w = dims_of(value)
    return n, c, h, w


def _divided(dim: Expr, divisor: int) -> Expr:
    if dims_differ(dim, dim // divisor * divisor):
        raise ShapeError(f"expects a multiple of {divisor}, but got dim {dim}")
    return dim // divisor


def depth_to_space(value: ir.Value, block: int, mode: str = "DCR") -> ir.Value:
    """Channels as blocks of pixels: of [n, b * b * c, h, w] it makes [n, c, h * b, w * b].

    In mode DCR a channel is (row, column, c), in CRD (c, row, column). Source: ONNX
    `DepthToSpace`; ATen `pixel_shuffle` is CRD.
    """
    if mode not in ("DCR", "CRD"):
        raise ShapeError(f"expects mode DCR or CRD, but got '{mode}'")
    n, c, h, w = _images(value, block)
    rest = _divided(c, block * block)
    if mode == "DCR":
        split, axes = reshape(value, [n, block, block, rest, h, w]), [0, 3, 4, 1, 5, 2]
    else:
        split, axes = reshape(value, [n, rest, block, block, h, w]), [0, 1, 4, 2, 5, 3]
    return reshape(permute(split, axes), [n, rest, h * block, w * block])


def space_to_depth(value: ir.Value, block: int, mode: str = "DCR") -> ir.Value:
    """Blocks of pixels as channels, the other way round. Source: ONNX `SpaceToDepth`."""
    if mode not in ("DCR", "CRD"):
        raise ShapeError(f"expects mode DCR or CRD, but got '{mode}'")
    n, c, h, w = _images(value, block)
    rows, columns = _divided(h, block), _divided(w, block)
    split = reshape(value, [n, c, rows, block, columns, block])
    axes = [0, 3, 5, 1, 2, 4] if mode == "DCR" else [0, 1, 3, 5, 2, 4]
    return reshape(permute(split, axes), [n, c * (block * block), rows, columns])


def channel_shuffle(value: ir.Value, groups: int) -> ir.Value:
    """Channels of each group in turn. Source: ATen `channel_shuffle`."""
    n, c, *spatial = dims_of(value)
    if groups < 1:
        raise ShapeError(f"expects one group or more, but got {groups}")
    each = _divided(c, groups)
    split = reshape(value, [n, groups, each, *spatial])
    return reshape(permute(split, [0, 2, 1, *range(3, len(spatial) + 3)]), [n, c, *spatial])


def layout_transform(value: ir.Value, source: str, target: str) -> ir.Value:
    """A tensor of one layout in another: "NCHW" and "NCHW4c" have channels in blocks of 4.

    A capital is an axis, a small letter with a factor the position in blocks of it, whose count the
    capital is then. Dims are multiples of the factors. Source: TVM `relax.layout_transform`.
    """
    ours, theirs = _axes(source), _axes(target)
    names = [name for name, _ in ours if name.isupper()]
    if sorted(names) != sorted(name for name, _ in theirs if name.isupper()):
        raise ShapeError(f"expects layouts of the same axes, but got {source} and {target}")
    if rank_of(value) != len(ours):
        raise ShapeError(f"has rank {rank_of(value)}, but layout {source} has {len(ours)} axes")
    factors, dims = dict(theirs), dims_of(value)
    for (name, factor), dim in zip(ours, dims):
        if factor and dims_differ(dim, const(factor)):
            raise ShapeError(f"expects blocks of {factor} along {name}, but got dim {dim}")
    at = {name: i for i, (name, _) in enumerate(ours)}
    order = [at[part] for name in names for part in (name, name.lower()) if part in at]
    extents = {n: dims[at[n]] * (dims[at[n.lower()]] if n.lower() in at else 1) for n in names}
    split: dict[str, Expr] = {}
    for name in names:
        factor = factors.get(name.lower(), 0)
        split[name] = _divided(extents[name], factor) if factor else extents[name]
        if factor:
            split[name.lower()] = const(factor)
    whole = reshape(permute(value, order), list(extents.values()))
    parts = reshape(whole, list(split.values()))
    return permute(parts, [list(split).index(name) for name, _ in theirs])


def _axes(layout: str) -> list[tuple[str, int]]:
    """The letters of a layout, with their factors, 0 of capitals."""
    letters = re.findall(r"([A-Z])|(\d+)([a-z])", layout)
    axes = [(capital or small, int(factor or 0)) for capital, factor, small in letters]
    names = [name for name, _ in axes]
    complete = "".join(name if not factor else f"{factor}{name}" for name, factor in axes)
    outer = all(name.upper() in names and (name.isupper() or factor) for name, factor in axes)
    if not axes or complete != layout or len(set(names)) != len(names) or not outer:
        raise ShapeError(f"expects a layout such as NCHW4c, but got '{layout}'")
    return axes
