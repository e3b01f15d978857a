"""Who accessed each word of memory, and when: finds races between threads."""

from dataclasses import dataclass, field

import numpy as np

NOBODY, SEVERAL, ATOMIC = -1, -2, -3


@dataclass(frozen=True)
class Access:
    """Who accesses words at once: threads and their groups, and the barriers that groups passed."""

    thread: np.ndarray
    group: np.ndarray
    epoch: np.ndarray

    def some(self, chosen: np.ndarray) -> "Access":
        """Those of the threads that are chosen."""
        return Access(self.thread[chosen], self.group[chosen], self.epoch[chosen])

    @property
    def atomic(self) -> "Access":
        """Whoever updates atomically is one: there is an order, but to no other access."""
        one = np.full_like(self.thread, ATOMIC)
        return Access(one, one, np.zeros_like(self.epoch))


@dataclass
class Shadow:
    """The last accesses of each of `count` words, by thread, group and barriers passed.

    `raced` finds what has no order: another thread's access without a barrier of its group between,
    or another group's, if one of both writes.
    """

    count: int
    writer: np.ndarray = field(init=False)
    written_at: np.ndarray = field(init=False)
    reader: np.ndarray = field(init=False)
    read_at: np.ndarray = field(init=False)
    reading_group: np.ndarray = field(init=False)
    writing_group: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        for name in ("writer", "written_at", "reader", "read_at", "reading_group", "writing_group"):
            setattr(self, name, np.full(self.count, NOBODY, np.int64))

    def read(self, words: np.ndarray, by: Access) -> np.ndarray:
        """Notes reads; returns which of them race with a write."""
        raced = self._after_write(words, by)
        again = (self.reading_group[words] == by.group) & (self.read_at[words] == by.epoch)
        known = self.reader[words]
        others = again & (known != NOBODY) & (known != by.thread)
        _set(self.reader, words, np.where(others, SEVERAL, by.thread))
        self.read_at[words] = by.epoch
        groups = self.reading_group[words]
        mixed = (groups != NOBODY) & (groups != by.group)
        _set(self.reading_group, words, np.where(mixed, SEVERAL, by.group))
        return raced

    def write(self, words: np.ndarray, by: Access) -> np.ndarray:
        """Notes writes; returns which of them race with another access, or with each other."""
        raced = self._after_write(words, by)
        group, reader = self.reading_group[words], self.reader[words]
        apart = (group != NOBODY) & (group != by.group)
        at_once = (group == by.group) & (self.read_at[words] == by.epoch) & (reader != by.thread)
        raced |= apart | at_once
        self.writer[words] = by.thread
        raced |= self.writer[words] != by.thread
        self.written_at[words] = by.epoch
        self.writing_group[words] = by.group
        return raced

    def _after_write(self, words: np.ndarray, by: Access) -> np.ndarray:
        writer, group = self.writer[words], self.writing_group[words]
        unordered = (group != by.group) | (self.written_at[words] == by.epoch)
        return (writer != NOBODY) & (writer != by.thread) & unordered


def _set(target: np.ndarray, words: np.ndarray, values: np.ndarray) -> None:
    """Sets elements; SEVERAL where two values differ."""
    target[words] = values
    differs = target[words] != values
    target[words[differs]] = SEVERAL
