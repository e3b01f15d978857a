"""Arg reductions along the lanes: argmax and argmin.

    for each block of a row
      maximum of the block; is there a NaN?           vectors, without positions
      if that beats the best so far                   seldom
        the first position of the maximum             vectors, from the cache
        the body, once, at that position              scalars

All accumulators are selected by one comparison, so iterations before and after the first best
element do not change the result.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from relax_mlir.bindings import arith, ir, math, scf, vector
from relax_mlir.program.access import Inlining, root_of
from relax_mlir.program.program import Stage, all_known
from relax_mlir.schedule.build import loops
from relax_mlir.schedule.build.affine import IndexLane
from relax_mlir.schedule.build.evaluate import Evaluator, Point, yielded
from relax_mlir.schedule.build.horizontal_reduction import Combiner, halves
from relax_mlir.schedule.build.lanes import Ramp, Uniform, scalar, splat, to_vector
from relax_mlir.schedule.build.loops import Index
from relax_mlir.schedule.build.vectors import Vectors

from .lane_loops import UNROLL, Carried, ShortRow, vector_range

_BLOCK = 256
# Rows of up to this many groups of vectors have no loop.
_STRAIGHT = 4
_FLOATS = {int(arith.CmpFPredicate.OGT): True, int(arith.CmpFPredicate.OLT): False}
_INTEGERS = {
    int(arith.CmpIPredicate.sgt): (True, True),
    int(arith.CmpIPredicate.slt): (False, True),
    int(arith.CmpIPredicate.ugt): (True, False),
    int(arith.CmpIPredicate.ult): (False, False),
}

Scanned = tuple[ir.Value, ir.Value | None]
"""The best of each lane, and whether there is a NaN, if that beats others."""
At = Callable[[IndexLane, int, ir.Value | None], tuple[Point, list[IndexLane]]]


@dataclass(frozen=True)
class Order:
    """Which element wins: the first greatest (or least) one, or the first NaN.

    It becomes accumulator `accumulator`; `finds_nan` says that a NaN beats all other elements.
    """

    accumulator: int
    greatest: bool
    signed: bool
    finds_nan: bool

    @property
    def update(self) -> str:
        """The op that computes the better of two integers."""
        return f"arith.{'max' if self.greatest else 'min'}{'s' if self.signed else 'u'}i"

    def beats(self, x: ir.Value, best: ir.Value) -> ir.Value:
        """Whether x is better, lane by lane; false for a NaN."""
        if isinstance(_element(x), ir.FloatType):
            floats = arith.CmpFPredicate
            return arith.cmpf(floats.OGT if self.greatest else floats.OLT, x, best)
        name = ("s" if self.signed else "u") + ("gt" if self.greatest else "lt")
        return arith.cmpi(getattr(arith.CmpIPredicate, name), x, best)

    def better(self, x: ir.Value, best: ir.Value) -> ir.Value:
        """The better one, lane by lane; `best` if one is a NaN."""
        return arith.select(self.beats(x, best), x, best)


def order_of(stage: Stage, combiner: Combiner | None, inlining: Inlining) -> Order | None:
    """The order of an arg reduction over elements in memory; None for other reductions."""
    if combiner is None or combiner.condition is None or not combiner.needs_positions:
        return None
    for index, pair in enumerate(zip(combiner.terms, combiner.accumulators, strict=True)):
        order = _order(combiner.condition, *pair, index)
        if order is None or not _is_loaded(stage, pair[0], inlining):
            continue
        updates = [None if op is None else op.operation.name for op in combiner.ops]
        if updates[index] in (None, order.update):
            updates[index] = None
            return order if not any(updates) else None
    return None


def lanes_of(stage: Stage, combiner: Combiner, inlining: Inlining, vectors: Vectors) -> int:
    """Lanes of a vector of compared elements; the reduction has an order."""
    order = order_of(stage, combiner, inlining)
    assert order is not None
    return _lanes_of(combiner, order, vectors)


def _lanes_of(combiner: Combiner, order: Order, vectors: Vectors) -> int:
    return vectors.lanes(combiner.terms[order.accumulator].type.width)


def _order(condition: ir.Value, term: ir.Value, best: ir.Value, accumulator: int) -> Order | None:
    """The order of `term > best`, or of that or `term` being the first NaN."""
    op = _defining(condition)
    if isinstance(op, arith.OrIOp):
        for compare, nan in ((op.lhs, op.rhs), (op.rhs, op.lhs)):
            order = _order(compare, term, best, accumulator)
            if order is not None and _is_new_nan(nan, term, best):
                return Order(accumulator, order.greatest, order.signed, True)
        return None
    if not isinstance(op, arith.CmpFOp | arith.CmpIOp) or {op.lhs, op.rhs} != {term, best}:
        return None
    forward, predicate = op.lhs == term, op.predicate.value
    if isinstance(op, arith.CmpFOp):
        greatest, signed = _FLOATS.get(predicate), True
    else:
        greatest, signed = _INTEGERS.get(predicate, (None, True))
    return None if greatest is None else Order(accumulator, greatest == forward, signed, False)


def _is_new_nan(value: ir.Value, term: ir.Value, best: ir.Value) -> bool:
    """Whether the value is true if `term` is a NaN and `best` is not."""
    op = _defining(value)
    if not isinstance(op, arith.AndIOp):
        return False
    wanted = {(term, arith.CmpFPredicate.UNO), (best, arith.CmpFPredicate.ORD)}
    tests = all_known(_defining(operand) for operand in (op.lhs, op.rhs))
    if tests is None or not all(
        isinstance(test, arith.CmpFOp) and test.lhs == test.rhs for test in tests
    ):
        return False
    return {(test.lhs, test.predicate.value) for test in tests} == wanted


def _defining(value: ir.Value) -> ir.OpView | None:
    return None if isinstance(value.owner, ir.Block) else value.owner.opview


def _is_loaded(stage: Stage, value: ir.Value, inlining: Inlining) -> bool:
    """Whether a scalar of the block is loaded from memory, so that it can be read again."""
    while isinstance(_defining(value), arith.ExtFOp):
        value = value.owner.operands[0]
    if not isinstance(value.owner, ir.Block) or ir.BlockArgument(value).arg_number >= len(
        stage.reads
    ):
        return False
    return not inlining.is_inlined(root_of(stage.reads[ir.BlockArgument(value).arg_number].tensor))


def _element(x: ir.Value) -> ir.Type:
    return ir.VectorType(x.type).element_type if isinstance(x.type, ir.VectorType) else x.type


def _branch(
    condition: bool | ir.Value,
    like: Sequence[ir.Value],
    then: Callable[[], Carried],
    otherwise: Callable[[], Carried],
) -> Carried:
    """A branch whose results have the types of `like`."""
    if isinstance(condition, bool):
        return then() if condition else otherwise()
    branch = scf.IfOp(condition, [x.type for x in like], has_else=True)
    for block, emit in ((branch.then_block, then), (branch.else_block, otherwise)):
        with ir.InsertionPoint(block):
            scf.YieldOp(emit())
    return list(branch.results)


def _any(mask: ir.Value) -> ir.Value:
    return vector.reduction(mask.type.element_type, vector.CombiningKind.OR, mask)


@dataclass
class ArgReduction:
    """Emits the reduction of one row; `at(index, lanes, mask)` is a point of it and its indices."""

    evaluator: Evaluator
    stage: Stage
    combiner: Combiner
    order: Order
    at: At

    @property
    def _term(self) -> ir.Value:
        return self.combiner.terms[self.order.accumulator]

    @property
    def _lanes(self) -> int:
        return _lanes_of(self.combiner, self.order, self.evaluator.kernel.vectors)

    def emit(self, extent: Index, firsts: Sequence[ir.Value], short: ShortRow | None) -> Carried:
        """The accumulators after the row, with initial values `firsts`."""
        if isinstance(extent, int) and 0 < extent <= self._group:
            short = ShortRow.of(extent, self._lanes)
        if short is not None:
            row = short
            return self._emit_once(
                firsts, lambda best: self._walk(row, best), lambda top: self._find_in_row(row, top)
            )
        start = loops.value(0)

        def masked() -> Carried:
            return self._emit_once(
                firsts,
                lambda best: self._scan(start, extent, best),
                lambda top: self._find(start, extent, top, False),
            )

        def by_groups(count: int) -> Carried:
            """Emits a row of at least `count` groups; the last one may overlap the one before."""
            max_extent = count * self._group
            if count > _STRAIGHT:
                return once(lambda best: self._scan_groups(start, extent, best))
            offsets = [
                *range(0, max_extent - self._group, self._group),
                loops.sub(extent, self._group),
            ]
            return _branch(
                max_extent >= _BLOCK or loops.less(extent, max_extent + 1),
                firsts,
                lambda: once(lambda best: self._scan_at(offsets, best)),
                lambda: by_groups(count + 1),
            )

        def once(scan: Callable[[ir.Value], Scanned]) -> Carried:
            return self._emit_once(firsts, scan, lambda top: self._find(start, extent, top, True))

        def some() -> Carried:
            return _branch(loops.less(extent, self._group), firsts, masked, lambda: by_groups(2))

        is_block = loops.less(extent, _BLOCK + 1)
        return _branch(is_block, firsts, some, lambda: self._emit_long(extent, firsts))

    @property
    def _group(self) -> int:
        """Elements that are compared at once."""
        return self._lanes * UNROLL

    def _emit_once(
        self,
        firsts: Sequence[ir.Value],
        scan: Callable[[ir.Value], Scanned],
        find: Callable[[ir.Value], ir.Value],
    ) -> Carried:
        """As `emit` for a row of one block; `find` returns the position of the best element."""
        best = firsts[self.order.accumulator]
        greatest, has_nan = scan(best)

        def run() -> Carried:
            return self._run_body(find(self._best_of(greatest, has_nan)), firsts)

        return _branch(self._beats(greatest, has_nan, best), firsts, run, lambda: list(firsts))

    def _emit_long(self, extent: Index, firsts: Sequence[ir.Value]) -> Carried:
        """As `emit`, block by block; the last block overlaps the one before."""
        none = loops.value(-1)

        def block(start: ir.Value, best: ir.Value, where: ir.Value) -> Carried:
            start = loops.value(loops.minimum(start, loops.sub(extent, _BLOCK)))
            greatest, has_nan = self._scan_block(start, best)
            beats = self._beats(greatest, has_nan, best)
            values = [best, where]
            return _branch(
                beats, values, lambda: [self._best_of(greatest, has_nan), start], lambda: values
            )

        carried = [firsts[self.order.accumulator], none]
        best, where = loops.for_range(0, extent, _BLOCK, block, carried)

        def run() -> Carried:
            return self._run_body(self._find(where, loops.add(where, _BLOCK), best, True), firsts)

        is_found = arith.cmpi(arith.CmpIPredicate.ne, where, none)
        return _branch(is_found, firsts, run, lambda: list(firsts))

    def _beats(self, greatest: ir.Value, has_nan: ir.Value | None, best: ir.Value) -> ir.Value:
        """Whether some lane, or a NaN, is better than the best so far."""
        beats = _any(self.order.beats(greatest, splat(best, self._lanes)))
        if has_nan is None:
            return beats
        is_number = arith.cmpf(arith.CmpFPredicate.ORD, best, best)
        return arith.ori(beats, arith.andi(has_nan, is_number))

    def _best_of(self, greatest: ir.Value, has_nan: ir.Value | None) -> ir.Value:
        """The best lane, or a NaN if there is one."""
        top = self._reduce_lanes(greatest)
        if has_nan is None:
            return top
        nan = arith.constant(top.type, ir.FloatAttr.get(top.type, float("nan")))
        bits = ir.IntegerType.get_signless(top.type.width)
        # OR-ing a NaN's bits gives a NaN. A select would use a mask from a byte register that LLVM
        # shares with the position in the row before: rows would depend on each other.
        set_bits = arith.select(has_nan, arith.bitcast(bits, nan), arith.constant(bits, 0))
        return arith.bitcast(top.type, arith.ori(arith.bitcast(bits, top), set_bits))

    def _single(self, base: ir.Value, mask: ir.Value | None, c: Carried) -> Carried:
        """The best of each lane, and which lanes had a NaN, with one more vector."""
        x = self._elements(base, mask)
        x = x if mask is None else arith.select(mask, x, c[0])
        nan = [arith.ori(arith.cmpf(arith.CmpFPredicate.UNO, x, x), old) for old in c[1:]]
        return [self.order.better(x, c[0]), *nan]

    def _elements(self, base: ir.Value, mask: ir.Value | None) -> ir.Value:
        """A vector of compared elements."""
        point, indices = self.at(Ramp(base, 1, self._lanes, True), self._lanes, mask)
        values = self.evaluator.evaluate(self.stage, indices, point, ())
        return to_vector(values(self._term), self._lanes)

    def _start(self, best: ir.Value) -> Carried:
        """The initial best of each lane, and which lanes had a NaN."""
        return [splat(best, self._lanes), *[loops.mask(0, self._lanes)] * self.order.finds_nan]

    def _walk(self, row: ShortRow, best: ir.Value) -> Scanned:
        """The best of each lane, of `best` and the elements of a row; whether one is NaN."""
        top, *nan = row.walk(self._lanes, self._single, self._start(best))
        return top, (_any(nan[0]) if nan else None)

    def _scan(self, start: ir.Value, stop: Index, best: ir.Value) -> Scanned:
        """The same for the elements from `start` to `stop`."""
        top, *nan = vector_range(start, stop, self._lanes, self._single, self._start(best))
        return top, (_any(nan[0]) if nan else None)

    def _scan_groups(self, start: ir.Value, stop: Index, best: ir.Value) -> Scanned:
        """As `_scan`, a group at a time; the last group overlaps the one before."""

        def group(base: ir.Value, *c: ir.Value) -> Carried:
            return self._group_of(loops.minimum(base, loops.sub(stop, self._group)), list(c))

        carried = self._start_groups(best)
        return self._joined(loops.for_range(start, stop, self._group, group, carried))

    def _scan_at(self, offsets: Sequence[Index], best: ir.Value) -> Scanned:
        """The same for the groups at some offsets."""
        carried = self._start_groups(best)
        for offset in offsets:
            carried = self._group_of(offset, carried)
        return self._joined(carried)

    def _scan_block(self, start: ir.Value, best: ir.Value) -> Scanned:
        """The same for a whole block."""
        return self._scan_at([loops.add(start, i) for i in range(0, _BLOCK, self._group)], best)

    def _start_groups(self, best: ir.Value) -> Carried:
        top, *nan = self._start(best)
        return [top] * UNROLL + nan

    def _group_of(self, first: Index, carried: Carried) -> Carried:
        """The carried values after one more group."""
        offsets = [loops.value(loops.add(first, i * self._lanes)) for i in range(UNROLL)]
        loaded = [self._elements(offset, None) for offset in offsets]
        tops = [self.order.better(x, top) for x, top in zip(loaded, carried, strict=False)]
        nan = carried[UNROLL:]
        for pair in zip(loaded[::2], loaded[1::2], strict=True) if nan else ():
            nan = [arith.ori(arith.cmpf(arith.CmpFPredicate.UNO, *pair), *nan)]
        return [*tops, *nan]

    def _joined(self, carried: Carried) -> Scanned:
        """The best of all vectors of a group."""
        better = self.order.better
        tops, nan = carried[:UNROLL], carried[UNROLL:]
        top = better(better(tops[0], tops[1]), better(tops[2], tops[3]))
        return top, (_any(nan[0]) if nan else None)

    def _reduce_lanes(self, x: ir.Value) -> ir.Value:
        """The best lane."""
        lanes = self._lanes
        while lanes > 1:
            x = self.order.better(*halves(x, lanes))
            lanes //= 2
        return x

    def _find(self, start: ir.Value, stop: Index, best: ir.Value, has_group: bool) -> ir.Value:
        """The first position of `best`, or of a NaN, in a block.

        The last group overlaps the one before if `has_group`: earlier elements are no better.
        """
        index, word = ir.IndexType.get(), ir.IntegerType.get_signless(self._group)
        search = scf.WhileOp([index, word], [start])
        with ir.InsertionPoint(search.before.blocks.append(index)):
            base = search.before.blocks[0].arguments[0]
            if has_group:
                base = loops.value(loops.minimum(base, loops.sub(stop, self._group)))
            hits = self._hits(base, None if has_group else stop, best)
            missing = arith.cmpi(arith.CmpIPredicate.eq, hits, arith.constant(word, 0))
            scf.ConditionOp(missing, [base, hits])
        with ir.InsertionPoint(search.after.blocks.append(index, word)):
            base = search.after.blocks[0].arguments[0]
            scf.YieldOp([loops.add(base, self._group)])
        base, hits = search.results
        return arith.addi(base, arith.index_castui(index, math.cttz(hits)))

    def _hits(self, base: ir.Value, stop: Index | None, best: ir.Value) -> ir.Value:
        """A bit for each element of a group before `stop` that is `best`, or a NaN."""
        lanes = self._lanes
        offsets = [loops.value(loops.add(base, i * lanes)) for i in range(UNROLL)]
        if stop is None:
            return self._bits([(offset, None) for offset in offsets], best)
        masks = loops.mask(loops.sub(stop, base), self._group)
        parts = [list(range(i * lanes, (i + 1) * lanes)) for i in range(UNROLL)]
        split = [vector.shuffle(masks, masks, part) for part in parts]
        return self._bits(list(zip(offsets, split, strict=True)), best)

    def _find_in_row(self, row: ShortRow, best: ir.Value) -> ir.Value:
        """The first position of `best`, or of a NaN, in a row of up to a group."""
        vectors: list[tuple[ir.Value, ir.Value | None]] = []

        def note(base: ir.Value, mask: ir.Value | None, _: Carried) -> Carried:
            vectors.append((base, mask))
            return []

        row.walk(self._lanes, note, [])
        return arith.index_castui(ir.IndexType.get(), math.cttz(self._bits(vectors, best)))

    def _bits(
        self, vectors: Sequence[tuple[ir.Value, ir.Value | None]], best: ir.Value
    ) -> ir.Value:
        """A bit for each lane of (offset, mask) vectors that is `best`, or a NaN."""
        lanes = self._lanes
        word, part = (ir.IntegerType.get_signless(lanes * n) for n in (UNROLL, 1))
        hits = arith.constant(word, 0)
        for i, (base, mask) in enumerate(vectors):
            hit = self._is_hit(self._elements(base, mask), best)
            hit = hit if mask is None else arith.andi(hit, mask)
            bits = vector.bitcast(ir.VectorType.get([1], part), hit)
            bits = arith.extui(word, vector.extract(bits, [], [0]))
            hits = arith.ori(hits, arith.shli(bits, arith.constant(word, i * lanes)))
        return hits

    def _is_hit(self, x: ir.Value, best: ir.Value) -> ir.Value:
        wanted = splat(best, self._lanes)
        if not isinstance(best.type, ir.FloatType):
            return arith.cmpi(arith.CmpIPredicate.eq, x, wanted)
        hit = arith.cmpf(arith.CmpFPredicate.OEQ, x, wanted)
        if self.order.finds_nan:
            hit = arith.ori(hit, arith.cmpf(arith.CmpFPredicate.UNO, x, x))
        return hit

    def _run_body(self, position: ir.Value, accumulators: Sequence[ir.Value]) -> Carried:
        """The accumulators after the body at one position."""
        point, indices = self.at(Uniform(position), 1, None)
        values = self.evaluator.evaluate(
            self.stage, indices, point, [Uniform(x) for x in accumulators]
        )
        return [scalar(values(value)) for value in yielded(self.stage)]
