"""Has a loop exchange two buffers where it would copy what each round makes.

    %a = "graph.alloc_tensor"()          // holds what enters
    scf.for ... iter_args(%now = %a) {
      %new = "graph.alloc_tensor"()
      "graph.call_dps"(%now, %new) ...
      "graph.copy"(%new, %a)
      scf.yield %a
    }
      ->
    %b = "graph.alloc_tensor"()
    scf.for ... iter_args(%now = %a, %next = %b) {
      "graph.call_dps"(%now, %next) ...
      scf.yield %next, %now
    }

Both are as large as the buffer and what a round made before: it takes no more memory.

Needs: explicit calls (`relax-lower-calls`), no plan yet. Leaves: no copy at the end of a round of
what the round made anew, if the buffer is carried in one place.
Source: double buffering; MLIR one-shot bufferization copies here.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from relax_mlir.analysis.exchange import base, first_block, last_op
from relax_mlir.analysis.functions import graph_functions
from relax_mlir.analysis.memory import Memory, is_tensor
from relax_mlir.analysis.signatures import functions_by_name
from relax_mlir.bindings import func, ir, scf
from relax_mlir.dialects.graph import AllocTensorOp, CopyOp, TensorType
from relax_mlir.passes import Pass
from relax_mlir.rewriting import safe_erase, walk_ops


@dataclass(frozen=True)
class DoubleBuffer(Pass):
    """Has a loop exchange two buffers where it would copy what each round makes."""

    needs_verified: ClassVar[bool] = True

    def run(self, op: ir.Operation) -> None:
        """Rewrites the loops of every graph function of the module, inner ones first."""
        functions = functions_by_name(op)
        for function in graph_functions(op):
            for loop in walk_ops(function, scf.ForOp, scf.WhileOp):
                while (found := _exchange(loop, functions)) is not None:
                    loop = _exchanged(loop, found)


@dataclass(frozen=True)
class _Exchange:
    """A round makes `new` and copies it into the buffer, which is `now` where the round ends.

    `passed_on` is the operand of the loop's end that is the buffer.
    """

    copy: CopyOp
    new: AllocTensorOp
    now: ir.Value
    passed_on: int


def _exchange(loop: ir.OpView, functions: Mapping[str, func.FuncOp]) -> _Exchange | None:
    """A buffer of the loop that can be one of two."""
    memory = Memory(functions)
    block = loop.operation.regions[-1].blocks[0] if isinstance(loop, scf.WhileOp) else loop.body
    *operations, end = list(block.operations)
    overwritten: set[ir.Value] = set()
    for op in reversed(operations):
        if not isinstance(op, CopyOp):
            return None
        if not memory.roots(op.input).isdisjoint(overwritten):
            return None  # it has to come before the copies behind it
        found = _at(loop, op, end, memory)
        if found is not None:
            return found
        overwritten |= memory.roots(op.destination)
    return None


def _at(loop: ir.OpView, copy: CopyOp, end: ir.OpView, memory: Memory) -> _Exchange | None:
    """The exchange in place of a copy; None if the buffer or what is copied is needed otherwise."""
    buffer, (new, *others) = copy.destination, memory.roots(copy.input)
    if others or not _is_allocation(new) or not _is_allocation(buffer):
        return None
    made, places = new.owner.opview, [i for i, v in enumerate(end.operands) if v == buffer]
    if made.operation.block != end.operation.block or len(places) != 1:
        return None
    if not (copy.input.type == buffer.type == new.type):
        return None
    rest = [v for i, v in enumerate(end.operands) if i != places[0] and is_tensor(v)]
    if any(not memory.roots(value).isdisjoint({buffer, new}) for value in rest):
        return None
    argument = _argument(loop, end, places[0])
    now = _seen_at(argument, end.operation.block)
    if now is None or now.type != buffer.type or memory.roots(argument) != {buffer}:
        return None
    if not all(_may_use(use.owner.opview, copy, end, loop) for use in buffer.uses):
        return None
    return _Exchange(copy, made, now, places[0])


def _is_allocation(value: ir.Value) -> bool:
    if isinstance(value, ir.BlockArgument):
        return False
    op = value.owner.opview
    return isinstance(op, AllocTensorOp) and not op.operands


def _argument(loop: ir.OpView, end: ir.OpView, passed_on: int) -> ir.Value:
    arguments = first_block(loop).arguments
    return arguments[len(arguments) - len(end.operands) + passed_on]


def _seen_at(argument: ir.Value, block: ir.Block) -> ir.Value | None:
    """What a loop's argument is called in its last block; None if that does not have it."""
    if argument.owner == block:
        return argument
    return next((other for other in block.arguments if base(other) == argument), None)


def _may_use(user: ir.OpView, copy: CopyOp, end: ir.OpView, loop: ir.OpView) -> bool:
    """Whether a use of the buffer stays right: the loop's own, or one in front of it."""
    if user in (copy, end, loop):
        return True
    same_block = user.operation.block == loop.operation.block
    return same_block and user.operation.is_before_in_block(loop.operation)


def _exchanged(loop: ir.OpView, found: _Exchange) -> ir.OpView:
    """The loop with one more buffer."""
    annotation = TensorType.of(found.new.result)
    with ir.InsertionPoint(loop), found.new.location:
        other = AllocTensorOp.build(annotation).result
    source, end = found.copy.input, last_op(found.copy.operation.block)
    end.operation.operands[found.passed_on] = source
    safe_erase(found.copy)
    rebuilt, nexts = _with_slot(loop, other, found.now)
    found.new.result.replace_all_uses_with(nexts)
    safe_erase(found.new)
    return rebuilt


def _with_slot(
    loop: ir.OpView, entering: ir.Value, passed_on: ir.Value
) -> tuple[ir.OpView, ir.Value]:
    """The loop with one more tensor that it carries; and what that is in its last block."""
    old, type_ = loop.operation, entering.type
    new = ir.Operation.create(
        old.name,
        results=[*(result.type for result in old.results), type_],
        operands=[*old.operands, entering],
        attributes={name: old.attributes[name] for name in old.attributes},
        regions=len(old.regions),
        ip=ir.InsertionPoint(old),
        loc=old.location,
    )
    for index, (before, region) in enumerate(zip(old.regions, new.regions, strict=True)):
        block = before.blocks[0]
        types = [*(argument.type for argument in block.arguments), type_]
        made = region.blocks.append(*types, arg_locs=[old.location] * len(types))
        for inner in list(block.operations):
            inner.operation.detach_from_parent()
            made.append(inner)
        is_last = index == len(new.regions) - 1
        for argument, replacement in zip(block.arguments, made.arguments):
            passed_on = replacement if passed_on == argument else passed_on
            argument.replace_all_uses_with(replacement)
        _end_with(made, passed_on if is_last else made.arguments[len(types) - 1])
    for result, replacement in zip(old.results, new.results):
        result.replace_all_uses_with(replacement)
    old.erase()
    return new.opview, made.arguments[len(types) - 1]


def _end_with(block: ir.Block, value: ir.Value) -> None:
    """Has a block pass on one more value."""
    end = last_op(block).operation
    ir.Operation.create(
        end.name, operands=[*end.operands, value], ip=ir.InsertionPoint(end), loc=end.location
    )
    end.erase()
