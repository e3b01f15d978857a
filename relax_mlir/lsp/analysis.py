"""What MLIR and the passes say about a text: diagnostics, types of values, facts on symbols.

Text may hang the parser, crash it, or take all memory. It is read in a child process, with limits;
what the child writes is not trusted, and errors of modules before a crash are reported.
"""

import json
import os
import signal
import threading
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field, replace
from typing import Any, BinaryIO

from relax_mlir import dialects
from relax_mlir.analysis.functions import graph_functions
from relax_mlir.analysis.scopes import scoped_ops
from relax_mlir.bindings import func, ir
from relax_mlir.child_process import run_in_child
from relax_mlir.diagnostics import MAX_COLUMNS, Diagnostic, collecting, from_fields, parse_module
from relax_mlir.dialects.graph import ShapeError, TensorType
from relax_mlir.errors import CompileError
from relax_mlir.lsp.text import Text
from relax_mlir.passes import Pipeline
from relax_mlir.symbolic import Facts, SymbolicError, bounds

SECONDS = 20
EXTRA_BYTES = 4 << 30
MAX_DIAGNOSTICS = 100
"""How many diagnostics of a module are told."""
_SEVERITIES = ("error", "warning", "remark")
_CHECKS = Pipeline.parse("relax-verify")
_INFERENCE = Pipeline.parse("relax-infer-shapes")


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
        checked = _Checked()
        checked.read("\n" * lines + text.text[chunk.start : chunk.end], context)
        result.write(json.dumps(checked.fields()).encode() + b"\n")
        result.flush()
    return 0


_Location = tuple[int, int]


@dataclass
class _Checked:
    """What is told about one module."""

    diagnostics: list[Diagnostic] = field(default_factory=list)
    written: dict[_Location, list[tuple[str, str]]] = field(default_factory=dict)
    inferred: dict[_Location, list[tuple[str, str]]] = field(default_factory=dict)
    symbols: list[tuple[str, str, list[str], int | None, int | None]] = field(default_factory=list)

    def read(self, source: str, context: ir.Context) -> None:
        """Parses and checks a module, as far as it is right."""
        with context, ir.Location.unknown(), collecting(context, _SEVERITIES) as diagnostics:
            steps: list[Callable[[ir.Module], None]]
            steps = [self._note_written, _CHECKS.run, self._note_symbols, _INFERENCE.run]
            try:
                module = parse_module(source)
                for step in (*steps, self._note_inferred):
                    step(module)
            except CompileError as error:
                diagnostics += error.diagnostics
        self.diagnostics += diagnostics[:MAX_DIAGNOSTICS]

    def _note_written(self, module: ir.Module) -> None:
        self.written = dict(_types(module.operation))

    def _note_inferred(self, module: ir.Module) -> None:
        self.inferred = dict(_types(module.operation))

    def _note_symbols(self, module: ir.Module) -> None:
        for function in graph_functions(module.operation):
            for name, facts in sorted(_facts(function).items()):
                least, greatest = bounds(name, facts)
                told = [str(fact) for fact in facts if name in fact.symbols]
                row = (f"@{function.name.value}", name, told, least, greatest)
                self.symbols.append(row)

    def fields(self) -> dict[str, Any]:
        """The data, as JSON has them."""
        values = []
        for (line, column), types in self.written.items():
            finer = self.inferred.get((line, column), types)
            finer = finer if len(finer) == len(types) else types
            told = [(written, *both) for (written, _), both in zip(types, finer)]
            values.append((line, column, told))
        diagnostics = [asdict(each) for each in self.diagnostics]
        return {"diagnostics": diagnostics, "values": values, "symbols": self.symbols}


def _facts(function: func.FuncOp) -> dict[str, Facts]:
    """The facts on each symbol at the end of the block that binds it.

    They are those that all blocks have, if several bind one of the name.
    """
    ends: dict[tuple[str, ir.Block], Facts] = {}
    names: dict[str, list[ir.Block]] = {}
    for _, scope in scoped_ops(function):
        for name in scope.symbols:
            blocks = names.setdefault(name, [])
            if scope.block not in blocks and not _is_inside(scope.block, blocks):
                blocks.append(scope.block)
            if scope.block in blocks:
                ends[name, scope.block] = scope.facts
    return {
        name: Facts(
            tuple(
                fact
                for fact in ends[name, blocks[0]]
                if all(fact in ends[name, block].items for block in blocks)
            )
        )
        for name, blocks in names.items()
    }


def _is_inside(block: ir.Block, others: list[ir.Block]) -> bool:
    """Whether a block is nested in one of the others."""
    while not isinstance(block.owner.opview, func.FuncOp):
        block = block.owner.operation.block
        if block in others:
            return True
    return False


def _types(root: ir.Operation) -> Iterator[tuple[_Location, list[tuple[str, str]]]]:
    """The types of the values of each op and of each argument, by location in the text."""
    told: list[tuple[_Location, list[tuple[str, str]]]] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        if (at := _location(op.location)) and len(op.results):
            told.append((at, [_told(result.type) for result in op.results]))
        for region in op.regions:
            for block in region.blocks:
                for argument in block.arguments:
                    if at := _location(argument.location):
                        told.append((at, [_told(argument.type)]))
        return ir.WalkResult.ADVANCE

    root.walk(visit, ir.WalkOrder.PRE_ORDER)
    yield from told


def _location(location: ir.Location) -> _Location | None:
    """The line and column of a location in the text."""
    at = Diagnostic.at(location, "note", "")
    return (at.line, at.column) if at.file == "-" and at.line else None


def _told(type_: ir.Type) -> tuple[str, str]:
    """A type as text, and in short."""
    short = str(type_)
    if isinstance(type_, ir.RankedTensorType):
        try:
            short = str(TensorType.of(type_))
        except (ShapeError, SymbolicError):
            pass  # it is malformed, which is reported
    return _cut(str(type_)), _cut(short)


def _cut(text: str) -> str:
    return text if len(text) <= MAX_COLUMNS else text[:MAX_COLUMNS] + " ..."
