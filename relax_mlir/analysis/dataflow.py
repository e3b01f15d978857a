"""The calls of tensor programs in a block as a graph: who uses whom, and where paths meet again."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from relax_mlir.bindings import ir
from relax_mlir.dialects.graph import CallTirInplaceOp, CallTirOp, MatchCastOp
from relax_mlir.dialects.tir import PrimFunc
from relax_mlir.rewriting import walk_ops

RESHAPE = "tir.reshape"
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

    @property
    def reads(self) -> list[ir.Value]:
        """Operands that are not overwritten."""
        return [value for i, value in enumerate(self.ins) if i not in self.inplace]


@dataclass(eq=False)
class Dataflow:
    """The calls of one block in program order; `producer` says which call a value is from."""

    nodes: list[Node] = field(default_factory=list)
    producer: dict[ir.Value, Node] = field(default_factory=dict)
    _roots: dict[ir.Value, ir.Value] = field(default_factory=dict)
    _updates: dict[ir.Value, list[int]] = field(default_factory=dict)

    @staticmethod
    def of(block: ir.Block, kernels: Mapping[str, PrimFunc]) -> "Dataflow":
        """Reads a block; calls of other functions than `kernels` count as unknown users."""
        graph = Dataflow()
        for position, op in enumerate(block.operations):
            kernel = kernels.get(op.callee_name) if isinstance(op, Call) else None
            if kernel is None:
                graph._add_other(op, position)
            else:
                graph._add_call(op, position, kernel)
        return graph

    def _add_call(self, op: Call, position: int, kernel: PrimFunc) -> None:
        indices = op.inplace if isinstance(op, CallTirInplaceOp) else ()
        node = Node(op, position, kernel, op.ins, op.outs)
        node.inplace = frozenset(index for index in indices if index >= 0)
        for value in node.ins:
            user_of = self.producer.get(value)
            if user_of is not None and node not in user_of.users:
                user_of.users.append(node)
        for number, value in enumerate(node.outs):
            self.producer[value] = node
            if number < len(indices) and indices[number] >= 0:
                root = self.root(node.ins[indices[number]])
                self._roots[value] = root
                self._updates.setdefault(root, []).append(position)
            elif node.is_reshape:
                self._roots[value] = self.root(node.ins[0])
        self.nodes.append(node)

    def _add_other(self, op: ir.OpView, position: int) -> None:
        for value in used_values(op):
            if value in self.producer:
                self.producer[value].escapes = True
        if isinstance(op, MatchCastOp):
            self._roots[op.result] = self.root(op.input)
        for update in walk_ops(op, CallTirInplaceOp) if len(op.operation.regions) else ():
            ins = update.ins
            for index in update.inplace:
                if index >= 0:
                    self._updates.setdefault(self.root(ins[index]), []).append(position)

    def root(self, value: ir.Value) -> ir.Value:
        """The value whose memory this one shares: seen through updates, reshapes and casts."""
        return self._roots.get(value, value)

    def overwritten(self, value: ir.Value, begin: int, end: int) -> bool:
        """Whether a call behind position `begin` and up to `end` writes into the value's memory."""
        updates = self._updates.get(self.root(value), ())
        return any(begin < position <= end for position in updates)

    def post_dominators(self) -> dict[Node, Node | None]:
        """For each call the first one that all paths from it to a use elsewhere go through."""
        found: dict[Node, Node | None] = {}
        depth: dict[Node | None, int] = {None: 0}
        for node in reversed(self.nodes):
            meet: Node | None = None
            if node.users and not node.escapes:
                meet = node.users[0]
                for user in node.users[1:]:
                    meet = _meet(meet, user, found, depth)
            found[node] = meet
            depth[node] = depth[meet] + 1
        return found


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
