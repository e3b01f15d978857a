"""Barriers in memory of groups: their phases are complete when threads arrived, and bytes.

A copy that a barrier counts is complete at the last moment that is permitted: when nothing can go
on without it. Who accesses what it copied has to have seen that, or to have met one who has; who
copies to the same memory again has to know that all others are done with it.

Source: NVIDIA, PTX ISA 8.5, parallel synchronization, mbarrier.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from .clocks import Clocks
from .shadow import Access

BARRIER_BYTES = 8
_MOST = (1 << 20) - 1
"""Arrivals of a phase, and bytes that it waits for."""


@dataclass
class Mbarrier:
    """A barrier that `count` arrivals complete a phase of.

    `made` says which thread made it, and after how many barriers of its group. `phases` are
    complete, of which each thread of the group has `seen` so many. Those that arrived for them have
    `told` what they did; of the phase that is not complete, they are `telling` it. `copies` are on
    their way: the bytes of each, and what ends it, which gets the index of the copy.
    """

    count: int
    made: tuple[int, int]
    seen: np.ndarray
    told: np.ndarray
    telling: np.ndarray
    is_published: bool = False
    arrived: int = 0
    missing: int = 0
    phases: int = 0
    copies: list[tuple[int, int, Callable[[int], object]]] = field(default_factory=list)


class Mbarriers:
    """The barriers of some groups of `per_group` threads; `changes` counts phases that ended."""

    def __init__(self, per_group: int) -> None:
        self._per_group = per_group
        self._known: dict[tuple[int, int], Mbarrier] = {}
        self._copies: list[tuple[Mbarrier, int, np.ndarray]] = []
        """For each copy, its barrier, the phase, and when threads accessed it, or -1."""
        self._clocks: dict[int, Clocks] = {}
        """Those of the groups that have barriers."""
        self.changes = 0

    def make(self, address: int, count: int, by: Access) -> None:
        """A thread makes a barrier; raises ValueError if there is one, or the count is wrong."""
        group, thread = int(by.group[0]), int(by.thread[0])
        if address % BARRIER_BYTES:
            raise ValueError(f"an address is no multiple of {BARRIER_BYTES}")
        if (group, address) in self._known:
            raise ValueError("makes a barrier that there is")
        if not 0 < count <= _MOST:
            raise ValueError(f"a barrier of {count} arrivals")
        seen, told, telling = (np.zeros(self._per_group, np.int32) for _ in range(3))
        made = thread, int(by.epoch[0])
        self._known[group, address] = Mbarrier(count, made, seen, told, telling)
        self._clocks.setdefault(group, Clocks(self._per_group))

    def publish(self, by: Access) -> None:
        """Threads have copies see the barriers that they made."""
        makers = set(by.thread.tolist())
        for barrier in self._known.values():
            if barrier.made[0] in makers:
                barrier.is_published = True

    def arrive(self, address: int, size: int, by: Access) -> None:
        """A thread arrives, tells what it did, and that so many more bytes come."""
        barrier = self._used(address, by)
        told = self._clocks[int(by.group[0])].tell(int(by.thread[0]) % self._per_group)
        np.maximum(barrier.telling, told, out=barrier.telling)
        if not 0 <= size <= _MOST:
            raise ValueError(f"a barrier that waits for {size} bytes")
        barrier.missing += size
        barrier.arrived += 1
        self._advance(barrier)

    def begin(self, address: int, size: int, by: Access, end: Callable[[int], object]) -> None:
        """A thread begins a copy that the barrier counts; `end` gets the index of the copy."""
        barrier = self._used(address, by)
        if not barrier.is_published:
            raise ValueError("a copy uses a barrier that was made without fence.mbarrier_init")
        accessed = np.full(self._per_group, -1, np.int32)
        self._copies.append((barrier, barrier.phases, accessed))
        barrier.copies.append((len(self._copies) - 1, size, end))

    def is_complete(self, address: int, parity: int, by: Access) -> bool:
        """Whether threads of one group see the phase of a parity complete."""
        barrier = self._used(address, by)
        if barrier.phases % 2 == parity:
            return False
        threads = by.thread % self._per_group
        barrier.seen[threads] = barrier.phases
        self._clocks[int(by.group[0])].learn(threads, barrier.told)
        return True

    def complete_copies(self) -> None:
        """Ends all copies that are on their way."""
        for barrier in self._known.values():
            copies, barrier.copies = barrier.copies, []
            for index, size, end in copies:
                end(index)
                barrier.missing -= size
            if copies:
                self._advance(barrier)

    def go_on(self) -> None:
        """Ends copies, as all threads wait; raises ValueError if that completes no phase."""
        before = self.changes
        self.complete_copies()
        if self.changes == before:
            raise ValueError("waits for a phase of a barrier that is never complete")

    def require_seen(self, copies: np.ndarray, by: Access) -> None:
        """Raises ValueError unless each thread has seen the end of its copy; -1 is none."""
        for index in np.unique(copies[copies >= 0]):
            barrier, phase, _ = self._copies[index]
            threads = by.thread[copies == index] % self._per_group
            if (barrier.seen[threads] <= phase).any():
                raise ValueError("accesses what was copied without a wait for its barrier")

    def note(self, copies: np.ndarray, by: Access) -> None:
        """Notes that each thread accesses what its copy has brought; -1 is none."""
        for index in np.unique(copies[copies >= 0]):
            chosen = copies == index
            group, threads = int(by.group[chosen][0]), by.thread[chosen] % self._per_group
            self._copies[index][2][threads] = self._clocks[group].now[threads]

    def require_done(self, copies: np.ndarray, by: Access) -> None:
        """Raises ValueError unless a thread knows that all are done with what copies brought."""
        for index in np.unique(copies[copies >= 0]):
            clocks = self._clocks[int(by.group[0])]
            if not clocks.knows(int(by.thread[0]) % self._per_group, self._copies[index][2]):
                raise ValueError("copies to what others read without a barrier between them")

    def join(self, group: int, threads: np.ndarray) -> None:
        """Threads of a group meet, which are counted from its first one."""
        if group in self._clocks:
            self._clocks[group].meet(threads)
        for (own, _), barrier in self._known.items():
            if own == group:
                barrier.seen[threads] = barrier.seen[threads].max()

    @property
    def are_pending(self) -> bool:
        """Whether copies are on their way."""
        return any(barrier.copies for barrier in self._known.values())

    def _used(self, address: int, by: Access) -> Mbarrier:
        barrier = self._known.get((int(by.group[0]), address))
        if barrier is None:
            raise ValueError(f"there is no barrier at {address:#x}")
        thread, epoch = barrier.made
        if ((by.thread != thread) & (by.epoch == epoch)).any():
            raise ValueError("uses a barrier that another thread made, without a barrier between")
        return barrier

    def _advance(self, barrier: Mbarrier) -> None:
        """Ends a phase of which nothing is missing."""
        if barrier.arrived > barrier.count:
            raise ValueError(f"more than {barrier.count} threads arrive at a barrier")
        if barrier.arrived == barrier.count and barrier.missing == 0:
            barrier.phases += 1
            barrier.arrived = 0
            barrier.told = barrier.telling.copy()
            self.changes += 1
