"""Makes allocation explicit: calls that return tensors become calls that fill them.

    %y = "graph.call_tir"(%x) {callee = @exp} : (tensor<4xf32>) -> tensor<4xf32>
      ->
    %y = "graph.alloc_tensor"() : () -> tensor<4xf32>
    "graph.call_dps"(%x, %y) {callee = @exp}

A call of a kernel that only reshapes becomes a view, and `call_tir_inplace` writes into its
operands. Up to here values are only values; from here on they are memory, whose order of reads and
writes matters. So that all values stay what they were, tensors are copied

    before an update in place   if the old contents are needed later, or by the call itself, or are
                                not ours to write: an argument without `graph.inout`, a constant
    around a loop               if it carries what each round makes anew
    at the return               if `graph.inout` promises memory that does not hold the result

and nowhere else; a remark tells of each copy of the first kind. Regions that run once, as dataflow
blocks do, are dissolved.

A call of a graph function that was not inlined fills its results as well. `graph.to_device` is a
copy; `graph.device` is on what a function allocates elsewhere than where it is.

Needs: no operator that is not a call, no workspace that is no result (`relax-lift-workspace`);
    control flow by `scf`. Leaves: no call but `call_dps`, and no
memory that is carried into the next round of the loop that allocates it.
Source: paper §4.3; TVM `CallTIRRewrite`; MLIR one-shot bufferization.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from types import UnionType
from typing import ClassVar

from relax_mlir.analysis.devices import device_of, function_around, mark, placed
from relax_mlir.analysis.functions import graph_functions, inout_arguments
from relax_mlir.analysis.liveness import Liveness
from relax_mlir.analysis.memory import Memory, is_tensor
from relax_mlir.analysis.scopes import runs_once
from relax_mlir.analysis.signatures import functions_by_name
from relax_mlir.bindings import arith, func, ir, scf, tensor
from relax_mlir.diagnostics import remark
from relax_mlir.dialects.graph import (
    AllocTensorOp,
    CallDpsLibraryOp,
    CallDpsOp,
    CallLibraryInplaceOp,
    CallLibraryOp,
    CallOp,
    CallTirInplaceOp,
    CallTirOp,
    CopyOp,
    InplaceCall,
    KeepOp,
    LibraryCall,
    MatchCastOp,
    StoreOp,
    TensorType,
    ToDeviceOp,
    ViewOp,
    annotation_of,
    workspace_of,
)
from relax_mlir.host.scalars import scalar_type
from relax_mlir.passes import Pass, PassFailure
from relax_mlir.rewriting import replace, safe_erase, walk_ops

Call = CallTirOp | CallTirInplaceOp | LibraryCall | CallOp
Updating = InplaceCall | CallOp | tensor.InsertOp
Loop = scf.ForOp | scf.WhileOp


@dataclass(frozen=True)
class LowerCalls(Pass):
    """Makes allocation explicit: calls that return tensors become calls that fill them."""

    needs_verified: ClassVar[bool] = True

    def run(self, op: ir.Operation) -> None:
        """Rewrites every graph function of the module."""
        functions = functions_by_name(op)
        for function in graph_functions(op):
            for region_op in walk_ops(function, scf.ExecuteRegionOp):
                if runs_once(region_op):
                    _dissolve(region_op)
            liveness = Liveness(function, Memory(functions))
            for updating in _in_program_order(function, Updating | Loop):
                if _copy_updated(updating, function, functions, liveness):
                    liveness = Liveness(function, Memory(functions))
            for loop in walk_ops(function, scf.ForOp, scf.WhileOp):
                _carry_in_buffers(loop, function, functions)
                if isinstance(loop, scf.WhileOp):
                    _keep_what_leaves(loop, functions)
            _copy_back(function, functions)
            _lower(function, Memory(functions))


def _dissolve(region_op: scf.ExecuteRegionOp) -> None:
    """Inlines a region that runs once."""
    *body, terminator = list(region_op.regions[0].blocks[0].operations)
    for op in body:
        op.move_before(region_op)
    for result, value in zip(region_op.results, list(terminator.operands)):
        result.replace_all_uses_with(value)
    safe_erase(region_op)


def _in_program_order(function: func.FuncOp, kind: UnionType) -> list[ir.OpView]:
    """The ops of some classes, each before the ops nested in it."""
    found: list[ir.OpView] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        if isinstance(op.opview, kind):
            found.append(op.opview)
        return ir.WalkResult.ADVANCE

    function.operation.walk(visit, ir.WalkOrder.PRE_ORDER)
    return found


def _copy_updated(
    op: ir.OpView,
    function: func.FuncOp,
    functions: Mapping[str, func.FuncOp],
    liveness: Liveness,
) -> bool:
    """Has an op update copies of the operands whose own memory it must not write to.

    A loop takes a copy once of what its rounds would have to copy each. Returns whether there are
    copies, so that `liveness` no longer holds.
    """
    has_copied = False
    for index in _updated_operands(op, liveness.memory):
        reason = why_not_in_place(op, index, liveness)
        if reason is not None:
            name, value = op.operation.name, op.operation.operands[index]
            with ir.InsertionPoint(op), op.location:
                op.operation.operands[index] = _as(_copy(op, value), value.type)
            remark(op.location, f"'{name}' copies operand {index} of '{value.type}', {reason}")
            liveness, has_copied = Liveness(function, Memory(functions)), True
    return has_copied


def _updated_operands(op: ir.OpView, memory: Memory) -> list[int]:
    """The operands that an op writes to, if it does so in place."""
    if not isinstance(op, Loop):
        return list(memory.updated(op).values())
    inner: list[ir.OpView] = walk_ops(
        op, CallTirInplaceOp, CallLibraryInplaceOp, CallOp, tensor.InsertOp
    )
    updated = [
        inside.operands[index] for inside in inner for index in memory.updated(inside).values()
    ]
    return [
        slot.entering
        for slot in _carried(op)
        if any(memory.may_alias(slot.argument, value) for value in updated)
    ]


def why_not_in_place(op: ir.OpView, index: int, liveness: Liveness) -> str | None:
    """The reason why an op must not write to an operand's memory; None if it may."""
    memory, operands = liveness.memory, list(op.operation.operands)
    roots = memory.roots(operands[index])
    for root in roots:
        if isinstance(root, ir.BlockArgument) and root not in liveness.writable:
            return f"since argument {root.arg_number} is not marked graph.inout"
        if isinstance(root, ir.OpResult) and isinstance(root.owner.opview, arith.ConstantOp):
            return "since it is a constant"
    for other, value in enumerate(operands):
        if other != index and is_tensor(value) and not roots.isdisjoint(memory.roots(value)):
            return f"since operand {other} may be the same memory"
    for value in dict.fromkeys(value for root in roots for value in liveness.sharing(root)):
        user = liveness.used_after(value, op)
        if user is not None:
            return f"since '{user.operation.name}' needs the old contents later"
    return None


def _copy(before: ir.OpView, value: ir.Value) -> ir.Value:
    """A new tensor with the contents that `value` has before an op."""
    value = _exact(value)
    annotation = TensorType.of(value)
    if not annotation.is_exact:
        raise PassFailure(before, f"needs a copy of '{value.type}', whose size is not known")
    with ir.InsertionPoint(before), before.location:
        new = _allocated(annotation, device_of(value))
        CopyOp.build(value, new)
    return new


def _allocated(annotation: TensorType, device: str) -> ir.Value:
    """A new tensor at the insertion point, on a device or the host."""
    new = AllocTensorOp.build(annotation)
    if device != placed(function_around(new)):
        mark(new, device)
    return new.result


def _exact(value: ir.Value) -> ir.Value:
    """The tensor that a cast made coarser."""
    while not TensorType.of(value).is_exact and isinstance(value, ir.OpResult):
        cast = value.owner.opview
        if not isinstance(cast, MatchCastOp):
            break
        value = cast.input
    return value


@dataclass(frozen=True)
class _Slot:
    """A tensor that a loop carries.

    An operand of the loop enters it; each round passes on an operand of the block's end.
    """

    argument: ir.BlockArgument
    entering: int
    end: ir.OpView
    passed_on: int


def _carried(loop: ir.OpView) -> Iterator[_Slot]:
    blocks = [region.blocks[0] for region in loop.operation.regions]
    operations, arguments = blocks[-1].operations, blocks[0].arguments
    end = operations[len(operations) - 1]
    count = len(end.operands)
    for index in range(count):
        argument = arguments[len(arguments) - count + index]
        if is_tensor(argument):
            yield _Slot(argument, len(loop.operation.operands) - count + index, end, index)


def _carry_in_buffers(
    loop: ir.OpView, function: func.FuncOp, functions: Mapping[str, func.FuncOp]
) -> None:
    """Has a loop carry what its rounds make anew in memory of its own.

    A round would make it where the next one still reads what the last one made.
    """
    memory = Memory(functions)
    slots = [
        slot
        for slot in _carried(loop)
        if any(_is_inside(root, loop) for root in memory.roots(slot.end.operands[slot.passed_on]))
    ]
    if not slots:
        return
    end, liveness = slots[0].end, Liveness(function, memory)
    passed: list[tuple[ir.Value, ir.Value]] = []
    ours = [_is_ours(loop, slot.entering, liveness) for slot in slots]
    for slot, is_ours in zip(slots, ours):
        value = end.operands[slot.passed_on]
        buffer = _buffer(loop, slot, value, is_ours)
        passed.append((value, buffer))
        end.operation.operands[slot.passed_on] = buffer
    memory = Memory(functions)
    passed = [(v, buffer) for v, buffer in passed if not _is_same(v, buffer, memory)]
    kept = [buffer.owner.opview for _, buffer in passed if _is_kept(buffer)]
    begin = kept[0] if kept else end
    sources = [
        _copy(begin, value) if _is_lost(value, buffer, passed, memory) else value
        for value, buffer in passed
    ]
    for source, (_, buffer) in zip(sources, passed):
        is_kept = _is_kept(buffer)
        with ir.InsertionPoint(buffer.owner if is_kept else end), end.location:
            if is_kept:
                buffer.owner.operands[0] = _as(source, buffer.type)
            else:
                CopyOp.build(source, buffer)


def _is_ours(loop: ir.OpView, index: int, liveness: Liveness) -> bool:
    """Whether nobody but the loop needs an operand's memory, and its rounds have no other name."""
    if why_not_in_place(loop, index, liveness) is not None:
        return False
    roots = liveness.memory.roots(loop.operation.operands[index])
    values = [value for root in roots for value in liveness.sharing(root)]
    outside = [value for value in values if not _is_within(_block_of(value), loop)]
    users = [use.owner.operation for value in outside for use in value.uses]
    return not any(_is_within(user.block, loop) for user in users)


def _is_same(value: ir.Value, buffer: ir.Value, memory: Memory) -> bool:
    """Whether a value lies in the buffer already."""
    roots = memory.roots(value)
    return len(roots) == 1 and roots == memory.roots(buffer)


def _is_lost(
    value: ir.Value,
    buffer: ir.Value,
    passed: Sequence[tuple[ir.Value, ir.Value]],
    memory: Memory,
) -> bool:
    """Whether a value may lie in a buffer that is not the one it is copied to."""
    return any(memory.may_alias(value, other) for _, other in passed if other != buffer)


def _buffer(loop: ir.OpView, slot: _Slot, value: ir.Value, is_ours: bool) -> ir.Value:
    """The memory that a slot's values are copied to: of one size, or one that grows.

    It is that of what enters, if it `is_ours` to write to.
    """
    entering = loop.operation.operands[slot.entering]
    if TensorType.of(entering).is_exact and is_ours:
        return entering
    if TensorType.of(entering).is_exact:
        buffer = _copy(loop, entering)
        loop.operation.operands[slot.entering] = buffer
        return buffer
    with ir.InsertionPoint(slot.end), slot.end.location:
        return KeepOp.build(value).result


def _keep_what_leaves(loop: scf.WhileOp, functions: Mapping[str, func.FuncOp]) -> None:
    """Keeps what leaves a loop of the size of what it has made itself: its storage ends there."""
    before = loop.operation.regions[0].blocks[0]
    end, memory = before.operations[len(before.operations) - 1], Memory(functions)
    for index, result in enumerate(loop.results, 1):
        value = end.operands[index]
        if not is_tensor(value) or TensorType.of(result).is_exact:
            continue
        if any(_is_inside(root, loop) and not _is_kept(root) for root in memory.roots(value)):
            with ir.InsertionPoint(end), end.location:
                end.operation.operands[index] = KeepOp.build(value).result


def _is_kept(root: ir.Value) -> bool:
    return isinstance(root, ir.OpResult) and isinstance(root.owner.opview, KeepOp)


def _is_inside(root: ir.Value, loop: ir.OpView) -> bool:
    """Whether a round of the loop makes the memory."""
    return isinstance(root, ir.OpResult) and _is_within(_block_of(root), loop)


def _block_of(value: ir.Value) -> ir.Block:
    """The block that defines a value."""
    return value.owner if isinstance(value, ir.BlockArgument) else value.owner.operation.block


def _is_within(block: ir.Block, loop: ir.OpView) -> bool:
    """Whether a block is one of the loop's, or nested in one."""
    op = block.owner.operation
    while op is not None and op != loop.operation:
        op = op.parent
        op = None if op is None else op.operation
    return op is not None


def _copy_back(function: func.FuncOp, functions: Mapping[str, func.FuncOp]) -> None:
    """Copies results into the arguments that they update, unless they are in place already."""
    operations = function.entry_block.operations
    end = operations[len(operations) - 1]
    memory = Memory(functions)
    late: dict[int, ir.Value] = {}
    for result, number in inout_arguments(function).items():
        argument = function.arguments[number]
        if not 0 <= result < len(end.operands):
            raise PassFailure(
                function,
                f"has argument {number} updated as result {result}, of {len(end.operands)}",
            )
        if memory.roots(end.operands[result]) != {argument}:
            late[result] = argument
    for index, value in enumerate(end.operands):
        overwritten = {argument for result, argument in late.items() if result != index}
        if is_tensor(value) and not memory.roots(value).isdisjoint(overwritten):
            end.operation.operands[index] = _copy(end, value)
    with ir.InsertionPoint(end), end.location:
        for result, argument in late.items():
            value = end.operands[result]
            CopyOp.build(value, argument)
            end.operation.operands[result] = _as(argument, value.type)


def _as(value: ir.Value, type_: ir.Type) -> ir.Value:
    """The same memory under a type, at the insertion point."""
    annotation = annotation_of(type_)
    if value.type == type_:
        return value
    if isinstance(annotation, TensorType) and not annotation.is_exact:
        return MatchCastOp.build(value, annotation).result
    return ViewOp.build(value, annotation).result


def _lower(function: func.FuncOp, memory: Memory) -> None:
    """Replaces each call that returns tensors, after copies have made in-place writes legal."""
    calls: list[Call] = [*walk_ops(function, CallTirOp), *walk_ops(function, CallTirInplaceOp)]
    calls += walk_ops(function, CallDpsLibraryOp, CallLibraryOp, CallLibraryInplaceOp)
    for call in [*calls, *walk_ops(function, CallOp)]:
        is_reshape, updated = memory.is_reshape(call), memory.updated(call)
        with ir.InsertionPoint(call), call.location:
            if is_reshape:
                results = [ViewOp.build(call.ins[0], annotation_of(call.outs[0])).result]
            else:
                results = _call_dps(call, updated)
        replace(call, results)
    for move in walk_ops(function, ToDeviceOp):
        with ir.InsertionPoint(move), move.location:
            target = _allocated(TensorType.of(move.result), device_of(move.result))
            CopyOp.build(move.input, target)
        replace(move, target)
    for made in walk_ops(function, tensor.FromElementsOp, tensor.InsertOp):
        with ir.InsertionPoint(made), made.location:
            replace(made, _store(made))


def _store(made: tensor.FromElementsOp | tensor.InsertOp) -> ir.Value:
    """Writes the scalars that an op puts into a tensor; returns that."""
    if isinstance(made, tensor.InsertOp):
        value, target, *indices = made.operands
        StoreOp.build(value, target, indices)
        return target
    annotation, index = TensorType.of(made.result), ir.IndexType.get()
    target = AllocTensorOp.build(annotation).result
    for at, value in zip(product(*map(range, made.result.type.shape)), made.operands, strict=True):
        StoreOp.build(value, target, [arith.constant(index, place) for place in at])
    return target


def _call_dps(call: Call, updated: Mapping[int, int]) -> list[ir.Value]:
    """Builds the call that fills its results; returns them."""
    if isinstance(call, LibraryCall) and workspace_of(call):
        raise PassFailure(
            call,
            f"calls '@{call.callee_name}' with a workspace; "
            "run relax-lift-workspace before relax-lower-calls",
        )
    ins, symbols = call.ins, () if isinstance(call, CallOp) else call.symbol_arguments
    outs: list[ir.Value] = []
    for index, out in enumerate(call.outs):
        room = _memory_of(out)
        if room is None or (isinstance(call, CallOp) and not room.is_exact):
            raise PassFailure(
                call,
                f"returns '{out.type}', but '@{call.callee_name}', which is not inlined, can "
                "return tensors of dims that its caller knows only, and scalars",
            )
        is_updated = index in updated
        outs.append(ins[updated[index]] if is_updated else _allocated(room, device_of(out)))
    sources = [value for index, value in enumerate(ins) if index not in updated.values()]
    CallDpsOp.build(call.callee_name, sources, outs, symbols, sorted(updated))
    return [
        _as(out, result.type) if is_tensor(result) else tensor.extract(out, [])
        for out, result in zip(outs, call.outs)
    ]


def _memory_of(result: ir.Value) -> TensorType | None:
    """The tensor that a call writes a result to, a scalar to one of rank 0; None if it cannot."""
    if is_tensor(result):
        return TensorType.of(result)
    return None if scalar_type(result.type) is None else TensorType((), result.type)
