"""Tensor programs that add elements around a tensor."""

from collections.abc import Sequence

from relax_mlir.bindings import arith, ir, linalg, tensor
from relax_mlir.dialects.graph import PadOp, dims_of_attr, exact_dims
from relax_mlir.symbolic import Expr, bounds, const, maximum, minimum

from ..kernel import PARALLEL, KernelBuilder, affine_map, dim, elementwise, fill, generic, index


def pad(op: PadOp, kernel: KernelBuilder) -> None:
    """A constant everywhere and the input inserted into it, or an element for each position."""
    lows, highs = (exact_dims(dims_of_attr(x.dims)) for x in (op.low, op.high))
    if op.value is None:
        kernel.finish(_repeat(ir.StringAttr(op.attributes["mode"]).value, lows, highs, kernel))
        return
    value = tensor.ExtractOp(kernel.ins[1], []).result
    out = fill(value, kernel.outs[0])
    interior = list(ir.DenseI64ArrayAttr(op.attributes["interior"]))
    before, after = (exact_dims(t.dims) for t in (kernel.in_types[0], kernel.out_types[0]))
    axes = [_kept(*x) for x in zip(before, after, lows, highs, interior, strict=True)]
    if not axes:
        kernel.finish(elementwise(kernel.ins[:1], kernel.outs[0], lambda x: x))
        return
    if any(count.value == 0 for _, count, _ in axes):
        kernel.finish(out)
        return
    kernel.finish(_insert(kernel, out, axes, [gap + 1 for gap in interior]))


def _kept(n: Expr, padded: Expr, low: Expr, high: Expr, gap: int) -> tuple[Expr, Expr, Expr]:
    """The first element of a dim that is kept, how many there are, and where the first one goes."""
    if _is_positive(low) and _is_positive(high):
        return const(0), n, low
    step = gap + 1
    first = minimum((maximum(const(0) - low, 0) + gap) // step, n)
    position = maximum(low + first * step, 0)
    last = (padded - position + gap) // step
    return first, maximum(minimum(n - first, last), 0), minimum(position, padded)


def _is_positive(number: Expr) -> bool:
    least, _ = bounds(number)
    return least is not None and least >= 0


def _insert(
    kernel: KernelBuilder,
    out: ir.Value,
    axes: Sequence[tuple[Expr, Expr, Expr]],
    steps: Sequence[int],
) -> ir.Value:
    """The input, or the part of it that is kept, in its positions."""
    source, whole = kernel.ins[0], exact_dims(kernel.in_types[0].dims)
    firsts, counts, positions = ([axis[i] for axis in axes] for i in range(3))
    sizes, static = _mixed(kernel, counts)
    if firsts != [const(0)] * len(axes) or counts != list(whole):
        starts, static_starts = _mixed(kernel, firsts)
        kind = ir.RankedTensorType.get(static, ir.ShapedType(source.type).element_type)
        ones = [1] * len(axes)
        source = tensor.ExtractSliceOp(
            kind, source, starts, sizes, [], static_starts, static, ones
        ).result
    else:  # what a schedule knows as the extents of the input
        static = list(ir.RankedTensorType(source.type).shape)
        sizes = [dim(source, axis) for axis, extent in enumerate(static) if extent < 0]
    starts, static_starts = _mixed(kernel, positions)
    return tensor.InsertSliceOp(
        source, out, starts, sizes, [], static_starts, static, list(steps)
    ).result


def _mixed(kernel: KernelBuilder, exprs: Sequence[Expr]) -> tuple[list[ir.Value], list[int]]:
    """Values of what is not constant, and the numbers that are, as slices take them."""
    dynamic = ir.ShapedType.get_dynamic_size()
    values = [kernel.symbol(expr) for expr in exprs if expr.value is None]
    return values, [dynamic if expr.value is None else expr.value for expr in exprs]


def _repeat(
    mode: str, lows: Sequence[Expr], highs: Sequence[Expr], kernel: KernelBuilder
) -> ir.Value:
    """Reads each element at its position less the padding, brought into the input by the mode."""
    source, out = kernel.ins[0], kernel.outs[0]
    rank = len(lows)
    extents = [dim(source, axis) for axis in range(rank)]
    starts = [kernel.symbol(low) for low in lows]

    def body(_: ir.Value) -> ir.Value:
        positions = []
        for axis in range(rank):
            position = linalg.IndexOp(axis).result
            if not lows[axis] == const(0) == highs[axis]:
                moved = arith.SubIOp(position, starts[axis]).result
                position = _INSIDE[mode](moved, extents[axis])
            positions.append(position)
        return tensor.ExtractOp(source, positions).result

    identity = affine_map(rank, list(range(rank)))
    return generic([], [out], [identity], [PARALLEL] * rank, body)[0]


def _nearest(position: ir.Value, extent: ir.Value) -> ir.Value:
    last = arith.SubIOp(extent, index(1)).result
    return arith.MaxSIOp(arith.MinSIOp(position, last).result, index(0)).result


def _mirrored(position: ir.Value, extent: ir.Value) -> ir.Value:
    """The distance from 0, and then from the last one to that."""
    last = arith.SubIOp(extent, index(1)).result
    distance = arith.MaxSIOp(position, arith.SubIOp(index(0), position).result).result
    beyond = arith.SubIOp(distance, last).result
    turned = arith.MaxSIOp(beyond, arith.SubIOp(index(0), beyond).result).result
    return arith.SubIOp(last, turned).result


def _around(position: ir.Value, extent: ir.Value) -> ir.Value:
    zero = index(0)
    below = arith.CmpIOp(arith.CmpIPredicate.slt, position, zero).result
    above = arith.CmpIOp(arith.CmpIPredicate.sge, position, extent).result
    added = arith.SelectOp(below, arith.AddIOp(position, extent).result, position).result
    return arith.SelectOp(above, arith.SubIOp(position, extent).result, added).result


_INSIDE = {"edge": _nearest, "reflect": _mirrored, "wrap": _around}
