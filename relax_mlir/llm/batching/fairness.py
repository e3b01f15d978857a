"""A queue that serves clients evenly, by the tokens that each of them has got.

Source: Sheng et al. 2024, "Fairness in Serving Large Language Models" (virtual token counters).
"""

from collections import deque
from collections.abc import Iterator
from typing import Generic, TypeVar

Item = TypeVar("Item")
REMEMBERED = 1000
"""Clients that are away, and had more than others, until they are forgotten."""


class FairQueue(Generic[Item]):
    """Items of clients: first come, first served for each, the least served client first."""

    def __init__(self) -> None:
        self._waiting: dict[str, deque[Item]] = {}
        self._served: dict[str, int] = {}
        self._level = 0  # what a client had got when an item of it was taken last

    def __len__(self) -> int:
        return sum(map(len, self._waiting.values()))

    def push(self, client: str, item: Item) -> None:
        """Adds an item; a client that was away gets nothing for the time."""
        if client not in self._waiting:
            self._waiting[client] = deque()
            self._served[client] = max(self._served.get(client, 0), self._level)
        self._waiting[client].append(item)

    def in_order(self) -> Iterator[Item]:
        """The items, the next one first; they stay in the queue, which must not change."""
        for client in sorted(self._waiting, key=self._served.__getitem__):
            yield from self._waiting[client]

    def take(self, client: str, item: Item) -> None:
        """Removes an item because it is its turn."""
        self._level = max(self._level, self._served[client])
        self.remove(client, item)

    def remove(self, client: str, item: Item) -> None:
        """Removes an item, wherever it stands."""
        waiting = self._waiting[client]
        waiting.remove(item)
        if not waiting:
            del self._waiting[client]

    def charge(self, client: str, tokens: int) -> None:
        """Adds tokens to what a client has got."""
        self._served[client] = self._served.get(client, self._level) + tokens
        if len(self._served) > 2 * len(self._waiting) + REMEMBERED:
            self._served = {
                each: tokens
                for each, tokens in self._served.items()
                if each in self._waiting or tokens > self._level
            }
