"""Sorting networks in tensor programs: many short lines at a time, one in each lane.

Which elements are compared does not depend on them, so that all lines take the same steps. Source:
Batcher's merge exchange, Knuth, TAOCP 3, 5.2.2, algorithm M.
"""

from collections.abc import Callable, Sequence

from relax_mlir.bindings import arith, ir, scf, tensor

from ..kernel import empty, index
from ..tasks import in_order

Values = Sequence[ir.Value]

LANES = 16
LONGEST = 256
"""Lines of at most so many elements are faster to sort by networks than by digits."""


def memory() -> ir.Value:
    """Memory of the records of some lines, one record after the other."""
    return empty([LONGEST, LANES], ir.IntegerType.get_signless(64))


def network_sort(
    record: Callable[[ir.Value, ir.Value], ir.Value], length: ir.Value, lines: ir.Value
) -> ir.Value:
    """Records in order: element i of line j at [i, j], which `record(i, j)` puts there."""

    def fill(i: ir.Value, part: ir.Value) -> Values:
        def one(j: ir.Value, own: ir.Value) -> Values:
            return [tensor.InsertOp(record(i, j), own, [i, j]).result]

        return in_order(index(LANES), [part], one)

    (filled,) = in_order(length, [lines], fill)
    # For distances p = 2^(t - 1), .., 2, 1, where 2^t is the length or the next power of two.
    stages, half = _stages(length)

    def stage(number: ir.Value, p: ir.Value, part: ir.Value) -> Values:
        def step(s: ir.Value, q: ir.Value, first: ir.Value, distance: ir.Value, own: ir.Value):
            sorted_ = _exchanged(length, p, first, distance, own)
            return _half(q), p, _minus(q, p), sorted_

        steps = arith.AddIOp(number, index(1)).result
        after = in_order(steps, [half, index(0), p, part], step)[3]
        return _half(p), after

    return in_order(stages, [half, filled], stage)[1]


def _exchanged(
    length: ir.Value, p: ir.Value, first: ir.Value, distance: ir.Value, lines: ir.Value
) -> ir.Value:
    """Elements i with (i & p) == first and those at a distance, in order."""
    end = _minus(length, arith.MinUIOp(distance, length).result)
    double = arith.MulIOp(p, index(2)).result
    outer = scf.ForOp(arith.MinUIOp(first, end).result, end, double, [lines])
    with ir.InsertionPoint(outer.body):
        begin = outer.induction_variable
        last = arith.MinUIOp(arith.AddIOp(begin, p).result, end).result

        def pair(i: ir.Value, part: ir.Value) -> Values:
            other = arith.AddIOp(i, distance).result

            def one(j: ir.Value, own: ir.Value) -> Values:
                a, b = (tensor.ExtractOp(own, [at, j]).result for at in (i, other))
                low, high = arith.MinUIOp(a, b).result, arith.MaxUIOp(a, b).result
                own = tensor.InsertOp(low, own, [i, j]).result
                return [tensor.InsertOp(high, own, [other, j]).result]

            return in_order(index(LANES), [part], one)

        scf.YieldOp(in_order(last, list(outer.inner_iter_args), pair, begin))
    return outer.results[0]


def _stages(length: ir.Value) -> tuple[ir.Value, ir.Value]:
    """The number of stages, t, and 2^(t - 1); no stages for one element."""
    stages, half, power = index(0), index(1), 1
    while power < LONGEST:
        is_more = arith.CmpIOp(arith.CmpIPredicate.ugt, length, index(power)).result
        stages = arith.AddIOp(stages, arith.IndexCastUIOp(ir.IndexType.get(), is_more).result)
        stages = stages.result
        half = arith.SelectOp(is_more, index(power), half).result
        power *= 2
    return stages, half


def _half(x: ir.Value) -> ir.Value:
    return arith.DivUIOp(x, index(2)).result


def _minus(a: ir.Value, b: ir.Value) -> ir.Value:
    return arith.SubIOp(a, b).result
