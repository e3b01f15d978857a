"""Failures as files: shrunk and replayed."""

from collections import Counter
from pathlib import Path

from relax_mlir.analysis.functions import is_public
from relax_mlir.bindings import func, ir
from relax_mlir.diagnostics import parse_module
from relax_mlir.dialects import make_context

from .batch import Work
from .check import Failure
from .pool import Tester
from .program import Program
from .shrink import shrink

SECONDS = 120.0
"""The time limit of a trial."""


def read(path: Path) -> tuple[str, str]:
    """The name of the public function of a file, and its text."""
    text = path.read_text()
    return public_name(text), text


def public_name(text: str) -> str:
    """The name of the public function of a module."""
    with make_context(), ir.Location.unknown():
        module = parse_module(text)
        (name,) = [
            op.name.value
            for op in module.body.operations
            if isinstance(op, func.FuncOp) and is_public(op)
        ]
    return name


def shrunk(text: str, failure: Failure, work: Work) -> str:
    """A small module with the same failure."""
    name, tester = public_name(text), Tester()

    def fails(smaller: str) -> bool:
        program = Program(failure.seed, name, smaller, Counter())
        failures = tester.failures(program, work, SECONDS)
        return bool(failures) and failures[0].kind == failure.kind

    try:
        return shrink(text, fails) if fails(text) else text
    finally:
        tester.end()
