"""Radix sort in tensor programs: records of an element's key and its position, digit by digit.

    record = key << 32 | position          of fewer than 2^32 elements of 32 bits or less
    record = key                           where nobody asks for positions

Keys are unsigned and in the order of sorting. All NaN have one; so have zeros of both signs, if
there are positions. Then records differ, so that any order of them is the stable one.
Source: Knuth, TAOCP 3, 5.2.5.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from relax_mlir.bindings import arith, ir, tensor
from relax_mlir.dialects.graph import element_bits

from ..kernel import empty, index, scalar
from ..tasks import if_else, in_order

Values = Sequence[ir.Value]

SHORTEST, TOO_LONG = 64, 1 << 32
"""The lengths of lines for which records are worth it, and possible."""
_POSITION_BITS = 32
_INFINITY = {"f16": 0x7C00, "bf16": 0x7F80, "f32": 0x7F800000, "f64": 0x7FF0000000000000}


def has_records(element: ir.Type) -> bool:
    """Whether elements of a type have keys of 32 bits or less."""
    return 8 <= element_bits(element) <= _POSITION_BITS


@dataclass(frozen=True)
class Records:
    """Records of elements of one type."""

    element: ir.Type
    descending: bool
    has_positions: bool = True

    @property
    def bits(self) -> int:
        """The width of keys."""
        return element_bits(self.element)

    @property
    def type(self) -> ir.Type:
        """The type of records."""
        return _integer(64 if self.has_positions else self.bits)

    @property
    def first_bit(self) -> int:
        """Where the key begins."""
        return _POSITION_BITS if self.has_positions else 0

    @property
    def digit_bits(self) -> int:
        """Two digits, four or eight make a key, so that records end where they began."""
        return 8 if self.bits > 8 else 4

    def of(self, x: ir.Value, position: ir.Value) -> ir.Value:
        """The record of an element."""
        key = self.key(x)
        if not self.has_positions:
            return key
        wide = arith.ExtUIOp(_integer(64), key).result
        high = arith.ShLIOp(wide, scalar(_integer(64), _POSITION_BITS)).result
        low = arith.IndexCastOp(_integer(64), position).result
        return arith.OrIOp(high, low).result

    def key(self, x: ir.Value) -> ir.Value:
        """The key of an element."""
        kind = _integer(self.bits)
        bits = x if x.type == kind else _as(kind, x)
        sign = self.scalar(self.zero_key)
        if self.is_float:
            magnitude = arith.AndIOp(bits, self.scalar(self._ones >> 1)).result
            infinity, zero = self.scalar(_INFINITY[str(self.element)]), self.scalar(0)
            is_nan = arith.CmpIOp(arith.CmpIPredicate.ugt, magnitude, infinity).result
            if self.has_positions:
                is_zero = arith.CmpIOp(arith.CmpIPredicate.eq, magnitude, zero).result
                bits = arith.SelectOp(is_zero, zero, bits).result
            bits = arith.SelectOp(is_nan, self.scalar(self._ones >> 1), bits).result
            sign = arith.OrIOp(self._signs(bits), sign).result
        key = bits if self._is_unsigned else arith.XOrIOp(bits, sign).result
        return arith.XOrIOp(key, self.scalar(self._ones)).result if self.descending else key

    def position(self, record: ir.Value) -> ir.Value:
        """The position of an element, as i64."""
        mask = scalar(_integer(64), (1 << _POSITION_BITS) - 1)
        return arith.AndIOp(record, mask).result

    def outputs(self, record: ir.Value, read: Callable[[ir.Value], ir.Value]) -> Values:
        """The element, and its position if the record has one; `read` as for `value`."""
        value = self.value(record, read)
        return [value, self.position(record)] if self.has_positions else [value]

    def value(self, record: ir.Value, read: Callable[[ir.Value], ir.Value]) -> ir.Value:
        """The element; `read` reads it at a position, if its key does not tell which it is.

        Without positions, a NaN for all NaN.
        """
        kind, key = _integer(self.bits), record
        if self.has_positions:
            high = arith.ShRUIOp(record, scalar(_integer(64), _POSITION_BITS)).result
            key = arith.TruncIOp(kind, high).result
        if self.descending:
            key = arith.XOrIOp(key, self.scalar(self._ones)).result
        sign = self.scalar(self.zero_key)
        if not self.is_float:
            bits = key if self._is_unsigned else arith.XOrIOp(key, sign).result
            return bits if bits.type == self.element else _as(self.element, bits)
        # The key of a number below 0 has all bits inverted, else its sign alone.
        negative = arith.XOrIOp(self._signs(key), self.scalar(self._ones)).result
        bits = arith.XOrIOp(key, arith.OrIOp(negative, sign).result).result
        known = _as(self.element, bits)
        if not self.has_positions:
            return known
        position = arith.IndexCastOp(ir.IndexType.get(), self.position(record)).result
        several = [arith.CmpIOp(arith.CmpIPredicate.eq, key, self.scalar(special)).result
                   for special in (self.zero_key, self._ones)]  # fmt: skip
        reads = arith.OrIOp(*several).result
        return if_else(reads, [self.element], lambda: [read(position)], lambda: [known])[0]

    def scalar(self, bits: int) -> ir.Value:
        """A constant of the type of keys."""
        return scalar(_integer(self.bits), bits - (bits > self._ones >> 1) * (self._ones + 1))

    @property
    def nan_key(self) -> int:
        """The key of NaN: the last one, or the first."""
        return 0 if self.descending else self._ones

    @property
    def zero_key(self) -> int:
        """The key of 0; that of the other zero, if it has one, is one less."""
        return 1 << (self.bits - 1)

    @property
    def _is_unsigned(self) -> bool:
        return isinstance(self.element, ir.IntegerType) and self.element.is_unsigned

    @property
    def is_float(self) -> bool:
        """Whether elements are floats."""
        return not isinstance(self.element, ir.IntegerType)

    @property
    def _ones(self) -> int:
        return (1 << self.bits) - 1

    def _signs(self, bits: ir.Value) -> ir.Value:
        return arith.ShRSIOp(bits, scalar(bits.type, self.bits - 1)).result


def _as(element: ir.Type, bits: ir.Value) -> ir.Value:
    return arith.BitcastOp(element, bits).result


def _integer(bits: int) -> ir.Type:
    return ir.IntegerType.get_signless(bits)


def worth_records(length: ir.Value) -> ir.Value:
    """Whether a line is sorted by records, which others are not."""
    least, most = index(SHORTEST), index(TOO_LONG)
    long = arith.CmpIOp(arith.CmpIPredicate.uge, length, least).result
    return arith.AndIOp(long, arith.CmpIOp(arith.CmpIPredicate.ult, length, most).result).result


def radix_sort(
    records: Records,
    record: Callable[[ir.Value], ir.Value],
    length: ir.Value,
    buffers: Values,
) -> tuple[ir.Value, ir.Value]:
    """Two buffers, of which the first has records in order: those of each `record(k)`."""
    width = records.digit_bits
    some = _if_any(length, 1 << width)
    first, end = records.first_bit, records.first_bit + records.bits
    digits = [_Digit(at, width) for at in range(first, end, width)]

    def put(k: ir.Value, target: ir.Value, *counts: ir.Value) -> Values:
        x = record(k)
        added = [digit.counted(x, own) for digit, own in zip(digits, counts, strict=True)]
        return [tensor.InsertOp(x, target, [k]).result, *added]

    zeros = [digit.zeros(some) for digit in digits]
    source, *counts = in_order(length, [buffers[0], *zeros], put)
    target = buffers[1]
    for digit, own in zip(digits, counts, strict=True):
        source, target = digit.moved(length, source, target, _begins(own, some)), source
    return source, target


def _if_any(length: ir.Value, count: int) -> ir.Value:
    """A count, or 0 if the length is."""
    is_empty = arith.CmpIOp(arith.CmpIPredicate.eq, length, index(0)).result
    return arith.SelectOp(is_empty, index(0), index(count)).result


@dataclass(frozen=True)
class _Digit:
    """One digit of records: bits from one on."""

    at: int
    width: int

    def zeros(self, some: ir.Value) -> ir.Value:
        """Counts of each digit."""

        def clear(k: ir.Value, counts: ir.Value) -> Values:
            return [tensor.InsertOp(scalar(_integer(64), 0), counts, [k]).result]

        return in_order(some, [empty([1 << self.width], _integer(64))], clear)[0]

    def counted(self, record: ir.Value, counts: ir.Value) -> ir.Value:
        """The counts with that of a record."""
        return _next(counts, self.of(record))[1]

    def moved(
        self, length: ir.Value, source: ir.Value, target: ir.Value, begins: ir.Value
    ) -> ir.Value:
        """The records in the order of the digit; of equal ones as they were."""

        def move(k: ir.Value, out: ir.Value, ends: ir.Value) -> Values:
            x = tensor.ExtractOp(source, [k]).result
            end, after = _next(ends, self.of(x))
            to = arith.IndexCastOp(ir.IndexType.get(), end).result
            return tensor.InsertOp(x, out, [to]).result, after

        return in_order(length, [target, begins], move)[0]

    def of(self, record: ir.Value) -> ir.Value:
        """The digit of a record."""
        kind = record.type
        shifted = arith.ShRUIOp(record, scalar(kind, self.at)).result
        digit = arith.AndIOp(shifted, scalar(kind, (1 << self.width) - 1)).result
        return arith.IndexCastUIOp(ir.IndexType.get(), digit).result


def _next(counts: ir.Value, at: ir.Value) -> tuple[ir.Value, ir.Value]:
    """A count, and the counts with one more there."""
    own = tensor.ExtractOp(counts, [at]).result
    more = arith.AddIOp(own, scalar(_integer(64), 1)).result
    return own, tensor.InsertOp(more, counts, [at]).result


def _begins(counts: ir.Value, some: ir.Value) -> ir.Value:
    """Where the records of each digit begin."""

    def begin(k: ir.Value, total: ir.Value, begins: ir.Value) -> Values:
        own = tensor.ExtractOp(begins, [k]).result
        return arith.AddIOp(total, own).result, tensor.InsertOp(total, begins, [k]).result

    return in_order(some, [scalar(_integer(64), 0), counts], begin)[1]
