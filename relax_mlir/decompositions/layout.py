"""Operators that are reshapes and permutations: meshgrid, depth_to_space, space_to_depth."""

from relax_mlir.bindings import ir
from relax_mlir.dialects.graph import ShapeError, dims_differ
from relax_mlir.symbolic import Expr

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
