"""Reverse mode over the ops of a block: gradients of results become gradients of operands."""

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, TypeAlias

from relax_mlir.bindings import arith, ir
from relax_mlir.decompositions.emit import add
from relax_mlir.dialects.graph import ShapeError, is_small_float
from relax_mlir.dialects.graph.elementwise import FLOATS
from relax_mlir.passes import PassFailure
from relax_mlir.rewriting import captured_values
from relax_mlir.rules import rules_of_module, rules_of_package
from relax_mlir.symbolic import Expr

from .objects import NO_GRADIENT, may_read_objects
from .shapes import fitted

Contributions: TypeAlias = Iterator[tuple[ir.Value, ir.Value]]
"""Pairs of an operand and what is added to its gradient."""
Rule: TypeAlias = Callable[[Any, "Adjoint"], Contributions]
Callees: TypeAlias = Callable[[str, Sequence[int], Sequence[int]], str]
"""The function that has the gradients of another one: of which arguments, for which results."""


@dataclass
class Context:
    """What the reverse of a function needs, and leaves to be done at its end."""

    callees: Callees
    given: Callable[[ir.OpView, str], str | None]
    """The function that a user gives as the gradient of a called one."""
    fresh: Callable[[str], Expr]
    """A new symbol of about that name."""
    replaced: list[ir.OpView] = field(default_factory=list)
    """Ops whose results are unused once others have replaced them."""


@dataclass(frozen=True)
class Adjoint:
    """What a rule is given: the gradient of each result, None where that is zero.

    `varied` are the values of which gradients are wanted. Rules of ops with regions pass `context`
    on to the reverse of what is in them.
    """

    seeds: tuple[ir.Value | None, ...]
    varied: set[ir.Value]
    context: "Context"

    @property
    def seed(self) -> ir.Value:
        """The gradient of the first result."""
        assert self.seeds[0] is not None  # a rule runs if there is one
        return self.seeds[0]

    def wants(self, operand: ir.Value) -> bool:
        """Whether the gradient of an operand is used."""
        return operand in self.varied


@cache
def _own_rules() -> dict[type, Rule]:
    package = f"{__package__}.operators"
    path = sys.modules[__package__].__path__[0] + "/operators"
    return rules_of_package(package, [path], Adjoint)


def rule_of(kind: type[ir.OpView]) -> Rule | None:
    """The rule of a class of ops, None if there is none."""
    known = _own_rules()
    if kind in known:
        return known[kind]
    return dict(rules_of_module(sys.modules[kind.__module__], Adjoint)).get(kind)


def is_differentiable(value: ir.Value) -> bool:
    """Whether a value has a gradient: floats do, and tensors of them."""
    type_ = value.type
    return isinstance(type_.element_type if isinstance(type_, ir.ShapedType) else type_, FLOATS)


def vary(ops: Iterable[ir.OpView], varied: set[ir.Value]) -> None:
    """Adds what depends on the values to them: results of ops, and what is in their regions."""
    for op in ops:
        operands = [*op.operation.operands, *captured_values(op)]
        if NO_GRADIENT in op.attributes:
            continue
        if not varied.intersection(operands) and not may_read_objects(op):
            continue
        _require_gradient(op)
        varied.update(filter(is_differentiable, op.operation.results))
        for region in op.operation.regions:
            for inner in region.blocks:
                varied.update(filter(is_differentiable, inner.arguments))
                vary(inner.operations, varied)


def _require_gradient(op: ir.OpView) -> None:
    """Refuses floats of 8 bits: they are stored, not computed with, so no gradients are summed."""
    types = [v.type for v in op.operation.results if isinstance(v.type, ir.ShapedType)]
    small = [type_.element_type for type_ in types if is_small_float(type_.element_type)]
    if small and not len(op.operation.regions):
        raise PassFailure(
            op,
            f"has a result of {small[0]} that depends on what gradients are wanted of, but floats "
            f"of 8 bits have none; '{NO_GRADIENT}' says that the results are constants",
        )


class Reverse:
    """The gradients of values, as sums of what the ops that use them have contributed."""

    def __init__(self, varied: set[ir.Value], context: Context) -> None:
        self._varied, self._context = varied, context
        self._sums: dict[ir.Value, ir.Value] = {}

    def of(self, value: ir.Value) -> ir.Value | None:
        """The gradient of a value; None if nothing has contributed to it."""
        return self._sums.get(value)

    def add(self, value: ir.Value, gradient: ir.Value) -> None:
        """Adds a contribution to the gradient of a value, if that is wanted.

        What broadcasting has repeated is summed, and the element type becomes the value's.
        """
        if value not in self._varied:
            return
        if isinstance(value.type, ir.ShapedType):
            gradient = fitted(gradient, value)
        known = self._sums.get(value)
        if known is not None:
            is_tensor = isinstance(value.type, ir.ShapedType)
            gradient = add(known, gradient) if is_tensor else arith.AddFOp(known, gradient).result
        self._sums[value] = gradient

    def run(self, ops: Iterable[ir.OpView]) -> None:
        """Goes through ops from the last one, building at the insertion point."""
        for op in reversed(list(ops)):
            with op.location:
                try:
                    self._pull(op)
                except ShapeError as error:
                    raise PassFailure(op, f"has no gradient here: {error}") from None

    def _pull(self, op: ir.OpView) -> None:
        """Adds what an op contributes to the gradients of its operands."""
        seeds = tuple(self._sums.pop(result, None) for result in op.operation.results)
        if all(seed is None for seed in seeds):
            return
        rule = rule_of(type(op))
        if rule is None:
            raise PassFailure(
                op,
                "has no gradient; define a function of it and an Adjoint in the module of its "
                f"class, or mark it with '{NO_GRADIENT}'",
            )
        for operand, gradient in rule(op, Adjoint(seeds, self._varied, self._context)):
            self.add(operand, gradient)
