"""The rule for sorts: the digits of keys, from the last one on, by groups for each line.

    lines of one part     a launch: a group for each line, a barrier between passes
    longer lines          launches for each pass, of a group for each part of a line: it counts
                          digits, then it moves records to where a scan of the counts says

Keys are unsigned and in the order of sorting; passes move them with positions, by which elements
are copied in the end: bit by bit, and stable.

Needs: `tir.sort` on a program. Leaves: a scheduled kernel.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from relax_mlir.bindings import arith, func, ir, memref
from relax_mlir.dialects.graph import element_bits
from relax_mlir.dialects.tir import PrimFunc
from relax_mlir.legalize.sorts.radix import SHORTEST
from relax_mlir.legalize.sorts.radix import Records as Keys
from relax_mlir.program.lines import SortedLines, find_sorted_lines
from relax_mlir.schedule.build import loops
from relax_mlir.schedule.build.loops import Index
from relax_mlir.schedule.nests.emit import emit_on_buffers
from relax_mlir.target import Device

from ..launch import Group, barrier, for_groups, for_threads, unraveled
from .digits import BITS, DIGITS, Pass, Records, exclusive, group_bytes

MOST_THREADS, FEWEST_THREADS = 128, 32
LEAST_PART = 1 << 12
"""Records of a part, at least: lines of fewer have a single launch."""
MOST_PARTS = 512
"""Parts of all lines: as many groups as occupy a device."""


def schedule(prim_func: PrimFunc, device: Device, fuse: bool) -> bool:
    """Schedules a sort of lines of 64 elements or more, or of a length that only a call knows."""
    sorted_lines = find_sorted_lines(prim_func)
    if sorted_lines is None or not fuse:
        return False
    length = ir.RankedTensorType(prim_func.ins[0].type).shape[sorted_lines.axis]
    if 0 <= length < SHORTEST or not 8 <= element_bits(sorted_lines.element) <= 64:
        return False
    count = _count_type(length, device)
    threads = _threads(count, device)
    if threads < FEWEST_THREADS:
        return False

    def emit(function: func.FuncOp, _: ir.Module) -> None:
        _Sort.of(list(function.entry_block.arguments), sorted_lines, count, threads, device).emit()

    emit_on_buffers(prim_func, emit)
    return True


def _count_type(length: int, device: Device) -> ir.Type:
    """The type of positions in a line, which is signless: of 32 bits if that is enough."""
    is_short = 0 <= length < 1 << 31
    return ir.IntegerType.get_signless(32 if is_short else device.index_bits)


def _threads(count: ir.Type, device: Device) -> int:
    threads = MOST_THREADS
    while threads > device.workgroup or group_bytes(threads, count) > device.shared_bytes:
        threads //= 2
    return threads


@dataclass(frozen=True)
class _Sort:
    """Emits the launches of a kernel: `lines` of `length` elements, `inner` apart in memory."""

    source: ir.Value
    outs: Sequence[ir.Value]
    keys: Keys
    lines: Index
    length: Index
    selected: Index
    inner: Index
    count: ir.Type
    threads: int
    device: Device

    @staticmethod
    def of(
        arguments: Sequence[ir.Value], lines: SortedLines, count: ir.Type, threads: int,
        device: Device,
    ) -> "_Sort":  # fmt: skip
        """Reads extents."""
        source, *outs = arguments
        axis, rank = lines.axis, ir.MemRefType(source.type).rank
        sizes = [loops.dim(source, i) for i in range(rank)]
        inner = loops.mul(1, *sizes[axis + 1 :])
        selected = loops.minimum(loops.dim(outs[0], axis), sizes[axis])
        flat = [loops.flatten(buffer) for buffer in arguments]
        keys = Keys(lines.element, lines.descending)
        return _Sort(
            flat[0], flat[1:], keys, loops.mul(inner, *sizes[:axis]), sizes[axis], selected, inner,
            count, threads, device,
        )  # fmt: skip

    def emit(self) -> None:
        """Emits both ways, of which the host takes one."""
        total = loops.mul(self.lines, self.length)
        with (
            loops.scratch(total, self._key_type) as keys,
            loops.scratch(total, self._key_type) as other_keys,
            loops.scratch(total, self.count) as positions,
            loops.scratch(total, self.count) as other_positions,
        ):
            sides = Records(keys, positions), Records(other_keys, other_positions)
            is_short = loops.less(self.length, LEAST_PART + 1)
            loops.if_else(is_short, lambda: self._by_groups(*sides), lambda: self._in_parts(*sides))

    @property
    def _key_type(self) -> ir.Type:
        """Keys of less than a word have one, which every device accesses alone."""
        return ir.IntegerType.get_signless(max(self.keys.bits, 32))

    def _by_groups(self, first: Records, second: Records) -> None:
        """A launch of a group for each line."""

        def one(group: Group) -> None:
            begin = loops.mul(group.index, self.length)
            end = loops.add(begin, self.length)

            def share(count: Index, body: Callable[[Index], None]) -> None:
                loops.for_range(group.thread, count, group.threads, body)

            def move(source: Records, target: Records, bit: Index) -> None:
                digits = Pass(group, source, bit, begin, end)
                digits.count()
                barrier()
                digits.move(target, begin)
                barrier()

            share(self.length, lambda k: self._read(first, group.index, k))
            barrier()
            self._passes(first, second, move)
            share(self.selected, lambda k: self._write(first, group.index, k))

        for_groups(self.lines, self.threads, self.device, one)

    def _in_parts(self, first: Records, second: Records) -> None:
        """Launches of a group for each part of a line."""
        parts = _Parts.of(self)

        def each(count: Index, body: Callable[[Index, Index], object]) -> None:
            def one(at: Index) -> None:
                body(*unraveled(at, [self.lines, count]))

            for_threads(loops.mul(self.lines, count), self.device, one)

        each(self.length, lambda line, k: self._read(first, line, k))
        size = loops.mul(self.lines, DIGITS, parts.count)
        with loops.scratch(size, self.count) as totals:
            self._passes(
                first, second, lambda source, target, bit: parts.move(source, target, bit, totals)
            )
        each(self.selected, lambda line, k: self._write(first, line, k))

    def _passes(
        self, first: Records, second: Records, move: Callable[[Records, Records, Index], object]
    ) -> None:
        """Passes over all digits, two at a time, so that records end where they began."""

        def both(bit: ir.Value) -> None:
            move(first, second, bit)
            move(second, first, loops.add(bit, BITS))

        loops.for_range(0, self.keys.bits, 2 * BITS, both)

    def _read(self, records: Records, line: Index, k: Index) -> None:
        """Has a thread make the record of an element."""
        x = memref.load(self.source, [loops.value(self._at(line, k, self.length))])
        key = self.keys.key(x)
        if key.type != self._key_type:
            key = arith.extui(self._key_type, key)
        position = arith.index_cast(self.count, loops.value(k))
        records.put(key, position, loops.add(loops.mul(line, self.length), k))

    def _write(self, records: Records, line: Index, k: Index) -> None:
        """Has a thread copy an element to where its record is, and its position."""
        at = loops.value(loops.add(loops.mul(line, self.length), k))
        position = memref.load(records.positions, [at])
        origin = arith.index_castui(ir.IndexType.get(), position)
        x = memref.load(self.source, [loops.value(self._at(line, origin, self.length))])
        to = [loops.value(self._at(line, k, self.selected))]
        memref.store(x, self.outs[0], to)
        for out in self.outs[1:]:
            i64 = ir.IntegerType.get_signless(64)
            memref.store(position if position.type == i64 else arith.extui(i64, position), out, to)

    def _at(self, line: Index, k: Index, length: Index) -> Index:
        """Where an element of a line is, if lines have a length."""
        outer, inner = loops.floor_div(line, self.inner), loops.mod(line, self.inner)
        row = loops.add(loops.mul(outer, length), k)
        return loops.add(loops.mul(row, self.inner), inner)


@dataclass(frozen=True)
class _Parts:
    """Each line in `count` parts of `size` records."""

    sort: _Sort
    count: Index
    size: Index

    @staticmethod
    def of(sort: _Sort) -> "_Parts":
        """How lines are divided depends on their count and length only."""
        most = loops.maximum(loops.floor_div(MOST_PARTS, loops.maximum(sort.lines, 1)), 1)
        size = loops.maximum(loops.ceil_div(sort.length, most), LEAST_PART)
        return _Parts(sort, loops.ceil_div(sort.length, size), size)

    def move(self, source: Records, target: Records, bit: Index, totals: ir.Value) -> None:
        """Launches a pass; `totals` is memory for totals of (line, digit, part)."""
        sort = self.sort

        def each(body: Callable[[Pass, Index, Index], object]) -> None:
            def one(group: Group) -> None:
                line, part = unraveled(group.index, [sort.lines, self.count])
                body(self._pass(group, source, bit, line, part), line, part)

            for_groups(loops.mul(sort.lines, self.count), sort.threads, sort.device, one)

        def at(line: Index, digit: Index, part: Index) -> list[ir.Value]:
            row = loops.add(loops.mul(line, DIGITS), digit)
            return [loops.value(loops.add(loops.mul(row, self.count), part))]

        def count(digits: Pass, line: Index, part: Index) -> None:
            whole = digits.count()
            barrier()
            digits.totals(whole, lambda digit, x: memref.store(x, totals, at(line, digit, part)))

        def scan(group: Group) -> None:
            size = loops.mul(DIGITS, self.count)
            exclusive(group, totals, size, loops.mul(group.index, size))

        def move(digits: Pass, line: Index, part: Index) -> None:
            digits.count()
            barrier()
            first = loops.mul(line, sort.length)
            digits.move_among(
                target, first, lambda digit: memref.load(totals, at(line, digit, part))
            )

        each(count)
        for_groups(sort.lines, sort.threads, sort.device, scan)
        each(move)

    def _pass(self, group: Group, source: Records, bit: Index, line: Index, part: Index) -> Pass:
        length, first = self.sort.length, loops.mul(line, self.sort.length)
        begin = loops.minimum(loops.mul(part, self.size), length)
        end = loops.minimum(loops.add(begin, self.size), length)
        return Pass(group, source, bit, loops.add(first, begin), loops.add(first, end))
