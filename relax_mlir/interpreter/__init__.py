"""Runs modules in NumPy, without compiling them: a reference for the meaning of programs.

    module = relax_mlir.interpret("model.mlir")
    y = module["main"](x, weight)                  # as with an Executable

It takes modules at any stage before host code: operators, calls, tensor programs, planned memory,
vector kernels without unknown target intrinsics, and launches of kernels of devices (`simt`).
Operators are computed in float64, or in integers that wrap, and rounded once; tensor programs and
kernels literally, in their element types. Every access is bounds-checked. Nothing is shared with
legalisation, fusion, schedules or code generation, so that each can be tested against it.
"""

import os

from relax_mlir.bindings import ir
from relax_mlir.dialects import make_context
from relax_mlir.source import read_source

from .module import Call, Function, Interpreted
from .simt.standin import simulate

__all__ = ["Call", "Function", "Interpreted", "interpret", "simulate"]


def interpret(source: "ir.Module | str | os.PathLike") -> Interpreted:
    """Makes the functions of a module callable, without compiling them.

    `source` is a module, its text, or the path of a file that holds the text.

    Raises CompileError with located diagnostics if the module is wrong, UsageError for a missing
    file. Ops that cannot be interpreted are refused when they are about to run.
    """
    if isinstance(source, ir.Module):
        return Interpreted(source)
    with make_context(), ir.Location.unknown():
        return Interpreted(read_source(source).parse())
