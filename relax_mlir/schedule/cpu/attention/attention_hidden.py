"""Values under a causal mask that are infinite or NaN.

Products of a block use all of its keys for all of its rows: a masked key has a weight of 0. That
masks finite values, but 0 times infinity or NaN is NaN. So if a block has masked keys, its values
are tested. If they are not all finite, which is rare, each row is summed over the keys that it
attends to.
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
    """Adds a block of `count` values from `start` on to the sums, by `add_all` if that is right.

    Each row of sums is first multiplied by its factor.
    """
    if not rows.problem.causal:
        add_all()
        return
    hides = less(_limit(rows, 0), add(start, count))
    assert isinstance(hides, ir.Value), "a limit is known at run time"
    branch = scf.IfOp(hides, [hides.type], has_else=True)
    with ir.InsertionPoint(branch.then_block):
        scf.YieldOp([_are_finite(rows, start, count)])
    with ir.InsertionPoint(branch.else_block):
        scf.YieldOp([arith.constant(hides.type, 1)])
    if_else(branch.results[0], add_all, lambda: _add_seen(rows, start, count, factors, weight))


def _limit(rows: RowBlock, row: Index) -> ir.Value:
    """How many keys a row attends to, at least as many as earlier rows."""
    return arith.index_cast(ir.IndexType.get(), memref.load(rows.state.limit, [value(row)]))


def _are_finite(rows: RowBlock, start: Index, count: Index) -> ir.Value:
    """Whether all values of a block are finite: then a sum of them times 0 is 0."""
    p, values = rows.problem, rows.values_from(start)
    f32, step = ir.F32Type.get(), float_step(p.lanes, p.pairs)
    width = step.group * p.lanes
    zeros = splat(0.0, width, ir.BF16Type.get() if p.pairs else f32)

    def one(key: ir.Value, total: ir.Value) -> list[ir.Value]:
        begin = values.at(key).offset
        for column in range(0, p.width, width):
            at = add(begin, column)
            loaded = load(values.buffer, at, width) if p.pairs else rows.values.load(at, width)
            total = step(loaded, zeros, total)
        return [total]

    (total,) = for_range(0, count, 1, one, [splat(0.0, p.lanes, f32)])
    ordered = arith.cmpf(arith.CmpFPredicate.ORD, total, total)
    kind = ir.VectorType(ordered.type).element_type
    return vector.reduction(kind, vector.CombiningKind.AND, ordered)


def _add_seen(
    rows: RowBlock, start: Index, count: Index, factors: ir.Value, weight: Weight
) -> None:
    """Adds, row by row, the values of the keys that it attends to."""
    p, sums, values = rows.problem, rows.state.sums, rows.values_from(start)

    def row(r: ir.Value) -> None:
        factor = broadcast(memref.load(factors, [r]), p.lanes)
        offsets = [add(mul(r, p.width), column) for column in p.columns]
        initial = [arith.mulf(load(sums, offset, p.lanes), factor) for offset in offsets]
        seen = minimum(count, sub(maximum(_limit(rows, r), start), start))

        def one(key: ir.Value, *totals: ir.Value) -> list[ir.Value]:
            begin, x = values.at(key).offset, broadcast(weight(key, r), p.lanes)
            loaded = [rows.values.load(add(begin, column), p.lanes) for column in p.columns]
            return [vector.fma(x, y, total) for y, total in zip(loaded, totals, strict=True)]

        for offset, x in zip(offsets, for_range(0, seen, 1, one, initial), strict=True):
            store(x, sums, offset)

    for_range(0, rows.num_rows, 1, row)
