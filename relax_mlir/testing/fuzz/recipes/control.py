"""Recipes of branches, loops and dataflow blocks, whose statements are other recipes."""

from collections.abc import Sequence
from itertools import pairwise

from relax_mlir.bindings import arith, ir, scf, tensor
from relax_mlir.dialects import graph

from ..builder import Builder, Value
from .scalars import condition, few, index
from .shapes import fresh_symbol
from .table import recipe, step

MAX_DEPTH = 2


def _same(b: Builder, value: Value, before: Sequence[Value]) -> Value:
    """A value of the same type: mostly one that `before` has not, and that is made if need be."""
    same = [other for other in b.values if other.ir.type == value.ir.type]
    new = [other for other in same if other not in before]
    if new and b.chance(0.8):
        return b.random.choice(new[-3:])
    if same and b.chance(0.4):
        return b.random.choice(same[-3:])
    op = graph.LogicalNotOp if value.element == "i1" else graph.NegativeOp
    return b.emit(op, [value])


def _left(b: Builder, models: Sequence[Value]) -> list[Value]:
    """What some steps leave of the types of the models."""
    before = list(b.values)
    _steps(b)
    return [_same(b, model, before) for model in models]


def passed_on(b: Builder, carried: Sequence[Value]) -> list[Value]:
    """What some steps leave for the next round."""
    return [_bounded(b, new, old) for new, old in zip(_left(b, carried), carried)]


def _settled(b: Builder, count: int) -> list[Value]:
    """Values that a region makes anew: their types are those of its results."""
    return [b.take() for _ in range(count)]


@recipe("control", "scf.if")
def branch(b: Builder, op: object) -> None:
    """Two branches that yield what is new in them, of the types of what was there."""
    if b.depth >= MAX_DEPTH:
        return
    decides = condition(b)
    models = _settled(b, b.random.choice([1, 1, 2]))
    made = scf.IfOp(decides, [model.ir.type for model in models], has_else=True)
    known: list[list[Value]] = []
    for block in (made.then_block, made.else_block):
        with b.nested(block):
            found = _left(b, models)
            scf.YieldOp([value.ir for value in found])
        known.append(found)
    _results(b, "scf.if", made, list(zip(*known)))


@recipe("control", "scf.index_switch")
def switch(b: Builder, op: object) -> None:
    """A few cases, which yield what is new in them."""
    if b.depth >= MAX_DEPTH:
        return
    which, models = few(b), _settled(b, 1)
    cases = b.random.sample([0, 1, 2, 3, 7], b.random.choice([1, 2]))
    made = scf.IndexSwitchOp([model.ir.type for model in models], which, cases)
    known: list[list[Value]] = []
    for region in made.operation.regions:
        block = region.blocks[0] if len(region.blocks) else region.blocks.append()
        with b.nested(block):
            found = _left(b, models)
            scf.YieldOp([value.ir for value in found])
        known.append(found)
    _results(b, "scf.index_switch", made, list(zip(*known)))


@recipe("control", "scf.for")
def count(b: Builder, op: object) -> None:
    """A loop of few rounds that carries tensors and a number."""
    if b.depth >= MAX_DEPTH:
        return
    end = few(b)
    models = _settled(b, b.random.choice([1, 2, 2, 3]))
    made = scf.ForOp(index(0), end, index(1), [*(model.ir for model in models), index(0)])
    with b.nested(made.body):
        *arguments, number = made.inner_iter_args
        carried = [b.add(x, False, model.bound) for x, model in zip(arguments, models)]
        found = passed_on(b, carried)
        number = arith.addi(number, arith.addi(made.induction_variable, index(1)))
        scf.YieldOp([*(value.ir for value in found), number])
    _results(b, "scf.for", made, [(model, model) for model in models], exact=False)
    _number(b, made.results[len(models)])


@recipe("control", "scf.while")
def repeat(b: Builder, op: object) -> None:
    """A loop that goes on for few rounds, or until an element says so."""
    if b.depth >= MAX_DEPTH:
        return
    end, models = few(b), _settled(b, b.random.choice([1, 2]))
    types = [*(model.ir.type for model in models), ir.IndexType.get()]
    made = scf.WhileOp(types, [*(model.ir for model in models), index(0)])
    places = [ir.Location.unknown()] * len(types)
    before, after = (
        region.blocks.append(*types, arg_locs=places) for region in made.operation.regions
    )
    with b.nested(before):
        *arguments, number = before.arguments
        carried = [b.add(x, False, model.bound) for x, model in zip(arguments, models)]
        goes_on = arith.CmpIOp(arith.CmpIPredicate.slt, number, end).result
        if b.chance(0.5):
            goes_on = arith.andi(goes_on, condition(b))
        found = passed_on(b, carried) if b.chance(0.4) else carried
        scf.ConditionOp(goes_on, [*(value.ir for value in found), number])
    with b.nested(after):
        *arguments, number = after.arguments
        carried = [b.add(x, False, model.bound) for x, model in zip(arguments, models)]
        found = passed_on(b, carried)
        scf.YieldOp([*(value.ir for value in found), arith.addi(number, index(1))])
    _results(b, "scf.while", made, [(model, model) for model in models], exact=False)
    _number(b, made.results[len(models)])


def _number(b: Builder, value: ir.Value) -> None:
    """A tensor of what a loop has counted."""
    i64 = ir.IntegerType.get_signless(64)
    type_ = ir.RankedTensorType.get([], i64)
    made = tensor.FromElementsOp(type_, [arith.index_cast(i64, value)])
    b.add(made.result, True, 64)


@recipe("control", "loop that grows")
def grow(b: Builder, op: object) -> None:
    """A loop whose tensors are longer, or shorter, in the next round."""
    if b.depth >= MAX_DEPTH:
        return
    models = [b.take(lambda v: v.rank > 0) for _ in range(b.random.choice([1, 1, 2]))]
    opens = [graph.TensorType.make([None, *m.dims[1:]], m.annotation.element) for m in models]
    entering = [graph.MatchCastOp.build(m.ir, t).result for m, t in zip(models, opens)]
    made = scf.ForOp(index(0), few(b), index(1), entering)
    with b.nested(made.body):
        carried = [_named(b, x, model) for x, model in zip(made.inner_iter_args, models)]
        _steps(b)
        found = [_resized(b, value, model) for value, model in zip(carried, models)]
        if b.chance(0.3) and all(a.ir.type == c.ir.type for a, c in pairwise(models)):
            found = [*carried[1:], found[0]]
        ends = [graph.MatchCastOp.build(v.ir, t).result for v, t in zip(found, opens)]
        scf.YieldOp(ends)
    b.used.append("loop that grows")
    for result, model in zip(made.results, models):
        _named(b, result, model, exact=False)


def _named(b: Builder, value: ir.Value, model: Value, exact: bool = False) -> Value:
    """A tensor whose first dim gets a name."""
    dims = [fresh_symbol(b), *model.dims[1:]]
    cast = graph.MatchCastOp.build(value, graph.TensorType.make(dims, model.annotation.element))
    is_exact = exact or not model.is_float
    return b.results_of(cast, is_exact, model.bound)[0]


def _resized(b: Builder, value: Value, model: Value) -> Value:
    """A tensor with more rows, or with half of them."""
    if b.chance(0.7):
        return b.emit(graph.ConcatOp, [value, b.random.choice([model, value])], axis=0)
    half = [value.dims[0] // 2]
    return b.emit(graph.StridedSliceOp, [value], axes=[0], begin=[0], end=half, strides=[1])


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
        found = _left(b, models)
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
                "scalar": 1,
                "control": 1,
                "shape": 1,
                "attention": 1,
                "data": 1,
                "external": 1,
                "closure": 1,
            },
        )


def _results(
    b: Builder, name: str, made: ir.OpView, sources: list[tuple[Value, ...]], exact: bool = True
) -> None:
    b.used.append(name)
    for result, values in zip(made.operation.results, sources):
        if isinstance(graph.annotation_of(result), graph.TensorType):
            bound = max(value.bound for value in values)
            is_exact = not values[0].is_float or (exact and all(v.exact for v in values))
            b.add(result, is_exact, bound)
