"""Turns graph functions of explicit calls into native host code.

    func.func @main(%x: tensor<?xf32, #graph.shape<["n"]>>) -> tensor<?xf32, ...>
      ->
    func.func @rx_fn_main(ctx, args, num_args, results, num_results) -> i32

The code has the arguments checked against a table (rank, dtype, dims, facts), computes the
symbols once, takes one arena from the runtime, calls the kernels, and hands out results. No
interpreter runs between kernels.

Needs: scheduled kernels (`relax-schedule`), explicit calls (`relax-lower-calls`), planned memory
(`relax-plan-memory`). Leaves: only kernels, host functions and LLVM globals.
Source: paper §4.7; TVM `VMShapeLower`, whose shape heap are SSA values here.
"""

import re
from dataclasses import dataclass

from relax_mlir.analysis.functions import argument_name, graph_functions, is_public
from relax_mlir.analysis.instructions import uses_tiles
from relax_mlir.bindings import func, ir
from relax_mlir.dialects.graph import ShapeValueType
from relax_mlir.dialects.lib import FunctionOp
from relax_mlir.dialects.tir import PrimFunc
from relax_mlir.host.adaptor import Adaptors
from relax_mlir.host.emit import emit_function
from relax_mlir.host.library import slot_name
from relax_mlir.host.metadata import metadata_text
from relax_mlir.host.tables import Globals
from relax_mlir.passes import Pass, PassFailure
from relax_mlir.rewriting import safe_erase

POINTER = "!llvm.ptr"
RUNTIME = {
    "rx_bind": f"({POINTER}, {POINTER}, {POINTER}, i32, i32, {POINTER}) -> i32",
    "rx_arena": f"({POINTER}, i64) -> {POINTER}",
    "rx_result": f"({POINTER}, {POINTER}, i32, i32, i32, i32, {POINTER}) -> {POINTER}",
    "rx_result_alias": f"({POINTER}, {POINTER}, i32, {POINTER}) -> i32",
    "rx_check_dim": f"({POINTER}, {POINTER}, i64, i64) -> i32",
    "rx_count_kernels": "(i64) -> ()",
    "rx_span_begin": "(i32) -> ()",
    "rx_span_end": "() -> ()",
}
"""What host code calls, with its type."""


@dataclass(frozen=True)
class ToHost(Pass):
    """Turns graph functions of explicit calls into native host code."""

    target: str = "native"

    def run(self, op: ir.Operation) -> None:
        """Rewrites every public graph function; private ones must have been inlined."""
        block = op.regions[0].blocks[0]
        kernels = {
            inner.name.value: inner
            for inner in block.operations
            if isinstance(inner, func.FuncOp) and PrimFunc.is_prim_func(inner)
        }
        _require_scheduled(kernels)
        libraries = [inner for inner in block.operations if isinstance(inner, FunctionOp)]
        functions = graph_functions(op)
        for function in filter(is_public, functions):
            _check_entry(function)
        metadata = metadata_text(functions, list(kernels), libraries, self.target)
        table = Globals("rx_data", any(map(uses_tiles, kernels.values())))
        adaptors, texts = Adaptors(kernels), []
        for function in functions:
            if is_public(function):
                texts.append(emit_function(function, libraries, table, adaptors))
        texts += adaptors.texts
        texts.append(_metadata_function(table, metadata))
        _append(block, "\n".join([*_declarations(kernels, libraries), *table.lines, *texts]))
        for function in [*functions, *libraries]:
            safe_erase(function)


def _check_entry(function: func.FuncOp) -> None:
    """Raises PassFailure if a function cannot be called from outside."""
    name = function.name.value
    if not re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII):
        raise PassFailure(function, f"is exported, but '{name}' is no name in C")
    for index, type_ in enumerate(function.type.inputs):
        if not isinstance(type_, ir.RankedTensorType | ShapeValueType):
            argument = f"argument {index} '{argument_name(function, index)}'"
            raise PassFailure(
                function, f"has {argument} of '{type_}', not a ranked tensor or a shape"
            )
    for index, type_ in enumerate(function.type.results):
        if not isinstance(type_, ir.RankedTensorType):
            raise PassFailure(function, f"has result {index} of '{type_}', not a ranked tensor")


def _require_scheduled(kernels: dict[str, func.FuncOp]) -> None:
    for kernel in kernels.values():
        if not PrimFunc(kernel).is_scheduled:
            raise PassFailure(kernel, "is not scheduled; run relax-schedule before relax-to-host")


def _declarations(kernels: dict[str, func.FuncOp], libraries: list[FunctionOp]) -> list[str]:
    lines = [f"func.func private @{name}{type_}" for name, type_ in RUNTIME.items()]
    lines.append(f"llvm.func @memcpy({POINTER}, {POINTER}, i64) -> {POINTER}")
    for name, kernel in kernels.items():
        lines.append(f"func.func private @{name}{_signature(kernel)}")
    return lines + [slot for library in libraries for slot in _library_slot(library)]


def _signature(kernel: func.FuncOp) -> str:
    type_ = kernel.type
    return "(" + ", ".join(map(str, type_.inputs)) + ") -> ()"


def _library_slot(library: FunctionOp) -> list[str]:
    name = slot_name(library.sym_name.value)
    return [
        f"llvm.mlir.global external @{name}() : {POINTER} {{",
        f"  %0 = llvm.mlir.zero : {POINTER}",
        f"  llvm.return %0 : {POINTER}",
        "}",
    ]


def _metadata_function(table: Globals, metadata: str) -> str:
    name = table.string(metadata)
    return (
        f"func.func @rx_metadata() -> {POINTER} {{\n"
        f"  %0 = llvm.mlir.addressof @{name} : {POINTER}\n"
        f"  func.return %0 : {POINTER}\n}}"
    )


def _append(block: ir.Block, text: str) -> None:
    """Parses the new ops and moves those that are no mere declarations of kernels."""
    existing = {op.name.value for op in block.operations if isinstance(op, func.FuncOp)}
    parsed = ir.Module.parse(text)
    for op in list(parsed.body.operations):
        if isinstance(op, func.FuncOp) and op.name.value in existing:
            continue
        op.detach_from_parent()
        block.append(op)
