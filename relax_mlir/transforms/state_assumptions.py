"""States what operators take for granted about dims as facts of their function.

    func.func @main(%x: tensor<?xf32, #graph.shape<["n"]>>,
                    %y: tensor<?xf32, #graph.shape<["m"]>>) { %0 = "graph.add"(%x, %y) ... }
      ->
    func.func @main(...) attributes {graph.facts = ["n == m"]} { ... }

A rule refuses dims that can never fit. Dims that may or may not fit are let pass, and kernels rely
on them: they would read beyond their operands. Such relations become facts, which are checked at
each call, unless they follow from those that are stated already. Dims of results must not be
negative either.

Needs: a verified module without calls of graph functions. Leaves: facts that all assumptions of
operators and of calls follow from. Fails where one contradicts the facts.
Source: paper §4.1 (checks at run time where nothing is proved).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from relax_mlir.analysis.functions import FACTS, facts_of, graph_functions, is_public
from relax_mlir.analysis.signatures import functions_by_name, unify
from relax_mlir.bindings import func, ir
from relax_mlir.dialects.graph import (
    CallDpsLibraryOp,
    CallTirInplaceOp,
    CallTirOp,
    GraphOp,
    TensorType,
    annotation_of,
    assumptions,
)
from relax_mlir.dialects.graph.types import dims_differ
from relax_mlir.dialects.lib import RULES
from relax_mlir.dialects.tir import PrimFunc
from relax_mlir.passes import Pass, PassFailure
from relax_mlir.rewriting import walk_ops
from relax_mlir.symbolic import Fact, Facts, as_expr, holds

OPPOSITE = {"==": "!=", "<=": ">"}


@dataclass(frozen=True)
class StateAssumptions(Pass):
    """States what operators take for granted about dims as facts of their function."""

    def run(self, op: ir.Operation) -> None:
        """Adds to the facts of every public graph function."""
        functions = functions_by_name(op)
        for function in filter(is_public, graph_functions(op)):
            before = facts_of(function)
            after = _with_assumptions(function, before, functions)
            if len(after) > len(before):
                texts = [ir.StringAttr.get(str(fact)) for fact in after]
                function.attributes[FACTS] = ir.ArrayAttr.get(texts)


def _with_assumptions(
    function: func.FuncOp, facts: Facts, functions: dict[str, func.FuncOp]
) -> Facts:
    known: set[Fact] = set()
    for op in walk_ops(function, GraphOp):
        for fact in assumed_by(op, functions):
            if fact in known:
                continue
            known.add(fact)
            if holds(fact, facts).proved:
                continue
            if holds(Fact(fact.lhs, OPPOSITE[fact.op], fact.rhs), facts).proved:
                given = f" given {' and '.join(map(str, facts))}" if len(facts) else ""
                raise PassFailure(op, f"needs {fact}, which cannot be{given}")
            facts += Facts((fact,))
    return facts


def assumed_by(op: GraphOp, functions: dict[str, func.FuncOp]) -> Iterator[Fact]:
    """What has to hold when the op runs, for its kernel to stay within its operands."""
    with assumptions() as found:
        op.check()
        if isinstance(op, CallTirOp | CallTirInplaceOp):
            _check_call(op, functions[op.callee_name])
        elif isinstance(op, CallDpsLibraryOp):
            _check_library_call(op)
    yield from found
    for result in op.results:
        annotation = annotation_of(result)
        if isinstance(annotation, TensorType):
            for dim in annotation.dims or ():
                if dim is not None and dim.value is None:
                    yield Fact(as_expr(0), "<=", dim)


def _check_library_call(op: CallDpsLibraryOp) -> None:
    """Holds the call against what its convention asks of operands and says of the result."""
    declared = ir.SymbolTable(_module_of(op))[op.callee_name]
    rule = RULES.get(declared.attributes["convention"].value)
    if rule is None:
        return
    deduced = rule([TensorType.of(value) for value in op.ins])
    for ours, stated in zip(deduced.dims or (), TensorType.of(op.outs[0]).dims or ()):
        dims_differ(ours, stated)


def _module_of(op: ir.OpView) -> ir.Operation:
    found = op.operation
    while found.parent is not None:
        found = found.parent
    return found


def _check_call(op: CallTirOp | CallTirInplaceOp, callee: func.FuncOp) -> None:
    """Holds the call against the tensor program's signature, for what that takes for granted."""
    kernel = PrimFunc(callee)
    inplace: Sequence[int] = op.inplace if isinstance(op, CallTirInplaceOp) else ()
    ins = [value for index, value in enumerate(op.ins) if index not in inplace]
    if not kernel.is_scheduled:
        parameters = [annotation_of(value) for value in (*kernel.ins, *kernel.outs)]
        unify(parameters, [annotation_of(value) for value in (*ins, *op.outs)])
