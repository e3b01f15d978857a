"""Teams: threads of a group, next to each other, that combine what each of them has.

    warps, T = 4:       [a, b, c, d] -> [ab, ab, cd, cd] -> [abcd, abcd, abcd, abcd]
    warps, T > 32:      so in each warp; a value of each through memory; so again
    no warps:           a tree in memory, all of which read its root

All threads get the same bits: a thread alone combines earlier ones with later ones, so unless a
combination is symmetric, the others are given what the first one has.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count

from relax_mlir.bindings import arith, ir, memref
from relax_mlir.schedule.build import loops
from relax_mlir.schedule.build.loops import Index

from .launch import Group
from .shuffles import of_lane, shuffled
from .stored import converted, stored_type

Values = Sequence[ir.Value]


@dataclass(frozen=True)
class Combination:
    """How values of earlier threads are combined with those of later ones.

    `is_symmetric` says that the result has the same bits if both are exchanged.
    """

    combined: Callable[[Values, Values], Values]
    is_symmetric: bool


@dataclass(frozen=True)
class Team:
    """The `size` threads of a group, a power of two, of which `thread` is one.

    `index` is that of the team in its group, `first` that of its first thread.
    """

    group: Group
    index: Index
    first: Index
    thread: Index
    size: int
    _turns: Iterator[int] = field(default_factory=count)

    @staticmethod
    def of(group: Group, size: int) -> "Team":
        """The team of the running thread, where a group has one or several."""
        if group.threads == size:
            return Team(group, 0, 0, group.thread, size)
        index = loops.floor_div(group.thread, size)
        return Team(group, index, loops.mul(index, size), loops.mod(group.thread, size), size)

    def total(self, own: Values, how: Combination) -> list[ir.Value]:
        """The values of all threads combined, in each of them; all threads of the group run."""
        lanes = self.group.lanes
        if lanes == 1:
            return self._by_tree(own, how)
        if self.size <= lanes:
            return self._by_shuffles(own, how, self.size)
        return self._by_warps(own, how, lanes)

    def _by_shuffles(self, own: Values, how: Combination, size: int) -> list[ir.Value]:
        """Combines the values of so many lanes, of all or of a part of a warp."""
        lanes, values, offset = self.group.lanes, own, 1
        while offset < size:
            values = how.combined(values, [shuffled(x, offset, lanes) for x in values])
            offset *= 2
        if how.is_symmetric:
            return list(values)
        lane = loops.mod(self.group.thread, lanes)
        first = loops.sub(lane, loops.mod(lane, size)) if size < lanes else 0
        return [of_lane(x, first, lanes) for x in values]

    def _by_warps(self, own: Values, how: Combination, lanes: int) -> list[ir.Value]:
        """Combines the values of each warp, then those of the warps, which memory has.

        The next values have other memory: who stores to this one again has waited in between.
        """
        group, turn = self.group, next(self._turns) % 2
        values = Combination(how.combined, True)
        memory = _Memory.of(group, own, group.threads // lanes, turn)
        part = self._by_shuffles(own, values, lanes)
        lane, warp = loops.mod(group.thread, lanes), loops.floor_div(group.thread, lanes)
        loops.if_else(loops.less(lane, 1), lambda: memory.store(part, warp))
        group.barrier()
        warps = self.size // lanes
        begin = loops.floor_div(self.first, lanes)
        parts = memory.load(loops.add(begin, loops.mod(lane, warps)))
        return self._by_shuffles(parts, how, warps)

    def _by_tree(self, own: Values, how: Combination) -> list[ir.Value]:
        """Combines the values of halves of the threads, of their halves, and so on."""
        group, is_used = self.group, self.group.has_memory
        memory = _Memory.of(group, own, group.threads, 0)

        def of_team(thread: Index) -> list[ir.Value]:
            return memory.load(loops.add(self.first, thread))

        def merge(width: Index) -> None:
            both = of_team(self.thread), of_team(loops.add(self.thread, width))
            memory.store(how.combined(*both), group.thread)

        def level(i: ir.Value) -> None:
            group.barrier()
            width = arith.shrui(loops.value(self.size // 2), i)
            loops.if_else(loops.less(self.thread, width), lambda: merge(width))

        if is_used:
            group.barrier()
        memory.store(own, group.thread)
        loops.for_range(0, self.size.bit_length() - 1, 1, level)
        group.barrier()
        return of_team(0)


@dataclass(frozen=True)
class _Memory:
    """Memory of a group that has several values of the same types."""

    kinds: Sequence[ir.Type]
    buffers: Sequence[ir.Value]

    @staticmethod
    def of(group: Group, values: Values, count: int, slot: int) -> "_Memory":
        """`count` times as many as the values, in every other slot from one on."""
        kinds = [x.type for x in values]
        stored = (stored_type(kind, group.device) for kind in kinds)
        buffers = [group.memory(count, kind, slot + 2 * i) for i, kind in enumerate(stored)]
        return _Memory(kinds, buffers)

    def store(self, values: Values, at: Index) -> None:
        """Stores values at an index."""
        for x, buffer in zip(values, self.buffers, strict=True):
            stored = ir.MemRefType(buffer.type).element_type
            memref.store(converted(x, stored), buffer, [loops.value(at)])

    def load(self, at: Index) -> list[ir.Value]:
        """The values at an index."""
        loaded = (memref.load(buffer, [loops.value(at)]) for buffer in self.buffers)
        return [converted(x, kind) for x, kind in zip(loaded, self.kinds, strict=True)]
