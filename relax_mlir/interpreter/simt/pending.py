"""Copies to memory of groups that go on while threads do.

A copy is complete when its thread has waited for it, at the last moment that is permitted: who
accesses what it copies to before, or without a barrier after that, fails.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Copy:
    """What threads copy at once: `data` to `offsets` of memory, and the group of each copy."""

    memory: Any
    threads: np.ndarray
    offsets: np.ndarray
    data: np.ndarray
    groups: np.ndarray

    def some(self, chosen: np.ndarray) -> "Copy":
        """Those of some threads."""
        parts = (x[chosen] for x in (self.threads, self.offsets, self.data, self.groups))
        return Copy(self.memory, *parts)


@dataclass
class Pending:
    """Copies that are not complete, and how many groups of them each thread has committed."""

    committed: np.ndarray
    copies: list[Copy] = field(default_factory=list)

    @staticmethod
    def of(threads: int) -> "Pending":
        """No copies, of so many threads."""
        return Pending(np.zeros(threads, np.int64))

    def add(self, memory: Any, threads: np.ndarray, offsets: np.ndarray, data: np.ndarray) -> None:
        """Notes copies that threads began, by their positions among all that run."""
        self.copies.append(Copy(memory, threads, offsets, data, self.committed[threads]))

    def commit(self, threads: np.ndarray) -> None:
        """Makes what threads began since the last time a group."""
        self.committed[threads] += 1

    def wait(self, threads: np.ndarray, most: int) -> list[Copy]:
        """The copies that are complete when at most so many groups of threads are not."""
        waits = np.zeros(len(self.committed), bool)
        waits[threads] = True
        complete, left = [], []
        for copy in self.copies:
            done = waits[copy.threads]
            done &= copy.groups < self.committed[copy.threads] - most
            complete += [copy.some(done)] if done.any() else []
            left += [] if done.all() else [copy.some(~done)]
        self.copies = left
        return complete
