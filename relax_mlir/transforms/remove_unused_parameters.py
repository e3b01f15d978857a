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

from collections import defaultdict
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
from relax_mlir.analysis.private_calls import PrivateCalls
from relax_mlir.analysis.purity import Purity
from relax_mlir.analysis.rename import used_symbols
from relax_mlir.analysis.scopes import scoped_ops
from relax_mlir.analysis.signatures import parameter_types, unify
from relax_mlir.analysis.symbols import bindings, dims_of, symbols_of
from relax_mlir.bindings import func, ir
from relax_mlir.dialects.graph import Annotation, CallOp, TensorType, annotation_of
from relax_mlir.passes import Pass
from relax_mlir.rewriting import replace
from relax_mlir.symbolic import Facts, at_most, equal

from .dead_code_elimination import erase_dead


@dataclass(frozen=True)
class RemoveUnusedParameters(Pass):
    """Private functions take only what they use."""

    needs_verified: ClassVar[bool] = True

    def run(self, op: ir.Operation) -> None:
        """Changes every private graph function that is called, callees first."""
        purity = Purity.of(op)
        functions = callees_first(graph_functions(op))
        private = PrivateCalls(functions)
        for function in functions:
            calls = private.of(function)
            if not calls:
                continue
            erase_dead(function, purity)
            if going := _going(function, private):
                _remove(function, going, calls)


def _going(function: func.FuncOp, private: PrivateCalls) -> set[int]:
    """The parameters that nothing tells are there, last ones first."""
    arguments = enumerate(function.arguments)
    unused = [
        index
        for index, argument in arguments
        if not list(argument.uses) and argument_attribute(function, index, INOUT) is None
    ]
    if not unused:
        return set()
    signature = _Signature(function, private)
    for index in reversed(unused):
        if signature.can_go(index):
            signature.kept.discard(index)
    return set(range(len(function.arguments))) - signature.kept


class _Signature:
    """The parameters that a function keeps, what its body names, and the facts at each call."""

    def __init__(self, function: func.FuncOp, private: PrivateCalls) -> None:
        self.parameters = parameter_types(function)
        self.kept = set(range(len(self.parameters)))
        self.inside = _symbols_inside(function)
        self.calls = [
            ([annotation_of(value) for value in op.ins], scope.facts)
            for caller in private.callers(function)
            for op, scope in scoped_ops(caller)
            if isinstance(op, CallOp) and op.callee_name == function.name.value
        ]
        self._plain: dict[str, list[int]] = defaultdict(list)
        for index, parameter in enumerate(self.parameters):
            for dim in dims_of(parameter):
                if dim is not None and str(dim) in dim.symbols:
                    self._plain[str(dim)].append(index)

    def can_go(self, index: int) -> bool:
        """Whether others show the symbols of a parameter, and each argument is what it says."""
        own, shown_by = set(symbols_of([self.parameters[index]])), self._shown_by(index)
        others = [self.parameters[i] for i in shown_by]
        left = (self.inside | set(symbols_of(others))) & own
        return left <= bindings(others).keys() and all(
            self._agrees(arguments, index, shown_by, facts) for arguments, facts in self.calls
        )

    def _shown_by(self, index: int) -> list[int]:
        """Kept parameters of which one has each symbol as a dim; without such, all others."""
        own = symbols_of([self.parameters[index]])
        found = [
            next((i for i in self._plain[name] if i != index and i in self.kept), None)
            for name in own
        ]
        first = [i for i in found if i is not None]
        return first if len(first) == len(own) else sorted(self.kept - {index})

    def _agrees(
        self, arguments: list[Annotation], index: int, shown_by: list[int], facts: Facts
    ) -> bool:
        want, got = self.parameters[index], arguments[index]
        given = [self.parameters[i] for i in shown_by], [arguments[i] for i in shown_by]
        shown, own = unify(*given).values, unify([want], [got]).values
        values = {**own, **shown}
        if not all(at_most(0, own[name], facts).proved for name in own.keys() - shown.keys()):
            return False
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


def _symbols_inside(function: func.FuncOp) -> set[str]:
    """The symbols of a function's body, facts and results."""
    inside = [used_symbols(op) for op in function.entry_block.operations]
    results = symbols_of(map(annotation_of, function.type.results))
    return set(facts_of(function).symbols).union(results, *inside)


def _remove(function: func.FuncOp, going: set[int], calls: list[CallOp]) -> None:
    """Takes arguments out of the signature, and out of each call."""
    for call in calls:
        with ir.InsertionPoint(call), call.location:
            ins = [value for i, value in enumerate(call.ins) if i not in going]
            types = [annotation_of(value) for value in call.outs]
            replace(call, CallOp.build(call.callee_name, ins, types))
    for index in sorted(going, reverse=True):
        function.entry_block.erase_argument(index)
    inputs = [argument.type for argument in function.arguments]
    new = ir.FunctionType.get(inputs, function.type.results)
    function.attributes["function_type"] = ir.TypeAttr.get(new)
    if "arg_attrs" in function.attributes:
        function.arg_attrs = [e for i, e in enumerate(function.arg_attrs) if i not in going]
    if NUM_INPUTS in function.attributes:
        count = ir.IntegerAttr(function.attributes[NUM_INPUTS])
        fewer = count.value - sum(index < count.value for index in going)
        function.attributes[NUM_INPUTS] = ir.IntegerAttr.get(count.type, fewer)
