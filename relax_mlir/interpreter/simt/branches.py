"""Branches that some threads take while others take another one, and which wait for each other.

They run in turn: one goes on until it has to wait for a barrier, then the next one does. So what
threads do in between is in an order that is possible, and barriers say which of it matters.
"""

from collections.abc import Callable, Sequence
from threading import Semaphore, Thread
from typing import Any

import numpy as np

from .mbarriers import Mbarriers


class _Abandoned(Exception):
    """Ends a branch since another one failed."""


class Branches:
    """Branches of which one runs at a time, each in a thread of the host."""

    def __init__(self, barriers: Mbarriers) -> None:
        self._barriers = barriers
        self._turns: list[Semaphore] = []
        self._running: list[int] = []
        """The branches that have not ended; the first one runs."""
        self._changes, self._waiting = -1, 0
        """Phases of barriers, and the branches that have looked at them since they changed."""
        self._failure: BaseException | None = None

    def run(self, bodies: Sequence[Callable[[], Any]]) -> list[Any]:
        """The results of branches; raises what the first one to fail does."""
        results: list[Any] = [None] * len(bodies)

        def one(index: int) -> None:
            try:
                self._await_turn(index)
                with np.errstate(all="ignore"):
                    results[index] = bodies[index]()
            except _Abandoned:
                pass
            except BaseException as failure:  # raised where the branches began
                self._failure = self._failure or failure
            self._running.remove(index)
            self._pass_on()

        self._turns = [Semaphore(0) for _ in bodies]
        self._running = list(range(len(bodies)))
        threads = [Thread(target=one, args=(index,)) for index in self._running]
        for thread in threads:
            thread.start()
        self._pass_on()
        for thread in threads:
            thread.join()
        if self._failure is not None:
            raise self._failure
        return results

    def give_way(self) -> None:
        """Has the others run; raises ValueError if all wait for what never comes."""
        if self._changes != self._barriers.changes:
            self._changes, self._waiting = self._barriers.changes, 0
        self._waiting += 1
        if self._waiting >= len(self._running):
            self._barriers.go_on()
            return
        own = self._running.pop(0)
        self._running.append(own)
        self._pass_on()
        self._await_turn(own)

    def _pass_on(self) -> None:
        if self._running:
            self._turns[self._running[0]].release()

    def _await_turn(self, index: int) -> None:
        self._turns[index].acquire()
        if self._failure is not None:
            raise _Abandoned
