"""Functions in WGSL that kernels call: a kernel has those of `library/` that it needs."""

import re
from functools import cache
from pathlib import Path

_FOLDER = Path(__file__).parent / "library"
_ITEM = re.compile(r"^(?:fn|const|override) (\w+)", re.M)
_WORD = re.compile(r"\b\w+\b")


@cache
def _items() -> dict[str, str]:
    """The text of each function or constant, in the order of the files, by its name."""
    items: dict[str, str] = {}
    for path in sorted(_FOLDER.glob("*.wgsl")):
        starts = list(_ITEM.finditer(text := path.read_text()))
        ends = [start.start() for start in starts[1:]] + [len(text)]
        for start, end in zip(starts, ends, strict=True):
            body = text[start.start() : end]
            items[start[1]] = re.sub(r"\n//.*", "", body).strip()
    return items


@cache
def _needed_by(name: str) -> frozenset[str]:
    """The items that one needs, itself included."""
    needed, waiting = set[str](), [name]
    while waiting:
        item = waiting.pop()
        if item not in needed:
            needed.add(item)
            waiting += [word for word in _WORD.findall(_items()[item]) if word in _items()]
    return frozenset(needed)


def needed_by(text: str) -> list[str]:
    """The functions of the library that a text needs."""
    names = set(_WORD.findall(text)) & _items().keys()
    needed = frozenset[str]().union(*map(_needed_by, names))
    return [item for name, item in _items().items() if name in needed]
