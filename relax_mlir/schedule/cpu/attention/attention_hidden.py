"""Values that some rows of a block must not see, where they are infinite or NaN.

Products of a block take all of its keys for all of its rows: a key that a row does not see has a
weight of 0. That hides any number, but not a NaN. So where a block has keys that are hidden from
some rows, its values are looked at. If they are not all finite, which is rare, rows are summed one
by one, each over the keys that it sees.
"""

from collections.abc import Callable

from relax_mlir.bindings import arith, ir, memref, scf, vector
from relax_mlir.schedule.build.loops import (
    Index,
    add,
    broadcast,
    for_range,
    if_else,
    less,
    load,
    maximum,
    minimum,
    mul,
    splat,
    store,
    sub,
    value,
)
from relax_mlir.schedule.cpu.isa.multiply_add import float_step

from .attention_block import RowBlock

Weight = Callable[[Index, Index], ir.Value]
"""The weight of a key of the block for a row, an f32."""


def add_values(
    rows: RowBlock,
    start: Index,
    count: Index,
    factors: ir.Value,
    weight: Weight,
    add_all: Callable[[], None],
) -> None:
    """Adds a block of `count` values from `start` on to the sums, by `add_all` where that is right.

    Sums are multiplied by a factor for each row before.
    """
    if not rows.problem.causal:
        add_all()
        return
    hides = less(_limit(rows, 0), add(start, count))
    assert isinstance(hides, ir.Value), "a limit is known when the kernel runs"
    branch = scf.IfOp(hides, [hides.type], has_else=True)
    with ir.InsertionPoint(branch.then_block):
        scf.YieldOp([_are_finite(rows, start, count)])
    with ir.InsertionPoint(branch.else_block):
        scf.YieldOp([arith.constant(hides.type, 1)])
    if_else(branch.results[0], add_all, lambda: _add_seen(rows, start, count, factors, weight))


def _limit(rows: RowBlock, row: Index) -> ir.Value:
    """How many keys a row sees; no fewer than the rows before it."""
    return arith.index_cast(ir.IndexType.get(), memref.load(rows.state.limit, [value(row)]))


def _are_finite(rows: RowBlock, start: Index, count: Index) -> ir.Value:
    """Whether all values of a block are: a sum of them times 0 is 0 then."""
    p, values = rows.problem, rows.values_from(start)
    f32, step = ir.F32Type.get(), float_step(p.lanes, p.pairs)
    width = step.group * p.lanes
    zeros = splat(0.0, width, ir.BF16Type.get() if p.pairs else f32)

    def one(key: ir.Value, total: ir.Value) -> list[ir.Value]:
        begin = values.at(key).offset
        for column in range(0, p.width, width):
            at = add(begin, column)
            found = load(values.buffer, at, width) if p.pairs else rows.values.load(at, width)
            total = step(found, zeros, total)
        return [total]

    (total,) = for_range(0, count, 1, one, [splat(0.0, p.lanes, f32)])
    ordered = arith.cmpf(arith.CmpFPredicate.ORD, total, total)
    kind = ir.VectorType(ordered.type).element_type
    return vector.reduction(kind, vector.CombiningKind.AND, ordered)


def _add_seen(
    rows: RowBlock, start: Index, count: Index, factors: ir.Value, weight: Weight
) -> None:
    """Row by row, the values of the keys that it sees."""
    p, sums, values = rows.problem, rows.state.sums, rows.values_from(start)

    def row(r: ir.Value) -> None:
        factor = broadcast(memref.load(factors, [r]), p.lanes)
        places = [add(mul(r, p.width), column) for column in p.columns]
        held = [arith.mulf(load(sums, place, p.lanes), factor) for place in places]
        seen = minimum(count, sub(maximum(_limit(rows, r), start), start))

        def one(key: ir.Value, *held: ir.Value) -> list[ir.Value]:
            begin, x = values.at(key).offset, broadcast(weight(key, r), p.lanes)
            loaded = [rows.values.load(add(begin, column), p.lanes) for column in p.columns]
            return [vector.fma(x, y, total) for y, total in zip(loaded, held, strict=True)]

        for place, x in zip(places, for_range(0, seen, 1, one, held), strict=True):
            store(x, sums, place)

    for_range(0, rows.held, 1, row)
