"""What became of a program, as values, as JSON, and as text for people."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import zip_longest

WIDTH = 100
"""Columns of the text after which lists are cut."""


@dataclass(frozen=True)
class Symbol:
    """A symbol of a function, and the dim of an argument that tells it, or what else does."""

    name: str
    source: str


@dataclass(frozen=True)
class Unexpressed:
    """A dim that no expression of other symbols gives: the op whose data decide it, and where."""

    symbol: str
    what: str
    at: str


@dataclass(frozen=True)
class Check:
    """A fact that is checked at each call, or where its symbols are bound; the op it is for."""

    fact: str
    needed_by: str
    at: str


@dataclass(frozen=True)
class Bytes:
    """Bytes as formulas of the symbols; temporaries are those of the memory plan.

    `storages` are what temporaries lie in: the first is taken at the entry of the function, others
    where the symbols of their sizes are bound.
    """

    arguments: str
    results: str
    temporaries: str
    storages: tuple[str, ...]


@dataclass(frozen=True)
class Function:
    """What became of a function."""

    name: str
    arguments: Mapping[str, str]
    results: tuple[str, ...]
    symbols: tuple[Symbol, ...]
    facts: tuple[Check, ...]
    checks: tuple[Check, ...]
    unexpressed: tuple[Unexpressed, ...]
    memory: Bytes


@dataclass(frozen=True)
class Kernel:
    """A kernel: the operators in it, the rule that scheduled it, how often, and where it is called.

    `schedule` is "library" for a function that a library has.
    """

    name: str
    operators: tuple[str, ...]
    schedule: str
    calls: int
    at: tuple[str, ...]


@dataclass(frozen=True)
class Refusal:
    """What a pass did not do, and why; `times` counts equal ones."""

    by: str
    message: str
    at: str
    times: int


@dataclass(frozen=True)
class Explanation:
    """What became of a program; its `str` is for people."""

    functions: tuple[Function, ...]
    kernels: tuple[Kernel, ...]
    refusals: tuple[Refusal, ...]
    constant_bytes: int

    def as_json(self) -> str:
        """The same as JSON, with the names of the fields."""
        return json.dumps(asdict(self), indent=2)

    def __str__(self) -> str:
        return "\n".join(_text(self))


def _text(explanation: Explanation) -> Iterator[str]:
    for function in explanation.functions:
        yield f"@{function.name}"
        yield from _table("arguments", [*map(list, function.arguments.items())])
        yield from _table("results", [[each] for each in function.results])
        yield from _table("symbols", [[each.name, each.source] for each in function.symbols])
        rows = [[each.fact, each.needed_by, each.at] for each in function.facts]
        yield from _table("facts, checked at each call", rows)
        rows = [[each.fact, each.needed_by, each.at] for each in function.checks]
        yield from _table("checks where symbols are bound", rows)
        rows = [[each.symbol, each.what, each.at] for each in function.unexpressed]
        yield from _table("dims that no expression gives", rows)
        yield from _table("bytes", _memory(function.memory))
    yield from _table("constants", [[f"{explanation.constant_bytes} bytes"]])
    yield from _table("kernels", [_kernel(each) for each in explanation.kernels])
    rows = [[each.by, _times(each), each.message, each.at] for each in explanation.refusals]
    yield from _table("refused", rows)


def _memory(memory: Bytes) -> list[list[str]]:
    rows = [["arguments", memory.arguments], ["results", memory.results]]
    rows.append(["temporaries", memory.temporaries])
    if len(memory.storages) > 1:
        rows += [[f"  storage {i}", each] for i, each in enumerate(memory.storages)]
    return rows


def _kernel(kernel: Kernel) -> list[str]:
    operators = ", ".join(kernel.operators)
    if len(operators) > WIDTH:
        operators = f"{operators[:WIDTH].rpartition(', ')[0]}, ... ({len(kernel.operators)} in all)"
    return [f"{kernel.calls}x", kernel.name, kernel.schedule, operators, *kernel.at[:1]]


def _times(refusal: Refusal) -> str:
    return f"{refusal.times}x"


def _table(title: str, rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """The lines of a section, none if it is empty; all columns but the last are aligned."""
    if not rows:
        return
    yield f"  {title}"
    widths = [max(len(cell) for cell in column) for column in zip_longest(*rows, fillvalue="")]
    for row in rows:
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=False)]
        yield f"    {'  '.join(cells).rstrip()}"
