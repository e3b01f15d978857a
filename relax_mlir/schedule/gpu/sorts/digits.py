"""A pass of a radix sort by a group of threads: records in the order of one digit, stable.

    counts[d, t] = records of digit d in the stretch of thread t          each thread its own ones
    begins[d, t] = counts[d', t'] of all (d', t') in front of (d, t)      a scan over the group
    thread t puts its records in order, one of digit d at begins[d, t]++

Source: Satish, Harris and Garland, Designing efficient sorting algorithms for manycore GPUs, 2009.
"""

from collections.abc import Callable
from dataclasses import dataclass

from relax_mlir.bindings import arith, ir, memref
from relax_mlir.dialects.graph import element_bits
from relax_mlir.schedule.build import loops
from relax_mlir.schedule.build.loops import Index

from ..launch import Group, barrier
from ..scans.prefixes import prefixes

BITS = 4
DIGITS = 1 << BITS
_COUNTS, _OFFSETS = 1, 2
"""Slots of memory of a group."""


def group_bytes(threads: int, count: ir.Type) -> int:
    """Bytes of the memory of a group: counts, two sides of a scan, and offsets."""
    return (DIGITS * threads + 2 * threads + DIGITS) * (element_bits(count) // 8)


@dataclass(frozen=True)
class Records:
    """Records in memory: keys, and positions of a type that counts are of too."""

    keys: ir.Value
    positions: ir.Value

    @property
    def count(self) -> ir.Type:
        """The type of positions."""
        return ir.MemRefType(self.positions.type).element_type

    def put(self, key: ir.Value, position: ir.Value, at: Index) -> None:
        """Stores a record."""
        memref.store(key, self.keys, [loops.value(at)])
        memref.store(position, self.positions, [loops.value(at)])


@dataclass(frozen=True)
class Pass:
    """A pass of a group over records from `begin` to `end`, whose digits begin at a bit."""

    group: Group
    source: Records
    bit: Index
    begin: Index
    end: Index

    def count(self) -> ir.Value:
        """Has threads count digits; where those of each begin, and the total of all.

        Counts of records in front of (d, t) are in memory of the group at d * threads + t.
        """

        def clear(digit: ir.Value) -> None:
            self._set(self._at(digit), self._constant(0))

        loops.for_range(0, DIGITS, 1, clear)

        def one(k: ir.Value) -> None:
            at = self._at(self._digit(k))
            self._set(at, arith.addi(self._get(at), self._constant(1)))

        self._for_own(one)
        barrier()
        return exclusive(self.group, self._counts, loops.mul(DIGITS, self.group.threads), 0)

    def move(self, target: Records, first: Index) -> None:
        """Has threads put records from `first` on, after `count` and a barrier."""
        self._move(target, lambda _, begin: loops.add(first, _index(begin)))

    def totals(self, whole: ir.Value, put: Callable[[Index, ir.Value], object]) -> None:
        """Has threads `put(digit, total)`, after `count`, which returned `whole`, and a barrier."""
        threads, digit = self.group.threads, self.group.thread

        def own() -> None:
            begin = self._get(loops.mul(digit, threads))
            is_last = loops.less(DIGITS - 2, digit)
            following = loops.mul(loops.minimum(loops.add(digit, 1), DIGITS - 1), threads)
            end = loops.select(is_last, whole, self._get(following))
            put(digit, arith.subi(end, begin))

        loops.if_else(loops.less(digit, DIGITS), own)

    def move_among(self, target: Records, first: Index, begin: Callable[[Index], ir.Value]) -> None:
        """Has threads put records from `first` on, those of a digit from `begin(digit)`.

        After `count` and a barrier.
        """
        threads, own = self.group.threads, self.group.thread
        offsets = self.group.memory(DIGITS, self.source.count, _OFFSETS)

        def offset() -> None:
            in_group = self._get(loops.mul(own, threads))
            memref.store(arith.subi(begin(own), in_group), offsets, [own])

        loops.if_else(loops.less(own, DIGITS), offset)
        barrier()

        def at(digit: ir.Value, begin: ir.Value) -> Index:
            return loops.add(first, _index(arith.addi(begin, memref.load(offsets, [digit]))))

        self._move(target, at)

    def _move(self, target: Records, at: Callable[[ir.Value, ir.Value], Index]) -> None:
        def one(k: ir.Value) -> None:
            digit = self._digit(k)
            own = self._at(digit)
            begin = self._get(own)
            self._set(own, arith.addi(begin, self._constant(1)))
            key, position = (
                memref.load(buffer, [k]) for buffer in (self.source.keys, self.source.positions)
            )
            target.put(key, position, at(digit, begin))

        self._for_own(one)

    def _for_own(self, body: Callable[[ir.Value], None]) -> None:
        """Runs a body for the records of the thread's stretch, in order."""
        size = loops.ceil_div(loops.sub(self.end, self.begin), self.group.threads)
        start = loops.add(self.begin, loops.mul(self.group.thread, size))
        start = loops.minimum(start, self.end)
        loops.for_range(start, loops.minimum(loops.add(start, size), self.end), 1, body)

    def _digit(self, k: ir.Value) -> ir.Value:
        key = memref.load(self.source.keys, [k])
        bit = arith.index_cast(key.type, loops.value(self.bit))
        mask = arith.constant(key.type, DIGITS - 1)
        return _index(arith.andi(arith.shrui(key, bit), mask))

    def _at(self, digit: Index) -> ir.Value:
        """Where the thread's count of a digit is."""
        return loops.value(loops.add(loops.mul(digit, self.group.threads), self.group.thread))

    def _get(self, at: Index) -> ir.Value:
        return memref.load(self._counts, [loops.value(at)])

    def _set(self, at: ir.Value, count: ir.Value) -> None:
        memref.store(count, self._counts, [at])

    @property
    def _counts(self) -> ir.Value:
        return self.group.memory(DIGITS * self.group.threads, self.source.count, _COUNTS)

    def _constant(self, count: int) -> ir.Value:
        return arith.constant(self.source.count, count)


def exclusive(group: Group, buffer: ir.Value, count: Index, first: Index) -> ir.Value:
    """Has threads replace elements from `first` on by the sum of those in front; their total."""
    kind = ir.MemRefType(buffer.type).element_type
    size = loops.ceil_div(count, group.threads)
    begin = loops.minimum(loops.mul(group.thread, size), count)
    end = loops.minimum(loops.add(begin, size), count)
    bounds = loops.add(first, begin), loops.add(first, end)
    zero = arith.constant(kind, 0)

    def add(k: ir.Value, total: ir.Value) -> list[ir.Value]:
        return [arith.addi(total, memref.load(buffer, [k]))]

    def replace(k: ir.Value, total: ir.Value) -> list[ir.Value]:
        own = memref.load(buffer, [k])
        memref.store(total, buffer, [k])
        return [arith.addi(total, own)]

    own = loops.for_range(*bounds, 1, add, [zero])[0]
    before, whole = prefixes(group, own, arith.addi)
    before = loops.select(loops.less(group.thread, 1), zero, before)
    loops.for_range(*bounds, 1, replace, [before])
    return whole


def _index(x: ir.Value) -> ir.Value:
    return arith.index_castui(ir.IndexType.get(), x)
