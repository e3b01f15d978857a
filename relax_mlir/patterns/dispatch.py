"""The table of library functions: which subgraphs they compute, and when that is worth a call."""

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from relax_mlir.dialects.lib import RULES
from relax_mlir.errors import UsageError
from relax_mlir.extensions import contribute
from relax_mlir.passes.names import among
from relax_mlir.symbolic import Expr, Fact, SymbolicError, as_expr

from .matching import Match
from .pattern import Pattern, captures_of
from .table import load_patterns
from .text import parse


@dataclass(frozen=True)
class Row:
    """A function of a library, and the pattern of what it computes.

    `when` and `work` are over the variables of the pattern's shapes: a fact that must hold for the
    function to be called, and how many multiplications a call has.
    """

    library: str
    function: str
    """The symbol of the `lib.function`."""
    pattern: Pattern
    operands: tuple[str, ...]
    """The captures that are passed, in order."""
    c_symbol: str
    convention: str
    providers: tuple[str, ...]
    work: Expr
    when: Fact | None = None
    check: Callable[[Match], bool] | None = None
    module: str = field(default="", compare=False)

    def __str__(self) -> str:
        condition = f" when {self.when}" if self.when is not None else ""
        return f"{self.function}({', '.join(self.operands)}) = {self.pattern}{condition}"


_TABLE: list[Row] = []


def register_dispatch(
    library: str,
    function: str,
    pattern: Pattern | str,
    operands: Sequence[str],
    *,
    c_symbol: str,
    convention: str,
    providers: Sequence[str],
    work: str = "0",
    when: str | None = None,
    check: Callable[[Match], bool] | None = None,
) -> None:
    """Makes a function known to `relax-dispatch-library`, before those that are known already.

    `convention` is one of `relax_mlir.dialects.lib.RULES`; `providers` are searched for `c_symbol`
    when a compiled module is loaded. A function that is registered again replaces the row.

    Raises UsageError for a pattern, fact or expression that does not parse, an operand that the
    pattern does not capture, or a convention that is not known.
    """
    try:
        row = Row(
            library,
            function,
            parse(pattern) if isinstance(pattern, str) else pattern,
            tuple(operands),
            c_symbol,
            convention,
            tuple(providers),
            as_expr(work),
            None if when is None else Fact.parse(when),
            check,
        )
    except SymbolicError as error:
        raise UsageError(f"library function '{function}': {error}") from None
    _check(row)
    module = sys._getframe(1).f_globals.get("__name__", "__main__")
    contribute(module)
    _TABLE[:] = [each for each in _TABLE if each.function != function]
    _TABLE.insert(0, replace(row, module=module))


def _check(row: Row) -> None:
    """Raises UsageError for operands that the pattern does not capture, or no known convention."""
    for name in row.operands:
        if name not in captures_of(row.pattern):
            raise UsageError(
                f"library function '{row.function}': '{name}' is no capture of '{row.pattern}'"
            )
    if row.convention not in RULES:
        raise UsageError(
            f"library function '{row.function}' has an unknown convention "
            f"'{row.convention}'{among(row.convention, RULES)}"
        )


def rows_of(libraries: Sequence[str]) -> list[Row]:
    """The functions of some libraries, in the order in which they are tried.

    Raises UsageError for a library that has none.
    """
    for library in libraries:
        if not any(row.library == library for row in _TABLE):
            load_patterns(library)
        known = sorted({row.library for row in _TABLE})
        if library not in known:
            raise UsageError(f"unknown library '{library}'; known are {', '.join(known)}")
    return [row for row in _TABLE if row.library in libraries]
