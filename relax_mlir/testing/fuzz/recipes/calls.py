"""Recipes of calls: graph functions of the module, and tensor programs that are written by hand."""

from typing import Any

from relax_mlir.analysis.functions import INOUT
from relax_mlir.bindings import func, ir
from relax_mlir.dialects import graph
from relax_mlir.symbolic import Expr, as_expr, sym

from ..builder import FLOATS, INTEGERS, Builder, Value
from ..handwritten import TEMPLATES, Template
from .table import recipe, step

_INNER = {
    "elementwise": 2,
    "arithmetic": 3,
    "movement": 3,
    "reduction": 1,
    "product": 1,
    "data": 1,
    "external": 1,
}
"""How often a called function has each family."""


@recipe("call", graph.CallOp)
def call(b: Builder, op: Any) -> None:
    """A function of random ops, whose symbols are its own."""
    if b.depth >= 2:
        return
    operands = [b.take(lambda v: v.rank > 0) for _ in range(b.random.randint(1, 2))]
    name = f"{b.name}_callee{sum(used == 'call' for used in b.used)}"
    made, inner = b.function(f"{name}_{b.depth}")
    bound: dict[str, Expr] = {}
    names: dict[Expr, Expr] = {}
    for operand in operands:
        for dim in operand.dims:
            if dim.value is None and dim not in names:
                names[dim] = sym(f"p{len(names)}")
                bound[f"p{len(names) - 1}"] = dim
    inner.symbols = list(names.values())
    inner.extents = [*inner.symbols, as_expr(1), as_expr(4)]
    with ir.InsertionPoint(inner.entry):
        for operand in operands:
            inner.parameter(operand, names, operand.exact)
        for _ in range(b.random.randint(1, 3)):
            step(inner, _INNER)
        results = [_last_of_known_dims(inner)]
        updated = [v for v in inner.values[1:] if v.ir.type == inner.values[0].ir.type]
        if updated and b.chance(0.5):
            results = [updated[-1], results[0]]
        func.ReturnOp([value.ir for value in results])
    _finish(made, inner, [value.ir for value in results])
    if len(results) > 1:
        first: dict[str, ir.Attribute] = {
            INOUT: ir.IntegerAttr.get(ir.IntegerType.get_signless(64), 0)
        }
        others: list[dict[str, ir.Attribute]] = [{}] * (len(inner.entry.arguments) - 1)
        made.arg_attrs = ir.ArrayAttr.get([ir.DictAttr.get(each) for each in [first, *others]])
    if b.chance(0.4):
        made.attributes["graph.noinline"] = ir.UnitAttr.get()
    _call(b, op, made, inner, operands, bound, results)


def _last_of_known_dims(inner: Builder) -> Value:
    """A late value whose dims follow from those of arguments, as the caller has to know them."""
    types = [argument.type for argument in inner.entry.arguments]
    annotations = [a for a in map(graph.annotation_of, types) if isinstance(a, graph.TensorType)]
    dims = [dim for annotation in annotations for dim in annotation.dims or () if dim is not None]
    bound = {name for dim in dims for name in dim.symbols}
    return [v for v in inner.values if {n for dim in v.dims for n in dim.symbols} <= bound][-1]


def _finish(made: func.FuncOp, inner: Builder, results: list[ir.Value]) -> None:
    types = [argument.type for argument in inner.entry.arguments]
    type_ = ir.FunctionType.get(types, [value.type for value in results])
    made.attributes["function_type"] = ir.TypeAttr.get(type_)


def _call(
    b: Builder,
    op: Any,
    made: func.FuncOp,
    inner: Builder,
    operands: list[Value],
    bound: dict[str, Expr],
    results: list[Value],
) -> None:
    """Calls with the operands, and with new arguments for those that the callee made itself."""
    more = list(inner.entry.arguments)[len(operands) :]
    for argument in more:
        annotation = graph.TensorType.of(argument).substitute(bound)
        operands.append(b.argument(list(annotation.dims or ()), str(annotation.element)))
    types = [value.annotation.substitute(bound) for value in results]
    built = op.build(made.name.value, [value.ir for value in operands], types)
    b.used += inner.used
    b.results_of(built, all(v.exact for v in results), max(v.bound for v in results))


def _program(b: Builder, template: Template, element: str, width: int) -> str:
    """The program of a template, in the module, which knows no signs; its name."""
    element = element.removeprefix("u")
    name = f"{b.name}_{template.name}_{element}_{width}"
    names = {ir.StringAttr(op.attributes["sym_name"]).value for op in b.module.body.operations}
    if name not in names:
        text = template.text(name, element, width)
        parsed = ir.Module.parse(text)
        for op in list(parsed.body.operations):
            b.module.body.append(op.operation.clone())
    return name


@recipe("call", graph.CallTirOp)
def call_tir(b: Builder, op: Any) -> None:
    """A tensor program with loops of its own."""
    template = b.random.choice([t for t in TEMPLATES if not t.updates])
    value = _rows(b, template)
    operands = [value]
    for _ in range(template.ins - 1):
        found = b.pick(lambda v: v.ir.type == value.ir.type)
        operands.append(found or b.argument(value.dims, value.element))
    width = value.dims[1].value
    assert width is not None
    name = _program(b, template, value.element, width)
    kind = ir.Type.parse(value.element)
    types = [
        graph.TensorType.make([as_expr(d) for d in dims(value.dims[0], width)], kind)
        for dims in template.outs
    ]
    built = op.build(name, [v.ir for v in operands], types)
    b.results_of(built, False, template.growth * max(v.bound for v in operands))


@recipe("call", graph.CallTirInplaceOp)
def call_tir_inplace(b: Builder, op: Any) -> None:
    """A tensor program that updates an operand, which may be needed later."""
    template = b.random.choice([t for t in TEMPLATES if t.updates])
    old = _rows(b, template)
    new = b.pick(lambda v: v.ir.type == old.ir.type) or b.argument(old.dims, old.element)
    width = old.dims[1].value
    assert width is not None
    name = _program(b, template, old.element, width)
    seen = _seen_otherwise(b, old) if b.chance(0.4) else None
    built = op.build(name, [new.ir, old.ir], [1])
    b.results_of(built, False, template.growth * max(new.bound, old.bound))
    if seen is not None:
        b.emit(graph.NegativeOp, [seen])


def _seen_otherwise(b: Builder, value: Value) -> Value:
    """The same memory under another type, whose old contents are needed later."""
    if value.element in INTEGERS and b.chance(0.5):
        other = value.element[1:] if value.element.startswith("u") else f"u{value.element}"
        return b.emit(graph.BitcastOp, [value], dtype=ir.Type.parse(other))
    if b.chance(0.5):
        return b.emit(graph.ExpandDimsOp, [value], axes=[0])
    return b.emit(graph.ReshapeOp, [value], shape=[value.dims[0] * value.dims[1]])


def _rows(b: Builder, template: Template) -> Value:
    """A tensor of rank 2 with a known width."""
    kinds = FLOATS if template.only == "float" else None

    def fits(v: Value) -> bool:
        known = v.rank == 2 and bool(v.dims[1].value) and v.element != "i1"
        return known and v.is_float == (kinds is not None)

    found = b.pick(fits)
    if found is not None:
        return found
    element = b.element if (b.element in FLOATS) == (kinds is not None) else None
    if element in (None, "i1"):
        element = "f32" if kinds else "i32"
    return b.argument([b.pick_dim(), b.random.choice([1, 3, 4, 8, 17])], element)
