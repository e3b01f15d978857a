"""Tensor programs that sort elements whose positions nobody asks for.

Keys are sorted alone: short lines by networks, longer ones by their digits, a single one on all
threads. Equal keys are equal elements, except NaN: these are written anew in the order that they
had, as are zeros of both signs, which a stable sort leaves in their order.
"""

from collections.abc import Callable, Sequence

from relax_mlir.bindings import arith, ir, tensor

from ..kernel import KernelBuilder, dim, empty, index
from ..tasks import Lines, if_else, in_order, in_tasks
from .bisection import bisect, bit_length
from .lines import OwnLines
from .networks import Network
from .parallel import sort_line
from .radix import Records, radix_sort

Values = Sequence[ir.Value]

_LONGEST_ALONE = 64
"""A line of at most so many elements is faster to sort by a network, if there is no other one."""


def sort_values(kernel: KernelBuilder, axis: int, descending: bool) -> None:
    """Each line along an axis, in order."""
    source = kernel.ins[0]
    type_ = ir.RankedTensorType(source.type)
    keys = Records(type_.element_type, descending, has_positions=False)
    if {n for i, n in enumerate(type_.shape) if i != axis} <= {1}:
        lines = Lines([axis], [0] * type_.rank, type_.shape)
        kernel.finish(_Values(keys, OwnLines(source, axis, lines)).only(kernel.outs[0]))
        return

    def task(lines: Lines, out: ir.Value) -> Values:
        return [_Values(keys, OwnLines(source, axis, lines)).all(lines.of(out))]

    rows = Network(keys, dim(source, axis)).rows
    kernel.finish(*in_tasks(kernel.outs, [axis], task, rows))


class _Values:
    """The lines of a task, and how they are sorted."""

    def __init__(self, keys: Records, own: OwnLines) -> None:
        self._keys, self._own, self._length = keys, own, dim(own.source, own.axis)

    def all(self, part: ir.Value) -> ir.Value:
        """The task's output with all of its lines."""
        network, block = Network(self._keys, self._length), self._own.lines.block
        rest = arith.SelectOp(network.takes, index(0), self._length).result
        buffers = [empty([rest], self._keys.type) for _ in range(2)]

        def line(j: ir.Value, held: ir.Value) -> Values:
            return self._by_digits(j, rest, buffers, held)

        if block is None:
            return line(index(0), part)[0]
        count = dim(part, block)
        parts = network.put_all(self._own, count, [part], self._restored)
        left = arith.SelectOp(network.takes, index(0), count).result
        return in_order(left, parts, line)[0]

    def only(self, out: ir.Value) -> ir.Value:
        """The output with its only line."""
        network = Network(self._keys, self._length, _LONGEST_ALONE)
        rest = arith.SelectOp(network.takes, index(0), self._length).result
        parts = network.put_all(self._own, index(1), [out])
        parts = sort_line(self._keys, self._reader(index(0)), rest, parts, self._own.axis)
        return self._restored(index(0), parts)[0]

    def _reader(self, j: ir.Value) -> Callable[[ir.Value], ir.Value]:
        return lambda k: self._own.read(j, k)

    def _by_digits(self, j: ir.Value, length: ir.Value, buffers: Values, part: ir.Value) -> Values:
        """The output with a line, of which `length` elements are sorted: all of them, or 0."""
        read = self._reader(j)
        ordered, _ = radix_sort(self._keys, lambda k: self._keys.key(read(k)), length, buffers)

        def one(k: ir.Value, written: ir.Value) -> Values:
            x = tensor.ExtractOp(ordered, [k]).result
            return self._own.put(j, k, self._keys.outputs(x, read), [written])

        return self._restored(j, in_order(length, [part], one))

    def _restored(self, j: ir.Value, parts: Values) -> Values:
        """The output with NaN, and zeros of both signs, in the order that a line had them in."""
        if not self._keys.is_float:
            return parts
        is_some = arith.CmpIOp(arith.CmpIPredicate.ugt, self._length, index(0)).result
        return if_else(is_some, [parts[0].type], lambda: self._if_mixed(j, parts[0]), lambda: parts)

    def _if_mixed(self, j: ir.Value, part: ir.Value) -> Values:
        keys, one = self._keys, index(1)
        last = arith.SubIOp(self._length, one).result
        second = self._first(j, part, keys.zero_key)
        first = arith.MaxUIOp(second, one).result  # of those before, if there are some
        zeros = [
            self._is(self._key(j, part, at), key)
            for at, key in (
                (arith.SubIOp(first, one).result, keys.zero_key - 1),
                (arith.MinUIOp(second, last).result, keys.zero_key),
            )
        ]
        has_nan = self._is(self._key(j, part, index(0) if keys.descending else last), keys.nan_key)
        is_mixed = arith.OrIOp(has_nan, arith.AndIOp(*zeros).result).result
        return if_else(is_mixed, [part.type], lambda: self._rewritten(j, part), lambda: [part])

    def _rewritten(self, j: ir.Value, part: ir.Value) -> Values:
        """The output with what is zero or NaN, each kind from where it begins."""
        keys, read = self._keys, self._reader(j)
        begins = [self._first(j, part, key) for key in (keys.zero_key - 1, keys.nan_key)]

        def one(k: ir.Value, zero: ir.Value, nan: ir.Value, written: ir.Value) -> Values:
            x = read(k)
            key = keys.key(x)
            is_nan = self._is(key, keys.nan_key)
            is_zero = arith.OrIOp(
                self._is(key, keys.zero_key), self._is(key, keys.zero_key - 1)
            ).result
            at = arith.SelectOp(is_nan, nan, zero).result
            put = if_else(
                arith.OrIOp(is_nan, is_zero).result,
                [written.type],
                lambda: self._own.put(j, at, [x], [written]),
                lambda: [written],
            )
            after = [
                arith.AddIOp(begin, arith.IndexCastUIOp(ir.IndexType.get(), is_).result).result
                for begin, is_ in ((zero, is_zero), (nan, is_nan))
            ]
            return [*after, *put]

        return in_order(self._length, [*begins, part], one)[2:]

    def _first(self, j: ir.Value, part: ir.Value, key: int) -> ir.Value:
        """Where the elements begin whose keys are not less."""
        last = arith.SubIOp(self._length, index(1)).result

        def before(at: ir.Value) -> ir.Value:
            own = self._key(j, part, arith.MinUIOp(at, last).result)
            return arith.CmpIOp(arith.CmpIPredicate.ult, own, self._keys.scalar(key)).result

        static = ir.RankedTensorType(self._own.source.type).shape[self._own.axis]
        return bisect(bit_length(self._length, static), self._length, before)

    def _key(self, j: ir.Value, part: ir.Value, k: ir.Value) -> ir.Value:
        """The key of an element of the output."""
        return self._keys.key(tensor.ExtractOp(part, self._own.within(j, k)).result)

    def _is(self, key: ir.Value, known: int) -> ir.Value:
        return arith.CmpIOp(arith.CmpIPredicate.eq, key, self._keys.scalar(known)).result
