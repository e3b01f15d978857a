"""Gradients of loops: a loop that saves its state in each round, and one that goes back.

    %y = scf.for %i = ... iter_args(%a = %x) -> !t { %b = f(%a, %w)  scf.yield %b }
      ->
    %y, %saved = scf.for %k = 0 to trips iter_args(%a = %x, %all = zeros of [trips, dims]) {
      %more = put %a into %all at %k
      ...
    }
    %g, %gw = scf.for %k = 0 to trips iter_args(%g = gradient of %y, %gw = zeros) {
      %a = take %saved at trips - 1 - %k
      %b = f(%a, %w)
      ... in reverse; %gw is a sum ...
    }

How many rounds a `scf.while` has is not known before: it runs with a counter, and its rounds again
as those of a loop that counts.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from relax_mlir.bindings import arith, ir, scf, tensor
from relax_mlir.decompositions.emit import dims_of, emit, expand_dims, reshape, scalar
from relax_mlir.dialects import graph
from relax_mlir.dialects.graph import MatchCastOp, TensorType, known_dims
from relax_mlir.gradients.reverse import (
    Adjoint,
    Contributions,
    Reverse,
    is_differentiable,
    vary,
)
from relax_mlir.gradients.shapes import zeros_like
from relax_mlir.passes import PassFailure
from relax_mlir.rewriting import captured_values, walk_ops
from relax_mlir.symbolic import Expr, const

from .scalars import one_element, starts_at

Result = TypeVar("Result")
Round = Callable[[ir.Value, Sequence[ir.Value]], list[ir.Value]]
"""Emits the ops of a round, given its index and the state; returns the next state."""


def index(value: int) -> ir.Value:
    """A constant index."""
    return arith.ConstantOp(ir.IndexType.get(), value).result


@dataclass(frozen=True)
class Trips:
    """How many rounds a loop has: as an index, and as a dim with room for them."""

    count: ir.Value
    dim: Expr


def copy_ops(ops: Iterable[ir.OpView], values: dict[ir.Value, ir.Value]) -> None:
    """Copies ops to the insertion point, with other operands; adds the results to `values`."""
    for op in ops:
        copy = op.operation.clone()
        for each in walk_ops(copy):
            for position, operand in enumerate(each.operation.operands):
                if operand in values:
                    each.operation.operands[position] = values[operand]
        values.update(zip(op.operation.results, copy.results, strict=True))


def emitted(build: Callable[[], Result]) -> tuple[Result, list[ir.OpView]]:
    """What a function returns, and the ops that it adds to the current block."""
    block = ir.InsertionPoint.current.block
    before = {op.operation for op in block.operations}
    result = build()
    return result, [op for op in block.operations if op.operation not in before]


def counted(op: scf.ForOp, adjoint: Adjoint) -> Contributions:
    """Replaces the loop by one that saves its state, and goes back in another one."""
    start, stop, step, *inits = op.operation.operands
    block = op.operation.regions[0].blocks[0]
    *ops, end = block.operations

    def one_round(k: ir.Value, state: Sequence[ir.Value]) -> list[ir.Value]:
        at = k if start.type == k.type else arith.IndexCastOp(start.type, k).result
        at = arith.AddIOp(start, arith.MulIOp(at, step).result).result
        values = dict(zip(block.arguments, [at, *state], strict=True))
        copy_ops(ops, values)
        return [values.get(each, each) for each in end.operation.operands]

    with ir.InsertionPoint(op):
        trips = _trips(start, stop, step, "unsignedCmp" in op.attributes, adjoint)
        loop = _Loop(op, trips, inits, captured_values(op), one_round)
        results = loop.save()
    _replace(op, results, adjoint)
    yield from loop.go_back(adjoint.seeds, adjoint)


def _replace(op: ir.OpView, results: Sequence[ir.Value], adjoint: Adjoint) -> None:
    for old, new in zip(op.operation.results, results, strict=True):
        old.replace_all_uses_with(new)
    adjoint.context.replaced.append(op)


def _trips(
    start: ir.Value, stop: ir.Value, step: ir.Value, unsigned: bool, adjoint: Adjoint
) -> Trips:
    """The rounds of a loop that counts; a symbol if they are not known."""
    bounds = [_constant(each) for each in (start, stop, step)]
    if None not in bounds and not unsigned:
        rounds = len(range(*(each or 0 for each in bounds)))
        return Trips(index(rounds), const(max(rounds, 1)))  # a part of none would be refused
    kind = ir.IndexType.get()
    cast = arith.IndexCastUIOp if unsigned else arith.IndexCastOp
    first, last, by = (
        each if each.type == kind else cast(kind, each).result for each in (start, stop, step)
    )
    predicate = arith.CmpIPredicate.ugt if unsigned else arith.CmpIPredicate.sgt
    runs = arith.CmpIOp(predicate, last, first).result
    zero, one = index(0), index(1)
    length = arith.SelectOp(runs, arith.SubIOp(last, first).result, one).result
    others = arith.DivUIOp(arith.SubIOp(length, one).result, by).result
    return named_trips(arith.SelectOp(runs, arith.AddIOp(others, one).result, zero).result, adjoint)


def named_trips(count: ir.Value, adjoint: Adjoint) -> Trips:
    """Rounds that run time counts, as a new symbol."""
    kind = ir.RankedTensorType.get([1], count.type)
    shape = graph.TensorToShapeOp.build(tensor.FromElementsOp(kind, [count]).result).result
    symbol = adjoint.context.fresh("trips")
    MatchCastOp.build(shape, graph.shape_value_type([symbol]))
    return Trips(count, symbol)


def _constant(value: ir.Value) -> int | None:
    owner = value.owner
    if isinstance(owner, ir.Block) or not isinstance(owner.opview, arith.ConstantOp):
        return None
    return ir.IntegerAttr(owner.opview.attributes["value"]).value


class _Loop:
    """A loop of rounds, with the state that each begins with."""

    def __init__(
        self,
        op: ir.OpView,
        trips: Trips,
        inits: Sequence[ir.Value],
        captured: Sequence[ir.Value],
        one_round: Round,
    ) -> None:
        self.trips, self.inits, self.one_round = trips, list(inits), one_round
        self.captured = captured
        for value in self.inits:
            _check_state(op, value)

    def save(self) -> list[ir.Value]:
        """Emits the loop that saves the state; returns the results of the loop."""
        count = len(self.inits)
        loop = self._loop([*self.inits, *map(self._room, self.inits)])
        with ir.InsertionPoint(loop.body):
            k, *carried = loop.body.arguments
            state, rooms = carried[:count], carried[count:]
            saved = [self._put(value, room, k) for value, room in zip(state, rooms, strict=True)]
            scf.YieldOp([*self.one_round(k, state), *saved])
        results = list(loop.results)
        self.saved = results[count:]
        return results[:count]

    def go_back(self, seeds: Sequence[ir.Value | None], adjoint: Adjoint) -> Contributions:
        """Emits the loop that goes back; yields what it contributes."""
        moving = [i for i, value in enumerate(self.inits) if is_differentiable(value)]
        used = [value for value in self.captured if adjoint.wants(value)]
        starts = [zeros_like(self.inits[i]) if (seed := seeds[i]) is None else seed for i in moving]
        loop = self._loop([*starts, *map(zeros_like, used)])
        with ir.InsertionPoint(loop.body):
            k, *carried = loop.body.arguments
            last = arith.SubIOp(self.trips.count, index(1)).result
            at = arith.SubIOp(last, k).result
            own = carried[: len(moving)]
            reverse, state = self._round_back(at, dict(zip(moving, own)), used, adjoint)
            known = [reverse.of(state[i]) for i in moving]
            ends = [
                zeros_like(state[i]) if g is None else g for i, g in zip(moving, known, strict=True)
            ]
            for value, so_far in zip(used, carried[len(moving) :], strict=True):
                reverse.add(value, so_far)
            scf.YieldOp([*ends, *(reverse.of(value) for value in used)])
        targets = [*(self.inits[i] for i in moving), *used]
        yield from zip(targets, loop.results, strict=True)

    def _round_back(
        self, k: ir.Value, seeds: dict[int, ir.Value], used: list[ir.Value], adjoint: Adjoint
    ) -> tuple[Reverse, list[ir.Value]]:
        """Computes a round again and then in reverse; also returns the state that it began with."""
        state = [self._take(value, room, k) for value, room in zip(self.inits, self.saved)]
        ends, ops = emitted(lambda: self.one_round(k, state))
        varied = {*used, *filter(is_differentiable, state)}
        vary(ops, varied)
        reverse = Reverse(varied, adjoint.context)
        for i, seed in seeds.items():
            reverse.add(ends[i], seed)
        reverse.run(ops)
        return reverse, state

    def _loop(self, inits: Sequence[ir.Value]) -> scf.ForOp:
        return scf.ForOp(index(0), self.trips.count, index(1), list(inits))

    def _room(self, value: ir.Value) -> ir.Value:
        """Zeros for a value of each round."""
        dims = dims_of(value) if isinstance(value.type, ir.ShapedType) else ()
        zero = scalar(0, _stored(value.type))
        return emit(graph.FullOp, zero, shape=[self.trips.dim, *dims])

    def _put(self, value: ir.Value, room: ir.Value, k: ir.Value) -> ir.Value:
        """The room with a value in the position of a round."""
        if isinstance(value.type, ir.ShapedType):
            row = expand_dims(value, [0])
        else:
            if isinstance(value.type, ir.IndexType):
                value = arith.IndexCastOp(_stored(value.type), value).result
            row = one_element(value, 1)
        return emit(graph.DynamicUpdateSliceOp, room, row, _starts(k, room))

    def _take(self, like: ir.Value, room: ir.Value, k: ir.Value) -> ir.Value:
        """The value that a round began with."""
        if not isinstance(like.type, ir.ShapedType):
            element = tensor.ExtractOp(room, [k]).result
            is_index = isinstance(like.type, ir.IndexType)
            return arith.IndexCastOp(like.type, element).result if is_index else element
        dims = dims_of(like)
        row = emit(graph.DynamicSliceOp, room, _starts(k, room), sizes=[1, *dims])
        return reshape(row, dims)


def _starts(k: ir.Value, room: ir.Value) -> ir.Value:
    return starts_at([k, *(index(0) for _ in dims_of(room)[1:])])


def _stored(kind: ir.Type) -> ir.Type:
    """The element type of a tensor of saved values."""
    if isinstance(kind, ir.IndexType):
        return ir.IntegerType.get_signless(64)
    return kind.element_type if isinstance(kind, ir.ShapedType) else kind


def _check_state(op: ir.OpView, value: ir.Value) -> None:
    """Raises PassFailure for state that cannot be saved in each round."""
    kind = value.type
    if isinstance(kind, ir.ShapedType):
        if known_dims(TensorType.of(value).dims) is None:
            raise PassFailure(
                op,
                f"carries '{kind}': a gradient saves the state of each round, so its dims have to "
                "be known in front of the loop",
            )
    elif isinstance(kind, graph.ShapeValueType):
        raise PassFailure(op, f"carries '{kind}', which a gradient does not save; carry a tensor")


def repeated(op: scf.WhileOp, adjoint: Adjoint) -> Contributions:
    """Counts the rounds, computes them again as a loop that counts, and goes back."""
    before, after = (region.blocks[0] for region in op.operation.regions)
    *tests, condition = before.operations
    *ops, end = after.operations

    def passed(state: Sequence[ir.Value]) -> list[ir.Value]:
        """What a test hands on."""
        values = dict(zip(before.arguments, state, strict=True))
        copy_ops(tests, values)
        return [values.get(each, each) for each in list(condition.operation.operands)[1:]]

    def one_round(k: ir.Value, state: Sequence[ir.Value]) -> list[ir.Value]:
        values = dict(zip(after.arguments, passed(state), strict=True))
        copy_ops(ops, values)
        return [values.get(each, each) for each in end.operation.operands]

    with ir.InsertionPoint(op):
        *results, count = _with_counter(op).results
        trips = named_trips(count, adjoint)
    captured = captured_values(op)
    loop = _Loop(op, trips, list(op.operation.operands), captured, one_round)
    _replace(op, results, adjoint)
    state = loop.save()
    used = [value for value in captured if adjoint.wants(value)]
    ends, last_test = emitted(lambda: passed(state))
    varied = {*used, *filter(is_differentiable, state)}
    vary(last_test, varied)
    reverse = Reverse(varied, adjoint.context)
    for result, seed in zip(ends, adjoint.seeds, strict=True):
        if seed is not None:
            reverse.add(result, seed)
    reverse.run(last_test)
    yield from ((value, g) for value in used if (g := reverse.of(value)) is not None)
    yield from loop.go_back([reverse.of(value) for value in state], adjoint)


def _with_counter(op: scf.WhileOp) -> ir.Operation:
    """A copy of a loop that also counts its rounds."""
    copy, kind = op.operation.clone(), ir.IndexType.get()
    loop = ir.Operation.create(
        op.operation.name,
        results=[*(result.type for result in op.operation.results), kind],
        operands=[*op.operation.operands, index(0)],
        attributes=dict(op.operation.attributes.items()),
        regions=2,
    )
    for old, region in zip(copy.regions, loop.regions, strict=True):
        (block,) = old.blocks
        block.append_to(region)
        count = block.add_argument(kind, op.location)
        *_, end = block.operations
        with ir.InsertionPoint(end), end.location:
            operands = list(end.operation.operands)
            if isinstance(end, scf.ConditionOp):
                scf.ConditionOp(operands[0], [*operands[1:], count])
            else:
                scf.YieldOp([*operands, arith.AddIOp(count, index(1)).result])
        end.operation.erase()
    copy.erase()
    return loop
