"""The table of library functions: which subgraphs they compute, and when that is worth a call."""

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from relax_mlir.dialects.graph import Dim
from relax_mlir.dialects.lib import DLPACK, RULES
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

    `when`, `work` and `workspace` are over the variables of the pattern's shapes: a fact that must
    hold for the function to be called, how many multiplications a call has, and the bytes of memory
    that it uses while it runs.
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
    workspace: tuple[Expr, ...] = ()
    arguments: Callable[[Match], Sequence[Dim]] | None = None
    """The integers that are passed after tensors, if the convention has some."""
    device: str = ""
    """The API of the devices that the function computes on; of the host, if it is empty."""
    module: str = field(default="", compare=False)

    def __str__(self) -> str:
        condition = f" when {self.when}" if self.when is not None else ""
        return f"{self.function}({', '.join(self.operands)}) = {self.pattern}{condition}"

    @property
    def text(self) -> str:
        """All that the row says, but for what its functions of Python compute."""
        sizes = ", ".join(map(str, self.workspace))
        providers = ", ".join(self.providers)
        return f"{self}: {self.convention} {self.c_symbol} of {providers}, {self.work}, [{sizes}]"


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
    workspace: Sequence[str] = (),
    arguments: Callable[[Match], Sequence[Dim]] | None = None,
    device: str = "",
) -> None:
    """Makes a function known to `relax-dispatch-library`, before those that are known already.

    `convention` is "dlpack" or one of `relax_mlir.dialects.lib.RULES`; `providers` are searched for
    `c_symbol` when a compiled module is loaded. `workspace` has the bytes of each workspace, which
    a function of "dlpack" is handed as results of `ui8` after its own; other conventions know what
    they need. `arguments` are integers of a match, for conventions that take some. A function that
    computes on devices names their API as `device`. One that is registered again replaces the row.

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
            tuple(as_expr(size) for size in workspace),
            arguments,
            device,
        )
    except SymbolicError as error:
        raise UsageError(f"library function '{function}': {error}") from None
    _check(row)
    module = sys._getframe(1).f_globals.get("__name__", "__main__")
    contribute(module)
    _TABLE[:] = [each for each in _TABLE if each.function != function]
    _TABLE.insert(0, replace(row, module=module))


def _check(row: Row) -> None:
    """Raises UsageError for operands that are not captured, or a convention that takes others."""
    for name in row.operands:
        if name not in captures_of(row.pattern):
            raise UsageError(
                f"library function '{row.function}': '{name}' is no capture of '{row.pattern}'"
            )
    if row.convention == DLPACK:
        return
    if row.convention not in RULES:
        raise UsageError(
            f"library function '{row.function}' has an unknown convention "
            f"'{row.convention}'{among(row.convention, [DLPACK, *RULES])}"
        )
    if row.workspace:
        raise UsageError(
            f"library function '{row.function}' has workspaces of its own, which functions of the "
            f"convention '{DLPACK}' take, but '{row.convention}' tells what it needs"
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
