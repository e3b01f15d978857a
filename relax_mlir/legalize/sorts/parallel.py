"""Tensor programs that sort one long line on all threads.

Each of up to eight chunks is sorted by its digits; then runs are merged by tasks that write a block
each, which begins where a search finds it in both runs. Source: Odeh et al., Merge Path, 2012.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from relax_mlir.bindings import arith, ir, scf, tensor

from ..kernel import dim, empty, index
from ..tasks import Lines, in_order, in_parts
from .radix import Records, radix_sort

Values = Sequence[ir.Value]
Read = Callable[[ir.Value], ir.Value]

_BLOCK = 1 << 12
_LEAST_CHUNK = 1 << 13
_TWO_CHUNKS = 1 << 22
"""Lines of so many elements have two chunks, longer ones eight."""


def sort_line(
    records: Records, read: Read, length: ir.Value, outs: Values, axis: int
) -> list[ir.Value]:
    """Values, and positions if records have some, of a line whose other axes have one index.

    `read` reads an element of the line, of which `length` are sorted: all of them, or 0.
    """
    is_long = arith.CmpIOp(arith.CmpIPredicate.ugt, length, index(_TWO_CHUNKS)).result
    parts = arith.SelectOp(is_long, index(8), index(2)).result
    each = arith.CeilDivUIOp(length, parts).result
    blocks = arith.CeilDivUIOp(each, index(_BLOCK)).result
    chunk = arith.MaxUIOp(_times(blocks, index(_BLOCK)), index(_LEAST_CHUNK)).result
    buffers = [empty([length], records.type) for _ in range(2)]

    def sorted_chunk(lines: Lines, *own: ir.Value) -> Values:
        first = lines.start(0)

        def record(k: ir.Value) -> ir.Value:
            at = _plus(first, k)
            return records.of(read(at), at)

        return radix_sort(records, record, dim(own[0], 0), own)

    runs, others = in_parts(buffers, 0, length, index(8), chunk, sorted_chunk)
    # Eight runs become two here, where there are more than two.
    merged = arith.SelectOp(is_long, length, index(0)).result
    for times in (1, 2):
        width = _times(chunk, index(times))
        runs, others = _merged(runs, others, merged, width), runs
    width = arith.SelectOp(is_long, _times(chunk, index(4)), chunk).result
    merge = _Merge(runs, length, width)

    def block(lines: Lines, *own: ir.Value) -> Values:
        def write(k: ir.Value, x: ir.Value, outs: Values) -> Values:
            at = [k if i == axis else index(0) for i in range(len(lines.sizes))]
            written = records.outputs(x, read)
            return [tensor.InsertOp(x, out, at).result for x, out in zip(written, outs)]

        return merge.block(lines.start(axis), dim(own[0], axis), own, write)

    return in_parts(outs, axis, length, _blocks(length), index(_BLOCK), block)


def _merged(runs: ir.Value, target: ir.Value, length: ir.Value, width: ir.Value) -> ir.Value:
    """Runs of twice the width."""
    merge = _Merge(runs, length, width)

    def write(k: ir.Value, x: ir.Value, outs: Values) -> Values:
        return [tensor.InsertOp(x, outs[0], [k]).result]

    def block(lines: Lines, own: ir.Value) -> Values:
        return merge.block(lines.start(0), dim(own, 0), [own], write)

    return in_parts([target], 0, length, _blocks(length), index(_BLOCK), block)[0]


def _blocks(length: ir.Value) -> ir.Value:
    return arith.CeilDivUIOp(length, index(_BLOCK)).result


@dataclass(frozen=True)
class _Merge:
    """Merges neighbouring runs of a width; equal records cannot be told apart."""

    runs: ir.Value
    length: ir.Value
    width: ir.Value

    def block(
        self,
        first: ir.Value,
        size: ir.Value,
        outs: Values,
        write: Callable[[ir.Value, ir.Value, Values], Values],
    ) -> Values:
        """The records from one on in the merged order, `write(k, record, outs)` each."""
        double = _times(self.width, index(2))
        begin = _times(arith.DivUIOp(first, double).result, double)
        middle, end = (self._at_most(_plus(begin, step)) for step in (self.width, double))
        left = _plus(begin, self._search(begin, middle, end, _minus(first, begin)))
        right = _plus(middle, _minus(first, left))

        def one(k: ir.Value, a: ir.Value, b: ir.Value, *carried: ir.Value) -> Values:
            x, y = self._read(a), self._read(b)
            is_right = arith.AndIOp(_less(b, end), _less(y, x)).result
            takes = arith.OrIOp(_less_or_equal(middle, a), is_right).result
            step = arith.IndexCastUIOp(ir.IndexType.get(), takes).result
            record = arith.SelectOp(takes, y, x).result
            return _plus(a, _minus(index(1), step)), _plus(b, step), *write(k, record, carried)

        return in_order(size, [left, right, *outs], one)[2:]

    def _search(
        self, begin: ir.Value, middle: ir.Value, end: ir.Value, position: ir.Value
    ) -> ir.Value:
        """How many of the first records of a pair of runs are of the left one."""
        left, right = _minus(middle, begin), _minus(end, middle)
        spare = _minus(position, arith.MinUIOp(position, right).result)
        loop = scf.WhileOp([ir.IndexType.get()] * 2, [spare, arith.MinUIOp(position, left).result])
        block = loop.before.blocks.append(*[ir.IndexType.get()] * 2)
        with ir.InsertionPoint(block):
            low, high = block.arguments
            scf.ConditionOp(_less(low, high), [low, high])
        block = loop.after.blocks.append(*[ir.IndexType.get()] * 2)
        with ir.InsertionPoint(block):
            low, high = block.arguments
            half = arith.DivUIOp(_plus(low, high), index(2)).result
            after = _plus(half, index(1))
            other = self._read(_plus(middle, _minus(position, after)))
            is_before = _less(self._read(_plus(begin, half)), other)
            low = arith.SelectOp(is_before, after, low).result
            scf.YieldOp([low, arith.SelectOp(is_before, high, half).result])
        return loop.results[0]

    def _read(self, at: ir.Value) -> ir.Value:
        last = _minus(self.length, index(1))
        return tensor.ExtractOp(self.runs, [arith.MinUIOp(at, last).result]).result

    def _at_most(self, at: ir.Value) -> ir.Value:
        return arith.MinUIOp(at, self.length).result


def _plus(a: ir.Value, b: ir.Value) -> ir.Value:
    return arith.AddIOp(a, b).result


def _minus(a: ir.Value, b: ir.Value) -> ir.Value:
    return arith.SubIOp(a, b).result


def _times(a: ir.Value, b: ir.Value) -> ir.Value:
    return arith.MulIOp(a, b).result


def _less(a: ir.Value, b: ir.Value) -> ir.Value:
    return arith.CmpIOp(arith.CmpIPredicate.ult, a, b).result


def _less_or_equal(a: ir.Value, b: ir.Value) -> ir.Value:
    return arith.CmpIOp(arith.CmpIPredicate.ule, a, b).result
