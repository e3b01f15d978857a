"""A queue that serves clients evenly, by the tokens that each of them has got.

Source: Sheng et al. 2024, "Fairness in Serving Large Language Models" (virtual token counters).
"""

from collections import deque
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

    def first(self) -> Item | None:
        """The next item, which stays in the queue; None if there is none."""
        return self._next()[1] if self._waiting else None

    def take(self) -> Item:
        """Removes the next item, and returns it."""
        client, item = self._next()
        self._level = max(self._level, self._served[client])
        self.remove(client, item)
        return item

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

    def _next(self) -> tuple[str, Item]:
        client = min(self._waiting, key=self._served.__getitem__)
        return client, self._waiting[client][0]
