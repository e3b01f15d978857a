"""Which threads have met: all of a group, or a part of it that has a barrier of its own."""

from collections.abc import Iterator

import numpy as np

from .mbarriers import Mbarriers
from .shadow import MOST_PARTS, Access


class Meetings:
    """The barriers that threads of some groups passed, of which there are `count` from `first` on.

    A thread belongs to one part at most: the name of the barrier that it met others at. Threads of
    a part passed as many barriers as each other.
    """

    def __init__(self, first: int, count: int, per_group: int, barriers: Mbarriers) -> None:
        self._first, self._per_group = first, per_group
        self._passed = np.zeros(count * per_group, np.int64)
        self._part = np.zeros(count * per_group, np.int64)
        self._whole = np.zeros(count, np.int64)
        self._barriers = barriers

    def access(self, local: np.ndarray) -> Access:
        """Threads, by their positions among those of these groups, as they access memory."""
        own = local // self._per_group
        return Access(
            local + self._first * self._per_group, own + self._first, self._passed[local],
            self._whole[own], self._part[local],
        )  # fmt: skip

    def meet(self, local: np.ndarray) -> None:
        """All threads of some groups meet."""
        for group, index in self._by_group(local):
            self._passed[index] = self._whole[group] = self._passed[index].max() + 1

    def meet_part(self, local: np.ndarray, name: int) -> None:
        """Some threads of groups meet; raises ValueError if one of them is of another part."""
        if not 0 < name < MOST_PARTS:
            raise ValueError(f"a barrier of the name {name}")
        for _, index in self._by_group(local):
            parts = self._part[index]
            if ((parts != 0) & (parts != name)).any():
                raise ValueError("threads meet by barriers of several names, which is not known")
            self._part[index] = name
            self._passed[index] = self._passed[index].max() + 1

    def _by_group(self, local: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
        """The threads of each group, which know of each other from now on."""
        groups = local // self._per_group
        for group in np.unique(groups):
            index = local[groups == group]
            self._barriers.join(int(group) + self._first, index % self._per_group)
            yield int(group), index
