"""Recipes of branches, loops and dataflow blocks, whose statements are other recipes."""

from relax_mlir.bindings import arith, ir, scf, tensor
from relax_mlir.dialects import graph

from ..builder import Builder, Value
from .table import recipe, step

MAX_DEPTH = 2


def _index(number: int) -> ir.Value:
    return arith.ConstantOp(ir.IndexType.get(), number).result


def _dim(b: Builder) -> ir.Value:
    """The extent of a tensor."""
    value = b.take(lambda v: v.rank > 0)
    return tensor.DimOp(value.ir, _index(b.random.randrange(value.rank))).result


def _same(b: Builder, value: Value) -> Value:
    """A value of the same type, one of the last."""
    found = [other for other in b.values if other.ir.type == value.ir.type]
    return b.random.choice(found[-3:]) if found else value


def _settled(b: Builder, count: int) -> list[Value]:
    """Values that a region makes anew: their types are those of its results."""
    return [b.take() for _ in range(count)]


@recipe("control", "scf.if")
def branch(b: Builder, op: object) -> None:
    """Two branches that yield what is new in them, of the types of what was there."""
    if b.depth >= MAX_DEPTH:
        return
    dim = _dim(b)
    predicate = b.random.choice([arith.CmpIPredicate.slt, arith.CmpIPredicate.eq])
    condition = arith.CmpIOp(predicate, dim, _index(b.random.choice([1, 3, 8]))).result
    models = _settled(b, b.random.choice([1, 1, 2]))
    made = scf.IfOp(condition, [model.ir.type for model in models], has_else=True)
    known: list[list[Value]] = []
    for block in (made.then_block, made.else_block):
        with b.nested(block):
            _steps(b)
            found = [_same(b, model) for model in models]
            scf.YieldOp([value.ir for value in found])
        known.append(found)
    _results(b, "scf.if", made, list(zip(*known)))


@recipe("control", "scf.for")
def count(b: Builder, op: object) -> None:
    """A loop of few rounds that carries values."""
    if b.depth >= MAX_DEPTH:
        return
    end = _index(b.random.choice([0, 1, 2, 3]))
    models = _settled(b, b.random.choice([1, 2]))
    made = scf.ForOp(_index(0), end, _index(1), [model.ir for model in models])
    with b.nested(made.body):
        carried = [
            b.add(value, False, model.bound) for value, model in zip(made.inner_iter_args, models)
        ]
        _steps(b)
        found = [_bounded(b, _same(b, value), value) for value in carried]
        scf.YieldOp([value.ir for value in found])
    _results(b, "scf.for", made, [(model, model) for model in models], exact=False)


def _bounded(b: Builder, value: Value, carried: Value) -> Value:
    """What does not grow from round to round."""
    if not value.is_float or value.bound <= carried.bound:
        return value
    return b.clamp(value, -min(carried.bound, 8), min(carried.bound, 8))


@recipe("control", "scf.execute_region")
def dataflow(b: Builder, op: object) -> None:
    """A dataflow block."""
    if b.depth >= MAX_DEPTH:
        return
    models = _settled(b, 1)
    made = scf.ExecuteRegionOp([model.ir.type for model in models])
    made.operation.attributes["graph.dataflow"] = ir.UnitAttr.get()
    block = made.operation.regions[0].blocks.append()
    with b.nested(block):
        _steps(b)
        found = [_same(b, model) for model in models]
        scf.YieldOp([value.ir for value in found])
    _results(b, "scf.execute_region", made, [(value,) for value in found])


def _steps(b: Builder) -> None:
    for _ in range(b.random.randint(1, 3)):
        step(
            b,
            {
                "elementwise": 2,
                "arithmetic": 3,
                "movement": 2,
                "reduction": 1,
                "product": 1,
                "call": 3,
            },
        )


def _results(
    b: Builder, name: str, made: ir.OpView, sources: list[tuple[Value, ...]], exact: bool = True
) -> None:
    b.used.append(name)
    for result, values in zip(made.operation.results, sources, strict=True):
        if isinstance(graph.annotation_of(result), graph.TensorType):
            bound = max(value.bound for value in values)
            is_exact = not values[0].is_float or (exact and all(v.exact for v in values))
            b.add(result, is_exact, bound)
