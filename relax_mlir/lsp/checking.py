"""What MLIR and the passes say about one module: diagnostics, types of values, facts on symbols."""

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

from relax_mlir.analysis.functions import graph_functions
from relax_mlir.analysis.scopes import scoped_ops
from relax_mlir.bindings import func, ir
from relax_mlir.diagnostics import MAX_COLUMNS, Diagnostic, collecting, parse_module
from relax_mlir.dialects.graph import ShapeError, TensorType
from relax_mlir.errors import CompileError
from relax_mlir.lsp.recovery import Source
from relax_mlir.passes import Pipeline
from relax_mlir.symbolic import Facts, SymbolicError, bounds

MAX_DIAGNOSTICS = 100
"""How many diagnostics of a module are told."""
MAX_BROKEN = 8
"""How many functions that cannot be parsed are left out."""
_SEVERITIES = ("error", "warning", "remark")
_CHECKS = Pipeline.parse("relax-verify")
_INFERENCE = Pipeline.parse("relax-infer-shapes")

_Location = tuple[int, int]


@dataclass
class Checked:
    """What is told about one module."""

    diagnostics: list[Diagnostic] = field(default_factory=list)
    written: dict[_Location, list[tuple[str, str]]] = field(default_factory=dict)
    inferred: dict[_Location, list[tuple[str, str]]] = field(default_factory=dict)
    symbols: list[tuple[str, str, list[str], int | None, int | None]] = field(default_factory=list)

    def read(self, source: str, context: ir.Context) -> None:
        """Parses and checks a module, as far as it is right."""
        with context, ir.Location.unknown(), collecting(context, _SEVERITIES) as diagnostics:
            module, missing = self._parsed(source, diagnostics)
            parsed = len(diagnostics)
            if module is not None:
                try:
                    self._check(module)
                except CompileError as error:
                    diagnostics += error.diagnostics
        rest = [each for each in diagnostics[parsed:] if not _mentions(each, missing)]
        self.diagnostics += [*diagnostics[:parsed], *rest][:MAX_DIAGNOSTICS]

    def _parsed(
        self, text: str, diagnostics: list[Diagnostic]
    ) -> tuple[ir.Module | None, list[str]]:
        """The module without functions that cannot be parsed, and the names of those left out.

        Those with an error in the body are declared.
        """
        source = Source(text)
        for _ in range(MAX_BROKEN):
            try:
                return parse_module(source.text), source.missing
            except CompileError as error:
                diagnostics += error.diagnostics
                if not source.leave_out(error.diagnostics):
                    break
        return None, []

    def _check(self, module: ir.Module) -> None:
        steps: list[Callable[[ir.Module], None]]
        steps = [self._note_written, _CHECKS.run, self._note_symbols, _INFERENCE.run]
        for step in (*steps, self._note_inferred):
            step(module)

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


def _mentions(diagnostic: Diagnostic, names: list[str]) -> bool:
    """Whether a diagnostic is about one of the functions."""
    return any(f"'{name}'" in diagnostic.message for name in names) or any(
        name.removeprefix("@") in diagnostic.message.split("'") for name in names
    )
