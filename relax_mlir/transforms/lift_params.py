"""Moves what depends on parameters alone into a function that runs once.

    func.func @main(%x, %w) attributes {graph.num_inputs = 1} {
      %p = "graph.call_tir"(%w) {callee = @pack_weights}
      %y = "graph.call_tir"(%p, %x) {callee = @matmul_packed}
      ->
    func.func @main_params(%w) -> packed { %p = pack_weights(%w) ... }
    func.func @main_params_0(%w) -> packed { %p = pack_weights(%w) ... }
    func.func @main(%x, %p {graph.made_by = "main_params_0", graph.made_from = array<i64: 0>})
        attributes {graph.num_inputs = 1} { %y = matmul_packed(%p, %x) ... }

The new function takes the old parameters and returns the new ones, in the order in which
`@main` takes them; the caller keeps its results. A parameter that is used as it is is returned
as it is. To make one after the other, so that not all old and new ones are in memory at once, there
is also a function for each way of making one (not for each parameter): the arguments of `@main` say
which makes them, and from which of the old parameters.

Needs: calls of tensor programs. Leaves: no call in `@main` whose operands are all parameters.
Source: TVM `LiftTransformParams`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from relax_mlir.analysis.functions import (
    MADE_BY,
    MADE_FROM,
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

    needs_verified: ClassVar[bool] = True

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
    _write_params_function(function, function.name.value + SUFFIX, parameters, lifted, kept)
    ways: dict[object, str] = {}
    described = [_describe(function, parameters, lifted, value, ways) for value in kept]
    _replace_parameters(function, parameters, lifted, kept, described)


def _describe(
    function: func.FuncOp,
    parameters: Sequence[ir.Value],
    lifted: Sequence[CallTirOp],
    value: ir.Value,
    ways: dict[object, str],
) -> ir.DictAttr:
    """The attributes of a new parameter; adds the function that makes it if no other does."""
    calls = _calls_behind(value, lifted)
    used = [p for p in parameters if p == value or any(p in call.ins for call in calls)]
    places = [parameters.index(p) for p in used]
    entry: dict[str, ir.Attribute] = {
        NAME: ir.StringAttr.get(_name(function, value)),
        MADE_FROM: ir.DenseI64ArrayAttr.get(places),
    }
    if calls:
        way = _way(used, calls, value)
        if way not in ways:
            ways[way] = f"{function.name.value}{SUFFIX}_{len(ways)}"
            _write_params_function(function, ways[way], used, calls, [value])
        entry[MADE_BY] = ir.StringAttr.get(ways[way])
    return ir.DictAttr.get(entry)


def _calls_behind(value: ir.Value, lifted: Sequence[CallTirOp]) -> list[CallTirOp]:
    """The calls that a value is made by, in program order."""
    needed, found = {value}, []
    for call in reversed(lifted):
        if needed.intersection(call.outs):
            found.append(call)
            needed.update(call.ins)
    return found[::-1]


def _way(used: Sequence[ir.Value], calls: Sequence[CallTirOp], value: ir.Value) -> object:
    """What two parameters have in common that the same function makes."""
    number = {each: place for place, each in enumerate(used)}
    steps = []
    for call in calls:
        steps.append((call.callee_name, tuple(number[operand] for operand in call.ins)))
        number.update({out: len(number) + place for place, out in enumerate(call.outs)})
    return tuple(each.type for each in used), tuple(steps), number[value]


def _name(function: func.FuncOp, value: ir.Value) -> str:
    """Name of a new parameter: that of the old one it is, or was made from."""
    arguments = list(function.arguments)
    if value in arguments:
        return argument_name(function, arguments.index(value))
    call = value.owner.opview
    return f"{_name(function, call.ins[0])}.{call.callee_name}"


def _write_params_function(
    function: func.FuncOp,
    name: str,
    parameters: Sequence[ir.Value],
    lifted: Sequence[CallTirOp],
    kept: Sequence[ir.Value],
) -> None:
    """Adds a function of that name, which computes new parameters from old ones."""
    types = ([value.type for value in parameters], [value.type for value in kept])
    with ir.InsertionPoint(function), function.location:
        new = func.FuncOp(name, types)
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
    described: Sequence[ir.DictAttr],
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
    function.arg_attrs = [
        *(
            ir.DictAttr(a) if isinstance(a, ir.Attribute) else ir.DictAttr.get({})
            for a in attributes
        ),
        *described,
    ]
