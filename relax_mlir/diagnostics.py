"""Diagnostics as values: read from MLIR, cut to a readable length, printed as `file:line:col`.

MLIR's error texts end in notes that dump whole operations, megabytes for a module; everything
that shows a diagnostic to a person goes through `Diagnostic`, which keeps the first lines only.
"""

import json
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import asdict, dataclass
from typing import Any

from relax_mlir.bindings import ir
from relax_mlir.bytecode import BytecodeError, written_anew
from relax_mlir.errors import CompileError

MAX_LINES = 6
MAX_COLUMNS = 400
MAX_NESTING = 1000
NO_TEXT = "the message holds a name that is no UTF-8 text"
"""What the bindings raise RuntimeError for, where they hand over a message."""
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
        """Copies a diagnostic of MLIR, which lives no longer than the handler's call."""
        severity = diagnostic.severity.name.lower()
        notes = [Diagnostic.of(note) for note in diagnostic.notes]
        try:
            message = diagnostic.message
        except RuntimeError:
            message = NO_TEXT
        return Diagnostic.at(diagnostic.location, severity, message, notes)

    @property
    def where(self) -> str:
        """The place as editors read it: `file:line:column`, or what is known of it."""
        return f"{self.file or '-'}:{self.line}:{self.column}" if self.line else self.file

    def __str__(self) -> str:
        head = f"{self.where}: " if self.where else ""
        return "\n".join([f"{head}{self.severity}: {self.message}", *map(str, self.notes)])


def cut(text: str) -> str:
    """The first lines of a text, each of bounded width; says how many lines are left out."""
    lines = [
        line if len(line) <= MAX_COLUMNS else line[:MAX_COLUMNS] + " ..."
        for line in text.splitlines()
    ]
    if len(lines) > MAX_LINES:
        lines[MAX_LINES:] = [f"... ({len(lines) - MAX_LINES} more lines)"]
    return "\n".join(lines)


def diagnostics_of(error: Exception) -> tuple[Diagnostic, ...]:
    """What an MLIR exception reports; its first line alone if it carries no diagnostic.

    Another exception stands for one whose message the bindings could not make.
    """
    if not isinstance(error, ir.MLIRError):
        return (Diagnostic("error", NO_TEXT, "-"),)
    found = tuple(Diagnostic.of(diagnostic) for diagnostic in error.error_diagnostics)
    return found or (Diagnostic("error", cut(str(error))),)


def compile_error(diagnostics: Sequence[Diagnostic]) -> CompileError:
    """The exception that carries these diagnostics and reads like them."""
    return CompileError("\n".join(map(str, diagnostics)), tuple(diagnostics))


def parse_module(text: str | bytes) -> ir.Module:
    """Parses and verifies a module, text or bytecode, in the current context.

    Raises CompileError, with located diagnostics, if it does not parse or verify.
    """
    if isinstance(text, str):
        _check_nesting(text)
    else:
        text = _read_safely(text)
    try:
        return ir.Module.parse(text)
    except ir.MLIRError as error:
        raise compile_error(diagnostics_of(error)) from None
    except RuntimeError:
        raise compile_error([_no_text(text)]) from None


def _read_safely(data: bytes) -> bytes:
    """Bytecode of the same module that MLIR's reader takes without harm; see `bytecode`."""
    try:
        return written_anew(data, _report)
    except BytecodeError as error:
        found = _reported(error.report) or [Diagnostic("error", str(error), "-")]
        raise compile_error(found) from None


def _report(error: Exception) -> bytes:
    """The diagnostics of an error, without what a reader of damaged bytes could abuse."""
    return json.dumps([asdict(each) for each in diagnostics_of(error)]).encode()


def _reported(report: bytes) -> list[Diagnostic]:
    """The diagnostics of a report; none if the reader damaged it before it was written."""
    try:
        return [_from_fields(fields) for fields in json.loads(report)]
    except (ValueError, TypeError, KeyError, RecursionError):
        return []


def _from_fields(fields: dict[str, Any]) -> Diagnostic:
    notes = tuple(_from_fields(note) for note in fields["notes"])
    return Diagnostic(**{**fields, "notes": notes})


def _no_text(source: str | bytes) -> Diagnostic:
    """An error at the first name that is no text, if the source is text itself."""
    text = source if isinstance(source, str) else ""
    for match in _STRING.finditer(text):
        if match[0].startswith("//"):
            continue
        raw = _ESCAPE.sub(lambda escape: bytes([int(escape[1], 16)]), match[0].encode())
        try:
            raw.decode()
        except UnicodeDecodeError:
            return _at_offset(f"{match[0]} is no UTF-8 text", text, match.start())
    return Diagnostic("error", NO_TEXT, "-")


def _at_offset(message: str, text: str, start: int) -> Diagnostic:
    line, column = text.count("\n", 0, start) + 1, start - text.rfind("\n", 0, start)
    return Diagnostic("error", message, "-", line, column)


def _check_nesting(text: str) -> None:
    """Refuses what would overflow the stack of MLIR's parser, which calls itself."""
    depth = 0
    for match in _BRACKET.finditer(text):
        depth += (match[1] is not None) - (match[2] is not None)
        if depth > MAX_NESTING:
            message = f"brackets nest deeper than {MAX_NESTING}"
            raise compile_error([_at_offset(message, text, match.start())])


@contextmanager
def collecting(context: ir.Context, severities: Sequence[str]) -> Iterator[list[Diagnostic]]:
    """Collects what is emitted meanwhile with one of the severities; the rest goes on its way."""
    found: list[Diagnostic] = []

    def handle(diagnostic: ir.Diagnostic) -> bool:
        if diagnostic.severity.name.lower() not in severities:
            return False
        found.append(Diagnostic.of(diagnostic))
        return True

    handler = context.attach_diagnostic_handler(handle)
    token = _REMARKS.set(found if "remark" in severities else _REMARKS.get())
    try:
        yield found
    finally:
        _REMARKS.reset(token)
        handler.detach()


_REMARKS: ContextVar[list[Diagnostic] | None] = ContextVar("remarks", default=None)
"""Where remarks are collected, if they are."""


def remark(location: ir.Location, message: str) -> None:
    """Tells of something that is no error: whoever collects remarks, else standard error.

    The bindings emit errors only.
    """
    diagnostic = Diagnostic.at(location, "remark", message)
    found = _REMARKS.get()
    if found is None:
        print(diagnostic, file=sys.stderr)
    else:
        found.append(diagnostic)


_DETAILED: ContextVar[bool] = ContextVar("detailed", default=False)


@contextmanager
def detailed(wanted: bool = True) -> Iterator[None]:
    """Lets remarks on how something is compiled, which only some want, be made meanwhile."""
    token = _DETAILED.set(wanted)
    try:
        yield
    finally:
        _DETAILED.reset(token)


def wants_details() -> bool:
    """Whether remarks on how something is compiled are wanted."""
    return _DETAILED.get()


def detail(location: ir.Location, message: str) -> None:
    """A remark on how something is compiled, if it is wanted: see `detailed`."""
    if wants_details():
        remark(location, message)
