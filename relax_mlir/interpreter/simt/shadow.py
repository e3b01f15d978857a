"""Who accessed each word of memory, and when: finds races between threads."""

from dataclasses import dataclass, field

import numpy as np

NOBODY, SEVERAL, ATOMIC = -1, -2, -3
MOST_PARTS, _HOMES = 16, 32
"""Parts of a group that have barriers of their own, and what the home of a thread counts by."""
_MIXED = _HOMES - 1
"""The part of threads of several parts."""


@dataclass(frozen=True)
class Access:
    """Who accesses words at once: threads, their groups, and the parts of these that they are of.

    `epoch` are the barriers that threads passed; all of a group have passed `whole` of them.
    """

    thread: np.ndarray
    group: np.ndarray
    epoch: np.ndarray
    whole: np.ndarray
    part: np.ndarray

    def some(self, chosen: np.ndarray) -> "Access":
        """Those of the threads that are chosen."""
        fields = (self.thread, self.group, self.epoch, self.whole, self.part)
        return Access(*(x[chosen] for x in fields))

    def repeated(self, count: int) -> "Access":
        """One thread, as it accesses so many words."""
        return self.some(np.zeros(count, np.int64))

    @property
    def atomic(self) -> "Access":
        """Whoever updates atomically is one: there is an order, but to no other access."""
        one, zero = np.full_like(self.thread, ATOMIC), np.zeros_like(self.epoch)
        return Access(one, one, zero, zero, zero)

    @property
    def home(self) -> np.ndarray:
        """The group and the part of each thread, as one integer."""
        return self.group * _HOMES + self.part

    def comes_after(self, home: np.ndarray, epoch: np.ndarray) -> np.ndarray:
        """Whether there is a barrier between this and others' accesses."""
        met = (home == self.home) & (epoch < self.epoch)
        return met | (home // _HOMES == self.group) & (epoch < self.whole)


@dataclass
class Shadow:
    """The last accesses of each of `count` words, by thread, home and barriers passed.

    `raced` finds what has no order: another thread's access without a barrier of its group between,
    or of the part of both, or another group's, if one of both writes.
    """

    count: int
    writer: np.ndarray = field(init=False)
    written_at: np.ndarray = field(init=False)
    reader: np.ndarray = field(init=False)
    read_at: np.ndarray = field(init=False)
    reading_home: np.ndarray = field(init=False)
    writing_home: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        for name in ("writer", "written_at", "reader", "read_at", "reading_home", "writing_home"):
            setattr(self, name, np.full(self.count, NOBODY, np.int64))

    def read(self, words: np.ndarray, by: Access) -> np.ndarray:
        """Notes reads; returns which of them race with a write."""
        raced = self._after_write(words, by)
        homes, before, known = self.reading_home[words], self.read_at[words], self.reader[words]
        is_past = (homes == NOBODY) | by.comes_after(homes, before)
        others = ~is_past & (known != by.thread)
        _set(self.reader, words, np.where(others, SEVERAL, by.thread))
        is_own = is_past | (homes == by.home)
        is_near = homes // _HOMES == by.group
        mixed = np.where(is_near, by.group * _HOMES + _MIXED, SEVERAL)
        _set(self.reading_home, words, np.where(is_own, by.home, mixed))
        self.read_at[words] = np.where(is_own, by.epoch, np.maximum(before, by.epoch))
        return raced

    def write(self, words: np.ndarray, by: Access) -> np.ndarray:
        """Notes writes; returns which of them race with another access, or with each other."""
        raced = self._after_write(words, by)
        homes, reader = self.reading_home[words], self.reader[words]
        is_past = (homes == NOBODY) | by.comes_after(homes, self.read_at[words])
        raced |= ~is_past & (reader != by.thread)
        self.writer[words] = by.thread
        raced |= self.writer[words] != by.thread
        self.written_at[words] = by.epoch
        self.writing_home[words] = by.home
        return raced

    def forget(self, words: np.ndarray) -> None:
        """Forgets accesses to words, which are known to come before all others."""
        self.reader[words] = self.reading_home[words] = NOBODY
        self.writer[words] = self.writing_home[words] = NOBODY

    def _after_write(self, words: np.ndarray, by: Access) -> np.ndarray:
        writer = self.writer[words]
        is_past = by.comes_after(self.writing_home[words], self.written_at[words])
        return (writer != NOBODY) & (writer != by.thread) & ~is_past


def _set(target: np.ndarray, words: np.ndarray, values: np.ndarray) -> None:
    """Sets elements; SEVERAL where two values differ."""
    target[words] = values
    differs = target[words] != values
    target[words[differs]] = SEVERAL
