"""Tensor programs that order elements along an axis.

Each line is ordered on its own, in scratch memory: by the digits of its elements, merged from short
runs to long ones, or element by element where a few are wanted.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from relax_mlir.bindings import arith, ir, scf, tensor
from relax_mlir.dialects.graph import ArgsortRowsOp, SortOp, TopkOp, normalize_axis

from ..kernel import KernelBuilder, dim, empty, index, scalar
from ..scalars import exceeds, inverted
from ..tasks import Lines, if_else, in_order, in_tasks
from . import networks
from .parallel import sort_line
from .radix import Records, has_records, radix_sort, worth_records
from .selection import Selection

Values = Sequence[ir.Value]
Before = Callable[[ir.Value, ir.Value], ir.Value]
Key = Callable[[ir.Value], ir.Value]

_FEW = 16
"""So many elements are kept in order faster than all of a line are sorted."""


def sort(op: SortOp, kernel: KernelBuilder) -> None:
    """All of each line."""
    _sort(kernel, op.attributes["axis"].value, op.attributes["descending"].value, False)


def topk(op: TopkOp, kernel: KernelBuilder) -> None:
    """The first of each line that was sorted."""
    _sort(kernel, op.attributes["axis"].value, op.attributes["largest"].value, True)


def _sort(kernel: KernelBuilder, axis: int, descending: bool, is_selection: bool) -> None:
    source = kernel.ins[0]
    type_ = ir.RankedTensorType(source.type)
    position = normalize_axis(axis, type_.rank)
    length = dim(source, position)
    count = dim(kernel.outs[0], position)
    is_few = 1 <= ir.RankedTensorType(kernel.outs[0].type).shape[position] <= _FEW

    def before(a: ir.Value, b: ir.Value) -> ir.Value:
        return exceeds(a, b) if descending else exceeds(b, a)

    others = [n for i, n in enumerate(type_.shape) if i != position]
    element = type_.element_type
    records = Records(element, descending) if has_records(element) else None
    if records and not is_selection and set(others) <= {1}:
        _sort_line(kernel, position, records, before)
        return
    network = None if records is None or is_selection else _Network(records, length)

    def task(lines: Lines, *outs: ir.Value) -> Values:
        parts: Values = [lines.of(out) for out in outs]
        own = _OwnLines(source, position, lines)
        if is_few:
            order: _Order = _Few(count, element, before)
        elif records:
            order = _Radix(length, count, records, before, selects=is_selection)
        else:
            order = _Merged(length, count, element, before)

        def line(j: ir.Value, *carried: ir.Value) -> Values:
            return order.put(partial(own.read, j), length, carried, partial(own.put, j))

        if lines.block is None:
            return line(index(0), *parts)
        lines_left = dim(parts[0], lines.block)
        if network:
            parts = network.put_all(own, lines_left, parts)
            lines_left = arith.SelectOp(network.takes, index(0), lines_left).result
        return in_order(lines_left, parts, line)

    rows = network.rows if network else None
    kernel.finish(*in_tasks(kernel.outs, [position], task, rows))


@dataclass(frozen=True)
class _OwnLines:
    """The lines of a task, by number."""

    source: ir.Value
    axis: int
    lines: Lines

    def read(self, j: ir.Value, k: ir.Value) -> ir.Value:
        """The k-th element of a line."""
        at = [self.lines.start(axis) for axis in range(len(self.lines.sizes))]
        if self.lines.block is not None:
            at[self.lines.block] = arith.AddIOp(at[self.lines.block], j).result
        at[self.axis] = k
        return tensor.ExtractOp(self.source, at).result

    def put(self, j: ir.Value, k: ir.Value, written: Values, outs: Values) -> Values:
        """The task's parts of the outputs with the k-th elements of a line."""
        to = [index(0)] * len(self.lines.sizes)
        if self.lines.block is not None:
            to[self.lines.block] = j
        to[self.axis] = k
        return [tensor.InsertOp(x, out, to).result for x, out in zip(written, outs, strict=True)]


class _Network:
    """Sorts short lines, some at a time; `takes` says whether lines are short."""

    def __init__(self, records: Records, length: ir.Value) -> None:
        self._records, self._length = records, length
        most = index(networks.LONGEST)
        self.takes = arith.CmpIOp(arith.CmpIPredicate.ule, length, most).result

    @property
    def rows(self) -> ir.Value:
        """How many rows are a task."""
        return arith.SelectOp(self.takes, index(networks.LANES), index(1)).result

    def put_all(self, own: _OwnLines, count: ir.Value, parts: Values) -> Values:
        """A task's parts of the outputs with its lines, if those are short."""
        lanes = index(networks.LANES)
        groups = arith.CeilDivUIOp(count, lanes).result
        groups = arith.SelectOp(self.takes, groups, index(0)).result
        length = arith.SelectOp(self.takes, self._length, index(0)).result
        last = arith.SubIOp(count, index(1)).result
        memory = networks.memory()

        def group(g: ir.Value, records: ir.Value, *outs: ir.Value) -> Values:
            first = arith.MulIOp(g, lanes).result

            def record(i: ir.Value, j: ir.Value) -> ir.Value:
                line = arith.MinUIOp(arith.AddIOp(first, j).result, last).result
                return self._records.of(own.read(line, i), i)

            ordered = networks.network_sort(record, length, records)

            def put_line(j: ir.Value, *held: ir.Value) -> Values:
                line = arith.AddIOp(first, j).result

                def one(k: ir.Value, *written: ir.Value) -> Values:
                    position = self._records.position(tensor.ExtractOp(ordered, [k, j]).result)
                    at = arith.IndexCastOp(ir.IndexType.get(), position).result
                    return own.put(line, k, [own.read(line, at), position], written)

                return in_order(length, held, one)

            here = arith.MinUIOp(lanes, arith.SubIOp(count, first).result).result
            return ordered, *in_order(here, outs, put_line)

        return in_order(groups, [memory, *parts], group)[1:]


def _sort_line(kernel: KernelBuilder, axis: int, records: Records, before: Before) -> None:
    """Sorts the only line."""
    source = kernel.ins[0]
    length, rank = dim(source, axis), ir.RankedTensorType(source.type).rank

    def at(k: ir.Value) -> list[ir.Value]:
        return [k if i == axis else index(0) for i in range(rank)]

    def key(k: ir.Value) -> ir.Value:
        return tensor.ExtractOp(source, at(k)).result

    def put(k: ir.Value, found: Values, own: Values) -> Values:
        return [tensor.InsertOp(x, out, at(k)).result for x, out in zip(found, own, strict=True)]

    whole, rest = _either(worth_records(length), length)
    outs = sort_line(records, key, whole, kernel.outs, axis)
    kernel.finish(*_Merged(rest, rest, records.element, before).put(key, rest, outs, put))


Put = Callable[[ir.Value, Values, Values], Values]
"""Writes the value and the position of the k-th element in order."""


class _Order:
    """Orders lines; one that is made before the loop over lines holds the memory that all use."""

    def put(self, key: Key, length: ir.Value, outs: Values, put: Put) -> Values:
        """The outputs with the elements of a line."""
        raise NotImplementedError


class _Few(_Order):
    """The first elements, which are kept in order."""

    def __init__(self, count: ir.Value, element: ir.Type, before: Before) -> None:
        self._count, self._before = count, before
        self._buffers = [empty([count], kind) for kind in (element, _i64())]

    def put(self, key: Key, length: ir.Value, outs: Values, put: Put) -> Values:
        """See `_Order`."""
        found = _select(key, length, self._buffers, self._before)
        return _put_all(found, self._count, outs, put)


class _Merged(_Order):
    """All elements, by merging."""

    def __init__(self, length: ir.Value, count: ir.Value, element: ir.Type, before: Before) -> None:
        self._count, self._before = count, before
        self._buffers = [empty([length], kind) for kind in (element, _i64()) * 2]

    def put(self, key: Key, length: ir.Value, outs: Values, put: Put) -> Values:
        """See `_Order`."""
        found = merge_sort(key, length, self._buffers, self._before)
        return _put_all(found, self._count, outs, put)


class _Radix(_Order):
    """All elements, or the first ones, by their digits.

    By merging if they are few, or too many for records.
    """

    def __init__(
        self, length: ir.Value, count: ir.Value, records: Records, before: Before, *, selects: bool
    ) -> None:
        uses = worth_records(length)
        self._length, rest = _either(uses, length)
        self._count, other = _either(uses, count)
        self._records, self._rest, self._selection = records, rest, None
        if selects:
            self._selection = Selection.of(records, before, self._count)
        else:
            self._buffers = [empty([self._length], _i64()) for _ in range(2)]
        self._merged = _Merged(rest, other, records.element, before)

    def put(self, key: Key, length: ir.Value, outs: Values, put: Put) -> Values:
        """See `_Order`."""

        def record(k: ir.Value) -> ir.Value:
            return self._records.of(key(k), k)

        if self._selection:
            ordered = self._selection.run(key, self._length)
        else:
            ordered, _ = radix_sort(self._records, record, self._length, self._buffers)

        def one(k: ir.Value, *own: ir.Value) -> Values:
            x = tensor.ExtractOp(ordered, [k]).result
            return put(k, [self._records.value(x, key), self._records.position(x)], own)

        written = in_order(self._count, outs, one)
        return self._merged.put(key, self._rest, written, put)


def _either(uses: ir.Value, n: ir.Value) -> tuple[ir.Value, ir.Value]:
    """A count for records and one for merging, of which one is 0."""
    sides = (n, index(0)), (index(0), n)
    first, second = (arith.SelectOp(uses, *side).result for side in sides)
    return first, second


def _put_all(found: Values, count: ir.Value, outs: Values, put: Put) -> Values:
    def one(k: ir.Value, *own: ir.Value) -> Values:
        return put(k, [tensor.ExtractOp(x, [k]).result for x in found], own)

    return in_order(count, outs, one)


def _i64() -> ir.Type:
    return ir.IntegerType.get_signless(64)


def _select(key: Key, length: ir.Value, buffers: Values, before: Before) -> Values:
    """Keeps the first elements in order; one that goes before the last of them moves up."""
    count = dim(buffers[0], 0)
    last = arith.SubIOp(count, index(1)).result

    def one(i: ir.Value, *carried: ir.Value) -> Values:
        x = key(i)
        there = arith.CmpIOp(arith.CmpIPredicate.sge, i, count).result
        behind = arith.AndIOp(
            there, inverted(before(x, tensor.ExtractOp(carried[0], [last]).result))
        )
        end = arith.MinSIOp(i, last).result
        kinds = [value.type for value in carried]
        return if_else(
            behind.result, kinds, lambda: carried, lambda: _insert(x, i, end, carried, before)
        )

    return in_order(length, buffers, one)


def _insert(x: ir.Value, at: ir.Value, end: ir.Value, carried: Values, before: Before) -> Values:
    """Moves those behind x by one, from the end on, and puts x in front of them."""
    new = x, arith.IndexCastOp(ir.IntegerType.get_signless(64), at).result

    def move(t: ir.Value, is_open: ir.Value, *buffers: ir.Value) -> Values:
        j = arith.SubIOp(end, t).result
        previous = arith.MaxSIOp(arith.SubIOp(j, index(1)).result, index(0)).result
        is_first = arith.CmpIOp(arith.CmpIPredicate.eq, j, index(0)).result
        is_before = before(x, tensor.ExtractOp(buffers[0], [previous]).result)
        moves = arith.AndIOp(inverted(is_first), is_before).result
        moved = []
        for own, buffer in zip(new, buffers, strict=True):
            kept, above = (tensor.ExtractOp(buffer, [i]).result for i in (j, previous))
            placed = arith.SelectOp(moves, above, own).result
            placed = arith.SelectOp(is_open, placed, kept).result
            moved.append(tensor.InsertOp(placed, buffer, [j]).result)
        return arith.AndIOp(is_open, moves).result, *moved

    return in_order(arith.AddIOp(end, index(1)).result, [_truth(1), *carried], move)[1:]


def merge_sort(key: Key, length: ir.Value, buffers: Values, before: Before) -> Values:
    """Merges runs of 1, 2, 4, ... elements from two buffers to the others and back."""

    def fill(k: ir.Value, keys: ir.Value, positions: ir.Value) -> Values:
        number = arith.IndexCastOp(ir.IntegerType.get_signless(64), k).result
        return [
            tensor.InsertOp(x, out, [k]).result for x, out in ((key(k), keys), (number, positions))
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


def _truth(value: int) -> ir.Value:
    return scalar(ir.IntegerType.get_signless(1), value)


def argsort_rows(op: ArgsortRowsOp, kernel: KernelBuilder) -> None:
    """Merges runs of row numbers."""
    source, out = kernel.ins[0], kernel.outs[0]
    length, columns = dim(source, 0), dim(source, 1)
    i64, bit = ir.IntegerType.get_signless(64), ir.IntegerType.get_signless(1)
    buffers = [empty([length], i64) for _ in range(4)]

    def is_less(a: ir.Value, b: ir.Value, column: ir.Value) -> ir.Value:
        x, y = (tensor.ExtractOp(source, [row, column]).result for row in (a, b))
        return exceeds(y, x)

    def before(a: ir.Value, b: ir.Value) -> ir.Value:
        kind = ir.IndexType.get()
        rows = arith.IndexCastOp(kind, a).result, arith.IndexCastOp(kind, b).result

        def differ(column: ir.Value) -> ir.Value:
            less, greater = is_less(*rows, column), is_less(*rows[::-1], column)
            return arith.OrIOp(less, greater).result

        column = first_index(columns, differ)
        inside = arith.CmpIOp(arith.CmpIPredicate.slt, column, columns).result
        return if_else(inside, [bit], lambda: [is_less(*rows, column)], lambda: [_truth(0)])[0]

    def own(k: ir.Value) -> ir.Value:
        return arith.IndexCastOp(i64, k).result

    order = merge_sort(own, length, buffers, before)[1]

    def put(k: ir.Value, part: ir.Value) -> Values:
        return [tensor.InsertOp(tensor.ExtractOp(order, [k]).result, part, [k]).result]

    kernel.finish(*in_order(length, [out], put))


def first_index(count: ir.Value, holds: Callable[[ir.Value], ir.Value]) -> ir.Value:
    """The first index that a condition holds for; the count if there is none."""
    kind, bit = ir.IndexType.get(), ir.IntegerType.get_signless(1)
    loop = scf.WhileOp([kind], [index(0)])
    block = loop.before.blocks.append(kind)
    with ir.InsertionPoint(block):
        (at,) = block.arguments
        inside = arith.CmpIOp(arith.CmpIPredicate.slt, at, count).result
        goes_on = if_else(inside, [bit], lambda: [inverted(holds(at))], lambda: [_truth(0)])
        scf.ConditionOp(goes_on[0], [at])
    block = loop.after.blocks.append(kind)
    with ir.InsertionPoint(block):
        scf.YieldOp([arith.AddIOp(block.arguments[0], index(1)).result])
    return loop.results[0]
