"""Private functions return only what a caller uses.

    func.func private @f(%x) { ... return %a, %b }
    %0, %1 = "graph.call"(%x) {callee = @f}        %1 is unused, in each call
      ->
    func.func private @f(%x) { ... return %a }
    %0 = "graph.call"(%x) {callee = @f}

Callers come first: a result that only an unused result was made of goes too. A result that is an
argument updated in place (`graph.inout`) stays, and so do functions that something else than
`graph.call` names.

Needs: a verified module. Leaves: no private graph function with a result that no call uses.
Source: TVM `RemoveUnusedOutputs`.
"""

from dataclasses import dataclass
from typing import ClassVar

from relax_mlir.analysis.functions import INOUT, callees_first, graph_functions, inout_arguments
from relax_mlir.analysis.private_calls import PrivateCalls
from relax_mlir.analysis.purity import Purity
from relax_mlir.bindings import func, ir
from relax_mlir.dialects.graph import CallOp, annotation_of
from relax_mlir.passes import Pass

from .dead_code_elimination import erase_dead


@dataclass(frozen=True)
class RemoveUnusedResults(Pass):
    """Private functions return only what a caller uses."""

    needs_verified: ClassVar[bool] = True

    def run(self, op: ir.Operation) -> None:
        """Changes every private graph function that is called, callers first."""
        purity = Purity.of(op)
        functions = callees_first(graph_functions(op))
        private = PrivateCalls(functions)
        for function in reversed(functions):
            calls = private.of(function)
            used = _used(function, calls)
            if not calls or len(used) == len(function.type.results):
                continue
            for call in calls:
                _narrow(call, used)
            _return_only(function, used)
            erase_dead(function, purity)


def _used(function: func.FuncOp, calls: list[CallOp]) -> list[int]:
    """The results that some call uses, and those that are arguments."""
    updated = inout_arguments(function)
    return [
        index
        for index in range(len(function.type.results))
        if index in updated or any(list(call.outs[index].uses) for call in calls)
    ]


def _narrow(call: CallOp, used: list[int]) -> None:
    with ir.InsertionPoint(call), call.location:
        types = [annotation_of(call.outs[index]) for index in used]
        new = CallOp.build(call.callee_name, call.ins, types)
    for index, result in zip(used, new.outs, strict=True):
        call.outs[index].replace_all_uses_with(result)
    call.operation.erase()


def _return_only(function: func.FuncOp, used: list[int]) -> None:
    *_, end = function.entry_block.operations
    values = [end.operands[index] for index in used]
    with ir.InsertionPoint(end), end.location:
        func.ReturnOp(values)
    end.operation.erase()
    types = [function.type.results[index] for index in used]
    new = ir.FunctionType.get(function.type.inputs, types)
    function.attributes["function_type"] = ir.TypeAttr.get(new)
    if "arg_attrs" in function.attributes:
        function.arg_attrs = [_renumbered(entry, used) for entry in function.arg_attrs]
    if "res_attrs" in function.attributes:
        entries = ir.ArrayAttr(function.attributes["res_attrs"])
        function.attributes["res_attrs"] = ir.ArrayAttr.get([entries[index] for index in used])


def _renumbered(entry: ir.DictAttr, used: list[int]) -> ir.DictAttr:
    """The attributes of an argument, with the new index of the result it is updated to."""
    attributes = {named.name: named.attr for named in entry}
    if INOUT in attributes:
        old = ir.IntegerAttr(attributes[INOUT])
        attributes[INOUT] = ir.IntegerAttr.get(old.type, used.index(old.value))
    return ir.DictAttr.get(attributes)
