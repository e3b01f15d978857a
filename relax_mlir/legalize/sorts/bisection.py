"""Tensor programs that bisect sorted lines: each value on its own, without branches."""

from collections.abc import Callable, Sequence

from relax_mlir.bindings import arith, ir, tensor
from relax_mlir.dialects.graph import SearchsortedOp

from ..kernel import KernelBuilder, dim, index
from ..scalars import exceeds, inverted, to_compute
from ..tasks import Lines, each_in_order, in_order, in_tasks

_BITS = 63
"""Bits of a length, at most."""


def searchsorted(op: SearchsortedOp, kernel: KernelBuilder) -> None:
    """As many steps as the length has bits: each halves the part that is left."""
    line, values = kernel.ins
    line_rank, rank = (ir.RankedTensorType(x.type).rank for x in (line, values))
    right = op.attributes["right"].value
    length = dim(line, line_rank - 1)
    steps = bit_length(length, ir.RankedTensorType(line.type).shape[-1])
    last = arith.SubIOp(length, index(1)).result

    def task(lines: Lines, out: ir.Value) -> Sequence[ir.Value]:
        read, written = lines.of(values), lines.of(out)

        def one(at: Sequence[ir.Value], part: ir.Value) -> Sequence[ir.Value]:
            value = to_compute(tensor.ExtractOp(read, list(at)).result)
            lead = [] if line_rank == 1 else _positions(lines, at)[:-1]

            def before(position: ir.Value) -> ir.Value:
                inside = arith.MinSIOp(position, last).result
                element = to_compute(tensor.ExtractOp(line, [*lead, inside]).result)
                return inverted(exceeds(element, value)) if right else exceeds(value, element)

            first = bisect(steps, length, before)
            i64 = ir.IntegerType.get_signless(64)
            result = arith.IndexCastOp(i64, first).result
            return [tensor.InsertOp(result, part, list(at)).result]

        return each_in_order([dim(read, i) for i in range(rank)], [written], one)

    kernel.finish(*in_tasks(kernel.outs, [], task))


def _positions(lines: Lines, at: Sequence[ir.Value]) -> list[ir.Value]:
    """The indices in the whole tensor of an element of a part."""
    offsets = [index(x) if isinstance(x, int) else x for x in lines.offsets]
    return [arith.AddIOp(offset, i).result for offset, i in zip(offsets, at, strict=True)]


def bit_length(length: ir.Value, static: int) -> ir.Value:
    """The count of bits of a length, which is static unless that is negative."""
    if static >= 0:
        return index(static.bit_length())

    def count(bit: ir.Value, bits: ir.Value) -> Sequence[ir.Value]:
        rest = arith.ShRUIOp(length, bit).result
        some = arith.CmpIOp(arith.CmpIPredicate.ne, rest, index(0)).result
        return [arith.SelectOp(some, arith.AddIOp(bits, index(1)).result, bits).result]

    return in_order(index(_BITS), [index(0)], count)[0]


def bisect(steps: ir.Value, length: ir.Value, before: Callable[[ir.Value], ir.Value]) -> ir.Value:
    """The first position that is not before, of a part that halves with each step.

    `steps` are as many as the length has bits; `before` is asked for the length, too.
    """

    def step(_: ir.Value, first: ir.Value, count: ir.Value) -> Sequence[ir.Value]:
        half = arith.ShRUIOp(count, index(1)).result
        middle = arith.AddIOp(first, half).result
        some = arith.CmpIOp(arith.CmpIPredicate.ne, count, index(0)).result
        goes_on = arith.AndIOp(some, before(middle)).result
        behind = arith.AddIOp(middle, index(1)).result
        rest = arith.SubIOp(arith.SubIOp(count, half).result, index(1)).result
        return [
            arith.SelectOp(goes_on, behind, first).result,
            arith.SelectOp(goes_on, rest, half).result,
        ]

    return in_order(steps, [index(0), length], step)[0]
