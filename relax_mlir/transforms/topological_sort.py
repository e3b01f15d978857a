"""Brings operators into another order that their operands allow.

    relax-topological-sort{order=depth-first direction=from-outputs}

`from-outputs`, `depth-first` computes a value right before the first op that needs it, what that
one needs in front of it: few values live at a time. `from-inputs` goes the other way: an op runs as
soon as all that it needs is there, next the ops that have just become ready (`depth-first`), or
those that have waited longest (`breadth-first`).

Only pure ops move, between those that are not (casts, requirements, calls of functions that hold
such): a call is refused by the same check as before. Ops with regions move as a whole, and what
they hold is ordered likewise.

Needs: a verified module. Leaves: the same ops.
Source: TVM `TopologicalSort`.
"""

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from relax_mlir.analysis.dataflow import used_values
from relax_mlir.analysis.functions import graph_functions
from relax_mlir.analysis.purity import Purity
from relax_mlir.bindings import ir
from relax_mlir.passes import Pass

ORDERS = ("depth-first", "breadth-first")
DIRECTIONS = ("from-inputs", "from-outputs")


@dataclass(frozen=True)
class TopologicalSort(Pass):
    """Brings operators into another order that their operands allow."""

    needs_verified: ClassVar[bool] = True

    order: str = "depth-first"
    direction: str = "from-inputs"

    def __post_init__(self) -> None:
        for value, known in ((self.order, ORDERS), (self.direction, DIRECTIONS)):
            if value not in known:
                raise ValueError(f"'{value}' is none of {' and '.join(known)}")

    def run(self, op: ir.Operation) -> None:
        """Orders the blocks of every graph function."""
        purity = Purity.of(op)
        for function in graph_functions(op):
            self._block(function.entry_block, purity)

    def _block(self, block: ir.Block, purity: Purity) -> None:
        for op in block.operations:
            for region in op.operation.regions:
                for inner in region.blocks:
                    self._block(inner, purity)
        for run in pure_runs(block, purity):
            *_, last = run
            after = block.operations[[*map(_operation, block.operations)].index(last) + 1]
            for op in self._ordered(run):
                op.move_before(after.operation)

    def _ordered(self, ops: Sequence[ir.Operation]) -> list[ir.Operation]:
        needs = _needs(ops)
        if self.direction == "from-inputs":
            return _from_inputs(needs, self.order == "depth-first")
        if self.order == "depth-first":
            return _from_outputs(needs)
        users: dict[ir.Operation, list[ir.Operation]] = {op: [] for op in reversed(ops)}
        for op in reversed(ops):
            for needed in needs[op]:
                users[needed].append(op)
        return _from_inputs(users, depth_first=False)[::-1]


def pure_runs(block: ir.Block, purity: Purity) -> list[list[ir.Operation]]:
    """The longest runs of pure ops in a block, its terminator left out."""
    runs: list[list[ir.Operation]] = [[]]
    for op in list(block.operations)[:-1]:
        if purity.is_pure(op):
            runs[-1].append(op.operation)
        else:
            runs.append([])
    return [run for run in runs if run]


def _operation(op: ir.OpView) -> ir.Operation:
    return op.operation


def _needs(ops: Sequence[ir.Operation]) -> dict[ir.Operation, list[ir.Operation]]:
    """Of each op those of the others whose results it uses, nested uses included, in order."""
    inside = set(ops)

    def needed(op: ir.Operation) -> Iterator[ir.Operation]:
        for value in used_values(op.opview):
            if not isinstance(value.owner, ir.Block) and value.owner.operation in inside:
                yield value.owner.operation

    return {op: list(dict.fromkeys(needed(op))) for op in ops}


def _from_inputs(
    needs: dict[ir.Operation, list[ir.Operation]], depth_first: bool
) -> list[ir.Operation]:
    """Each op once all that it needs is done: the newest ready one next, or the oldest."""
    users: dict[ir.Operation, list[ir.Operation]] = {op: [] for op in needs}
    for op, needed in needs.items():
        for each in needed:
            users[each].append(op)
    missing = {op: len(needed) for op, needed in needs.items()}
    ready = deque(op for op, count in missing.items() if not count)
    if depth_first:
        ready.reverse()
    done = []
    while ready:
        op = ready.pop() if depth_first else ready.popleft()
        done.append(op)
        became = []
        for user in users[op]:
            missing[user] -= 1
            if not missing[user]:
                became.append(user)
        ready.extend(reversed(became) if depth_first else became)
    return done


def _from_outputs(needs: dict[ir.Operation, list[ir.Operation]]) -> list[ir.Operation]:
    """Each op after those that it needs, beginning with the ops that no other one needs."""
    inner = {needed for each in needs.values() for needed in each}
    done: dict[ir.Operation, None] = {}
    for last in needs:
        stack = [] if last in inner else [last]
        while stack:
            missing = [op for op in needs[stack[-1]] if op not in done]
            if missing:
                stack.append(missing[0])
            else:
                done.setdefault(stack.pop())
    return list(done)
