"""The ordered table of schedule rules: the first that takes a tensor program schedules it.

A rule is a function `(kernel, target, fuse) -> bool` that replaces the tensor program by loops over
memrefs and returns True, or leaves it as it is: then it returns False if the program is of another
kind than its own, and raises Refusal, or PassFailure at an op, if it is of that kind but has a part
that the rule cannot schedule. Such reasons become remarks. The name of the rule that was used stays
on the kernel as `tir.schedule`.
"""

from collections.abc import Callable, Sequence

from relax_mlir.bindings import ir
from relax_mlir.diagnostics import detail
from relax_mlir.dialects.tir import PrimFunc
from relax_mlir.passes import PassFailure
from relax_mlir.program.contraction import find_contractions
from relax_mlir.program.reading import Unscheduled, read_kernel
from relax_mlir.schedule.build.refusal import Refusal
from relax_mlir.schedule.cpu.attention import attention
from relax_mlir.schedule.cpu.attention.attention_cache import find_operands
from relax_mlir.schedule.cpu.convolution import convolution, pooling
from relax_mlir.schedule.cpu.product.matmul import schedule_matmul
from relax_mlir.schedule.cpu.quantized.quantized_matmul import (
    find_decoded,
    schedule_quantized_matmul,
)
from relax_mlir.target import Target

from .nests import elementwise, fallback, row_reduction, scalar

Rule = Callable[[PrimFunc, Target, bool], bool]


def _matmul(kernel: PrimFunc, target: Target, fuse: bool) -> bool:
    return schedule_matmul(kernel, target)


def _quantized_matmul(kernel: PrimFunc, target: Target, fuse: bool) -> bool:
    return schedule_quantized_matmul(kernel, target)


RULES: tuple[tuple[str, Rule], ...] = (
    ("quantized_matmul", _quantized_matmul),
    ("matmul", _matmul),
    ("convolution", convolution.schedule),
    ("pooling", pooling.schedule),
    ("attention", attention.schedule),
    ("row_reduction", row_reduction.schedule),
    ("elementwise", elementwise.schedule),
    ("fallback", fallback.schedule),
    ("scalar", scalar.schedule),
)
"""Name and rule, in the order in which they are tried; the last one takes every program."""


def schedule(kernel: PrimFunc, target: Target, fuse: bool = True) -> str:
    """Schedules a tensor program by the first rule that takes it, and returns the rule's name.

    With `fuse` off, every op of the program gets loops and memory of its own; but a matrix product
    is one nest of loops with what is computed from its sums, which only exist a tile at a time.
    Raises PassFailure at an op that no rule can schedule.
    """
    name, module, location = kernel.name, kernel.op.operation.parent, kernel.op.location
    kernel = Unscheduled(kernel.op)
    reasons: list[str] = []
    for rule_name, rule in _rules(kernel, reasons):
        try:
            if not rule(kernel, target, fuse):
                continue
        except (Refusal, PassFailure) as reason:
            if (rule_name, rule) == RULES[-1]:
                raise
            reasons.append(f"{rule_name}: {_text(reason)}")
            continue
        for text in reasons:
            detail(location, f"kernel '{name}': {text}; scheduled as {rule_name}")
        _mark(module, name, rule_name)
        return rule_name
    raise AssertionError("the last rule takes every program or fails")


def _rules(kernel: Unscheduled, reasons: list[str]) -> Sequence[tuple[str, Rule]]:
    """The rules that may take a program: the last one alone, and a reason, if others cannot."""
    try:
        read_kernel(kernel)
    except PassFailure as reason:
        reasons.append(_text(reason))
        return RULES[-1:]
    return RULES


def _text(reason: Refusal | PassFailure) -> str:
    return reason.diagnostic.message if isinstance(reason, PassFailure) else str(reason)


def _mark(module: ir.Operation, name: str, rule_name: str) -> None:
    scheduled = ir.SymbolTable(module)[name]
    scheduled.operation.attributes["tir.schedule"] = ir.StringAttr.get(rule_name)


def reads_decoded(kernel: PrimFunc) -> bool:
    """Whether a rule for products, or for attention, reads what the program decodes in front of it.

    Others compute the sums of a program, and would decode again for each of them.
    """
    try:
        module, program = read_kernel(kernel)
    except PassFailure:
        return False
    hinted = kernel.schedule_hint is not None and find_operands(program) is not None
    found = (
        hinted or find_decoded(program) is not None or bool(find_contractions(program, lambda _: 0))
    )
    del module  # the program refers to it
    return found
