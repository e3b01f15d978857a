"""Diagnostics as values: read from MLIR, truncated, printed as `file:line:col`.

MLIR's messages end in notes that dump whole operations, megabytes for a module; all diagnostics
that are shown to people go through `Diagnostic`, which keeps the first lines only.
"""

import json
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import asdict, dataclass
from typing import Any

from relax_mlir.bindings import arities, foreign, ir
from relax_mlir.bytecode import BytecodeError, rewritten
from relax_mlir.errors import CompileError

MAX_LINES = 6
MAX_COLUMNS = 400
MAX_NESTING = 1000
NO_TEXT = "the message has a name that is not UTF-8 text"
"""For messages that the bindings cannot convert, and raise RuntimeError instead."""
_POSITION = re.compile(r'"((?:[^"\\]|\\.)*)":(\d+):(\d+)')
_BRACKET = re.compile(r'"(?:[^"\\]|\\.)*"|//[^\n]*|->|[<>]=|([{(\[<])|([})\]>])')
_STRING = re.compile(r'//[^\n]*|"(?:[^"\\]|\\.)*"')
_ESCAPE = re.compile(rb"\\([0-9A-Fa-f]{2})")
_NAME = re.compile(r'^loc\("((?:[^"\\]|\\.)*)"')


@dataclass(frozen=True)
class Diagnostic:
    """One error, warning, remark or note; line and column count from 1, 0 if unknown."""

    severity: str
    message: str
    file: str = ""
    line: int = 0
    column: int = 0
    notes: tuple["Diagnostic", ...] = ()

    @staticmethod
    def at(
        location: ir.Location,
        severity: str,
        message: str,
        notes: Sequence["Diagnostic"] = (),
    ) -> "Diagnostic":
        """A diagnostic at an MLIR location: the first file position in it, else its name."""
        text = str(location)
        if position := _POSITION.search(text):
            file, line, column = position[1], int(position[2]), int(position[3])
        else:
            name = _NAME.match(text)
            file, line, column = (name[1] if name else ""), 0, 0
        return Diagnostic(severity, cut(message), file, line, column, tuple(notes))

    @staticmethod
    def of(diagnostic: ir.Diagnostic) -> "Diagnostic":
        """Copies a diagnostic of MLIR, which is valid only during the handler's call."""
        severity = diagnostic.severity.name.lower()
        notes = [Diagnostic.of(note) for note in diagnostic.notes]
        try:
            message = diagnostic.message
        except RuntimeError:
            message = NO_TEXT
        return Diagnostic.at(diagnostic.location, severity, message, notes)

    @property
    def where(self) -> str:
        """The location as editors read it: `file:line:column`, or the known part of it."""
        return f"{self.file or '-'}:{self.line}:{self.column}" if self.line else self.file

    def __str__(self) -> str:
        head = f"{self.where}: " if self.where else ""
        return "\n".join([f"{head}{self.severity}: {self.message}", *map(str, self.notes)])


def cut(text: str) -> str:
    """The first lines of a text, each of bounded width, and the count of omitted lines."""
    lines = [
        line if len(line) <= MAX_COLUMNS else line[:MAX_COLUMNS] + " ..."
        for line in text.splitlines()
    ]
    if len(lines) > MAX_LINES:
        lines[MAX_LINES:] = [f"... ({len(lines) - MAX_LINES} more lines)"]
    return "\n".join(lines)


def diagnostics_of(error: Exception) -> tuple[Diagnostic, ...]:
    """The diagnostics of an MLIR exception; its first line if it has none.

    Any other exception is one of the bindings, which could not convert the message.
    """
    if not isinstance(error, ir.MLIRError):
        return (Diagnostic("error", NO_TEXT, "-"),)
    diagnostics = tuple(Diagnostic.of(diagnostic) for diagnostic in error.error_diagnostics)
    return diagnostics or (Diagnostic("error", cut(str(error))),)


def compile_error(diagnostics: Sequence[Diagnostic]) -> CompileError:
    """The exception with these diagnostics, which are its message too."""
    return CompileError("\n".join(map(str, diagnostics)), tuple(diagnostics))


def parse_module(text: str | bytes) -> ir.Module:
    """Parses and verifies a module, text or bytecode, in the current context.

    Raises CompileError, with located diagnostics, if it does not parse or verify.
    """
    foreign.register_used(text)
    if isinstance(text, str):
        _check_nesting(text)
        arities.declare_used(text)
    else:
        arities.declare_used(text)
        text = _read_safely(text)
    try:
        return ir.Module.parse(text)
    except ir.MLIRError as error:
        raise compile_error([*diagnostics_of(error), *_readers(str(error))]) from None
    except RuntimeError:
        raise compile_error([_no_text(text)]) from None


def _readers(message: str) -> list[Diagnostic]:
    """What reads a dialect that MLIR's parser does not know."""
    if "`stablehlo' not found" not in message:
        return []
    readers = "relax_mlir.frontends.stablehlo.from_stablehlo and relax-compile FILE.stablehlo.mlir"
    return [Diagnostic("note", f"StableHLO is read by {readers}")]


def _read_safely(data: bytes) -> bytes:
    """Bytecode of the same module that MLIR can read safely; see `bytecode`."""
    try:
        return rewritten(data, _report)
    except BytecodeError as error:
        errors = _reported(error.report) or [Diagnostic("error", str(error), "-")]
        raise compile_error(errors) from None


def _report(error: Exception) -> bytes:
    """The diagnostics of an error, without what a reader of damaged bytes could abuse."""
    return json.dumps([asdict(each) for each in diagnostics_of(error)]).encode()


def _reported(report: bytes) -> list[Diagnostic]:
    """The diagnostics of a report; none if the reader damaged it before it was written."""
    try:
        return [from_fields(fields) for fields in json.loads(report)]
    except (ValueError, TypeError, KeyError, RecursionError):
        return []


def from_fields(fields: dict[str, Any]) -> Diagnostic:
    """The diagnostic of `asdict`; raises TypeError or KeyError if the fields are others."""
    notes = tuple(from_fields(note) for note in fields["notes"])
    return Diagnostic(**{**fields, "notes": notes})


def _no_text(source: str | bytes) -> Diagnostic:
    """An error at the first name that is not UTF-8, if the source is text."""
    text = source if isinstance(source, str) else ""
    for match in _STRING.finditer(text):
        if match[0].startswith("//"):
            continue
        raw = _ESCAPE.sub(lambda escape: bytes([int(escape[1], 16)]), match[0].encode())
        try:
            raw.decode()
        except UnicodeDecodeError:
            return _at_offset(f"{match[0]} is not UTF-8 text", text, match.start())
    return Diagnostic("error", NO_TEXT, "-")


def _at_offset(message: str, text: str, start: int) -> Diagnostic:
    line, column = text.count("\n", 0, start) + 1, start - text.rfind("\n", 0, start)
    return Diagnostic("error", message, "-", line, column)


def _check_nesting(text: str) -> None:
    """Refuses text that would overflow the stack of MLIR's recursive parser."""
    depth = 0
    for match in _BRACKET.finditer(text):
        depth += (match[1] is not None) - (match[2] is not None)
        if depth > MAX_NESTING:
            message = f"brackets nest deeper than {MAX_NESTING}"
            raise compile_error([_at_offset(message, text, match.start())])


@contextmanager
def collecting(context: ir.Context, severities: Sequence[str]) -> Iterator[list[Diagnostic]]:
    """Collects diagnostics of the severities within the `with` block; others are passed on."""
    collected: list[Diagnostic] = []

    def handle(diagnostic: ir.Diagnostic) -> bool:
        if diagnostic.severity.name.lower() not in severities:
            return False
        collected.append(Diagnostic.of(diagnostic))
        return True

    handler = context.attach_diagnostic_handler(handle)
    token = _REMARKS.set(collected if "remark" in severities else _REMARKS.get())
    try:
        yield collected
    finally:
        _REMARKS.reset(token)
        handler.detach()


_REMARKS: ContextVar[list[Diagnostic] | None] = ContextVar("remarks", default=None)
"""The list that collects remarks, if there is one."""


def remark(location: ir.Location, message: str) -> None:
    """Emits a remark to the list that collects them, else to standard error.

    The bindings can emit only errors.
    """
    diagnostic = Diagnostic.at(location, "remark", message)
    collected = _REMARKS.get()
    if collected is None:
        print(diagnostic, file=sys.stderr)
    else:
        collected.append(diagnostic)


_DETAILED: ContextVar[bool] = ContextVar("detailed", default=False)


@contextmanager
def detailed(wanted: bool = True) -> Iterator[None]:
    """Enables detailed remarks on compilation within the `with` block."""
    token = _DETAILED.set(wanted)
    try:
        yield
    finally:
        _DETAILED.reset(token)


def wants_details() -> bool:
    """Whether detailed remarks on compilation are enabled."""
    return _DETAILED.get()


def detail(location: ir.Location, message: str) -> None:
    """Emits a remark on compilation, if enabled: see `detailed`."""
    if wants_details():
        remark(location, message)
