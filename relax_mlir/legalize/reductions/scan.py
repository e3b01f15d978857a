"""Tensor programs that accumulate along an axis: in order, in a wider type than floats have."""

from collections.abc import Callable, Sequence

from relax_mlir.bindings import arith, ir, tensor
from relax_mlir.dialects.graph import CumprodOp, CumsumOp, normalize_axis

from ..kernel import KernelBuilder, dim, empty, fill, index, scalar
from ..scalars import add, multiply
from ..tasks import Lines, in_order, in_tasks

Combine = Callable[[ir.Value, ir.Value], ir.Value]


def cumsum(op: CumsumOp, kernel: KernelBuilder) -> None:
    """Adds from 0."""
    _scan(op, kernel, 0, add)


def cumprod(op: CumprodOp, kernel: KernelBuilder) -> None:
    """Multiplies from 1."""
    _scan(op, kernel, 1, multiply)


def _wider(element: ir.Type) -> ir.Type:
    """What is accumulated in, so that results are hardly worse than rounded once."""
    if isinstance(element, ir.F16Type | ir.BF16Type):
        return ir.F32Type.get()
    return ir.F64Type.get() if isinstance(element, ir.F32Type) else element


def _scan(op: CumsumOp | CumprodOp, kernel: KernelBuilder, start: int, combine: Combine) -> None:
    source, out = kernel.ins[0], kernel.outs[0]
    type_ = ir.RankedTensorType(source.type)
    axis = normalize_axis(op.attributes["axis"].value, type_.rank)
    exclusive, reverse = (op.attributes[name].value for name in ("exclusive", "reverse"))
    wide = _wider(type_.element_type)
    last = arith.SubIOp(dim(source, axis), index(1)).result

    def accumulate(x: ir.Value, total: ir.Value) -> tuple[ir.Value, ir.Value]:
        """The result for an element, and the total behind it."""
        after = combine(total, x if x.type == wide else arith.ExtFOp(wide, x).result)
        found = total if exclusive else after
        if wide != type_.element_type:
            found = arith.TruncFOp(type_.element_type, found).result
        return found, after

    def task(lines: Lines, target: ir.Value) -> Sequence[ir.Value]:
        read, written = lines.of(source), lines.of(target)
        zeros = [index(0)] * type_.rank
        along = lines.block

        def element(k: ir.Value, total: ir.Value, part: ir.Value, j: ir.Value | None):
            at = list(zeros)
            at[axis] = arith.SubIOp(last, k).result if reverse else k
            if along is not None and j is not None:
                at[along] = j
            found, after = accumulate(tensor.ExtractOp(read, at).result, total)
            return after, tensor.InsertOp(found, part, at).result

        def step(k: ir.Value, total: ir.Value, part: ir.Value) -> Sequence[ir.Value]:
            return element(k, total, part, None)

        def row(k: ir.Value, totals: ir.Value, part: ir.Value) -> Sequence[ir.Value]:
            def one(j: ir.Value, sums: ir.Value, held: ir.Value) -> Sequence[ir.Value]:
                after, found = element(k, tensor.ExtractOp(sums, [j]).result, held, j)
                return tensor.InsertOp(after, sums, [j]).result, found

            return in_order(dim(totals, 0), [totals, part], one)

        first = scalar(wide, start)
        if along is None:
            return in_order(dim(source, axis), [first, written], step)[1:]
        totals = fill(first, empty([lines.sizes[along]], wide))
        return in_order(dim(source, axis), [totals, written], row)[1:]

    kernel.finish(*in_tasks([out], [axis], task))
