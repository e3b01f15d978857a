"""Loops along the lanes: full vectors, several at a time, and one masked vector for the rest."""

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
    """Full vectors from start to stop, then one masked vector for the rest.

    `body(base, mask, carried)` returns the next carried values. `exact` says that the extent
    divides by the lanes.
    """
    found = list(carried)
    extent = loops.sub(stop, start)
    rest = loops.mod(extent, lanes)
    end = loops.sub(stop, rest)
    if not (isinstance(extent, int) and extent < lanes):
        found = loops.for_range(start, end, lanes, lambda i, *c: body(i, None, list(c)), found)
    return found if exact else masked_rest(end, rest, lanes, body, found)


def masked_rest(end: Index, rest: Index, lanes: int, body: LaneBody, found: Carried) -> Carried:
    """One masked vector for the `rest` of an extent behind its full vectors, if there is one."""
    if lanes == 1 or (isinstance(rest, int) and rest == 0):
        return found

    def tail() -> Carried:
        return body(loops.value(end), loops.mask(rest, lanes), found)

    if isinstance(rest, int):
        return tail()
    some = arith.cmpi(arith.CmpIPredicate.ne, rest, loops.value(0))
    branch = scf.IfOp(some, [x.type for x in found], has_else=bool(found))
    with ir.InsertionPoint(branch.then_block):
        scf.YieldOp(tail())
    if found:
        with ir.InsertionPoint(branch.else_block):
            scf.YieldOp(found)
    return list(branch.results)


def unrolled(
    evaluator: Evaluator, start: Index, stop: Index, lanes: int,
    body: Callable[[ir.Value, int, Carried], Carried], carried: Sequence[ir.Value] = (),
) -> Carried:  # fmt: skip
    """A loop over groups of `UNROLL` vectors; `body(base, number in the group, carried)`.

    Each returns its own part of the next carried values.
    """

    def step(base: ir.Value, *held: ir.Value) -> Carried:
        found: Carried = []
        with evaluator.stores_at_end():
            for number in range(UNROLL):
                at = loops.value(loops.add(base, number * lanes))
                found += body(at, number, list(held))
        return found

    return loops.for_range(start, stop, lanes * UNROLL, step, carried)


def paired(
    evaluator: Evaluator, start: Index, stop: Index, lanes: int,
    body: Callable[[ir.Value, int, Carried], Carried], carried: Sequence[ir.Value],
) -> Carried:  # fmt: skip
    """A loop over groups of two vectors, each of which carries on what the one before returned."""

    def step(base: ir.Value, *held: ir.Value) -> Carried:
        found = list(held)
        with evaluator.stores_at_end():
            for number in range(2):
                at = loops.value(loops.add(base, number * lanes))
                found = body(at, number, found)
        return found

    return loops.for_range(start, stop, lanes * 2, step, carried)


@dataclass(frozen=True)
class ShortRow:
    """A row of `vectors` vectors: whole ones, or the last one has only `rest` lanes."""

    vectors: int
    rest: Index | None

    @staticmethod
    def of(extent: int, lanes: int) -> "ShortRow":
        """The row of a known extent, which is not zero."""
        return ShortRow(-(-extent // lanes), extent % lanes or None)

    def walk(self, lanes: int, body: LaneBody, carried: Carried) -> Carried:
        """Emits `body(base, mask, carried)` for one vector after the other."""
        for number in range(self.vectors):
            is_last = number == self.vectors - 1
            keep = loops.mask(self.rest, lanes) if is_last and self.rest is not None else None
            carried = body(loops.value(number * lanes), keep, carried)
        return carried
