"""Branches and loops, which SPIR-V has as blocks that say where they merge."""

from relax_mlir.bindings import ir

from .emitter import Emitter, Rule, named
from .opcodes import Op

Phi = list[int]


def _if(emitter: Emitter, op: ir.OpView) -> None:
    """Two blocks, and values of the one that was taken."""
    (condition,) = emitter.operands(op)
    then, otherwise, merge = (emitter.out.new_id() for _ in range(3))
    regions = [region for region in op.operation.regions if len(region.blocks)]
    emitter.plain(Op.SelectionMerge, merge, 0)
    emitter.plain(Op.BranchConditional, condition, then, otherwise if len(regions) > 1 else merge)
    ends = []
    for label, region in zip((then, otherwise), regions):
        emitter.start(label)
        yielded = [emitter.values[x] for x in emitter.block(region.blocks[0]).operation.operands]
        ends.append((yielded, emitter.label))
        emitter.branch(merge)
    emitter.start(merge)
    for index, result in enumerate(op.operation.results):
        sources = [word for yielded, label in ends for word in (yielded[index], label)]
        emitter.values[result] = emitter.add(Op.Phi, emitter.type(result.type), *sources)


class _Loop:
    """A loop: its header has a phi for each value that it carries."""

    def __init__(self, emitter: Emitter, values: list[tuple[ir.Type, int]]) -> None:
        self._emitter = emitter
        self.merge, self._continue, header = (emitter.out.new_id() for _ in range(3))
        self._header, before = header, emitter.label
        emitter.branch(header)
        emitter.start(header)
        self.carried, self._phis = [], []
        for kind, first in values:
            self.carried.append(emitter.add(Op.Phi, emitter.type(kind), first, before))
            self._phis.append(emitter.out.body[-1])
        first_block = emitter.out.new_id()
        emitter.plain(Op.LoopMerge, self.merge, self._continue, 0)
        emitter.branch(first_block)
        emitter.start(first_block)

    def leave_unless(self, condition: int) -> None:
        """Ends the loop if a condition is false."""
        body = self._emitter.out.new_id()
        self._emitter.plain(Op.BranchConditional, condition, body, self.merge)
        self._emitter.start(body)

    def to_continue(self) -> None:
        """Starts what is done after each round."""
        self._emitter.branch(self._continue)
        self._emitter.start(self._continue)

    def repeat(self, values: list[int]) -> None:
        """Ends the loop; the next round has other values."""
        for phi, value in zip(self._phis, values, strict=True):
            phi += [value, self._continue]
        self._emitter.branch(self._header)
        self._emitter.start(self.merge)


def _for(emitter: Emitter, op: ir.OpView) -> None:
    """A counter and carried values."""
    lower, upper, step, *initial = emitter.operands(op)
    block = op.operation.regions[0].blocks[0]
    kinds = [argument.type for argument in block.arguments]
    loop = _Loop(emitter, list(zip(kinds, [lower, *initial], strict=True)))
    less = 176 if "unsignedCmp" in op.operation.attributes else 177
    counter = loop.carried[0]
    loop.leave_unless(emitter.add(less, emitter.out.boolean(), counter, upper))
    emitter.values.update(zip(block.arguments, loop.carried, strict=True))
    yielded = [emitter.values[x] for x in emitter.block(block).operation.operands]
    loop.to_continue()
    following = emitter.add(Op.IAdd, emitter.type(kinds[0]), counter, step)
    loop.repeat([following, *yielded])
    emitter.define(op, *loop.carried[1:])


def _while(emitter: Emitter, op: ir.OpView) -> None:
    """A block that decides, and one that follows it."""
    before, after = (region.blocks[0] for region in op.operation.regions)
    kinds = [argument.type for argument in before.arguments]
    loop = _Loop(emitter, list(zip(kinds, emitter.operands(op), strict=True)))
    emitter.values.update(zip(before.arguments, loop.carried, strict=True))
    condition, *passed = [emitter.values[x] for x in emitter.block(before).operation.operands]
    loop.leave_unless(condition)
    emitter.values.update(zip(after.arguments, passed, strict=True))
    yielded = [emitter.values[x] for x in emitter.block(after).operation.operands]
    loop.to_continue()
    loop.repeat(yielded)
    emitter.define(op, *passed)


CONTROL: dict[str, Rule] = named("scf", {"if": _if, "for": _for, "while": _while})
