"""Schedules a tensor program by a backend's ordered table of rules: the first that takes it does.

`backend.py` says what a rule is. Why one did not take a program of its kind becomes a remark, and
the name of the rule that was used stays on the kernel as `tir.schedule`.
"""

from collections.abc import Sequence

from relax_mlir.bindings import ir
from relax_mlir.diagnostics import detail
from relax_mlir.dialects.tir import PrimFunc
from relax_mlir.passes import PassFailure
from relax_mlir.program.reading import Unscheduled, read_kernel
from relax_mlir.schedule.backend import Backend, Rule
from relax_mlir.schedule.build.refusal import Refusal


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
