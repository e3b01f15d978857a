"""Which page of the caches belongs to whom: reference counts, and pages that prompts share.

A page is *free*, *used* by one sequence or more, or *cached*: nobody uses it, but a prompt may
begin with its contents, until the page is needed otherwise, the least recently used one first.
Contents are looked up by a key of their tokens and all before them, of 256 bits, so that no two
have the same in practice, even if someone chooses them on purpose.

Source: Kwon et al. 2023 (PagedAttention); vLLM, "Automatic Prefix Caching".
"""

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from hashlib import blake2b

import numpy as np

from relax_mlir.errors import UsageError


def first_key(adapter: int) -> bytes:
    """What is before the first page of a sequence: its adapter, so that no other one has its pages.

    That of no adapter, 0, is empty.
    """
    return b"adapter %d" % adapter if adapter else b""


def page_key(before: bytes, tokens: Sequence[int], images: bytes = b"") -> bytes:
    """The key of a full page; `before` is that of the page before it, or `first_key`.

    `images` says which rows of which images replace tokens.
    """
    own = blake2b(np.asarray(tokens, np.int32).tobytes() + images, digest_size=32).digest()
    return blake2b(before + own, digest_size=32).digest()


class Pages:
    """Allocates `count` pages. Raises UsageError if that is less than 1."""

    def __init__(self, count: int) -> None:
        if count < 1:
            raise UsageError(f"the count of pages is {count}; expects an integer >= 1")
        self.count = count
        self._free = list(range(count - 1, -1, -1))
        self._references = [0] * count
        self._key_of: dict[int, bytes] = {}
        self._page_of: dict[bytes, int] = {}
        self._cached: OrderedDict[int, None] = OrderedDict()  # the least recently used one first

    @property
    def free(self) -> int:
        """Pages without contents."""
        return len(self._free)

    @property
    def cached(self) -> int:
        """Pages that nobody uses, whose contents can be looked up."""
        return len(self._cached)

    @property
    def used(self) -> int:
        """Pages of sequences."""
        return self.count - self.free - self.cached

    @property
    def available(self) -> int:
        """Pages that can be allocated."""
        return self.free + self.cached

    def allocate(self, count: int) -> list[int] | None:
        """New pages, each with one reference; None, and nothing changes, if there are too few."""
        if count > self.available:
            return None
        pages = [self._free.pop() if self._free else self._evict() for _ in range(count)]
        for page in pages:
            self._references[page] = 1
        return pages

    def look_up(self, keys: Iterable[bytes]) -> list[int]:
        """The pages of the first keys, as many as are known, each with one reference more."""
        pages = []
        for key in keys:
            page = self._page_of.get(key)
            if page is None:
                break
            self._references[page] += 1
            self._cached.pop(page, None)
            pages.append(page)
        return pages

    def publish(self, page: int, key: bytes) -> None:
        """Lets others look up a page by its contents, which no longer change.

        Nothing happens if another page with the same contents is known.
        """
        assert self._references[page]
        if key not in self._page_of and page not in self._key_of:
            self._page_of[key] = page
            self._key_of[page] = key

    def release(self, pages: Sequence[int]) -> None:
        """Takes a reference from each page of a sequence.

        The last ones count as less recently used, so that the beginnings of texts stay longer.
        """
        for page in reversed(pages):
            assert self._references[page], f"page {page} is released, and nobody uses it"
            self._references[page] -= 1
            if self._references[page] == 0:
                if page in self._key_of:
                    self._cached[page] = None
                else:
                    self._free.append(page)

    def is_shared(self, page: int) -> bool:
        """Whether several sequences use a page, so that it must not be written."""
        return self._references[page] > 1

    def withdraw(self, page: int) -> None:
        """Nobody looks up a page any more, which its only user is about to write."""
        assert not self.is_shared(page)
        if (key := self._key_of.pop(page, None)) is not None:
            del self._page_of[key]

    def _evict(self) -> int:
        page, _ = self._cached.popitem(last=False)
        del self._page_of[self._key_of.pop(page)]
        return page
