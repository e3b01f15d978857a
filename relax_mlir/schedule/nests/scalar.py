"""The rule for everything else: MLIR's own bufferization and scalar loops.

    scf.for ... iter_args(%acc = %out)          scf.for
      %x = tensor.extract %t[%i]          ->      %x = memref.load %t[%i]
      tensor.insert %x into %acc[%i]              memref.store %x, %out[%i]

Loops, branches, padding, computed indices, named ops without a general form: whatever bufferizes.
Slow, but right. Only outermost `scf.forall`s are parallel. Memory between ops is scratch memory.

Needs: a tensor program. Leaves: a scheduled kernel; fails at an op that MLIR cannot bufferize.
"""

from collections.abc import Callable, Sequence
from math import prod

from relax_mlir.analysis.tensor_programs import unsupported
from relax_mlir.bindings import arith, bufferization, func, ir, memref, tensor
from relax_mlir.dialects.graph import element_bits
from relax_mlir.dialects.tir import PrimFunc
from relax_mlir.passes import PassFailure, run_upstream
from relax_mlir.program.reading import strip_encodings
from relax_mlir.rewriting import alone, walk
from relax_mlir.schedule.build import loops
from relax_mlir.schedule.build.memory import storage_type
from relax_mlir.schedule.build.vectors import Vectors

from .destinations import is_computed_in
from .emit import SCHEDULED
from .exits import leave_early
from .tasks import mark_tasks, share_tasks
from .tiles import tile_hinted
from .unrolling import mark_unrolled

_ON_TENSORS = "builtin.module(func.func(canonicalize,cse),convert-elementwise-to-linalg)"
_BUFFERIZE = "builtin.module(one-shot-bufferize,func.func(canonicalize,cse))"
_TO_LOOPS = (
    "builtin.module(func.func(convert-linalg-to-loops,scf-forall-to-for,"
    "scf-parallel-for-to-nested-fors,affine-expand-index-ops,lower-affine,"
    "loop-invariant-code-motion,canonicalize,cse))"
)
_WIDEN = (
    "builtin.module(math-extend-to-supported-types{extra-types=f64 target-type=f32},"
    "arith-emulate-unsupported-floats{source-types=f16,bf16 target-type=f32},"
    "func.func(canonicalize,cse))"
)
_LOOPS = ("scf.for", "scf.while")
OWN_MEMORY = 1 << 16
"""Bytes that a thread takes at once for all its iterations."""


def schedule(prim_func: PrimFunc, vectors: Vectors, fuse: bool) -> bool:
    """Schedules any program that bufferizes; raises PassFailure at an op that does not."""

    def finish(function: func.FuncOp) -> None:
        leave_early(function)
        share_tasks(function)
        _take_own_memory_once(function)
        _allocate_from_scratch(function)
        mark_unrolled(function)

    convert(prim_func, finish)
    return True


def convert(prim_func: PrimFunc, finish: Callable[[func.FuncOp], None]) -> None:
    """Replaces a program by loops on memory, which `finish` completes: it takes memory and tasks.

    Outermost loops that are tasks are marked, and memory is allocated where it is first used.
    Raises PassFailure at an op that does not bufferize.
    """
    for op, reason in unsupported(prim_func.op):
        raise PassFailure(op, reason)
    try:
        module = _bufferized(prim_func, carries_copies=False)
    except ir.MLIRError:
        # Loops that permute their carried tensors need copies of them.
        module = _bufferized_or_refused(prim_func)
    _use_one_memory(module)
    function = ir.SymbolTable(module.operation)[prim_func.name]
    mark_tasks(function)
    for text in (_TO_LOOPS, _WIDEN):
        run_upstream(text, module.operation)
    _rename_constants(module, prim_func.name)
    _copy_by_loops(function)
    with function.location:
        finish(function)
    module.operation.verify()
    with ir.InsertionPoint(prim_func.op):
        for op in module.body.operations:
            op.operation.clone()
    prim_func.op.operation.erase()


def _bufferized_or_refused(prim_func: PrimFunc) -> ir.Module:
    try:
        return _bufferized(prim_func, carries_copies=True)
    except ir.MLIRError as error:
        first = error.error_diagnostics[0]
        raise PassFailure(first.location, f"{first.message}, so it has no schedule") from None


def _bufferized(prim_func: PrimFunc, carries_copies: bool) -> ir.Module:
    """The program on memrefs, in a module of its own."""
    module = alone(prim_func.op)
    strip_encodings(module)
    function = module.body.operations[0]
    tile_hinted(function)
    with prim_func.op.location:
        _take_memory(function, prim_func.num_outs)
        if carries_copies:
            _copy_what_loops_carry(function)
    run_upstream(_ON_TENSORS, module.operation)
    _part_new_tensors(module)
    run_upstream(_BUFFERIZE, module.operation)
    return module


def _take_memory(function: func.FuncOp, num_outs: int) -> None:
    """Makes the tensor arguments memrefs; results are computed into the last ones."""
    block = function.entry_block
    tensors = [a for a in block.arguments if isinstance(a.type, ir.RankedTensorType)]
    outs = tensors[len(tensors) - num_outs :]
    terminator = block.operations[len(block.operations) - 1]
    # One of several outputs may depend on the former contents of another one.
    apart = num_outs == 1 or all(map(is_computed_in, terminator.operands, outs))
    for argument in tensors:
        _read_memory(block, argument, writable=apart and argument in outs)
    with ir.InsertionPoint(terminator):
        values = list(terminator.operands)
        if not apart:
            values = [bufferization.alloc_tensor(x.type, [], copy=x) for x in values]
        for value, out in zip(values, outs, strict=True):
            _write_memory(value, out)
        func.ReturnOp([])
    terminator.operation.erase()
    kinds = [a.type for a in block.arguments]
    attributes = function.operation.attributes
    attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(kinds, []))
    if "res_attrs" in attributes:
        del attributes["res_attrs"]
    attributes[SCHEDULED] = ir.UnitAttr.get()


def _read_memory(block: ir.Block, argument: ir.Value, writable: bool) -> None:
    """Replaces an argument by a tensor in its memory."""
    kind = ir.RankedTensorType(argument.type)
    stored = storage_type(kind.element_type)
    holder = ir.RankedTensorType.get(kind.shape, stored)
    argument.set_type(ir.MemRefType.get(kind.shape, stored))
    with ir.InsertionPoint.at_block_begin(block):
        made = bufferization.to_tensor(holder, argument, restrict=True, writable=writable)
        reader = made.owner.operation
        if stored != kind.element_type:
            zero = arith.constant(stored, 0)
            zeros = tensor.splat(holder, zero, _dims(made, kind))
            made = arith.cmpi(arith.CmpIPredicate.ne, made, zeros)
    argument.replace_all_uses_except(made, reader)


def _dims(value: ir.Value, kind: ir.RankedTensorType) -> list[ir.Value]:
    """The dynamic extents of a tensor."""
    return [
        tensor.dim(value, loops.value(axis))
        for axis in range(kind.rank)
        if kind.is_dynamic_dim(axis)
    ]


def _write_memory(value: ir.Value, out: ir.Value) -> None:
    """Has a tensor computed into memory."""
    kind = ir.RankedTensorType(value.type)
    stored = storage_type(kind.element_type)
    if stored != kind.element_type:
        value = arith.extui(ir.RankedTensorType.get(kind.shape, stored), value)
    bufferization.materialize_in_destination(None, value, out, restrict=True, writable=True)


def _part_new_tensors(module: ir.Module) -> None:
    """Gives each use of a new tensor, or of a cast of one, one of its own.

    Nothing that is there can be overwritten, so bufferization would have two uses share memory.
    """
    new = [op for op in walk(module) if op.name == "tensor.empty"]
    uses = [use.owner.operation for op in new for use in op.results[0].uses]
    for op in [*(user for user in uses if user.name == "tensor.cast"), *new]:
        for use in list(op.results[0].uses)[1:]:
            with ir.InsertionPoint(op):
                use.owner.operation.operands[use.operand_number] = op.clone().operation.results[0]


def _copy_what_loops_carry(function: func.FuncOp) -> None:
    """Computes the carried tensors of a loop in the memory of the last iteration.

    scf.yield %b, %a   ->   copies of %b and %a first, then each into the memory of an argument
    """
    for op in list(walk(function)):
        if op.name not in _LOOPS:
            continue
        for region in op.regions:
            block = region.blocks[0]
            terminator = block.operations[len(block.operations) - 1].operation
            skipped = 1 if op.name == "scf.for" else 0
            arguments = list(block.arguments)[skipped:]
            first = 1 if terminator.name == "scf.condition" else 0
            with ir.InsertionPoint(terminator):
                _copy_into(terminator, first, arguments)


def _copy_into(terminator: ir.Operation, first: int, arguments: Sequence[ir.Value]) -> None:
    copies: dict[int, ir.Value] = {}
    values = list(terminator.operands)[first:]
    for i, (value, argument) in enumerate(zip(values, arguments, strict=False)):
        if isinstance(value.type, ir.RankedTensorType) and value.type == argument.type:
            copies[i] = bufferization.alloc_tensor(value.type, [], copy=value)
    for i, copy in copies.items():
        terminator.operands[first + i] = bufferization.materialize_in_destination(
            copy.type, copy, arguments[i]
        )


def _copy_by_loops(function: func.FuncOp) -> None:
    """Replaces `memref.copy`, which calls a library for strided memory."""
    for op in [op for op in walk(function) if op.name == "memref.copy"]:
        source, target = op.operands
        with ir.InsertionPoint(op), op.location:
            _copy(source, target, [])
        op.erase()


def _copy(source: ir.Value, target: ir.Value, indices: list[ir.Value]) -> None:
    rank = ir.MemRefType(source.type).rank
    if len(indices) == rank:
        memref.store(memref.load(source, indices), target, indices)
        return
    extent = loops.dim(source, len(indices))
    loops.for_range(0, extent, 1, lambda i: _copy(source, target, [*indices, i]))


def _take_own_memory_once(function: func.FuncOp) -> None:
    """Has all iterations that a thread runs use the same memory, where its size is known and small.

    scf.parallel { scf.for { alloc } }   ->   scf.parallel { alloc; scf.for { } }
    """
    for loop in [op for op in walk(function) if op.name == "scf.parallel"]:
        body, left = loop.regions[0].blocks[0], OWN_MEMORY
        for op in [op for op in walk(loop) if op.name == "memref.alloc"]:
            kind = ir.MemRefType(op.results[0].type)
            size = prod(kind.shape) * element_bits(kind.element_type) // 8
            if kind.has_static_shape and size <= left:
                left -= size
                op.move_before(body.operations[0])


def _allocate_from_scratch(function: func.FuncOp) -> None:
    """Allocates all memory on the scratch stack; it is freed at the end of an iteration or kernel.

    Carried tensors are in memory from outside of the loop.
    """
    blocks: dict[ir.Block, None] = {}
    for op in list(walk(function)):
        if op.name == "memref.dealloc":
            op.erase()
        elif op.name in ("memref.alloc", "memref.alloca"):
            blocks[_scope_of(op)] = None
            if op.name == "memref.alloca":
                with ir.InsertionPoint(op), op.location:
                    made = memref.alloc(op.results[0].type, list(op.operands), [])
                op.results[0].replace_all_uses_with(made)
                op.erase()
    kind = ir.MemRefType.get([1], ir.IntegerType.get_signless(8))
    for block in blocks:
        with ir.InsertionPoint.at_block_begin(block), function.location:
            mark = memref.alloc(kind, [], [])
        with ir.InsertionPoint.at_block_terminator(block), function.location:
            memref.dealloc(mark)


def _scope_of(op: ir.Operation) -> ir.Block:
    """The body of the innermost loop around an op, or of the function."""
    block = op.block
    while block.owner.operation.name not in (*_LOOPS, "scf.parallel", "func.func"):
        block = block.owner.operation.block
    return block


def _use_one_memory(module: ir.Module) -> None:
    """Drops memory spaces: a CPU has one."""
    for op in list(walk(module)):
        arguments = [a for region in op.regions for block in region.blocks for a in block.arguments]
        for value in [*op.results, *arguments]:
            if isinstance(value.type, ir.MemRefType) and value.type.memory_space is not None:
                kind = ir.MemRefType(value.type)
                value.set_type(ir.MemRefType.get(kind.shape, kind.element_type, kind.layout))
        if op.name == "memref.memory_space_cast":
            op.results[0].replace_all_uses_with(op.operands[0])
            op.erase()


def _rename_constants(module: ir.Module, kernel: str) -> None:
    """Gives constants names that are unique across kernels."""
    for index, op in enumerate(module.body.operations):
        if isinstance(op, memref.GlobalOp):
            new = f"{kernel}_constant_{index}"
            ir.SymbolTable.replace_all_symbol_uses(op.sym_name.value, new, module.operation)
            op.operation.attributes["sym_name"] = ir.StringAttr.get(new)
