"""Selection of the first elements in order, in tensor programs.

Elements that may be among the first ones so far are kept; now and then those are sorted, all but
the first ones dropped, and the last one of them is what later elements have to go before. So each
element is sorted a few times at most, and most of them never.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from relax_mlir.bindings import arith, ir, tensor

from ..kernel import empty, index, scalar
from ..tasks import if_else, in_order
from .radix import Records, radix_sort

Values = Sequence[ir.Value]

_BLOCK = 1 << 10
"""So many elements are looked at between decisions to sort."""


@dataclass(frozen=True)
class Selection:
    """The first `count` of a line by records; `buffers` are memory that lines may share."""

    records: Records
    before: Callable[[ir.Value, ir.Value], ir.Value]
    count: ir.Value
    buffers: Values

    @staticmethod
    def of(
        records: Records, before: Callable[[ir.Value, ir.Value], ir.Value], count: ir.Value
    ) -> "Selection":
        """One with memory of its own."""
        twice = arith.MulIOp(count, index(2)).result
        room = arith.AddIOp(twice, index(_BLOCK)).result
        buffers = [empty([room], ir.IntegerType.get_signless(64)) for _ in range(2)]
        return Selection(records, before, count, buffers)

    def run(self, read: Callable[[ir.Value], ir.Value], length: ir.Value) -> ir.Value:
        """The first records in order, of a line whose elements `read` reads."""
        none = arith.CmpIOp(arith.CmpIPredicate.eq, self.count, index(0)).result
        length = arith.SelectOp(none, index(0), length).result
        blocks = arith.CeilDivUIOp(length, index(_BLOCK)).result
        element, bit = self.records.element, ir.IntegerType.get_signless(1)

        def block(i: ir.Value, size: ir.Value, is_bound: ir.Value, bound: ir.Value,
                  kept: ir.Value, other: ir.Value) -> Values:  # fmt: skip
            first = arith.MulIOp(i, index(_BLOCK)).result
            end = arith.MinUIOp(arith.AddIOp(first, index(_BLOCK)).result, length).result

            def one(k: ir.Value, *carried: ir.Value) -> Values:
                x = read(k)
                is_late = arith.AndIOp(is_bound, self.before(bound, x)).result
                kinds = [value.type for value in carried]
                return if_else(is_late, kinds, lambda: carried, lambda: self._keep(x, k, *carried))

            size, kept = in_order(end, [size, kept], one, first)
            most = arith.MulIOp(self.count, index(2)).result
            is_full = arith.CmpIOp(arith.CmpIPredicate.ugt, size, most).result
            state = size, is_bound, bound, kept, other
            return if_else(
                is_full,
                [value.type for value in state],
                lambda: self._reduced(read, size, kept, other),
                lambda: state,
            )

        start = index(0), scalar(bit, 0), scalar(element, 0), *self.buffers
        size, *_, kept, other = in_order(blocks, start, block)
        return self._sorted(size, kept, other)[0]

    def _keep(self, x: ir.Value, k: ir.Value, size: ir.Value, kept: ir.Value) -> Values:
        record = self.records.of(x, k)
        after = arith.AddIOp(size, index(1)).result
        return after, tensor.InsertOp(record, kept, [size]).result

    def _sorted(self, size: ir.Value, kept: ir.Value, other: ir.Value) -> Values:
        """What is kept in order, in the other buffer, and this one."""
        return radix_sort(
            self.records, lambda k: tensor.ExtractOp(kept, [k]).result, size, [other, kept]
        )

    def _reduced(
        self,
        read: Callable[[ir.Value], ir.Value],
        size: ir.Value,
        kept: ir.Value,
        other: ir.Value,
    ) -> Values:
        """The state with the first ones alone, of which the last is the bound."""
        ordered, kept = self._sorted(size, kept, other)

        def back(k: ir.Value, target: ir.Value) -> Values:
            return [tensor.InsertOp(tensor.ExtractOp(ordered, [k]).result, target, [k]).result]

        (kept,) = in_order(self.count, [kept], back)
        last = tensor.ExtractOp(ordered, [arith.SubIOp(self.count, index(1)).result]).result
        is_bound = scalar(ir.IntegerType.get_signless(1), 1)
        return self.count, is_bound, self.records.value(last, read), kept, ordered
