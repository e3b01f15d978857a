"""Sorting networks in tensor programs: several short lines at a time, one in each lane.

Which elements are compared does not depend on them, so that all lines take the same steps. Source:
Batcher's merge exchange, Knuth, TAOCP 3, 5.2.2, algorithm M.
"""

from collections.abc import Callable, Sequence

from relax_mlir.bindings import arith, ir, scf, tensor
from relax_mlir.dialects.graph import element_bits

from ..kernel import empty, index
from ..tasks import in_order
from .lines import OwnLines
from .radix import Records

Values = Sequence[ir.Value]

_ROW = 128
"""Bytes of memory that hold an element of each line: those of two vectors, if these are long."""
LONGEST = 256
"""Lines of at most so many elements are faster to sort by networks than by digits."""


class Network:
    """Sorts short lines, some at a time; `takes` says whether lines are short."""

    def __init__(self, records: Records, length: ir.Value, longest: int = LONGEST) -> None:
        self._records, self._length = records, length
        self._lanes = 8 * _ROW // element_bits(records.type)
        self.takes = arith.CmpIOp(arith.CmpIPredicate.ule, length, index(longest)).result

    @property
    def rows(self) -> ir.Value:
        """How many rows are a task."""
        return arith.SelectOp(self.takes, index(self._lanes), index(1)).result

    def put_all(
        self,
        own: OwnLines,
        count: ir.Value,
        parts: Values,
        end: Callable[[ir.Value, Values], Values] = lambda line, parts: parts,
    ) -> Values:
        """A task's parts of the outputs with its lines, if those are short.

        `end(line, parts)` returns the parts when a line is written.
        """
        groups = arith.CeilDivUIOp(count, index(self._lanes)).result
        groups = arith.SelectOp(self.takes, groups, index(0)).result
        length = arith.SelectOp(self.takes, self._length, index(0)).result
        last = arith.SubIOp(count, index(1)).result

        def group(g: ir.Value, records: ir.Value, *outs: ir.Value) -> Values:
            first = arith.MulIOp(g, index(self._lanes)).result

            def record(i: ir.Value, j: ir.Value) -> ir.Value:
                line = arith.MinUIOp(arith.AddIOp(first, j).result, last).result
                return self._records.of(own.read(line, i), i)

            ordered = network_sort(record, length, records)

            def put_line(j: ir.Value, *held: ir.Value) -> Values:
                line = arith.AddIOp(first, j).result

                def one(k: ir.Value, *written: ir.Value) -> Values:
                    x = tensor.ExtractOp(ordered, [k, j]).result
                    return own.put(line, k, self._outputs(x, own, line), written)

                return end(line, in_order(length, held, one))

            here = arith.MinUIOp(index(self._lanes), arith.SubIOp(count, first).result).result
            return ordered, *in_order(here, outs, put_line)

        memory = empty([LONGEST, self._lanes], self._records.type)
        return in_order(groups, [memory, *parts], group)[1:]

    def _outputs(self, record: ir.Value, own: OwnLines, line: ir.Value) -> Values:
        """The element that a record is of, and its position if it has one."""
        if not self._records.has_positions:
            return [self._records.value(record, lambda at: own.read(line, at))]
        position = self._records.position(record)
        at = arith.IndexCastOp(ir.IndexType.get(), position).result
        return [own.read(line, at), position]


def network_sort(
    record: Callable[[ir.Value, ir.Value], ir.Value], length: ir.Value, lines: ir.Value
) -> ir.Value:
    """Records in order: element i of line j at [i, j], which `record(i, j)` puts there."""
    lanes = _lanes_of(lines)

    def fill(i: ir.Value, part: ir.Value) -> Values:
        def one(j: ir.Value, own: ir.Value) -> Values:
            return [tensor.InsertOp(record(i, j), own, [i, j]).result]

        return in_order(lanes, [part], one)

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

            return in_order(_lanes_of(lines), [part], one)

        scf.YieldOp(in_order(last, list(outer.inner_iter_args), pair, begin))
    return outer.results[0]


def _lanes_of(lines: ir.Value) -> ir.Value:
    return index(ir.RankedTensorType(lines.type).shape[1])


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
