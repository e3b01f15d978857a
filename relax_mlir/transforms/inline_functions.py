"""Copies graph functions into those that call them.

    func.func private @scaled(%x, %w) { %0 = "graph.multiply"(%x, %w) ... }
    %1 = "graph.call"(%a, %b) {callee = @scaled}
      ->
    %1 = "graph.multiply"(%a, %b)

The callee's symbols become what the arguments say they are. Symbols that its own casts bind get
names that the caller does not use; a parameter that is finer than its argument becomes a
match_cast, which checks at run time. Functions that run as one kernel (`graph.primitive`) stay.
Private functions that nothing calls any more are erased.

Needs: calls that agree with their signatures (`relax-verify`). Leaves: `graph.call` of primitive
functions only. Fails on recursion.
Source: TVM `InlinePrivateFunctions`.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from relax_mlir.analysis.functions import PRIMITIVE, graph_functions, is_public
from relax_mlir.analysis.rename import rename_symbols, used_symbols
from relax_mlir.analysis.signatures import parameter_types, unify
from relax_mlir.bindings import func, ir
from relax_mlir.dialects.graph import (
    Annotation,
    CallOp,
    MatchCastOp,
    TensorType,
    annotation_of,
    dims_equal,
    to_mlir,
)
from relax_mlir.passes import Pass, PassFailure
from relax_mlir.rewriting import safe_erase, walk_ops
from relax_mlir.symbolic import Expr, sym


@dataclass(frozen=True)
class InlineFunctions(Pass):
    """Copies graph functions into those that call them."""

    def run(self, op: ir.Operation) -> None:
        """Inlines every call of a graph function with a body, innermost functions first."""
        functions = {
            function.name.value: function
            for function in graph_functions(op)
            if PRIMITIVE not in function.attributes
        }
        done: set[str] = set()
        for name in functions:
            _inline_into(name, functions, done, [])
        called = {call.callee_name for call in walk_ops(op, CallOp)}
        for name, function in functions.items():
            if not is_public(function) and name not in called:
                safe_erase(function)


def _inline_into(
    name: str, functions: Mapping[str, func.FuncOp], done: set[str], path: list[str]
) -> None:
    if name in done:
        return
    for call in walk_ops(functions[name], CallOp):
        callee = call.callee_name
        if callee not in functions:
            continue
        if callee in (*path, name):
            raise PassFailure(call, f"calls '@{callee}' recursively, which cannot be inlined")
        _inline_into(callee, functions, done, [*path, name])
        _inline(call, functions[callee], functions[name])
    done.add(name)


def _inline(call: CallOp, callee: func.FuncOp, caller: func.FuncOp) -> None:
    """Replaces one call by a copy of the callee's body."""
    arguments = call.ins
    parameters = parameter_types(callee)
    if len(parameters) != len(arguments):
        raise PassFailure(
            call, f"passes {len(arguments)} operands to '@{callee.name.value}' of {len(parameters)}"
        )
    values = unify(parameters, [annotation_of(value) for value in arguments]).values
    values.update(_fresh(used_symbols(callee) - values.keys(), used_symbols(caller)))
    with ir.InsertionPoint(call), call.location:
        copy = callee.operation.clone()
        rename_symbols(copy, values)
        block = copy.regions[0].blocks[0]
        for parameter, value in zip(block.arguments, arguments, strict=True):
            parameter.replace_all_uses_with(_as(value, annotation_of(parameter)))
        *body, terminator = list(block.operations)
        results = list(terminator.operands)
        terminator.operation.erase()
        for op in body:
            op.operation.detach_from_parent()
            ir.InsertionPoint(call).insert(op)
        copy.erase()
        for old, new in zip(call.outs, results, strict=True):
            same = new.type == old.type
            new = new if same else MatchCastOp.build(new, old.type).result
            old.replace_all_uses_with(new)
    safe_erase(call)


def _fresh(names: set[str], taken: set[str]) -> dict[str, Expr]:
    """New names for symbols, none of which is taken."""
    found: dict[str, Expr] = {}
    used = set(taken)
    for name in sorted(names):
        new, count = name, 0
        while new in used:
            count += 1
            new = f"{name}_{count}"
        used.add(new)
        found[name] = sym(new)
    return found


def _as(value: ir.Value, annotation: Annotation) -> ir.Value:
    """The value under the parameter's annotation, checked at run time where that is finer."""
    own = annotation_of(value)
    if not isinstance(annotation, TensorType) or not isinstance(own, TensorType):
        return value
    if annotation.dims is None or own == annotation:
        return value
    if own.dims is not None:
        pairs = list(zip(own.dims, annotation.dims))
        if all(want is None or dims_equal(got, want) for got, want in pairs):
            return value
        dims = tuple(got if want is None else want for got, want in pairs)
        annotation = TensorType(dims, annotation.element)
    return MatchCastOp.build(value, to_mlir(annotation)).result
