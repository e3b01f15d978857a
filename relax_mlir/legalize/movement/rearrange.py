"""Tensor programs that repeat elements or put them in another order."""

from collections.abc import Callable, Sequence

from relax_mlir.bindings import arith, ir, linalg, tensor
from relax_mlir.dialects.graph import (
    FlipOp,
    RepeatOp,
    RollOp,
    StackOp,
    TileOp,
    dims_of_attr,
    exact_dims,
    normalize_axis,
)
from relax_mlir.symbolic import Expr, const

from ..kernel import PARALLEL, KernelBuilder, affine_map, dim, generic, index
from .regroup import collapse, match_dynamic

OWN = None
"""Stands for the input's own dim in a list of the dims that one of the output is split to."""


def flip(op: FlipOp, kernel: KernelBuilder) -> None:
    """Reads from the end."""
    source = kernel.ins[0]
    rank = ir.RankedTensorType(source.type).rank

    def turned(axis: int) -> Callable[[ir.Value], ir.Value]:
        last = arith.SubIOp(dim(source, axis), index(1)).result
        return lambda position: arith.SubIOp(last, position).result

    axes = [normalize_axis(axis, rank) for axis in ir.DenseI64ArrayAttr(op.attributes["axes"])]
    _moved(kernel, {axis: turned(axis) for axis in axes})


def roll(op: RollOp, kernel: KernelBuilder) -> None:
    """Reads from as far in front as elements move, behind the ends from the other one."""
    source = kernel.ins[0]
    rank = ir.RankedTensorType(source.type).rank

    def shifted(axis: int, shift: int) -> Callable[[ir.Value], ir.Value]:
        extent = dim(source, axis)
        some = arith.MaxSIOp(extent, index(1)).result
        rest = arith.RemSIOp(index(-shift), some).result
        moved = arith.AddIOp(rest, some).result
        distance = arith.RemSIOp(moved, some).result

        def read(position: ir.Value) -> ir.Value:
            there = arith.AddIOp(position, distance).result
            beyond = arith.CmpIOp(arith.CmpIPredicate.sge, there, extent).result
            around = arith.SubIOp(there, extent).result
            return arith.SelectOp(beyond, around, there).result

        return read

    axes, shifts = (ir.DenseI64ArrayAttr(op.attributes[name]) for name in ("axes", "shifts"))
    _moved(kernel, {normalize_axis(a, rank): shifted(a % rank, s) for a, s in zip(axes, shifts)})


def _moved(kernel: KernelBuilder, reads: dict[int, Callable[[ir.Value], ir.Value]]) -> None:
    """Each element from its own position, along some axes from another one."""
    source, out = kernel.ins[0], kernel.outs[0]
    rank = ir.RankedTensorType(out.type).rank

    def body(_: ir.Value) -> ir.Value:
        positions = [linalg.IndexOp(axis).result for axis in range(rank)]
        for axis, read in reads.items():
            positions[axis] = read(positions[axis])
        return tensor.ExtractOp(source, positions).result

    identity = affine_map(rank, list(range(rank)))
    kernel.finish(*generic([], [out], [identity], [PARALLEL] * rank, body))


def tile(op: TileOp, kernel: KernelBuilder) -> None:
    """A loop over repetitions around that over the input, for each dim."""
    counts = exact_dims(dims_of_attr(op.repeats.dims))
    added = len(counts) - len(exact_dims(kernel.in_types[0].dims))
    _spread(kernel, [[count] if i < added else [count, OWN] for i, count in enumerate(counts)])


def repeat(op: RepeatOp, kernel: KernelBuilder) -> None:
    """A loop over repetitions inside of that over the input."""
    (count,) = exact_dims(dims_of_attr(op.repeats.dims))
    rank = len(exact_dims(kernel.in_types[0].dims))
    axis = normalize_axis(op.attributes["axis"].value, rank)
    _spread(kernel, [[OWN, count] if i == axis else [OWN] for i in range(rank)])


def _spread(kernel: KernelBuilder, splits: Sequence[Sequence[Expr | None]]) -> None:
    """Sees each dim of the output as loops, of which one may be over the input's own dim."""
    source, out = kernel.ins[0], kernel.outs[0]
    shape = ir.RankedTensorType(out.type).shape
    if 0 in shape:
        kernel.finish(out)
        return
    own = iter(exact_dims(kernel.in_types[0].dims))
    loops: list[Expr] = []
    groups: list[list[int]] = []
    reads: list[int] = []
    for split in splits:
        extents = [next(own) if extent is OWN else extent for extent in split]
        kept = [i for i, x in enumerate(extents) if x != const(1) or split[i] is OWN] or [0]
        reads += [len(loops) + kept.index(i) for i in kept if split[i] is OWN]
        groups.append([len(loops) + i for i in range(len(kept))])
        loops += [extents[i] for i in kept]
    wide = _split(kernel, out, groups, loops)
    rank = len(loops)
    maps = [affine_map(rank, reads), affine_map(rank, list(range(rank)))]
    (made,) = generic([source], [wide], maps, [PARALLEL] * rank, lambda x, _: x)
    kernel.finish(made if rank == len(shape) else collapse(made, groups))


def _split(
    kernel: KernelBuilder, out: ir.Value, groups: Sequence[list[int]], loops: Sequence[Expr]
) -> ir.Value:
    """The output with each dim as several ones."""
    if len(loops) == len(groups):
        return out
    dynamic = ir.ShapedType.get_dynamic_size()
    static = [dynamic if extent.value is None else extent.value for extent in loops]
    sizes = [kernel.symbol(extent) for extent in loops if extent.value is None]
    type_ = ir.RankedTensorType.get(static, ir.ShapedType(out.type).element_type)
    source = match_dynamic(out, type_, groups)
    return tensor.ExpandShapeOp(type_, source, list(groups), sizes, static).result


def stack(op: StackOp, kernel: KernelBuilder) -> None:
    """Copies each operand to its index of the new axis."""
    out = kernel.outs[0]
    shape = ir.RankedTensorType(out.type).shape
    axis = normalize_axis(op.attributes["axis"].value, len(shape))
    result = out
    for number, source in enumerate([] if 0 in shape else kernel.ins):
        extents = list(ir.RankedTensorType(source.type).shape)
        sizes = [dim(source, i) for i, extent in enumerate(extents) if extent < 0]
        static = [*extents[:axis], 1, *extents[axis:]]
        offsets = [number if i == axis else 0 for i in range(len(shape))]
        result = tensor.InsertSliceOp(
            source, result, [], sizes, [], offsets, static, [1] * len(shape)
        ).result
    kernel.finish(result)
