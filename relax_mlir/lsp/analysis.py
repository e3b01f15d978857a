"""The analysis of a text: diagnostics, types of values, facts on symbols.

Text may hang the parser, crash it, or take all memory. It is read in a child process, with limits;
what the child writes is not trusted, and errors of modules before a crash are reported.
"""

import json
import os
import signal
import threading
from dataclasses import dataclass, field, replace
from typing import Any, BinaryIO

from relax_mlir import dialects
from relax_mlir.child_process import run_in_child
from relax_mlir.diagnostics import Diagnostic, from_fields
from relax_mlir.lsp.checking import Checked
from relax_mlir.lsp.text import Text

SECONDS = 20
EXTRA_BYTES = 4 << 30


@dataclass(frozen=True)
class ValueTypes:
    """The type of a value in the text, what the passes infer, and that in short: `tensor<n x f32>`.

    The last two are those of the text if the module has errors.
    """

    written: str
    inferred: str
    short: str


@dataclass(frozen=True)
class SymbolFacts:
    """The facts on a symbol in a function, and its bounds; a bound of None is infinite."""

    facts: tuple[str, ...]
    least: int | None
    greatest: int | None


@dataclass(frozen=True)
class Analysis:
    """The result for a text; values are those whose definition begins at an offset.

    `ended` says why the analysis is incomplete, if it is.
    """

    diagnostics: tuple[Diagnostic, ...] = ()
    values: dict[int, tuple[ValueTypes, ...]] = field(default_factory=dict)
    symbols: dict[tuple[str, str], SymbolFacts] = field(default_factory=dict)
    ended: str = ""


class Stop:
    """Ends an analysis from another thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._child: int | None = None
        self._is_asked = False

    def started(self, child: int) -> None:
        """Takes the child's process ID; refers to it by a descriptor, since IDs are used again."""
        with self._lock:
            try:
                self._child = os.pidfd_open(child)
            except OSError:
                return  # an old kernel: the child's time limit ends it
            if self._is_asked:
                signal.pidfd_send_signal(self._child, signal.SIGKILL)

    def ended(self) -> None:
        """Forgets the child."""
        with self._lock:
            if self._child is not None:
                os.close(self._child)
            self._child = None

    def now(self) -> None:
        """Ends the child, also if it starts later."""
        with self._lock:
            self._is_asked = True
            if self._child is not None:
                try:
                    signal.pidfd_send_signal(self._child, signal.SIGKILL)
                except ProcessLookupError:
                    pass  # it has ended by itself


def analyse(text: Text, stop: Stop | None = None, seconds: int = SECONDS) -> Analysis:
    """Analyses each module of a text in a child process."""
    stop = stop or Stop()
    try:
        ended = run_in_child(
            lambda result: _write(text, result), seconds, EXTRA_BYTES, stop.started
        )
    except OSError as error:
        return Analysis(ended=f"checking the text fails: {error.strerror}")
    finally:
        stop.ended()
    why = ""
    if ended.signal is not None and ended.signal.name == "SIGALRM":
        why = f"checking the text takes more than {seconds} s; the rest is not checked"
    elif ended.signal is not None:
        why = f"checking the text ends with {ended.signal.name}; the rest is not checked"
    elif ended.status != 0:
        why = "checking the text fails; the rest is not checked"
    read = Analysis(ended=why)
    for line in ended.data.split(b"\n"):
        try:
            read = _joined(read, _analysis(json.loads(line), text))
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            continue  # cut off, or damaged
    return read


def _joined(a: Analysis, b: Analysis) -> Analysis:
    return replace(
        a,
        diagnostics=a.diagnostics + b.diagnostics,
        values=a.values | b.values,
        symbols=a.symbols | b.symbols,
    )


def _analysis(fields: dict[str, Any], text: Text) -> Analysis:
    """The analysis of one module, from a line that the child wrote."""
    values = {
        text.offset_in_mlir(int(line), int(column)): tuple(
            ValueTypes(*map(str, each)) for each in types
        )
        for line, column, types in fields["values"]
    }
    symbols = {
        (str(function), str(name)): SymbolFacts(tuple(map(str, facts)), least, greatest)
        for function, name, facts, least, greatest in fields["symbols"]
    }
    return Analysis(tuple(map(from_fields, fields["diagnostics"])), values, symbols)


def _write(text: Text, result: BinaryIO) -> int:
    """Writes a line for each module of the text; in the child."""
    context = dialects.make_context(upstream=None)
    for chunk in text.chunks():
        lines = text.text.count("\n", 0, chunk.start)
        checked = Checked()
        checked.read("\n" * lines + text.text[chunk.start : chunk.end], context)
        result.write(json.dumps(checked.fields()).encode() + b"\n")
        result.flush()
    return 0
