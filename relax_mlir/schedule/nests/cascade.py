"""Sums of many floats, block by block: about as exact as adding pairs.

    for i: %sum = %sum + x[i]      ->      for each block: %total, %lost = %total + %sum, exactly
                                             %sum = -0.0; for i in the block: %sum = %sum + x[i]
                                           %total + (%sum + %lost)

A sum of one block is computed as without blocks. What else a loop carries passes through.
"""

from collections.abc import Callable, Sequence

from relax_mlir.bindings import arith, ir, scf
from relax_mlir.schedule.build import loops
from relax_mlir.schedule.build.loops import Index

BLOCK = 32
"""Additions in a row, of each accumulator."""
ROWS = 128
"""The same of a loop that has one iteration for each addition: shorter ones would cost time."""
OUTER_BLOCK = 8
"""The same of a loop around others, which add in a row too."""

Carried = list[ir.Value]
Range = Callable[[Index, Index, Carried], Carried]


def is_sum(op: ir.OpView) -> bool:
    """Whether an op adds floats that are wide enough for what is lost to show."""
    kind = op.results[0].type
    return isinstance(op, arith.AddFOp) and isinstance(kind, ir.F32Type | ir.F64Type)


def in_blocks(
    start: Index, stop: Index, block: int, sums: Sequence[bool], carried: Carried, body: Range
) -> Carried:
    """What `body(start, stop, carried)` returns, which is a loop that adds to some carried values.

    `sums` says which of them are sums of floats. The body is called once, for a block.
    """
    extent = loops.sub(stop, start)
    if not any(sums) or (isinstance(extent, int) and extent <= block):
        return body(start, stop, carried)
    zeros = [_splat(x.type, -0.0) for x in _chosen(carried, sums)]
    count, width = len(carried), len(zeros)

    def step(first: ir.Value, *state: ir.Value) -> Carried:
        held, totals, lost = state[:count], state[count : count + width], state[count + width :]
        parts = _chosen(held, sums)
        found = _either(
            loops.less(start, first),
            lambda: [*zeros, *_added(totals, lost, parts)],
            [*parts, *totals, *lost],
        )
        end = loops.minimum(loops.add(first, block), stop)
        return [*body(first, end, _replaced(held, sums, found)), *found[width:]]

    state = loops.for_range(start, stop, block, step, [*carried, *zeros, *zeros])
    held, totals, lost = state[:count], state[count : count + width], state[count + width :]
    parts = _chosen(held, sums)
    whole = _either(loops.less(block, extent), lambda: _whole(totals, lost, parts), parts)
    return _replaced(held, sums, whole)


def _chosen(values: Sequence[ir.Value], sums: Sequence[bool]) -> Carried:
    """Those of the values that are sums."""
    return [x for x, chosen in zip(values, sums, strict=True) if chosen]


def _replaced(values: Sequence[ir.Value], sums: Sequence[bool], new: Carried) -> Carried:
    """The values with others in place of the sums."""
    found = iter(new)
    return [next(found) if chosen else x for x, chosen in zip(values, sums, strict=True)]


def _added(totals: Sequence[ir.Value], lost: Sequence[ir.Value], parts: Carried) -> Carried:
    """Totals with a part added to each, and with what that rounded away the lost."""
    sums, errors = [], []
    for total, error, part in zip(totals, lost, parts, strict=True):
        new = arith.addf(total, part)
        # Exact unless the part is the greater one, and then as exact as the part is.
        rounded = arith.subf(part, arith.subf(new, total))
        sums.append(new)
        errors.append(arith.addf(error, rounded))
    return [*sums, *errors]


def _whole(totals: Sequence[ir.Value], lost: Sequence[ir.Value], parts: Carried) -> Carried:
    """Each total with the last part and what was lost; an infinity has lost no number."""
    found = []
    for total, error, part in zip(totals, lost, parts, strict=True):
        is_number = arith.cmpf(arith.CmpFPredicate.ORD, error, error)
        rest = arith.select(is_number, arith.addf(part, error), part)
        found.append(arith.addf(total, rest))
    return found


def _either(condition: bool | ir.Value, then: Callable[[], Carried], otherwise: Carried) -> Carried:
    """What `then` emits where the condition holds, else values that there are."""
    if isinstance(condition, bool):
        return then() if condition else otherwise
    branch = scf.IfOp(condition, [x.type for x in otherwise], has_else=True)
    with ir.InsertionPoint(branch.then_block):
        scf.YieldOp(then())
    with ir.InsertionPoint(branch.else_block):
        scf.YieldOp(otherwise)
    return list(branch.results)


def _splat(kind: ir.Type, number: float) -> ir.Value:
    if not isinstance(kind, ir.VectorType):
        return arith.constant(kind, number)
    return loops.splat(number, ir.VectorType(kind).shape[0], ir.VectorType(kind).element_type)
