"""Private functions take only what they use.

    func.func private @f(%x, %y) { ... }           %y is unused
    %0 = "graph.call"(%a, %b) {callee = @f}
      ->
    func.func private @f(%x) { ... }
    %0 = "graph.call"(%a) {callee = @f}

Callees come first: what a function only passed on goes too. A parameter stays if it alone shows a
symbol that the function uses, if it is updated in place, or if a call may be refused because of
what its annotation says: the facts at each call have to show that the argument is that.

Needs: a verified module; `relax-state-assumptions` to find most. Leaves: no private graph function
with a parameter that it does not need.
Source: TVM `RemoveUnusedParameters`.
"""

from dataclasses import dataclass
from typing import ClassVar

from relax_mlir.analysis.functions import (
    INOUT,
    NUM_INPUTS,
    argument_attribute,
    callees_first,
    facts_of,
    graph_functions,
)
from relax_mlir.analysis.private_calls import private_calls
from relax_mlir.analysis.purity import Purity
from relax_mlir.analysis.rename import used_symbols
from relax_mlir.analysis.scopes import scoped_ops
from relax_mlir.analysis.signatures import parameter_types, unify
from relax_mlir.analysis.symbols import bindings, dims_of, symbols_of
from relax_mlir.bindings import func, ir
from relax_mlir.dialects.graph import Annotation, CallOp, TensorType, annotation_of
from relax_mlir.passes import Pass
from relax_mlir.rewriting import replace
from relax_mlir.symbolic import Facts, equal

from .dead_code_elimination import erase_dead


@dataclass(frozen=True)
class RemoveUnusedParameters(Pass):
    """Private functions take only what they use."""

    needs_verified: ClassVar[bool] = True

    def run(self, op: ir.Operation) -> None:
        """Changes every private graph function that is called, callees first."""
        purity = Purity.of(op)
        for function in callees_first(graph_functions(op)):
            calls = private_calls(op, function)
            if not calls:
                continue
            erase_dead(function, purity)
            for index in reversed(range(len(function.arguments))):
                if not list(function.arguments[index].uses) and _can_go(function, index, op):
                    _remove(function, index, private_calls(op, function))


def _can_go(function: func.FuncOp, index: int, module: ir.Operation) -> bool:
    """Whether nothing tells that a parameter without uses is there."""
    if argument_attribute(function, index, INOUT) is not None:
        return False
    others = [a for i, a in enumerate(parameter_types(function)) if i != index]
    own = set(symbols_of([annotation_of(function.arguments[index])]))
    left = (_symbols_inside(function) | set(symbols_of(others))) & own
    return left <= bindings(others).keys() and _agrees_everywhere(function, index, module)


def _symbols_inside(function: func.FuncOp) -> set[str]:
    """The symbols of a function's body, facts and results."""
    inside = [used_symbols(op) for op in function.entry_block.operations]
    results = symbols_of(map(annotation_of, function.type.results))
    return set(facts_of(function).symbols).union(results, *inside)


def _agrees_everywhere(function: func.FuncOp, index: int, module: ir.Operation) -> bool:
    """Whether each call shows that its argument is what the parameter says."""
    return all(
        _agrees(parameter_types(function), op, index, scope.facts)
        for caller in graph_functions(module)
        for op, scope in scoped_ops(caller)
        if isinstance(op, CallOp) and op.callee_name == function.name.value
    )


def _agrees(parameters: list[Annotation], call: CallOp, index: int, facts: Facts) -> bool:
    arguments = [annotation_of(value) for value in call.ins]
    want, got = parameters[index], arguments[index]
    others = [i for i in range(len(parameters)) if i != index]
    shown = unify([parameters[i] for i in others], [arguments[i] for i in others]).values
    values = {**unify([want], [got]).values, **shown}
    if isinstance(want, TensorType) and isinstance(got, TensorType):
        if want.dims is not None and want.rank != got.rank:
            return False
    for dim, actual in zip(dims_of(want), dims_of(got)):
        if dim is None:
            continue
        if actual is None or not dim.symbols <= values.keys():
            return False
        if not equal(dim.substitute(values), actual, facts).proved:
            return False
    return True


def _remove(function: func.FuncOp, index: int, calls: list[CallOp]) -> None:
    """Takes an argument out of the signature, and out of each call."""
    for call in calls:
        with ir.InsertionPoint(call), call.location:
            ins = [value for i, value in enumerate(call.ins) if i != index]
            types = [annotation_of(value) for value in call.outs]
            replace(call, CallOp.build(call.callee_name, ins, types))
    function.entry_block.erase_argument(index)
    inputs = [argument.type for argument in function.arguments]
    new = ir.FunctionType.get(inputs, function.type.results)
    function.attributes["function_type"] = ir.TypeAttr.get(new)
    if "arg_attrs" in function.attributes:
        function.arg_attrs = [e for i, e in enumerate(function.arg_attrs) if i != index]
    if NUM_INPUTS in function.attributes:
        count = ir.IntegerAttr(function.attributes[NUM_INPUTS])
        if index < count.value:
            fewer = ir.IntegerAttr.get(count.type, count.value - 1)
            function.attributes[NUM_INPUTS] = fewer
