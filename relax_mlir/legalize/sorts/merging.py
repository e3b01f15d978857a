"""Merge sort in tensor programs: of elements of any type, by any order of them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from relax_mlir.bindings import arith, ir, scf, tensor

from ..kernel import index
from ..scalars import inverted
from ..tasks import in_order

Values = Sequence[ir.Value]
Key = Callable[[ir.Value], ir.Value]
Before = Callable[[ir.Value, ir.Value], ir.Value]


def merge_sort(
    key: Callable[[ir.Value], ir.Value],
    length: ir.Value,
    buffers: Values,
    before: Before,
) -> Values:
    """Merges runs of 1, 2, 4, ... elements from two buffers to the others and back."""

    def fill(k: ir.Value, keys: ir.Value, positions: ir.Value) -> Values:
        own = arith.IndexCastOp(ir.IntegerType.get_signless(64), k).result
        return [
            tensor.InsertOp(x, out, [k]).result for x, out in ((key(k), keys), (own, positions))
        ]

    filled = in_order(length, buffers[:2], fill)

    def twice(_: ir.Value, width: ir.Value, *carried: ir.Value) -> Values:
        double = arith.MulIOp(width, index(2)).result
        there = _Merge(length, width, double, carried[:2], before).into(carried[2:])
        width = arith.MulIOp(double, index(2)).result
        back = _Merge(length, double, width, there, before).into(carried[:2])
        return width, *back, *there

    return in_order(_passes(length), [index(1), *filled, *buffers[2:]], twice)[1:3]


def _passes(length: ir.Value) -> ir.Value:
    """How often runs have to become four times as long to be all."""
    kind = ir.IndexType.get()
    loop = scf.WhileOp([kind, kind], [index(1), index(0)])
    before = loop.before.blocks.append(kind, kind)
    with ir.InsertionPoint(before):
        width, count = before.arguments
        more = arith.CmpIOp(arith.CmpIPredicate.slt, width, length).result
        scf.ConditionOp(more, [width, count])
    after = loop.after.blocks.append(kind, kind)
    with ir.InsertionPoint(after):
        width, count = after.arguments
        longer = arith.MulIOp(width, index(4)).result
        scf.YieldOp([longer, arith.AddIOp(count, index(1)).result])
    return loop.results[1]


@dataclass(frozen=True)
class _Merge:
    """Merges neighbouring runs of some elements, which are sorted, to runs of twice as many."""

    length: ir.Value
    width: ir.Value
    double: ir.Value
    source: Values
    before: Before

    def into(self, target: Values) -> list[ir.Value]:
        """The merged runs, with their indices."""
        loop = scf.ForOp(index(0), self.length, self.double, list(target))
        with ir.InsertionPoint(loop.body):
            begin = loop.induction_variable
            middle, end = (self._at_most(begin, width) for width in (self.width, self.double))
            carried = [begin, middle, *loop.inner_iter_args]

            def one(position: ir.Value, left: ir.Value, right: ir.Value, *out: ir.Value) -> Values:
                return self._next(position, (left, middle), (right, end), out)

            scf.YieldOp(in_order(end, carried, one, begin)[2:])
        return list(loop.results)

    def _at_most(self, begin: ir.Value, width: ir.Value) -> ir.Value:
        return arith.MinSIOp(arith.AddIOp(begin, width).result, self.length).result

    def _next(
        self,
        position: ir.Value,
        left: tuple[ir.Value, ir.Value],
        right: tuple[ir.Value, ir.Value],
        target: Values,
    ) -> Values:
        """Moves the next element, of the left run unless that of the right one goes before it."""
        is_left, is_right = (
            arith.CmpIOp(arith.CmpIPredicate.slt, *run).result for run in (left, right)
        )
        keys, positions = self.source
        last = arith.SubIOp(self.length, index(1)).result
        a, b = (arith.MinSIOp(run[0], last).result for run in (left, right))
        first, second = (tensor.ExtractOp(keys, [i]).result for i in (a, b))
        overtakes = arith.AndIOp(is_right, self.before(second, first)).result
        takes_right = arith.OrIOp(inverted(is_left), overtakes).result
        key = arith.SelectOp(takes_right, second, first).result
        at = arith.SelectOp(takes_right, b, a).result
        number = tensor.ExtractOp(positions, [at]).result
        step = arith.IndexCastUIOp(ir.IndexType.get(), takes_right).result
        ahead = arith.SubIOp(index(1), step).result
        moved = [
            tensor.InsertOp(x, out, [position]).result
            for x, out in zip((key, number), target, strict=True)
        ]
        after = arith.AddIOp(left[0], ahead).result, arith.AddIOp(right[0], step).result
        return *after, *moved
