"""The table of patterns that passes know by name."""

import sys
from collections.abc import Callable
from dataclasses import dataclass

from relax_mlir.errors import UsageError
from relax_mlir.extensions import contribute, installed
from relax_mlir.passes.names import among

from .matching import Match
from .pattern import Pattern
from .text import parse

Check = Callable[[Match], bool]


@dataclass(frozen=True)
class NamedPattern:
    """A pattern that groups of ops are named by: "openblas.dense" is one for that library."""

    name: str
    pattern: Pattern
    check: Check | None = None
    module: str = ""
    """The Python module that registered it, on which compiled modules depend."""

    def accepts(self, matched: Match) -> bool:
        """Whether the check, if there is one, holds for a match."""
        return self.check is None or self.check(matched)

    @property
    def codegen(self) -> str:
        """The part of the name before the first dot: for whom groups are made."""
        return self.name.partition(".")[0]


_TABLE: dict[str, NamedPattern] = {}


def load_patterns(codegen: str) -> None:
    """Imports what an installed package declares for a library's name, if one does."""
    declared = installed("patterns", codegen)
    if declared is not None:
        declared.load()


def register_pattern(name: str, pattern: Pattern | str, check: Check | None = None) -> None:
    """Makes a pattern known to `relax-fuse-ops-by-pattern`; a later one of a name replaces it.

    `check` takes a match and tells whether it may become a group. A file that registers patterns is
    taken in by `--load-passes`, or by `relax_mlir.passes.load_passes`.
    """
    if not name.replace(".", "_").isidentifier():
        raise UsageError(f"'{name}' is no name for a pattern; letters, digits and dots are")
    module = sys._getframe(1).f_globals.get("__name__", "__main__")
    pattern = parse(pattern) if isinstance(pattern, str) else pattern
    contribute(module)
    _TABLE[name] = NamedPattern(name, pattern, check, module)


def registered_pattern(name: str) -> NamedPattern:
    """The pattern of a name, from an installed package if that declares it; else UsageError."""
    if name not in _TABLE:
        load_patterns(name.partition(".")[0])
    if name not in _TABLE:
        raise UsageError(f"no pattern '{name}' is registered{among(name, _TABLE)}")
    return _TABLE[name]
