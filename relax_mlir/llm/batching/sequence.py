"""A sequence of tokens with its pages, while it waits and while it runs."""

from collections.abc import Sequence as Collection
from dataclasses import dataclass, field

from relax_mlir.llm.batching.pages import first_key, page_key
from relax_mlir.llm.decoder.pictures import Picture
from relax_mlir.llm.modules.kv_cache import PAGE


@dataclass(eq=False)
class Sequence:
    """Tokens of a prompt and its answer; the first `length` of them are in `pages`.

    Rows of `pictures` replace those of tokens, and are part of the keys of their pages; so is the
    `adapter`, by which keys and values differ. `published`
    full pages can be looked up by others. `order` is that of the first admission, from 0; -1
    before.
    """

    tokens: list[int]
    client: str = ""
    pictures: Collection[Picture] = ()
    adapter: int = 0
    order: int = -1
    length: int = 0
    reused: int = 0
    """Tokens that were in pages of others when it was admitted first."""
    pages: list[int] = field(default_factory=list)
    published: int = 0
    _keys: list[bytes] = field(default_factory=list)

    @property
    def remaining(self) -> int:
        """Tokens that are not in pages yet."""
        return len(self.tokens) - self.length

    def keys(self) -> list[bytes]:
        """The keys of all pages that its tokens fill."""
        while (count := len(self._keys)) < len(self.tokens) // PAGE:
            before = self._keys[-1] if self._keys else first_key(self.adapter)
            begin, end = count * PAGE, (count + 1) * PAGE
            images = b"".join(
                picture.key + (picture.begin - begin).to_bytes(8, "little", signed=True)
                for picture in self.pictures
                if picture.begin < end and picture.end > begin
            )
            self._keys.append(page_key(before, self.tokens[begin:end], images))
        return self._keys


def pages_of(tokens: int) -> int:
    """The count of pages that so many tokens need."""
    return -(-tokens // PAGE)
