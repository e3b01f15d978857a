"""Horizontal reductions: combining partial results, one for each lane.

Each accumulator is updated by an associative op, or selected by one comparison:

    %s = arith.addf %acc, %x                            ops: add, mul, max, min, and, or, xor
    select (arith.cmpf ogt, %x, %best), %x, %best       extremum: one compare, NaN ignored
    %c = arith.cmpf ogt, %x, %best                      choice: argmax, argmin
    yield (select %c, %x, %best), (select %c, %i, %at)

Partial results are selected by the body's own comparison, in both directions. If neither beats the
other, the element that comes first in the loop wins; if each beats the other, the one that comes
last, as in the scalar loop.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from relax_mlir.bindings import arith, ir, linalg, vector
from relax_mlir.program.program import Stage

from .body import emit_op
from .lanes import Lane, Uniform, Varying, scalar, to_vector, value_of, vector_type

_INFINITY = float("inf")
_FLOAT_NEUTRAL = {
    "arith.addf": -0.0,
    "arith.mulf": 1.0,
    "arith.maximumf": -_INFINITY,
    "arith.maxnumf": -_INFINITY,
    "arith.minimumf": _INFINITY,
    "arith.minnumf": _INFINITY,
}
_INTEGER_NEUTRAL = {
    "arith.addi": lambda bits: 0,
    "arith.muli": lambda bits: 1,
    "arith.andi": lambda bits: -1,
    "arith.ori": lambda bits: 0,
    "arith.xori": lambda bits: 0,
    "arith.maxsi": lambda bits: -(1 << (bits - 1)),
    "arith.minsi": lambda bits: (1 << (bits - 1)) - 1,
    "arith.maxui": lambda bits: 0,
    "arith.minui": lambda bits: -1,
}
_FLOAT_MAXIMA = {"arith.maximumf", "arith.maxnumf"}
_GREATER = {int(arith.CmpFPredicate.OGT), int(arith.CmpFPredicate.OGE)}
_LESS = {int(arith.CmpFPredicate.OLT), int(arith.CmpFPredicate.OLE)}
_FLOAT_ORDERS = _GREATER | _LESS
_INTEGER_ORDERS = {
    int(getattr(arith.CmpIPredicate, sign + name))
    for sign in "su"
    for name in ("gt", "ge", "lt", "le")
}
_SYMMETRIC = {*_INTEGER_NEUTRAL, "arith.addf", "arith.mulf", "arith.maximumf", "arith.minimumf"}
"""Ops whose result has the same bits if operands are exchanged, but for those of a NaN."""
_NOT_IDEMPOTENT = {"arith.addf", "arith.mulf", "arith.addi", "arith.muli", "arith.xori"}


@dataclass(frozen=True)
class Combiner:
    """How to combine two sets of accumulators of a stage.

    `ops[k]` updates accumulator k with `terms[k]`; None if `condition` selects between them.
    `accumulators` are arguments of the block, `inside` all its scalars.
    """

    inside: frozenset[ir.Value]
    accumulators: tuple[ir.Value, ...]
    ops: tuple[ir.OpView | None, ...]
    terms: tuple[ir.Value, ...]
    condition: ir.Value | None
    captured: Mapping[ir.Value, ir.Value]

    @property
    def needs_positions(self) -> bool:
        """Whether selecting one of two elements depends on their positions."""
        return self.condition is not None and not _is_order(
            self.condition, self.terms, self.accumulators
        )

    @property
    def is_symmetric(self) -> bool:
        """Whether exchanging two sets leaves every bit of the result, but for those of a NaN."""
        return all(op is not None and op.operation.name in _SYMMETRIC for op in self.ops)

    def finds_maximum(self, index: int) -> bool:
        """Whether accumulator `index` is a maximum of floats, whether or not NaN propagate."""
        op = self.ops[index]
        if op is not None:
            return op.operation.name in _FLOAT_MAXIMA
        if self.condition is None or self.needs_positions:
            return False
        compare = self.condition.owner.opview
        if not isinstance(compare, arith.CmpFOp):
            return False
        predicates = _GREATER if compare.lhs == self.terms[0] else _LESS
        return compare.predicate.value in predicates

    def start(self, index: int) -> ir.Attribute | None:
        """The initial value of a lane; None for the initial value of the accumulator."""
        op = self.ops[index]
        if self.condition is not None or op is None:
            return None
        element = self.accumulators[index].type
        name = op.operation.name
        if name in _FLOAT_NEUTRAL:
            return ir.FloatAttr.get(element, _FLOAT_NEUTRAL[name])
        bits = 64 if isinstance(element, ir.IndexType) else element.width
        return ir.IntegerAttr.get(element, _INTEGER_NEUTRAL[name](bits))

    def combine(
        self,
        first: Sequence[Lane],
        second: Sequence[Lane],
        positions: tuple[Lane, Lane] | None,
        lanes: int,
    ) -> tuple[list[Lane], Lane | None]:
        """The combined set, and the position of the selected element."""
        chosen = None
        if self.condition is not None:
            chosen = self._selects_second(first, second, positions, lanes)
        results = []
        for op, a, b in zip(self.ops, first, second, strict=True):
            if op is not None:
                results.append(emit_op(op, [a, b], lanes))
                continue
            assert chosen is not None, "an accumulator without an op has a condition"
            results.append(_select(chosen, b, a, lanes))
        if chosen is None or positions is None:
            return results, None
        return results, _select(chosen, positions[1], positions[0], lanes)

    def _selects_second(
        self,
        first: Sequence[Lane],
        second: Sequence[Lane],
        positions: tuple[Lane, Lane] | None,
        lanes: int,
    ) -> Lane:
        """The lanes in which the second set wins."""
        second_beats = self._compare(first, second, lanes)
        if positions is None:
            return second_beats
        first_beats = self._compare(second, first, lanes)
        comes_first = _compare_positions(positions[1], positions[0], lanes)
        differ = _binary(arith.xori, second_beats, first_beats, lanes)
        # Both: the last one wins; neither: the first one.
        tie = _binary(arith.xori, second_beats, comes_first, lanes)
        return _select(differ, second_beats, tie, lanes)

    def _compare(
        self, accumulators: Sequence[Lane], candidates: Sequence[Lane], lanes: int
    ) -> Lane:
        known = dict(zip(self.terms, candidates, strict=True))
        known |= dict(zip(self.accumulators, accumulators, strict=True))
        assert self.condition is not None, "a comparison needs a condition"
        return self._emit_slice(self.condition, known, lanes)

    def _emit_slice(self, value: ir.Value, known: dict[ir.Value, Lane], lanes: int) -> Lane:
        if value not in known:
            if value not in self.inside:
                return Uniform(self.captured.get(value, value))
            op = value.owner.opview
            operands = [self._emit_slice(operand, known, lanes) for operand in op.operands]
            known[value] = emit_op(op, operands, lanes)
        return known[value]


def _is_order(
    condition: ir.Value, terms: Sequence[ir.Value], accumulators: Sequence[ir.Value]
) -> bool:
    """Whether the condition compares a term with the only accumulator."""
    if len(accumulators) != 1 or isinstance(condition.owner, ir.Block):
        return False
    op = condition.owner.opview
    if not isinstance(op, arith.CmpFOp | arith.CmpIOp):
        return False
    orders = _FLOAT_ORDERS if isinstance(op, arith.CmpFOp) else _INTEGER_ORDERS
    return {op.lhs, op.rhs} == {terms[0], accumulators[0]} and op.predicate.value in orders


def _inside(block: ir.Block) -> frozenset[ir.Value]:
    results = [result for op in block.operations for result in op.results]
    return frozenset([*block.arguments, *results])


def combiner_of(stage: Stage, captured: Mapping[ir.Value, ir.Value]) -> Combiner | None:
    """How to combine partial results, or None if the loop has to run in order."""
    block = stage.body
    count = len(stage.results)
    accumulators = tuple(block.arguments)[len(stage.reads) :]
    yielded = list(block.operations[len(block.operations) - 1].operands)
    dependent = _dependent(block, accumulators)
    ops: list[ir.OpView | None] = []
    terms: list[ir.Value] = []
    conditions: set[ir.Value] = set()
    for index in range(count):
        update = _update(yielded[index], accumulators[index], dependent)
        if update is None:
            return None
        op, term, condition = update
        ops.append(op)
        terms.append(term)
        if condition is not None:
            conditions.add(condition)
    if len(conditions) > 1:
        return None
    condition = next(iter(conditions), None)
    if condition is not None:
        names = {op.operation.name for op in ops if op is not None}
        known = {*terms, *accumulators}
        if names & _NOT_IDEMPOTENT or not _is_closed(condition, _inside(block), known):
            return None
    return Combiner(_inside(block), accumulators, tuple(ops), tuple(terms), condition, captured)


def _dependent(block: ir.Block, accumulators: Sequence[ir.Value]) -> set[ir.Value]:
    result = set(accumulators)
    for op in block.operations:
        if any(operand in result for operand in op.operands):
            result.update(op.results)
    return result


def _update(
    value: ir.Value, accumulator: ir.Value, dependent: set[ir.Value]
) -> tuple[ir.OpView | None, ir.Value, ir.Value | None] | None:
    """The op that updates an accumulator, its term, and the condition that selects."""
    if isinstance(value.owner, ir.Block):
        return None
    op = value.owner.opview
    name = op.operation.name
    operands = list(op.operands)
    if name in _FLOAT_NEUTRAL or name in _INTEGER_NEUTRAL:
        others = [operand for operand in operands if operand != accumulator]
        if len(others) == 1 and others[0] not in dependent:
            return op, others[0], None
    if name == "arith.select" and accumulator in operands[1:]:
        others = [operand for operand in operands[1:] if operand != accumulator]
        # The condition has to select the new element.
        if operands[2] == accumulator and len(others) == 1 and others[0] not in dependent:
            return None if operands[0] not in dependent else (None, others[0], operands[0])
    return None


def _is_closed(value: ir.Value, inside: frozenset[ir.Value], known: set[ir.Value]) -> bool:
    """Whether the value depends on the known ones and constants only."""
    if value in known or value not in inside:
        return True
    if isinstance(value.owner, ir.Block):
        return False
    op = value.owner.opview
    if isinstance(op, linalg.IndexOp) or not op.operation.name.startswith(("arith.", "math.")):
        return False
    return all(_is_closed(operand, inside, known) for operand in op.operands)


def _binary(function, a: Lane, b: Lane, lanes: int) -> Lane:
    if lanes == 1:
        return Uniform(function(value_of(a), value_of(b)))
    return Varying(function(to_vector(a, lanes), to_vector(b, lanes)))


def _select(condition: Lane, yes: Lane, no: Lane, lanes: int) -> Lane:
    if lanes == 1:
        return Uniform(arith.select(value_of(condition), value_of(yes), value_of(no)))
    vectors = [to_vector(lane, lanes) for lane in (condition, yes, no)]
    return Varying(arith.select(*vectors))


def _compare_positions(a: Lane, b: Lane, lanes: int) -> Lane:
    less = arith.CmpIPredicate.slt
    return _binary(lambda x, y: arith.cmpi(less, x, y), a, b, lanes)


def halves(x: ir.Value, lanes: int) -> tuple[ir.Value, ir.Value]:
    """The lower and the upper half of a vector, as scalars if it has two lanes."""
    if lanes == 2:
        return vector.extract(x, [], [0]), vector.extract(x, [], [1])
    half = lanes // 2
    kind = vector_type(half, ir.VectorType(x.type).element_type)
    return tuple(vector.extract_strided_slice(kind, x, [start], [half], [1]) for start in (0, half))


def reduce_lanes(
    combiner: Combiner, lanes_of: Sequence[ir.Value], positions: ir.Value | None, lanes: int
) -> list[Lane]:
    """The horizontal reduction of vector accumulators to scalars."""
    while lanes > 1:
        pairs = [halves(x, lanes) for x in lanes_of]
        where = None if positions is None else halves(positions, lanes)
        lanes //= 2
        wrap = Uniform if lanes == 1 else Varying
        first, second = ([wrap(pair[i]) for pair in pairs] for i in (0, 1))
        indices = None if where is None else (wrap(where[0]), wrap(where[1]))
        results, position = combiner.combine(first, second, indices, lanes)
        lanes_of = [scalar(result) for result in results]
        positions = None if position is None else scalar(position)
    return [Uniform(x) for x in lanes_of]
