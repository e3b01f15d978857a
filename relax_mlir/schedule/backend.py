"""What the parts that know no machine ask of the one that kernels are made for.

A rule is a function `(kernel, fuse) -> bool` that replaces a tensor program by loops over memrefs
and returns True, or leaves it as it is: then it returns False if the program is of another kind
than its own, and raises Refusal, or PassFailure at an op, if it is of that kind but has a part that
the rule cannot schedule. Why one did not take a program of its kind becomes a remark, and the name
of the rule that was used stays on the kernel as `tir.schedule`.
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
    """How a machine's kernels want weights to lie."""

    @property
    def panel_columns(self) -> int:
        """The columns of a panel that kernels of products are made for."""

    def multiplies(self, unit: str) -> bool:
        """Whether an instruction multiplies "bf16" or "int8" elements as they are."""

    def int8_groups(self, left: bool, right: bool) -> Groups | None:
        """How 8-bit weights lie for products with sides that are signed or not; None: as is."""


class Peaks(Protocol):
    """Kernels by hand that do nothing but compute, or read, at full speed."""

    @property
    def units(self) -> Sequence[str]:
        """Those of "f32", "bf16" and "int8" that the machine has instructions for."""

    @property
    def row_elements(self) -> int:
        """How many f32 elements a row has that a task of `reading` reads."""

    @property
    def lanes(self) -> int:
        """How many f32 elements a row has that a task writes."""

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
    def layouts(self) -> Layouts:
        """How kernels want weights to lie."""

    @property
    def peaks(self) -> Peaks:
        """Kernels that measure what the machine can do at best."""

    def tell_instructions(self, kernel: func.FuncOp) -> None:
        """Writes on a scheduled kernel what host code asks of it: see `analysis.units`."""


def schedule(kernel: PrimFunc, backend: Backend, fuse: bool = True) -> str:
    """Schedules a tensor program by the first rule that takes it, and returns the rule's name.

    With `fuse` off, every op of the program gets loops and memory of its own; but a matrix product
    is one nest of loops with what is computed from its sums, which only exist a tile at a time.
    Raises PassFailure at an op that no rule can schedule.
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
    """The rules that may take a program: the last one alone, and a reason, if others cannot."""
    try:
        read_kernel(kernel)
    except PassFailure as reason:
        reasons.append(_text(reason))
        return backend.rules[-1:]
    return backend.rules


def _text(reason: Refusal | PassFailure) -> str:
    return reason.diagnostic.message if isinstance(reason, PassFailure) else str(reason)


def _mark(module: ir.Operation, name: str, rule_name: str) -> None:
    scheduled = ir.SymbolTable(module)[name]
    scheduled.operation.attributes["tir.schedule"] = ir.StringAttr.get(rule_name)
