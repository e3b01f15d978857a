"""The functions of a module: graph functions, tensor programs, and their argument attributes."""

from collections.abc import Iterator, Sequence

from relax_mlir.bindings import func, ir
from relax_mlir.dialects.graph import CallOp, ShapeValueType, TensorType, shape_value_dims
from relax_mlir.dialects.tir import PrimFunc
from relax_mlir.rewriting import walk_ops
from relax_mlir.symbolic import Facts

INOUT = "graph.inout"
NAME = "graph.name"
VALUE = "graph.value"
"""On an argument: the constant that `relax-bind-params` puts in its place."""
MADE_BY, MADE_FROM = "graph.made_by", "graph.made_from"
"""On a parameter: the function that computes it, and the indices of the arguments it takes."""
FACTS = "graph.facts"
NUM_INPUTS = "graph.num_inputs"
NO_LIFT = "graph.no_lift"
"""On a parameter: nothing is computed from it before the function is called."""
HOST_OBJECT, HOST_OBJECT_RESULTS = "graph.host_object", "graph.host_results"
"""On an argument, and on a function: what users pass and get as objects, which are handles here."""
OPTIONAL, PRESENCE = "graph.optional", "graph.presence"
"""On an argument that may be left out; on the one behind it, which tells whether it is there."""
NOINLINE = "graph.noinline"
"""On a private function: it is called, not copied into its callers."""
PRIMITIVE = "graph.primitive"
"""Marks a private graph function whose calls of tensor programs become one."""

COMPOSITE = "graph.composite"
"""On a private function: the pattern whose match it is."""
CAPTURED = "graph.captured"
"""On a private function: the symbols on which alone its sizes depend."""
CODEGEN = "graph.codegen"
"""On a private function: for whom its composites are, such as a library."""


def graph_functions(module: ir.Operation | ir.OpView) -> list[func.FuncOp]:
    """Returns the functions with a body that are not tensor programs, in order."""
    return [
        op
        for op in module.regions[0].blocks[0].operations
        if isinstance(op, func.FuncOp) and not op.is_external and not PrimFunc.is_prim_func(op)
    ]


def callees_first(functions: Sequence[func.FuncOp]) -> list[func.FuncOp]:
    """Orders functions so that each follows those that it calls, except in a recursion."""
    by_name = {function.name.value: function for function in functions}
    ordered: dict[str, func.FuncOp] = {}
    entered: set[str] = set()
    for first in by_name:
        stack = [first]
        while stack:
            name = stack[-1]
            if name in entered:
                ordered.setdefault(name, by_name[stack.pop()])
                continue
            entered.add(name)
            callees = [call.callee_name for call in walk_ops(by_name[name], CallOp)]
            stack += [n for n in reversed(callees) if n in by_name and n not in entered]
    return list(ordered.values())


def called_names(module: ir.Operation) -> set[str]:
    """The names of the functions that any op of a module calls."""
    ops: list[ir.OpView] = walk_ops(module)
    callees = [op.attributes["callee"] for op in ops if "callee" in op.attributes]
    return {callee.value for callee in callees if isinstance(callee, ir.FlatSymbolRefAttr)}


def is_public(function: func.FuncOp) -> bool:
    """True for an entry function: one that the compiled module exports."""
    attribute = function.attributes
    return "sym_visibility" not in attribute or attribute["sym_visibility"].value == "public"


def facts_of(function: func.FuncOp) -> Facts:
    """Reads `graph.facts`; raises SymbolicError on malformed text."""
    if FACTS not in function.attributes:
        return Facts()
    return Facts.parse([fact.value for fact in ir.ArrayAttr(function.attributes[FACTS])])


def argument_attribute(function: func.FuncOp, index: int, name: str) -> ir.Attribute | None:
    """Returns an attribute of an argument, or None."""
    if "arg_attrs" not in function.attributes:
        return None
    attributes = ir.DictAttr(ir.ArrayAttr(function.attributes["arg_attrs"])[index])
    return attributes[name] if name in attributes else None


def argument_name(function: func.FuncOp, index: int) -> str:
    """Name for messages: `graph.name`, else `arg<index>`."""
    attribute = argument_attribute(function, index, NAME)
    return f"arg{index}" if attribute is None else ir.StringAttr(attribute).value


def inout_arguments(function: func.FuncOp) -> dict[int, int]:
    """Maps results to the arguments that they are the updated value of (`graph.inout`)."""
    if "arg_attrs" not in function.attributes:
        return {}
    each = map(ir.DictAttr, ir.ArrayAttr(function.attributes["arg_attrs"]))
    results = [(i, attributes[INOUT]) for i, attributes in enumerate(each) if INOUT in attributes]
    return {ir.IntegerAttr(result).value: index for index, result in results}


def is_host_object(function: func.FuncOp, index: int) -> bool:
    """Whether users pass an object for an argument."""
    is_marked = argument_attribute(function, index, HOST_OBJECT) is not None
    return is_marked and _may_be_handle(function.type.inputs[index])


def host_object_results(function: func.FuncOp) -> list[int]:
    """The results that users get as objects."""
    attributes = function.attributes
    if HOST_OBJECT_RESULTS not in attributes:
        return []
    marked = set(ir.DenseI64ArrayAttr(attributes[HOST_OBJECT_RESULTS]))
    types = enumerate(function.type.results)
    return [index for index, type_ in types if index in marked and _may_be_handle(type_)]


def _may_be_handle(type_: ir.Type) -> bool:
    return type_ == ir.RankedTensorType.get([], ir.IntegerType.get_signless(64))


def lifted_parameters(function: func.FuncOp) -> list[ir.Value]:
    """The parameters from which values may be computed before the function is called."""
    if NUM_INPUTS not in function.attributes:
        return []
    first = ir.IntegerAttr(function.attributes[NUM_INPUTS]).value
    return [
        argument
        for argument in function.arguments
        if argument.arg_number >= first
        and argument_attribute(function, argument.arg_number, NO_LIFT) is None
    ]


def signature_symbols(function: func.FuncOp) -> list[str]:
    """Symbols of the arguments' annotations, in order of first occurrence."""
    return list(dict.fromkeys(_symbols(function)))


def _symbols(function: func.FuncOp) -> Iterator[str]:
    for type_ in (argument.type for argument in function.arguments):
        if isinstance(type_, ShapeValueType):
            dims = shape_value_dims(type_)
        elif isinstance(type_, ir.RankedTensorType):
            dims = TensorType.of(type_).dims or ()
        else:
            continue
        for dim in dims:
            if dim is not None:
                yield from sorted(dim.symbols)
