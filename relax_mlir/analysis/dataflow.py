"""The calls of tensor programs in a block as a graph: its uses and post-dominators."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from relax_mlir.bindings import ir
from relax_mlir.dialects.graph import (
    CallLibraryInplaceOp,
    CallTirInplaceOp,
    CallTirOp,
    InplaceCall,
)
from relax_mlir.dialects.tir import PrimFunc
from relax_mlir.rewriting import walk_ops

from .memory import RESHAPE, Memory

Call = CallTirOp | CallTirInplaceOp


@dataclass(eq=False)
class Node:
    """A call: its position in the block, its callee, and the calls that use its results.

    `escapes` says that something other than a call of a tensor program uses a result.
    """

    call: Call
    position: int
    kernel: PrimFunc
    ins: list[ir.Value]
    outs: list[ir.Value]
    users: list["Node"] = field(default_factory=list)
    escapes: bool = False
    inplace: frozenset[int] = frozenset()

    @property
    def is_reshape(self) -> bool:
        """Whether the call only renames dims, so that it can be a view."""
        return RESHAPE in self.kernel.op.attributes

    @cached_property
    def pattern(self) -> str | None:
        """Compute pattern of the callee."""
        return self.kernel.pattern

    @property
    def reads(self) -> list[ir.Value]:
        """Operands that are not overwritten."""
        return [value for i, value in enumerate(self.ins) if i not in self.inplace]


@dataclass(eq=False)
class Dataflow:
    """The calls of one block in program order; `producer` says which call a value is from."""

    nodes: list[Node] = field(default_factory=list)
    producer: dict[ir.Value, Node] = field(default_factory=dict)
    _updates: dict[ir.Value, list[int]] = field(default_factory=dict)
    _memory: Memory = field(default_factory=lambda: Memory({}))

    @staticmethod
    def of(block: ir.Block, kernels: Mapping[str, PrimFunc]) -> "Dataflow":
        """Reads a block; calls of other functions than `kernels` count as unknown users."""
        graph = Dataflow()
        graph._memory = Memory({name: kernel.op for name, kernel in kernels.items()})
        for position, op in enumerate(block.operations):
            kernel = kernels.get(op.callee_name) if isinstance(op, Call) else None
            if kernel is None:
                for value in used_values(op):
                    if value in graph.producer:
                        graph.producer[value].escapes = True
            else:
                graph._add_call(op, position, kernel)
            updates: list[InplaceCall] = walk_ops(op, CallTirInplaceOp, CallLibraryInplaceOp)
            for update in updates:
                graph._note_update(update, position)
        return graph

    def _add_call(self, op: Call, position: int, kernel: PrimFunc) -> None:
        node = Node(op, position, kernel, op.ins, op.outs)
        node.inplace = frozenset(self._memory.updated(op).values())
        for value in node.ins:
            user_of = self.producer.get(value)
            if user_of is not None and node not in user_of.users:
                user_of.users.append(node)
        self.producer.update(dict.fromkeys(node.outs, node))
        self.nodes.append(node)

    def _note_update(self, op: InplaceCall, position: int) -> None:
        for value in self._memory.effects(op).writes:
            for root in self._memory.roots(value):
                self._updates.setdefault(root, []).append(position)

    def overwritten(self, value: ir.Value, begin: int, end: int) -> bool:
        """Whether a call after position `begin`, up to `end`, writes into the value's memory."""
        updates = (self._updates.get(root, ()) for root in self._memory.roots(value))
        return any(begin < position <= end for positions in updates for position in positions)

    def post_dominators(self) -> dict[Node, Node | None]:
        """The immediate post-dominator of each call; None if there is none in the block."""
        dominators: dict[Node, Node | None] = {}
        depth: dict[Node | None, int] = {None: 0}
        for node in reversed(self.nodes):
            meet: Node | None = None
            if node.users and not node.escapes:
                meet = node.users[0]
                for user in node.users[1:]:
                    meet = _meet(meet, user, dominators, depth)
            dominators[node] = meet
            depth[node] = depth[meet] + 1
        return dominators


def _meet(
    a: Node | None, b: Node | None, up: Mapping[Node, Node | None], depth: Mapping[Node | None, int]
) -> Node | None:
    while a is not b:
        if a is not None and depth[a] >= depth[b]:
            a = up[a]
        elif b is not None:
            b = up[b]
    return a


def used_values(op: ir.OpView) -> Iterator[ir.Value]:
    """Operands of an op and of everything nested in it."""
    yield from op.operands
    for region in op.operation.regions:
        for block in region.blocks:
            for child in block.operations:
                yield from used_values(child)
