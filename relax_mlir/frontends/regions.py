"""Branches and loops of the module, whose results have the types that their regions agree on."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from relax_mlir.bindings import arith, ir, scf, tensor
from relax_mlir.decompositions.emit import (
    broadcast_to,
    concat,
    emit,
    expand_dims,
    scalar,
)
from relax_mlir.decompositions.loops import truth_of
from relax_mlir.dialects import graph
from relax_mlir.dialects.graph import TensorType
from relax_mlir.errors import ModelError
from relax_mlir.symbolic import Expr, const, sym

Value: TypeAlias = Any
"""What an importer makes a tensor of."""

ROUNDS = 20
"""How often the types of what a loop carries may become coarser."""

Body: TypeAlias = "Callable[[ir.Value, list[Value]], tuple[Value, list[Value], list[Value]]]"
"""From the index of a round and what is carried: whether it goes on, what is carried, and rows."""


class Names(Protocol):
    """The symbols of an import."""

    used: set[str]

    def fresh(self, wanted: str) -> str:
        """A symbol that is not used yet."""


class Importer(Protocol):
    """An import, as regions see it."""

    @property
    def dims(self) -> Names:
        """Its symbols."""

    def tensor(self, value: Any) -> ir.Value:
        """A value as a tensor."""


def branch(
    importer: Importer, condition: ir.Value, bodies: Sequence[Callable[[], list[Value]]]
) -> list[ir.Value]:
    """What one of two bodies computes."""
    seen = set(importer.dims.used)
    draft = scf.IfOp(condition, [], has_else=True)
    blocks = [draft.then_block, draft.else_block]
    yielded: list[list[ir.Value]] = []
    for block, body in zip(blocks, bodies, strict=True):
        with ir.InsertionPoint(block):
            yielded.append([importer.tensor(value) for value in body()])
    if len(yielded[0]) != len(yielded[1]):
        raise ModelError(f"has branches of {len(yielded[0])} and {len(yielded[1])} outputs")
    ranks = [[_rank(value) for value in values] for values in yielded]
    if ranks[0] != ranks[1]:
        draft.operation.erase()
        return _assumed(importer, condition, bodies, ranks)
    types = [
        _joined(_outside(one, seen), _outside(other, seen))
        for one, other in zip(*yielded, strict=True)
    ]
    for block, values in zip(blocks, yielded, strict=True):
        with ir.InsertionPoint(block):
            scf.YieldOp([_cast(value, type_) for value, type_ in zip(values, types, strict=True)])
    with ir.InsertionPoint(draft):
        final = ir.Operation.create(
            "scf.if", results=[t.to_mlir() for t in types], operands=[condition], regions=2
        )
    for block, region in zip(blocks, final.regions, strict=True):
        block.append_to(region)
    draft.operation.erase()
    return list(final.results)


def _rank(value: ir.Value) -> int | None:
    dims = TensorType.of(value).dims
    return None if dims is None else len(dims)


def _assumed(
    importer: Importer,
    condition: ir.Value,
    bodies: Sequence[Callable[[], list[Value]]],
    ranks: Sequence[Sequence[int | None]],
) -> list[ir.Value]:
    """What the body of lower ranks computes, for which the condition has to decide at run time.

    Exporters write a squeeze of a dim that is 1 in one branch, and nothing in the other; what
    follows takes one of their ranks.
    """
    sums = [sum(rank or 0 for rank in each) for each in ranks]
    chosen = 0 if sums[0] < sums[1] else 1
    if chosen:
        true = arith.constant(ir.IntegerType.get_signless(1), 1)
        condition = arith.xori(condition, true)
    message = f"takes the branch with results of ranks {list(ranks[1 - chosen])}, but those of "
    graph.AssertOp.build(condition, f"{message}{list(ranks[chosen])} are compiled")
    return [importer.tensor(value) for value in bodies[chosen]()]


def _outside(value: ir.Value, seen: set[str]) -> TensorType:
    """The type of a value, without the symbols that only a region binds."""
    annotation = TensorType.of(value)
    if annotation.dims is None:
        return annotation
    dims = [dim if dim is not None and dim.symbols <= seen else None for dim in annotation.dims]
    return annotation.with_dims(dims)


def _joined(one: TensorType, other: TensorType) -> TensorType:
    if one.element != other.element:
        raise ModelError(f"has values of '{one}' and '{other}', which are no one type")
    if one.dims is None or other.dims is None or len(one.dims) != len(other.dims):
        return TensorType(None, one.element)
    dims = [own if own == its else None for own, its in zip(one.dims, other.dims, strict=True)]
    return one.with_dims(dims)


def _cast(value: ir.Value, type_: TensorType) -> ir.Value:
    if TensorType.of(value) == type_:
        return value
    return graph.MatchCastOp.build(value, type_).result


def loop_while(
    importer: Importer,
    values: Sequence[ir.Value],
    condition: Callable[[list[ir.Value]], ir.Value],
    body: Callable[[list[ir.Value]], list[Value]],
) -> list[ir.Value]:
    """What rounds of a body leave of values; before each one a condition of them is asked."""
    types = [TensorType.of(value) for value in values]
    for _ in range(ROUNDS):
        seen = set(importer.dims.used)
        kinds = [each.to_mlir() for each in types]
        op = scf.WhileOp(kinds, [_cast(v, t) for v, t in zip(values, types, strict=True)])
        before, after = (region.blocks.append(*kinds) for region in (op.before, op.after))
        with ir.InsertionPoint(before):
            goes_on = truth_of(condition(list(before.arguments)))
            scf.ConditionOp(goes_on, list(before.arguments))
        with ir.InsertionPoint(after):
            left = [importer.tensor(value) for value in body(list(after.arguments))]
            actual = [_outside(value, seen) for value in left]
            wider = [_joined(one, other) for one, other in zip(types, actual, strict=True)]
            if wider == types:
                scf.YieldOp([_cast(v, t) for v, t in zip(left, types, strict=True)])
                return list(op.results)
        op.operation.erase()
        types = wider
    raise ModelError("carries values whose types differ in each round")


@dataclass(frozen=True)
class Carried:
    """What a loop begins with: at most `count` rounds, the first if `condition` holds.

    `rows` results are stacks of what each round leaves.
    """

    count: Expr | None
    condition: ir.Value | None
    values: list[ir.Value]
    rows: int


def loop(importer: Importer, start: Carried, body: Body) -> list[ir.Value]:
    """What rounds of a body leave: values that are carried, and stacks of rows."""
    types = [TensorType.of(value) for value in start.values]
    rows: list[TensorType] = []
    for _ in range(ROUNDS):
        actual, rows, conditional = _types(importer, types, start, body)
        wider = [_joined(one, other) for one, other in zip(types, actual, strict=True)]
        if wider == types:
            break
        types = wider
    else:
        raise ModelError("carries values whose types differ in each round")
    is_plain = start.count is not None and not conditional and start.condition is None
    if is_plain and all(graph.known_dims(row.dims) is not None for row in rows):
        return _counted(importer, start, types, rows, body)
    return _while(importer, start, types, rows, body)


def _types(
    importer: Importer, types: Sequence[TensorType], start: Carried, body: Body
) -> tuple[list[TensorType], list[TensorType], bool]:
    """The types that a round leaves, of its rows, and whether a condition ends the loop."""
    seen = set(importer.dims.used)
    block_types = [t.to_mlir() for t in types]
    index = ir.IndexType.get()
    draft = scf.ExecuteRegionOp([])
    block = draft.operation.regions[0].blocks.append(index, *block_types)
    with ir.InsertionPoint(block):
        at, *values = block.arguments
        goes_on, results, rows = body(_as_tensor(at), list(values))
        tensors = [importer.tensor(each) for each in results]
        row_types = [_outside(importer.tensor(each), seen) for each in rows]
        actual = [_outside(each, seen) for each in tensors]
        conditional = goes_on is not None
    draft.operation.erase()
    return actual, row_types, conditional


def _as_tensor(index: ir.Value) -> ir.Value:
    i64 = ir.IntegerType.get_signless(64)
    value = arith.index_cast(i64, index)
    return tensor.FromElementsOp(ir.RankedTensorType.get([], i64), [value]).result


def _counted(
    importer: Importer,
    start: Carried,
    types: Sequence[TensorType],
    rows: Sequence[TensorType],
    body: Body,
) -> list[ir.Value]:
    """A loop of as many rounds as a value says; rows are written to what has room for all."""
    assert start.count is not None
    zero, one = (arith.constant(ir.IndexType.get(), i) for i in (0, 1))
    stacks = [_room(start.count, row) for row in rows]
    first = [_cast(value, type_) for value, type_ in zip(start.values, types, strict=True)]
    count = _index_of(importer, start.count)
    op = scf.ForOp(zero, count, one, [*first, *stacks])
    with ir.InsertionPoint(op.body):
        at = _as_tensor(op.induction_variable)
        carried, done = _split(list(op.inner_iter_args), len(types))
        _, results, new = body(at, list(carried))
        values = [_cast(importer.tensor(v), t) for v, t in zip(results, types, strict=True)]
        written = [
            _put(stack, importer.tensor(row), at) for stack, row in zip(done, new, strict=True)
        ]
        scf.YieldOp([*values, *written])
    return list(op.results)


def _while(
    importer: Importer,
    start: Carried,
    types: Sequence[TensorType],
    rows: Sequence[TensorType],
    body: Body,
) -> list[ir.Value]:
    """A loop that a condition ends; each row is appended to those before it."""
    index, i1 = ir.IndexType.get(), ir.IntegerType.get_signless(1)
    zero = arith.constant(index, 0)
    true = arith.constant(i1, 1)
    stacks = [_empty(row) for row in rows]
    kinds = [*types, *(row.with_dims([None, *_dims_of_row(row)]) for row in rows)]
    first = [_cast(v, t) for v, t in zip([*start.values, *stacks], kinds, strict=True)]
    inits = [zero, start.condition or true, *first]
    result_types = [each.type for each in inits]
    most = None if start.count is None else _index_of(importer, start.count)
    op = ir.Operation.create("scf.while", results=result_types, operands=inits, regions=2)
    before = op.regions[0].blocks.append(*result_types)
    with ir.InsertionPoint(before):
        goes_on = before.arguments[1]
        if most is not None:
            less = arith.cmpi(arith.CmpIPredicate.slt, before.arguments[0], most)
            goes_on = arith.andi(goes_on, less)
        scf.ConditionOp(goes_on, list(before.arguments))
    after = op.regions[1].blocks.append(*result_types)
    with ir.InsertionPoint(after):
        position, _, *values = after.arguments
        carried, done = _split(list(values), len(types))
        goes_on, results, new = body(_as_tensor(position), list(carried))
        stays = true if goes_on is None else truth_of(importer.tensor(goes_on))
        left = [_cast(importer.tensor(v), t) for v, t in zip(results, types, strict=True)]
        grown = [
            _cast(_appended(importer, stack, importer.tensor(row), position), kind)
            for stack, row, kind in zip(done, new, kinds[len(types) :], strict=True)
        ]
        one = arith.constant(index, 1)
        scf.YieldOp([arith.addi(position, one), stays, *left, *grown])
    return list(op.results)[2:]


def _split(values: list[ir.Value], count: int) -> tuple[list[ir.Value], list[ir.Value]]:
    return values[:count], values[count:]


def _index_of(importer: Importer, count: Expr) -> ir.Value:
    """An expression as an index; a negative one is 0."""
    index = ir.IndexType.get()
    if count.value is not None:
        return arith.constant(index, max(count.value, 0))
    line = emit(graph.ArangeOp, bounds=[0, count, 1], dtype=ir.IntegerType.get_signless(64))
    return tensor.DimOp(line, arith.constant(index, 0)).result


def _dims_of_row(row: TensorType) -> Sequence[Expr | None]:
    if row.dims is None:
        raise ModelError("leaves rows of other ranks in each round")
    return row.dims


def _room(count: Expr, row: TensorType) -> ir.Value:
    dims = graph.known_dims(row.dims)
    assert dims is not None
    return broadcast_to(_zero(row.element), [count, *dims])


def _empty(row: TensorType) -> ir.Value:
    """No rows; a dim that the first round finds is 0."""
    dims = [const(0) if dim is None else dim for dim in _dims_of_row(row)]
    return broadcast_to(_zero(row.element), [0, *dims])


def _zero(element: ir.Type) -> ir.Value:
    return scalar(0, element)


def _put(stack: ir.Value, row: ir.Value, at: ir.Value) -> ir.Value:
    dims = graph.known_dims(TensorType.of(stack).dims)
    assert dims is not None
    row = _cast(row, TensorType.of(stack).with_dims(dims[1:]))
    i64 = ir.IntegerType.get_signless(64)
    value = tensor.ExtractOp(at, []).result
    nothing = arith.constant(i64, 0)
    kind = ir.RankedTensorType.get([len(dims)], i64)
    starts = tensor.FromElementsOp(kind, [value, *[nothing] * (len(dims) - 1)]).result
    return emit(graph.DynamicUpdateSliceOp, stack, expand_dims(row, [0]), starts)


def _appended(importer: Importer, stack: ir.Value, row: ir.Value, position: ir.Value) -> ir.Value:
    """The rows with one more, which has the dims of those before it, if there are some."""
    named = TensorType.of(stack)
    if named.dims is not None and None not in named.dims[1:]:
        return _joined_rows(importer, stack, row)
    zero = arith.constant(ir.IndexType.get(), 0)
    is_first = arith.cmpi(arith.CmpIPredicate.eq, position, zero)
    bodies: list[Callable[[], list[Value]]] = [
        lambda: [expand_dims(row, [0])],
        lambda: [_joined_rows(importer, stack, row)],
    ]
    return branch(importer, is_first, bodies)[0]


def _joined_rows(importer: Importer, stack: ir.Value, row: ir.Value) -> ir.Value:
    named = TensorType.of(stack)
    assert named.dims is not None
    own = [sym(importer.dims.fresh("d")) if dim is None else dim for dim in named.dims[1:]]
    dims = [sym(importer.dims.fresh("r")), *own]
    seen = graph.MatchCastOp.build(stack, named.with_dims(dims)).result
    return concat([seen, expand_dims(_cast(row, named.with_dims(own)), [0])], 0)
