"""The running threads of a launch, and their values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from relax_mlir.bindings import ir
from relax_mlir.interpreter.frame import Frame

from .branches import Branches
from .buffers import DeviceMemory, GroupBuffer
from .fragments import WARP
from .mbarriers import Mbarriers
from .meetings import Meetings
from .pending import Pending
from .shadow import Access


class Values(dict):
    """Values of threads, by what defines them; read as those of the threads that run.

    `levels` are the indices of the threads that run, and of those that wait around them: one for
    each branch that not all threads took.
    """

    def __init__(self, outer: dict[ir.Value, Any], threads: np.ndarray, memory: DeviceMemory):
        super().__init__()
        self._outer, self.memory = outer, memory
        self.levels = [threads]
        self._selections: list[dict[int, np.ndarray]] = [{}]

    def __setitem__(self, value: ir.Value, x: Any) -> None:
        level = len(self.levels) - 1 if isinstance(x, np.ndarray) and x.ndim else None
        super().__setitem__(value, (level, x))

    def __missing__(self, value: ir.Value) -> tuple[int | None, Any]:
        x = self._outer[value]
        entry = (None, self.memory.buffer(x) if isinstance(x, np.ndarray) else x)
        super().__setitem__(value, entry)
        return entry

    def __getitem__(self, value: ir.Value) -> Any:
        level, x = super().__getitem__(value)
        return x if level is None or level == len(self.levels) - 1 else x[self._selected(level)]

    def _selected(self, level: int) -> np.ndarray:
        """Where the threads that run are among those of a level."""
        known = self._selections[-1]
        if level not in known:
            known[level] = np.searchsorted(self.levels[level], self.levels[-1])
        return known[level]

    def apart(self, chosen: np.ndarray) -> Values:
        """Those of some threads, which others do not see."""
        own = Values(self._outer, self.levels[0], self.memory)
        dict.update(own, self)  # what is stored, not what running threads read
        own.levels = [*self.levels, self.levels[-1][chosen]]
        own._selections = [{} for _ in own.levels]
        return own

    @contextmanager
    def only(self, chosen: np.ndarray) -> Iterator[None]:
        """Has only some of the threads run in the `with` block."""
        self.levels.append(self.levels[-1][chosen])
        self._selections.append({})
        yield
        self.levels.pop()
        self._selections.pop()


@dataclass
class Threads(Frame):
    """Some groups of a launch, which run in lockstep: those from `first` up to `last`."""

    values: Values
    grid: Sequence[int] = ()
    size: Sequence[int] = ()
    first: int = 0
    last: int = 0
    _access: Access | None = None
    _level: np.ndarray | None = None
    """The threads that `_access` is of, with the barriers passed so far."""

    def __post_init__(self) -> None:
        self.per_group = prod(self.size)
        """The count of threads of a group."""
        self.pending = Pending.of((self.last - self.first) * self.per_group)
        """Copies that threads began."""
        self.products: list[list[Any]] = [[]]
        """Products of warpgroups that are not complete, by groups; the last one is still made."""
        self.shared: list[GroupBuffer] = []
        """The memory of the groups."""
        self.barriers = Mbarriers(self.per_group)
        """Those in it."""
        self.meetings = Meetings(
            self.first, self.last - self.first, self.per_group, self.barriers
        )  # fmt: skip
        """The barriers that threads passed."""
        self.branches: Branches | None = None
        """Those of which one runs these threads."""

    @property
    def running(self) -> np.ndarray:
        """The indices of the threads that run, among all of the grid."""
        return self.values.levels[-1]

    @property
    def local(self) -> np.ndarray:
        """The threads that run, by their positions among those of these groups."""
        return self.running - self.first * self.per_group

    @property
    def access(self) -> Access:
        """The threads that run, as they access memory."""
        running = self.running
        if self._access is None or self._level is not running:
            self._level = running
            self._access = self.access_of(self.local)
        return self._access

    def access_of(self, local: np.ndarray) -> Access:
        """Threads, by their positions among those of these groups, as they access memory."""
        return self.meetings.access(local)

    @property
    def memory(self) -> DeviceMemory:
        """The memory of the device."""
        return self.values.memory

    def buffer_at(self, address: int) -> GroupBuffer:
        """The memory of the groups that has an address."""
        return max((b for b in self.shared if b.address <= address), key=lambda b: b.address)

    def nested(self) -> Threads:
        """The same frame: values of threads are by what defines them."""
        return self

    def run(self, block: ir.Block, arguments: Sequence[Any] = ()) -> list[Any]:
        """Runs a block; returns the operands of its terminator."""
        steps = self.code.steps(block)
        for argument, x in zip(steps.arguments, arguments, strict=True):
            self.values[argument] = x
        for step in steps.steps:
            step(self)
        return [self.values[value] for value in steps.yielded]

    def run_some(
        self, chosen: np.ndarray, block: ir.Block, arguments: Sequence[Any] = ()
    ) -> list[Any]:
        """Runs a block on the threads that are chosen, of which there is one at least."""
        if chosen.all():
            return self.run(block, arguments)
        with self.values.only(chosen):
            return self.run(block, [picked(x, chosen) for x in arguments])

    def barrier(self, name: int = 0, count: int | None = None) -> None:
        """Has the threads that run meet, `count` of each group; else raises ValueError.

        Without a count they are all of their groups.
        """
        if count is not None and count % WARP:
            raise ValueError(f"is a barrier of {count} threads, which are no whole warps")
        most, groups = count or self.per_group, self.local // self.per_group
        counts = np.bincount(groups, minlength=self.last - self.first)
        if ((counts != 0) & (counts != most)).any():
            missing = int(most - counts[counts != 0].min())
            raise ValueError(f"is a barrier that {missing} threads of a group do not reach")
        if count is None:
            self.meetings.meet(self.local)
        else:
            self.meetings.meet_part(self.local, name)
        self._access = None

    def apart(self, chosen: np.ndarray, branches: Branches) -> Threads:
        """Some of the threads that run, as one of several branches."""
        own = copy(self)
        own.values, own.products, own.branches = self.values.apart(chosen), [[]], branches
        own._access = own._level = None
        return own


def picked(x: Any, chosen: np.ndarray) -> Any:
    """The values of the threads that are chosen."""
    return x[chosen] if isinstance(x, np.ndarray) and x.ndim else x


def merged(old: Any, chosen: np.ndarray, new: Any) -> Any:
    """The values of all threads: new ones of those that are chosen; None has no values yet."""
    if chosen.all():
        return new
    if old is None:
        result = np.zeros(chosen.shape + np.shape(new)[1:], np.asarray(new).dtype)
    else:
        result = np.array(np.broadcast_to(np.asarray(old), chosen.shape + np.shape(new)[1:]))
    result[chosen] = new
    return result
