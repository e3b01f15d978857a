"""Recipes of scalars: elements, conditions and counts from them, tensors and dims of them."""

from typing import Any

from relax_mlir.bindings import arith, ir, tensor
from relax_mlir.dialects import graph
from relax_mlir.symbolic import const

from ..builder import FLOATS, Builder, Value
from .shapes import fresh_symbol
from .table import recipe

MOST_ROUNDS = 3


def index(number: int) -> ir.Value:
    """A constant."""
    return arith.constant(ir.IndexType.get(), number)


def dim(b: Builder) -> ir.Value:
    """The extent of a tensor."""
    value = b.take(lambda v: v.rank > 0)
    return tensor.DimOp(value.ir, index(b.random.randrange(value.rank))).result


def element(b: Builder, of: str | None = None) -> ir.Value:
    """An element that no level may have otherwise, of a tensor that has some for all sizes."""

    def fits(value: Value) -> bool:
        full = all(dim.value is not None and dim.value > 0 for dim in value.dims)
        known = not value.element.startswith("u")  # scalars are signless
        return full and value.exact and known and of in (None, value.element)

    value = b.pick(fits)
    if value is None:
        dims = [const(b.random.choice([1, 4]))] * b.random.choice([0, 0, 1])
        value = b.argument(dims, of or b.element.removeprefix("u"))
    return _at(b, value)


def _at(b: Builder, value: Value) -> ir.Value:
    return tensor.ExtractOp(value.ir, _place(b, value)).result


def _place(b: Builder, value: Value) -> list[ir.Value]:
    """Constant indices of an element."""
    return [index(b.random.randrange(dim.value or 1)) for dim in value.dims]


def condition(b: Builder) -> ir.Value:
    """A boolean that follows from a dim or from an element."""
    if b.chance(0.4):
        predicate = b.random.choice([arith.CmpIPredicate.slt, arith.CmpIPredicate.eq])
        return arith.CmpIOp(predicate, dim(b), index(b.random.choice([1, 3, 8]))).result
    found = element(b, b.random.choice(["f32", "i32", "i1", "i8"]))
    kind = str(found.type)
    if kind == "i1":
        return found
    if kind in FLOATS:
        predicate = b.random.choice([arith.CmpFPredicate.OGT, arith.CmpFPredicate.ULE])
        return arith.CmpFOp(predicate, found, arith.constant(found.type, 0.25)).result
    predicate = b.random.choice([arith.CmpIPredicate.sgt, arith.CmpIPredicate.ult])
    return arith.CmpIOp(predicate, found, arith.constant(found.type, 5)).result


def few(b: Builder) -> ir.Value:
    """An index from 0 to `MOST_ROUNDS`, a constant or one that run time decides."""
    if b.chance(0.3):
        return index(b.random.randint(0, MOST_ROUNDS))
    if b.chance(0.5):
        number = dim(b)
    else:
        number = arith.index_cast(ir.IndexType.get(), element(b, b.random.choice(["i32", "i64"])))
    return arith.maxsi(arith.minsi(number, index(MOST_ROUNDS)), index(0))


@recipe("scalar", "tensor.from_elements")
def from_elements(b: Builder, op: object) -> None:
    """A tensor of a few elements."""
    first = element(b)
    kind = str(first.type)
    count = b.random.choice([1, 2, 3])
    elements = [first, *(element(b, kind) for _ in range(count - 1))]
    dims = [] if count == 1 and b.chance(0.5) else [count]
    made = tensor.FromElementsOp(ir.RankedTensorType.get(dims, first.type), elements)
    b.used.append("tensor.from_elements")
    b.add(made.result, True, _bound(b, made.result))


@recipe("scalar", "tensor.insert")
def insert(b: Builder, op: object) -> None:
    """A tensor with another element, whose old contents may be needed later."""

    def fits(value: Value) -> bool:
        known = not value.element.startswith("u")
        return known and all(dim.value is not None and dim.value > 0 for dim in value.dims)

    dims = [const(b.random.choice([1, 4, 17]))]
    value = b.pick(fits) or b.argument(dims, b.element.removeprefix("u"))
    number = element(b, value.element)
    made = tensor.InsertOp(number, value.ir, _place(b, value))
    b.used.append("tensor.insert")
    b.add(made.result, value.exact, max(value.bound, _bound(b, made.result)))


def _bound(b: Builder, value: ir.Value) -> float:
    """A magnitude that exact elements do not exceed."""
    return max((v.bound for v in b.values if v.exact), default=5.0)


@recipe("shape", graph.TensorToShapeOp)
def tensor_to_shape(b: Builder, op: Any) -> None:
    """A tensor of as many elements as a number says that run time decides."""
    made = tensor.FromElementsOp(ir.RankedTensorType.get([1], ir.IndexType.get()), [few(b)])
    symbol = fresh_symbol(b)
    shape = op.build(made.result)
    b.results_of(shape, True, 0)
    b.results_of(graph.MatchCastOp.build(shape.result, graph.shape_value_type([symbol])), True, 0)
    b.emit(graph.ArangeOp, [], True, 64, bounds=[0, symbol, 1], dtype=ir.F32Type.get())
