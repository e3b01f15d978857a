"""Groups calls of tensor programs that become one, along post-dominators.

A call joins the group of its immediate post-dominator, together with every call between the two,
if the patterns allow it:

    call                               joins
    out_fusible (matmul)               element-wise work on its whole output: bias, residual, SiLU
    element_wise, broadcast            calls up to injective, a reduction, an epilogue of its shape
    injective                          calls up to injective, a reduction
    a copy under a map (transpose)     a matmul that reads it
    a decoder of narrow elements       a matmul that reads it, directly or through such a copy
    the same                           attention that reads it

A decoder that only matmuls read is not fused with the producer of its operand: the operand is
stored narrow and multiplied narrow.

All paths from a call lead into its group, so nothing is computed twice and no cycle can arise.
A call that updates an operand in place ends its group, and no read moves past an update of its
operand: that would cost a copy.

Source: paper Algorithm 2; TVM `FuseOps`.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from relax_mlir.bindings import ir
from relax_mlir.dialects.graph import TensorType

from .compute_pattern import at_most, moves_only
from .dataflow import Dataflow, Node
from .decoding import decodes

MAX_INS, MAX_OUTS = 30, 8
"""Operands and results of a group: kernels of more hold too many addresses in registers."""
_PHASES = ("out_fusible", "broadcast", "injective")


@dataclass(eq=False)
class Group:
    """Calls that become one tensor program."""

    members: set[Node] = field(default_factory=set)

    @property
    def ordered(self) -> list[Node]:
        """The calls in program order."""
        return sorted(self.members, key=lambda node: node.position)

    @property
    def end(self) -> int:
        """Position of the last call, which the fused call takes."""
        return max(node.position for node in self.members)

    def inputs(self) -> list[ir.Value]:
        """Values from outside that the calls read, in order of first use, without duplicates."""
        own = {value for node in self.members for value in node.outs}
        values = [value for node in self.ordered for value in node.ins if value not in own]
        return list(dict.fromkeys(values))

    def outputs(self) -> list[ir.Value]:
        """Results that are used outside of the group, in order."""
        own_inputs = [value for node in self.members for value in node.ins]
        values = []
        for node in self.ordered:
            inner = all(user in self.members for user in node.users)
            for value in node.outs:
                if not inner or node.escapes or value not in own_inputs:
                    values.append(value)
        return values


@dataclass
class Fusion:
    """Groups the calls of one block; `max_size` bounds the calls of a group."""

    graph: Dataflow
    max_size: int
    refused: dict[Node, tuple[Node, str]] = field(default_factory=dict)
    """Of calls that are not in the group of their post-dominator: that, and why they are not."""
    _group: dict[Node, Group] = field(default_factory=dict)

    def groups(self) -> list[Group]:
        """The groups of at least two calls, in order of their last calls."""
        self._group = {node: Group({node}) for node in self.graph.nodes}
        meets = self.graph.post_dominators()
        for phase in _PHASES:
            for node in self.graph.nodes:
                sink = meets[node]
                if sink is not None and self._phase_of(node) == phase:
                    self._try_merge(node, sink)
        ordered = list(dict.fromkeys(self._group.values()))
        for group in ordered:
            _peel_reshapes(group)
        return sorted((g for g in ordered if len(g.members) > 1), key=lambda group: group.end)

    def joins(self, one: Node, other: Node) -> bool:
        """Whether two calls are in one group."""
        return other in self._group[one].members

    def _phase_of(self, node: Node) -> str | None:
        if node.inplace:
            return None
        if self._anchor(self._group[node].members) == "out_fusible":
            return "out_fusible"
        if at_most(node.pattern, "broadcast"):
            return "broadcast"
        return "injective" if node.pattern == "injective" else None

    @staticmethod
    def _anchor(members: set[Node]) -> str | None:
        """The pattern of the one call of a group that is harder than injective."""
        patterns = (node.pattern or "opaque" for node in members)
        return next((p for p in patterns if not at_most(p, "injective")), None)

    def _try_merge(self, node: Node, sink: Node) -> None:
        if sink in self._group[node].members:
            return
        between = set(_between(node, sink))
        members = set().union(*(self._group[m].members for m in (node, sink, *between)))
        why = self._conflict(node, between, sink) or self._excess(members)
        if why:
            self.refused[node] = sink, why
            return
        merged = Group(members)
        self._group.update(dict.fromkeys(members, merged))

    def _conflict(self, node: Node, between: set[Node], sink: Node) -> str:
        """Why the patterns do not allow a call into the group of its post-dominator, or nothing."""
        own = self._anchor(self._group[node].members)
        other = self._anchor(self._group[sink].members)
        if any(self._anchor(self._group[m].members) for m in between):
            return "a call between them is more than injective"
        if own and other:
            return f"one is {own}, the other {other}"
        if any(member.inplace for member in between):
            return "a call between them updates an operand in place"
        if decodes(sink) and sink.users and all(map(_is_matmul, sink.users)):
            # Else the matmul would read decoded elements.
            return (
                "" if self._is_read_directly(node) else "matmuls read narrow elements from memory"
            )
        if own is not None:
            epilogue = {sink, *between}
            if own == "out_fusible" and not sink.inplace and _is_epilogue(node, epilogue):
                return ""
            return f"what follows is not element by element of the {own} result"
        return self._prologue_conflict(node, between, sink, other)

    def _prologue_conflict(
        self, node: Node, between: set[Node], sink: Node, other: str | None
    ) -> str:
        """The same for a call that is injective at most, and a group that `other` anchors."""
        if other == "out_fusible":
            if not between and decodes(node) and moves_only(sink.kernel):
                return ""
            if sink.pattern == "out_fusible":
                fits = not between and self._is_read_directly(node)
                return "" if fits else "a matmul reads operands, or copies of them, from memory"
            fits = _is_epilogue(node, {node, sink, *between})
            return "" if fits else "the epilogue of a matmul has other dims"
        if sink.kernel.schedule_hint == "attention":
            return "" if not between and decodes(node) else "attention reads operands from memory"
        return "" if other in (None, "reduction") else f"the other one is {other}"

    def _is_read_directly(self, node: Node) -> bool:
        """Whether a matmul can read the operand of a call's group instead of its result."""
        return all(moves_only(m.kernel) or decodes(m) for m in self._group[node].members)

    def _excess(self, members: set[Node]) -> str:
        """Why the calls are too many, or not in an order, for one group; or nothing."""
        group = Group(members)
        if len(members) > self.max_size:
            return f"a kernel has at most {self.max_size} calls"
        if len(group.inputs()) > MAX_INS or len(group.outputs()) > MAX_OUTS:
            return f"a kernel has at most {MAX_INS} operands and {MAX_OUTS} results"
        if not all(map(_updates_apart, members)):
            return "what is updated in place is read by the same call"
        end = group.end
        overwritten = any(
            self.graph.overwritten(value, node.position, end)
            for node in members
            for value in node.reads
        )
        return "an operand is updated in place before the other one" if overwritten else ""


def _updates_apart(node: Node) -> bool:
    """Whether no tensor that a call updates in place is also another operand of it."""
    updated = [node.ins[index] for index in node.inplace]
    return len(set(updated)) == len(updated) and set(updated).isdisjoint(node.reads)


def _is_matmul(node: Node) -> bool:
    return node.pattern == "out_fusible"


def _between(node: Node, sink: Node) -> Iterator[Node]:
    """The calls on the paths from a call to its post-dominator, both excluded."""
    stack, seen = list(node.users), {sink}
    while stack:
        current = stack.pop()
        if current not in seen:
            seen.add(current)
            yield current
            stack.extend(current.users)


def _is_epilogue(node: Node, stages: set[Node]) -> bool:
    """Whether every call works on each element of the first one's output alone."""
    shape = TensorType.of(node.outs[0]).dims
    return all(
        at_most(stage.pattern, "broadcast")
        and len(stage.outs) == 1
        and TensorType.of(stage.outs[0]).dims == shape
        for stage in stages
    )


def _peel_reshapes(group: Group) -> None:
    """Removes reshapes at the boundary of a group: outside they are views, which cost nothing."""
    changed = True
    while changed:
        changed = False
        for node in group.ordered:
            own = {value for other in group.members for value in other.outs}
            first = not any(value in own for value in node.ins)
            last = not any(user in group.members for user in node.users)
            if node.is_reshape and (first or last):
                group.members.remove(node)
                changed = True
