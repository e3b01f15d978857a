"""Moves what depends on parameters alone into a function that runs once.

    func.func @main(%x, %w) attributes {graph.num_inputs = 1} {
      %p = "graph.call_tir"(%w) {callee = @pack_weights}
      %y = "graph.call_tir"(%p, %x) {callee = @matmul_packed}
      ->
    func.func @main_params(%w) -> packed { %p = pack_weights(%w) ... }
    func.func @main(%x, %p) attributes {graph.num_inputs = 1} { %y = matmul_packed(%p, %x) ... }

The new function takes the old parameters and returns the new ones, in the order in which
`@main` takes them; the caller keeps its results. A parameter that is used as it is is returned
as it is.

Needs: calls of tensor programs. Leaves: no call in `@main` whose operands are all parameters.
Source: TVM `LiftTransformParams`.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from relax_mlir.analysis.functions import (
    NAME,
    NUM_INPUTS,
    argument_name,
    graph_functions,
    is_public,
)
from relax_mlir.bindings import func, ir
from relax_mlir.dialects.graph import CallTirOp, annotation_of
from relax_mlir.passes import Pass
from relax_mlir.rewriting import safe_erase

SUFFIX = "_params"


@dataclass(frozen=True)
class LiftParams(Pass):
    """Moves what depends on parameters alone into a function that runs once."""

    def run(self, op: ir.Operation) -> None:
        """Splits every public graph function with parameters that has something to lift."""
        for function in graph_functions(op):
            if is_public(function) and NUM_INPUTS in function.attributes:
                lifted = liftable(function)
                if lifted:
                    _split(function, lifted)


def liftable(function: func.FuncOp) -> list[CallTirOp]:
    """Returns the calls that depend on parameters alone, in program order."""
    fixed = set(function.arguments[function.attributes[NUM_INPUTS].value :])
    found = []
    for op in function.entry_block.operations:
        lifts = isinstance(op, CallTirOp) and op.ins and not op.symbol_arguments
        if lifts and all(value in fixed for value in op.ins):
            found.append(op)
            fixed.update(op.outs)
    return found


def _split(function: func.FuncOp, lifted: Sequence[CallTirOp]) -> None:
    parameters = list(function.arguments)[function.attributes[NUM_INPUTS].value :]
    candidates = [*parameters, *(result for call in lifted for result in call.outs)]
    moved = {call.operation for call in lifted}
    kept = [
        value for value in candidates if any(use.owner.operation not in moved for use in value.uses)
    ]
    names = [_name(function, value) for value in kept]
    _write_params_function(function, parameters, lifted, kept)
    _replace_parameters(function, parameters, lifted, kept, names)


def _name(function: func.FuncOp, value: ir.Value) -> str:
    """Name of a new parameter: that of the old one it is, or was made from."""
    arguments = list(function.arguments)
    if value in arguments:
        return argument_name(function, arguments.index(value))
    call = value.owner.opview
    return f"{_name(function, call.ins[0])}.{call.callee_name}"


def _write_params_function(
    function: func.FuncOp,
    parameters: Sequence[ir.Value],
    lifted: Sequence[CallTirOp],
    kept: Sequence[ir.Value],
) -> None:
    """Adds the function that computes the new parameters from the old ones."""
    types = ([value.type for value in parameters], [value.type for value in kept])
    with ir.InsertionPoint(function), function.location:
        new = func.FuncOp(function.name.value + SUFFIX, types)
    arguments = list(function.arguments)
    new.arg_attrs = [
        ir.DictAttr.get({NAME: ir.StringAttr.get(argument_name(function, arguments.index(value)))})
        for value in parameters
    ]
    known = dict(zip(parameters, new.add_entry_block().arguments))
    with ir.InsertionPoint(new.entry_block), function.location:
        for call in lifted:
            ins = [known[value] for value in call.ins]
            copy = CallTirOp.build(call.callee_name, ins, [annotation_of(v) for v in call.outs])
            known.update(zip(call.outs, copy.outs))
        func.ReturnOp([known[value] for value in kept])


def _replace_parameters(
    function: func.FuncOp,
    parameters: Sequence[ir.Value],
    lifted: Sequence[CallTirOp],
    kept: Sequence[ir.Value],
    names: Sequence[str],
) -> None:
    """Makes the function take the new parameters in place of the old ones."""
    block, first = function.entry_block, function.attributes[NUM_INPUTS].value
    attributes = list(function.arg_attrs)[:first] if function.arg_attrs else [{}] * first
    for value in kept:
        argument = block.add_argument(value.type, function.location)
        value.replace_all_uses_except(argument, [call.operation for call in lifted])
    for call in reversed(lifted):
        safe_erase(call)
    for _ in parameters:
        block.erase_argument(first)
    inputs = [argument.type for argument in block.arguments]
    type_ = ir.FunctionType.get(inputs, list(function.type.results))
    function.attributes["function_type"] = ir.TypeAttr.get(type_)
    named = [ir.DictAttr.get({NAME: ir.StringAttr.get(name)}) for name in names]
    function.arg_attrs = [
        *(
            ir.DictAttr(a) if isinstance(a, ir.Attribute) else ir.DictAttr.get({})
            for a in attributes
        ),
        *named,
    ]
