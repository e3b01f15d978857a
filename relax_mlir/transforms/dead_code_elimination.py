"""Erases what nobody can tell from outside that it is there.

    %0 = "graph.exp"(%x)              unused: goes, and so does what only it used
    %1 = "graph.add"(%x, %y)          n and m elements: stays while a call has to be refused
                                      where they differ
    %2 = scf.if %c -> ... { ... }     unused, and pure inside: goes
    func.func private @f(...)         nothing calls it: goes

An op goes if its results are unused, it is pure, and what it takes for granted about dims follows
from the facts there. So nothing is refused less than before: casts, requirements, elements that
become extents, and calls of functions that hold such stay. Functions stay that a public one reaches
through calls, or names as what makes its parameters (`graph.made_by`).

Needs: a verified module; `relax-state-assumptions` to find most. Leaves: no pure op that is
unused.
Source: TVM `DeadCodeElimination`.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from relax_mlir.analysis.functions import MADE_BY, argument_attribute, graph_functions, is_public
from relax_mlir.analysis.purity import Purity
from relax_mlir.analysis.scopes import scoped_ops
from relax_mlir.analysis.signatures import functions_by_name
from relax_mlir.bindings import func, ir
from relax_mlir.dialects.graph import GraphOp
from relax_mlir.passes import Pass
from relax_mlir.rewriting import Pattern, is_unused, rewrite_walk, safe_erase, walk_ops
from relax_mlir.symbolic import Facts, holds

from .state_assumptions import assumed_by

MAX_SWEEPS = 1000
"""Over a function; each makes all rewrites there are, so more means patterns that cycle."""


@dataclass(frozen=True)
class DeadCodeElimination(Pass):
    """Erases pure ops that are unused, and functions that nothing reaches."""

    needs_verified: ClassVar[bool] = True

    def run(self, op: ir.Operation) -> None:
        """Cleans every graph function, then the module."""
        purity = Purity.of(op)
        for function in graph_functions(op):
            erase_dead(function, purity)
        functions = functions_by_name(op)
        reached = _reached(functions)
        for name, function in functions.items():
            if name not in reached:
                safe_erase(function)


def erase_dead(function: func.FuncOp, purity: Purity) -> None:
    """Erases the unused ops of a function, users first."""
    facts = {op.operation: scope.facts for op, scope in scoped_ops(function)}
    _erase_in(function.entry_block, purity, facts)


def rewrite_and_clean(function: func.FuncOp, purity: Purity, *patterns: Pattern) -> None:
    """Applies patterns until none matches; what they leave unused is erased on the way."""
    for _ in range(MAX_SWEEPS):
        if not rewrite_walk(function, *patterns):
            return
        erase_dead(function, purity)
    names = ", ".join(pattern.__name__ for pattern in patterns)
    raise RuntimeError(f"the patterns {names} did not come to an end in {MAX_SWEEPS} sweeps")


def _erase_in(block: ir.Block, purity: Purity, facts: dict[ir.Operation, Facts]) -> None:
    *body, _ = list(block.operations)
    for op in reversed(body):
        if not _is_dead(op, purity, facts):
            for region in op.operation.regions:
                for inner in region.blocks:
                    _erase_in(inner, purity, facts)
        if _is_dead(op, purity, facts):
            safe_erase(op)


def _is_dead(op: ir.OpView, purity: Purity, facts: dict[ir.Operation, Facts]) -> bool:
    if not is_unused(op) or not purity.is_pure(op):
        return False
    return all(
        any(holds(fact, facts[each.operation]).proved for fact in any_of)
        for each in walk_ops(op)
        if isinstance(each, GraphOp)
        for any_of in assumed_by(each, purity.functions)
    )


def _reached(functions: dict[str, func.FuncOp]) -> set[str]:
    """The functions that are public, or that such a one needs."""
    stack = [name for name, function in functions.items() if is_public(function)]
    reached = set(stack)
    while stack:
        for name in _named(functions[stack.pop()]):
            if name in functions and name not in reached:
                reached.add(name)
                stack.append(name)
    return reached


def _named(function: func.FuncOp) -> Iterator[str]:
    """The functions that a function calls, or says that its parameters are made by."""
    for index in range(len(function.type.inputs)):
        maker = argument_attribute(function, index, MADE_BY)
        if maker is not None:
            yield ir.StringAttr(maker).value
    ops: list[ir.OpView] = walk_ops(function)
    for op in ops:
        for attribute in op.attributes.values() if "callee" in op.attributes else ():
            if isinstance(attribute, ir.FlatSymbolRefAttr):
                yield attribute.value
