"""Recipes of tuples: made, passed through loops, branches and functions, and taken apart."""

from collections.abc import Sequence

from relax_mlir.bindings import func, ir, scf
from relax_mlir.dialects import graph
from relax_mlir.symbolic import as_expr, sym

from ..builder import Builder, Value
from .control import MAX_DEPTH, passed_on
from .recursion import symbols_of
from .scalars import condition, few, index
from .table import recipe


@recipe("control", graph.TupleOp, graph.TupleGetOp)
def tuples(b: Builder, op: object) -> None:
    """A tuple of values, what a loop, branch or function makes of it, and its elements."""
    models = [b.take() for _ in range(b.random.choice([1, 2, 2, 3]))]
    is_nested = b.chance(0.5)
    made = _made([model.ir for model in models], is_nested)
    ways = [_carried, _yielded, _called] if b.depth < MAX_DEPTH else []
    way = b.random.choice([_unchanged, *ways])
    b.used += ["tuple", "tuple_get"]
    result = way(b, made, models, is_nested)
    for value, model in zip(_elements(result), models, strict=True):
        is_exact = not model.is_float or (way is _unchanged and model.exact)
        b.add(value, is_exact, model.bound)


def _made(values: Sequence[ir.Value], is_nested: bool) -> ir.Value:
    """A tuple of the values, all but the first in a tuple of their own if it is nested."""
    if not is_nested:
        return graph.TupleOp.build(*values).outs[0]
    inner = graph.TupleOp.build(*values[1:]).outs[0]
    return graph.TupleOp.build(values[0], inner).outs[0]


def _elements(value: ir.Value) -> list[ir.Value]:
    """The values in a tuple."""
    types = graph.elements_of(value.type)
    if types is None:
        return [value]
    parts = [graph.TupleGetOp.build(value, at).result for at in range(len(types))]
    return [leaf for part in parts for leaf in _elements(part)]


def _unchanged(b: Builder, made: ir.Value, models: list[Value], is_nested: bool) -> ir.Value:
    return made


def _changed(b: Builder, state: ir.Value, models: list[Value], is_nested: bool) -> ir.Value:
    """What some steps leave of the elements of a tuple."""
    arrived = [
        b.add(value, not model.is_float, model.bound)
        for value, model in zip(_elements(state), models, strict=True)
    ]
    return _made([value.ir for value in passed_on(b, arrived)], is_nested)


def _carried(b: Builder, made: ir.Value, models: list[Value], is_nested: bool) -> ir.Value:
    loop = scf.ForOp(index(0), few(b), index(1), [made])
    with b.nested(loop.body):
        scf.YieldOp([_changed(b, loop.inner_iter_args[0], models, is_nested)])
    return loop.results[0]


def _yielded(b: Builder, made: ir.Value, models: list[Value], is_nested: bool) -> ir.Value:
    branch = scf.IfOp(condition(b), [made.type], has_else=True)
    with ir.InsertionPoint(branch.then_block):
        scf.YieldOp([made])
    with b.nested(branch.else_block):
        scf.YieldOp([_changed(b, made, models, is_nested)])
    return branch.results[0]


def _called(b: Builder, made: ir.Value, models: list[Value], is_nested: bool) -> ir.Value:
    """What a function makes of the tuple, which it takes with arguments of its steps."""
    bound = symbols_of(models)
    names = {dim: sym(name) for name, dim in bound.items()}
    callee, inner = b.function(f"{b.name}_tuples{b.used.count('tuple')}_{b.depth}")
    inner.symbols = list(names.values())
    inner.extents = [*inner.symbols, as_expr(1), as_expr(4)]
    own = [m.annotation.with_dims([names.get(dim, dim) for dim in m.dims]) for m in models]
    type_ = _type([annotation.to_mlir() for annotation in own], is_nested)
    taken = inner.entry.add_argument(type_, ir.Location.unknown())
    with ir.InsertionPoint(inner.entry):
        func.ReturnOp([_changed(inner, taken, models, is_nested)])
    arguments = [argument.type for argument in inner.entry.arguments]
    callee.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(arguments, [type_]))
    if b.chance(0.5):
        callee.attributes["graph.noinline"] = ir.UnitAttr.get()
    passed = [made]
    for argument in list(inner.entry.arguments)[1:]:
        annotation = graph.TensorType.of(argument).substitute(bound)
        passed.append(b.argument(list(annotation.dims or ()), str(annotation.element)).ir)
    b.used += inner.used
    return graph.CallOp.build(callee.name.value, passed, [made.type]).outs[0]


def _type(elements: Sequence[ir.Type], is_nested: bool) -> ir.Type:
    if not is_nested:
        return graph.tuple_type(elements)
    return graph.tuple_type([elements[0], graph.tuple_type(elements[1:])])
