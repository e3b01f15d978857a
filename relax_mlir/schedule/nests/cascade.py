"""Sums of many floats, block by block: about as exact as pairwise summation.

    for i: %sum = %sum + x[i]      ->      for each block: %total, %lost = %total + %sum, exactly
                                             %sum = -0.0; for i in the block: %sum = %sum + x[i]
                                           %total + (%sum + %lost)

A sum of one block is computed as without blocks. Other carried values pass through.
"""

from collections.abc import Callable, Sequence

from relax_mlir.bindings import arith, ir, scf
from relax_mlir.schedule.build import loops
from relax_mlir.schedule.build.loops import Index

BLOCK = 32
"""Successive additions to an accumulator."""
ROWS = 128
"""The same in a loop with one addition an iteration, where shorter blocks would cost time."""
OUTER_BLOCK = 8
"""The same in a loop around others, which are divided into blocks too."""

Carried = list[ir.Value]
Range = Callable[[Index, Index, Carried], Carried]


def is_sum(op: ir.OpView) -> bool:
    """Whether an op adds floats of a type whose rounding errors are compensated."""
    kind = op.results[0].type
    return isinstance(op, arith.AddFOp) and isinstance(kind, ir.F32Type | ir.F64Type)


def in_blocks(
    start: Index, stop: Index, block: int, sums: Sequence[bool], carried: Carried, body: Range
) -> Carried:
    """What `body(start, stop, carried)` returns, a loop that adds to some of the carried values.

    `sums` says which of them are sums of floats. `body` is called once, for a block.
    """
    extent = loops.sub(stop, start)
    if not any(sums) or (isinstance(extent, int) and extent <= block):
        return body(start, stop, carried)
    zeros = [_splat(x.type, -0.0) for x in _sums_of(carried, sums)]
    count, width = len(carried), len(zeros)

    def step(first: ir.Value, *state: ir.Value) -> Carried:
        values, totals, lost = state[:count], state[count : count + width], state[count + width :]
        parts = _sums_of(values, sums)
        result = _branch(
            loops.less(start, first),
            lambda: [*zeros, *_added(totals, lost, parts)],
            [*parts, *totals, *lost],
        )
        end = loops.minimum(loops.add(first, block), stop)
        return [*body(first, end, _replaced(values, sums, result)), *result[width:]]

    state = loops.for_range(start, stop, block, step, [*carried, *zeros, *zeros])
    values, totals, lost = state[:count], state[count : count + width], state[count + width :]
    parts = _sums_of(values, sums)
    whole = _branch(loops.less(block, extent), lambda: _final(totals, lost, parts), parts)
    return _replaced(values, sums, whole)


def _sums_of(values: Sequence[ir.Value], sums: Sequence[bool]) -> Carried:
    """The values that are sums."""
    return [x for x, is_total in zip(values, sums, strict=True) if is_total]


def _replaced(values: Sequence[ir.Value], sums: Sequence[bool], new: Carried) -> Carried:
    """The values with new sums."""
    replacements = iter(new)
    return [next(replacements) if is_total else x for x, is_total in zip(values, sums, strict=True)]


def _added(totals: Sequence[ir.Value], lost: Sequence[ir.Value], parts: Carried) -> Carried:
    """Totals plus a part each, then the accumulated rounding errors."""
    sums, errors = [], []
    for total, error, part in zip(totals, lost, parts, strict=True):
        new = arith.addf(total, part)
        # Exact unless the part is greater than the total, and then as exact as the part.
        rounded = arith.subf(part, arith.subf(new, total))
        sums.append(new)
        errors.append(arith.addf(error, rounded))
    return [*sums, *errors]


def _final(totals: Sequence[ir.Value], lost: Sequence[ir.Value], parts: Carried) -> Carried:
    """Each total plus the last part and the errors, which are NaN for infinite totals."""
    result = []
    for total, error, part in zip(totals, lost, parts, strict=True):
        is_number = arith.cmpf(arith.CmpFPredicate.ORD, error, error)
        rest = arith.select(is_number, arith.addf(part, error), part)
        result.append(arith.addf(total, rest))
    return result


def _branch(condition: bool | ir.Value, then: Callable[[], Carried], otherwise: Carried) -> Carried:
    """A branch: what `then` emits if the condition holds, else the given values."""
    if isinstance(condition, bool):
        return then() if condition else otherwise
    branch = scf.IfOp(condition, [x.type for x in otherwise], has_else=True)
    with ir.InsertionPoint(branch.then_block):
        scf.YieldOp(then())
    with ir.InsertionPoint(branch.else_block):
        scf.YieldOp(otherwise)
    return list(branch.results)


def _splat(kind: ir.Type, x: float) -> ir.Value:
    if not isinstance(kind, ir.VectorType):
        return arith.constant(kind, x)
    return loops.splat(x, ir.VectorType(kind).shape[0], ir.VectorType(kind).element_type)
