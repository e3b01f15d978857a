"""The interface of a backend, which machine-independent parts use.

A rule is a function `(kernel, fuse) -> bool` that replaces a tensor program by loops over memrefs
and returns True, or leaves it unchanged. Then it returns False if the program is not of its kind,
and raises Refusal, or PassFailure at an op, if it is, but has a part that the rule cannot schedule.
The reason becomes a remark. The kernel has the name of the rule that was used as `tir.schedule`.
"""

from collections.abc import Callable, Sequence
from typing import Protocol

from relax_mlir.bindings import func, ir
from relax_mlir.diagnostics import detail
from relax_mlir.dialects.tir import PrimFunc
from relax_mlir.passes import PassFailure
from relax_mlir.program.reading import Unscheduled, read_kernel
from relax_mlir.schedule.build.packed_weights import Groups
from relax_mlir.schedule.build.refusal import Refusal

Rule = Callable[[PrimFunc, bool], bool]


class Layouts(Protocol):
    """The layouts of weights that a machine's kernels read."""

    @property
    def panel_columns(self) -> int:
        """The columns of a panel of a product's right side."""

    def multiplies(self, unit: str) -> bool:
        """Whether an instruction multiplies "bf16" or "int8" elements without conversion."""

    def int8_groups(self, left: bool, right: bool) -> Groups | None:
        """The groups of packed 8-bit weights for sides that are signed or not, or None."""


class Peaks(Protocol):
    """Hand-written kernels that compute, or read memory, at full speed."""

    @property
    def units(self) -> Sequence[str]:
        """The units among "f32", "bf16" and "int8" that the machine has instructions for."""

    @property
    def row_elements(self) -> int:
        """The f32 elements that a task of `reading` reads."""

    @property
    def lanes(self) -> int:
        """The f32 elements that a task writes."""

    def instruction(self, unit: str) -> str:
        """The instruction that the peak of a unit is measured with."""

    def operations(self, unit: str) -> float:
        """Operations of one task of a unit, a multiply-add being two."""

    def computing(self, unit: str) -> str:
        """A module of one function that maps f32[n, lanes] to the same: n tasks."""

    def reading(self) -> str:
        """A module of one function that maps f32[n, row_elements] to f32[n, lanes]: sums."""


class Backend(Protocol):
    """A machine that kernels are scheduled for."""

    @property
    def rules(self) -> Sequence[tuple[str, Rule]]:
        """Name and rule, in the order in which they are tried; the last takes every program."""

    @property
    def unread(self) -> int:
        """How many of the last rules do not read programs, so that these may have any ops."""

    @property
    def layouts(self) -> Layouts | None:
        """The layouts of weights; None if kernels read them as they are."""

    @property
    def peaks(self) -> Peaks | None:
        """Kernels that measure the peaks of the machine, if there are any."""

    def tell_instructions(self, kernel: func.FuncOp) -> None:
        """Annotates a scheduled kernel with the units that it needs: see `analysis.units`."""


def schedule(kernel: PrimFunc, backend: Backend, fuse: bool = True) -> str:
    """Schedules a tensor program by the first rule that takes it, and returns the rule's name.

    Without `fuse`, every op of the program has its own loops and memory, but a matrix product
    shares its nest with its epilogue, since its sums only exist a tile at a time. Raises
    PassFailure at an op that no rule can schedule.
    """
    name, module, location = kernel.name, kernel.op.operation.parent, kernel.op.location
    kernel = Unscheduled(kernel.op)
    reasons: list[str] = []
    rules = _rules(backend, kernel, reasons)
    for rule_name, rule in rules:
        try:
            if not rule(kernel, fuse):
                continue
        except (Refusal, PassFailure) as reason:
            if (rule_name, rule) == rules[-1]:
                raise
            reasons.append(f"{rule_name}: {_text(reason)}")
            continue
        for text in reasons:
            detail(location, f"kernel '{name}': {text}; scheduled as {rule_name}")
        _mark(module, name, rule_name)
        return rule_name
    raise AssertionError("the last rule takes every program or fails")


def _rules(backend: Backend, kernel: Unscheduled, reasons: list[str]) -> Sequence[tuple[str, Rule]]:
    """The rules that may take a program: the last ones alone, and a reason, if others cannot."""
    try:
        read_kernel(kernel)
    except PassFailure as reason:
        reasons.append(_text(reason))
        return backend.rules[-backend.unread :]
    return backend.rules


def _text(reason: Refusal | PassFailure) -> str:
    return reason.diagnostic.message if isinstance(reason, PassFailure) else str(reason)


def _mark(module: ir.Operation, name: str, rule_name: str) -> None:
    scheduled = ir.SymbolTable(module)[name]
    scheduled.operation.attributes["tir.schedule"] = ir.StringAttr.get(rule_name)
