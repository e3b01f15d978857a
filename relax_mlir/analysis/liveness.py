"""Live ranges of tensors over the regions of a graph function.

Ops and blocks are numbered in program order; the ops nested in an op come after it and before the
next one. A loop may iterate: a value that it uses and does not define is live throughout.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from relax_mlir.bindings import func, ir, scf

from .functions import inout_arguments
from .memory import Memory, is_tensor


@dataclass(frozen=True)
class Lifetime:
    """The positions between which memory is live, both included."""

    begin: int
    end: int


class Liveness:
    """Lifetimes of the memory of a function, by its roots.

    Make a new one after a change of the IR.
    """

    def __init__(self, function: func.FuncOp, memory: Memory) -> None:
        self.memory, self._function = memory, function
        self._first: dict[ir.Operation | ir.Block, int] = {}
        self._last: dict[ir.Operation, int] = {}
        self._sharing: dict[ir.Value, list[ir.Value]] = {}
        self._ends: dict[ir.Value, int] = {}
        self._assign_positions(function.operation)

    def _assign_positions(self, op: ir.Operation) -> None:
        self._first[op] = self._last[op] = len(self._first)
        for region in op.regions:
            for block in region.blocks:
                self._first[block] = len(self._first)
                self._note(block.arguments)
                for inner in block.operations:
                    self._assign_positions(inner.operation)
        self._last[op] = len(self._first) - 1
        self._note(op.results)

    def _note(self, values: Iterable[ir.Value]) -> None:
        for value in filter(is_tensor, values):
            for root in self.memory.roots(value):
                self._sharing.setdefault(root, []).append(value)

    @cached_property
    def writable(self) -> frozenset[ir.Value]:
        """The arguments that the function may write to."""
        arguments = self._function.arguments
        return frozenset(arguments[index] for index in inout_arguments(self._function).values())

    def position(self, op: ir.OpView) -> int:
        """The position of an op in program order."""
        return self._first[op.operation]

    def sharing(self, root: ir.Value) -> list[ir.Value]:
        """The values that may be the memory of a root, itself included, in program order."""
        return self._sharing[root]

    def lifetime(self, root: ir.Value) -> Lifetime:
        """From the first definition to the last use of a value that may be the root's memory."""
        begin = self._defined(root)
        end = begin
        for value in self.sharing(root):
            begin = min(begin, self._defined(value))
            end = max(end, self._last_use(value))
        return Lifetime(begin, end)

    def _last_use(self, value: ir.Value) -> int:
        """Where the last use of a value ends."""
        if value not in self._ends:
            home = _home(value)
            ends = [self._end_of_use(use.owner.operation, home) for use in value.uses]
            self._ends[value] = max(ends, default=0)
        return self._ends[value]

    def _defined(self, value: ir.Value) -> int:
        if isinstance(value, ir.BlockArgument):
            return self._first[value.owner]
        return self._last[value.owner.operation]

    def _end_of_use(self, user: ir.Operation, home: ir.Block) -> int:
        """Where a use ends of a value that `home` defines: after the loops around the use."""
        end = self._first[user]
        while user.block != home:
            user = user.parent.operation
            if not _runs_once(user):
                end = self._last[user]
        return end

    def outlives_loop(self, root: ir.Value, op: ir.OpView) -> bool:
        """Whether memory is live after a loop that encloses the op."""
        end, ancestor = self.lifetime(root).end, _parent(op.operation)
        while ancestor is not None:
            if not _runs_once(ancestor) and self._last[ancestor] < end:
                return True
            ancestor = _parent(ancestor)
        return False

    def used_after(self, value: ir.Value, op: ir.OpView) -> ir.OpView | None:
        """A use after `op` of a tensor that was defined before it; None if there is none.

        The op's own reads do not count, unless a loop repeats them.
        """
        if self._defined(value) >= self.position(op):
            return None
        home, position = _home(value), op.operation
        if not _is_in(position, home):
            return None  # entering `home` again defines the value anew
        if self._defined(value) >= self._first[_member(position, home)]:
            return None
        uses = (use.owner for use in value.uses)
        return next((use for use in uses if self._follows(use.operation, position, home)), None)

    def _follows(self, user: ir.Operation, op: ir.Operation, block: ir.Block) -> bool:
        """Whether `user` may run after `op` in the same execution of `block`, which has both."""
        there, here = _member(user, block), _member(op, block)
        if there != here:
            return self._first[there] > self._first[here]
        if here in (op, user):
            return False
        if not _runs_once(here):
            return True
        own, others = ([b for b in _blocks(here) if _is_in(o, b)] for o in (op, user))
        return own == others and self._follows(user, op, own[0])


def _runs_once(op: ir.Operation) -> bool:
    """Whether each block in an op runs at most once when the op does."""
    branches = isinstance(op.opview, scf.IfOp | scf.IndexSwitchOp | scf.ExecuteRegionOp)
    return branches and all(len(region.blocks) <= 1 for region in op.regions)


def _home(value: ir.Value) -> ir.Block:
    """The block that defines a value."""
    return value.owner if isinstance(value, ir.BlockArgument) else value.owner.operation.block


def _blocks(op: ir.Operation) -> list[ir.Block]:
    return [block for region in op.regions for block in region.blocks]


def _is_in(op: ir.Operation, block: ir.Block) -> bool:
    """Whether an op is in a block, at any depth."""
    current: ir.Operation | None = op
    while current is not None and current.block != block:
        current = _parent(current)
    return current is not None


def _member(op: ir.Operation, block: ir.Block) -> ir.Operation:
    """The op of the block that is, or contains, the given one."""
    while op.block != block:
        op = op.parent.operation
    return op


def _parent(op: ir.Operation) -> ir.Operation | None:
    parent = op.parent
    return None if parent is None or isinstance(parent.opview, func.FuncOp) else parent.operation
