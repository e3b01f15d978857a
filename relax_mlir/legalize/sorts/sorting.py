"""Tensor programs that order elements along an axis.

Each line is ordered on its own, in scratch memory: by the digits of its elements, merged from short
runs to long ones, or element by element where a few are wanted.
"""

from collections.abc import Callable, Sequence
from functools import partial

from relax_mlir.bindings import arith, ir, scf, tensor
from relax_mlir.dialects.graph import ArgsortRowsOp, SortOp, TopkOp, normalize_axis
from relax_mlir.dialects.tir import SORT

from ..kernel import KernelBuilder, dim, empty, index, scalar
from ..scalars import exceeds, inverted
from ..tasks import Lines, if_else, in_order, in_tasks
from .lines import OwnLines
from .merging import Before, Key, merge_sort
from .networks import Network
from .parallel import sort_line
from .radix import Records, has_records, radix_sort, worth_records
from .selection import Selection
from .values import sort_values

Values = Sequence[ir.Value]

_FEW = 16
"""So many elements are kept in order faster than all of a line are sorted."""


def sort(op: SortOp, kernel: KernelBuilder) -> None:
    """All of each line; where the kernel has one output, values alone."""
    axis, descending = op.attributes["axis"].value, op.attributes["descending"].value
    axis = _declare(kernel, axis, descending)
    if len(kernel.outs) == 1:
        sort_values(kernel, axis, descending)
    else:
        _sort(kernel, axis, descending, False)


def topk(op: TopkOp, kernel: KernelBuilder) -> None:
    """The first of each line that was sorted."""
    axis, descending = op.attributes["axis"].value, op.attributes["largest"].value
    _sort(kernel, _declare(kernel, axis, descending), descending, True)


def _declare(kernel: KernelBuilder, axis: int, descending: bool) -> int:
    """Says on a program what it does, for devices, which do it otherwise; the axis in range."""
    type_ = ir.RankedTensorType(kernel.ins[0].type)
    axis = normalize_axis(axis, type_.rank)
    element = type_.element_type
    is_unsigned = isinstance(element, ir.IntegerType) and element.is_unsigned
    settings = {
        "axis": ir.IntegerAttr.get(_i64(), axis),
        "descending": ir.BoolAttr.get(descending),
        "unsigned": ir.BoolAttr.get(is_unsigned),
    }
    kernel.attribute(SORT, ir.DictAttr.get(settings))
    return axis


def _sort(kernel: KernelBuilder, position: int, descending: bool, is_selection: bool) -> None:
    source = kernel.ins[0]
    type_ = ir.RankedTensorType(source.type)
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
    network = None if records is None or is_selection else Network(records, length)

    def task(lines: Lines, *outs: ir.Value) -> Values:
        parts: Values = [lines.of(out) for out in outs]
        own = OwnLines(source, position, lines)
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
            return put(k, self._records.outputs(x, key), own)

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
