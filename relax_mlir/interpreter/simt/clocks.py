"""What threads of a group know of each other: what each has done, as barriers tell.

A thread that arrives at a barrier lets others know all that it did and knew; who waits for the
barrier, or meets the thread, knows it then.

Source: Mattern, Virtual Time and Global States of Distributed Systems, 1989.
"""

import numpy as np


class Clocks:
    """How often each thread of a group let others know; `known[t, u]` is what t knows of u."""

    def __init__(self, threads: int) -> None:
        self.known = np.zeros((threads, threads), np.int32)

    @property
    def now(self) -> np.ndarray:
        """What an access of each thread is noted as."""
        return np.diagonal(self.known)

    def tell(self, thread: int) -> np.ndarray:
        """A thread lets others know what it did and knows, which is the result."""
        self.known[thread, thread] += 1
        return self.known[thread].copy()

    def learn(self, threads: np.ndarray, told: np.ndarray) -> None:
        """Threads know what was told."""
        self.known[threads] = np.maximum(self.known[threads], told)

    def meet(self, threads: np.ndarray) -> None:
        """Threads let each other know."""
        self.known[threads, threads] += 1
        self.known[threads] = self.known[threads].max(axis=0)

    def knows(self, thread: int, accessed: np.ndarray) -> bool:
        """Whether a thread knows of accesses by all threads; -1 where a thread has none."""
        told = accessed < self.known[thread]
        told[thread] = True
        return bool(told.all())
