"""Loops along the lanes: full vectors, several at a time, and a masked vector for the rest."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from relax_mlir.bindings import arith, ir, scf
from relax_mlir.schedule.build import loops
from relax_mlir.schedule.build.evaluate import Evaluator
from relax_mlir.schedule.build.loops import Index

UNROLL = 4

Carried = list[ir.Value]
LaneBody = Callable[[ir.Value, ir.Value | None, Carried], Carried]


def vector_range(
    start: Index, stop: Index, lanes: int, body: LaneBody,
    carried: Sequence[ir.Value] = (), *, exact: bool = False,
) -> Carried:  # fmt: skip
    """Emits full vectors from start to stop, then a masked vector for the rest.

    `body(base, mask, carried)` returns the next carried values. `exact` says that the lanes divide
    the extent.
    """
    values = list(carried)
    extent = loops.sub(stop, start)
    rest = loops.mod(extent, lanes)
    end = loops.sub(stop, rest)
    if not (isinstance(extent, int) and extent < lanes):
        values = loops.for_range(start, end, lanes, lambda i, *c: body(i, None, list(c)), values)
    return values if exact else masked_rest(end, rest, lanes, body, values)


def masked_rest(end: Index, rest: Index, lanes: int, body: LaneBody, carried: Carried) -> Carried:
    """Emits a masked vector for the `rest` of an extent after its full vectors, if there is one."""
    if lanes == 1 or (isinstance(rest, int) and rest == 0):
        return carried

    def tail() -> Carried:
        return body(loops.value(end), loops.mask(rest, lanes), carried)

    if isinstance(rest, int):
        return tail()
    some = arith.cmpi(arith.CmpIPredicate.ne, rest, loops.value(0))
    branch = scf.IfOp(some, [x.type for x in carried], has_else=bool(carried))
    with ir.InsertionPoint(branch.then_block):
        scf.YieldOp(tail())
    if carried:
        with ir.InsertionPoint(branch.else_block):
            scf.YieldOp(carried)
    return list(branch.results)


def unrolled(
    evaluator: Evaluator, start: Index, stop: Index, lanes: int,
    body: Callable[[ir.Value, int, Carried], Carried], carried: Sequence[ir.Value] = (),
) -> Carried:  # fmt: skip
    """A loop over groups of `UNROLL` vectors; `body(base, index in the group, carried)`.

    Each call returns its own part of the next carried values.
    """

    def step(base: ir.Value, *values: ir.Value) -> Carried:
        results: Carried = []
        with evaluator.stores_at_end():
            for index in range(UNROLL):
                at = loops.value(loops.add(base, index * lanes))
                results += body(at, index, list(values))
        return results

    return loops.for_range(start, stop, lanes * UNROLL, step, carried)


def paired(
    evaluator: Evaluator, start: Index, stop: Index, lanes: int,
    body: Callable[[ir.Value, int, Carried], Carried], carried: Sequence[ir.Value],
) -> Carried:  # fmt: skip
    """A loop over groups of two vectors; the second one gets the carried values of the first."""

    def step(base: ir.Value, *values: ir.Value) -> Carried:
        results = list(values)
        with evaluator.stores_at_end():
            for index in range(2):
                at = loops.value(loops.add(base, index * lanes))
                results = body(at, index, results)
        return results

    return loops.for_range(start, stop, lanes * 2, step, carried)


@dataclass(frozen=True)
class ShortRow:
    """A row of `vectors` vectors; the last one has `rest` lanes, all if that is None."""

    vectors: int
    rest: Index | None

    @staticmethod
    def of(extent: int, lanes: int) -> "ShortRow":
        """The row of a constant extent, which is not zero."""
        return ShortRow(-(-extent // lanes), extent % lanes or None)

    def walk(self, lanes: int, body: LaneBody, carried: Carried) -> Carried:
        """Emits `body(base, mask, carried)` for each vector."""
        for index in range(self.vectors):
            is_last = index == self.vectors - 1
            keep = loops.mask(self.rest, lanes) if is_last and self.rest is not None else None
            carried = body(loops.value(index * lanes), keep, carried)
        return carried
