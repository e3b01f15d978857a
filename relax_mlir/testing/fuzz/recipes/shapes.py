"""Recipes of casts, shape values and requirements."""

from typing import Any

from relax_mlir.bindings import func, ir
from relax_mlir.dialects import graph
from relax_mlir.symbolic import Expr, Fact, sym

from ..builder import Builder, Value
from .table import recipe


def fresh_symbol(b: Builder) -> Expr:
    """A symbol that the function does not have yet."""
    number = sum(name == "match_cast" for name in b.used)
    return sym(f"s{number}{'' if b.depth == 0 else f'd{len(b.values)}'}")


@recipe("shape", graph.MatchCastOp)
def match_cast(b: Builder, op: Any) -> None:
    """Names a dim that is not known, or gives one another name."""
    symbol = fresh_symbol(b)
    if b.chance(0.5):
        value, axis = _coarse(b)
    else:
        value = b.take(lambda v: any(dim.value is None for dim in v.dims), ranks=[2])
        axes = [i for i, dim in enumerate(value.dims) if dim.value is None]
        if not axes:
            return
        axis = axes[0]
    dims: list[Any] = list(value.dims)
    dims[axis] = symbol + 1 if b.chance(0.05) else symbol
    annotation = graph.TensorType.make(dims, ir.Type.parse(value.element))
    b.results_of(op.build(value.ir, annotation), value.exact, value.bound)


def _coarse(b: Builder) -> tuple[Value, int]:
    """An argument one dim of which is not known, and which one."""
    dims: list[Any] = list(b.pick_dims(b.random.randint(1, 3)))
    axis = b.random.randrange(len(dims))
    dims[axis] = None
    kind = ir.Type.parse(b.element)
    annotation = graph.TensorType.make(dims, kind)
    made = b.entry.add_argument(annotation.to_mlir(), ir.Location.unknown())
    return Value(made, tuple(dims), b.element, True, 5.0), axis


@recipe("shape", graph.ShapeOfOp, graph.MakeShapeOp)
def shape_value(b: Builder, op: Any) -> None:
    """Dims as a value, which a function takes and makes tensors of."""
    value = b.take(lambda v: 1 <= v.rank <= 2, ranks=[1, 2])
    dims = list(value.dims)
    if op is graph.MakeShapeOp:
        dims = [dim + 1 if b.chance(0.3) else dim for dim in dims]
        built = op.build(dims=dims)
    else:
        built = op.build(value.ir)
    b.results_of(built, True, 0)
    if b.depth < 2:
        _maker(b, built.operation.results[0], dims)


def _maker(b: Builder, shape: ir.Value, dims: list[Expr]) -> None:
    """Calls a function that fills a tensor of dims that it is given as a value."""
    name = f"{b.name}_maker{len(b.used)}_{b.depth}"
    names = [f"q{axis}" for axis in range(len(dims))]
    made, inner = b.function(name)
    with ir.InsertionPoint(inner.entry):
        taken = graph.shape_value_type(names)
        inner.entry.add_argument(taken, ir.Location.unknown())
        filled = inner.emit(graph.FullOp, [inner.number(3, "f32")], True, 3, shape=names)
        rows = inner.emit(graph.ArangeOp, [], True, 64, bounds=[0, names[-1], 1], dtype=_f32())
        total = inner.emit(graph.AddOp, [filled, rows], True, 67)
        func.ReturnOp([total.ir])
    type_ = ir.FunctionType.get([taken], [total.ir.type])
    made.attributes["function_type"] = ir.TypeAttr.get(type_)
    if b.chance(0.5):
        made.attributes["graph.noinline"] = ir.UnitAttr.get()
    built = graph.CallOp.build(name, [shape], [graph.TensorType.make(dims, _f32())])
    b.used += inner.used
    b.results_of(built, True, 67)


def _f32() -> ir.Type:
    return ir.F32Type.get()


@recipe("shape", graph.RequireOp)
def require(b: Builder, op: Any) -> None:
    """What holds for most sizes, or for all."""
    value = b.take(lambda v: any(dim.value is None for dim in v.dims), ranks=[2])
    dim = next((dim for dim in value.dims if dim.value is None), None)
    if dim is None:
        return
    texts = [[f"{dim} <= 100"], [f"{dim} >= 0"], [f"{dim} != 7"], [f"{dim} <= 20", f"{dim} > 24"]]
    facts = [Fact.parse(text) for text in b.random.choice(texts)]
    op.build(facts, "graph.add")
    b.used.append("require")
