"""Converts a tensor program to a kernel on memrefs: reads it, groups it, emits its nests.

func.func private @k(%x: tensor<?x4xf32, #graph.shape<["n", 4]>>, %out: ...) -> tensor<...>
  ->
func.func private @k(%x: memref<?x4xf32>, %out: memref<?x4xf32>) attributes {tir.scheduled}
"""

from collections.abc import Callable
from typing import TypeVar

from relax_mlir.bindings import func, ir
from relax_mlir.dialects.tir import PrimFunc
from relax_mlir.passes import run_upstream
from relax_mlir.program.nests import Nest, join
from relax_mlir.program.placement import Placement, assign_memory
from relax_mlir.program.program import Program, Stage
from relax_mlir.program.reading import read_kernel
from relax_mlir.schedule.build.borders import join_borders
from relax_mlir.schedule.build.evaluate import Evaluator
from relax_mlir.schedule.build.horizontal_reduction import combiner_of
from relax_mlir.schedule.build.kernel import Kernel
from relax_mlir.schedule.build.memory import storage_type
from relax_mlir.schedule.build.skipped_rounds import skip_rounds
from relax_mlir.schedule.build.vectors import Vectors

from .plan import plan_nest
from .vectorize import NestEmitter

SCHEDULED = "tir.scheduled"
_CLEAN = "builtin.module(canonicalize,cse,loop-invariant-code-motion,canonicalize)"

Matched = TypeVar("Matched")
EmitStages = Callable[[Kernel, list[Nest | ir.OpView]], None]


def rewrite(
    prim_func: PrimFunc,
    vectors: Vectors,
    match: Callable[[Program], Matched | None],
    emit: Callable[[Kernel, Matched], None],
) -> bool:
    """Replaces a tensor program by the kernel that `emit` makes of what `match` returns.

    Returns False, and leaves the function unchanged, if that is None. Raises Refusal if a part of
    it is not supported.
    """
    module, program = read_kernel(prim_func)
    matched = match(program)
    if matched is None:
        return False
    placement = assign_memory(program, inline=False)
    emit_kernel(prim_func, placement, vectors, lambda kernel: emit(kernel, matched))
    del module  # the program refers to it
    return True


def group(placement: Placement, fuse: bool = True) -> list[Nest | ir.OpView]:
    """Scalars and nests, in execution order."""
    items: list[Nest | ir.OpView] = []
    current: Nest | None = None
    for item in placement.program.items:
        if isinstance(item, Stage):
            if item in placement.inlining.inlined:
                continue
            if current is None or not (fuse and join(current, item, placement)):
                current = Nest.of(item)
                items.append(current)
        else:
            # A scalar that is read from a computed tensor splits the stages around it.
            if item.operation.name == "tensor.extract":
                current = None
                items.append(item)
            elif current is not None and _uses_loaded(items, item):
                items.append(item)
                current = None
            else:
                items.insert(len(items) - (current is not None), item)
    return items


def _uses_loaded(items: list[Nest | ir.OpView], op: ir.OpView) -> bool:
    """Whether a scalar op depends on one that comes after the start of the last nest."""
    late = [x for x in items if not isinstance(x, Nest) and x.operation.name == "tensor.extract"]
    results = {result for x in late for result in x.results}
    return any(operand in results for operand in op.operands)


def emit_nests(kernel: Kernel, items: list[Nest | ir.OpView]) -> None:
    """Emits scalars and nests in order."""
    for item in items:
        if not isinstance(item, Nest):
            kernel.run_scalar(item)
            continue
        combiners = {s: combiner_of(s, kernel.scalars) for s in item.stages if s.has_reduction}
        ordered = {stage for stage, combiner in combiners.items() if combiner is None}
        plan = plan_nest(item, kernel.placement, kernel.vectors, ordered)
        with item.stages[-1].op.location:
            NestEmitter(kernel, plan, combiners, Evaluator(kernel)).emit()


def emit_kernel(
    prim_func: PrimFunc, placement: Placement, vectors: Vectors, body: Callable[[Kernel], None]
) -> None:
    """Replaces the tensor program by a kernel whose body `body` emits."""
    old_scalars = [
        a for a in placement.program.op.entry_block.arguments if isinstance(a.type, ir.IndexType)
    ]

    def emit(function: func.FuncOp, module: ir.Module) -> None:
        arguments = function.entry_block.arguments
        buffers = [a for a in arguments if isinstance(a.type, ir.MemRefType)]
        names = [a for a in arguments if not isinstance(a.type, ir.MemRefType)]
        symbols = dict(zip(prim_func.sym_names, names, strict=True))
        kernel = Kernel(
            placement, vectors, buffers, symbols,
            ir.InsertionPoint.at_block_begin(module.body),
        )  # fmt: skip
        kernel.scalars.update(zip(old_scalars, names, strict=True))
        body(kernel)
        kernel.finish()
        join_borders(function)

    emit_on_buffers(prim_func, emit)


def emit_on_buffers(prim_func: PrimFunc, body: Callable[[func.FuncOp, ir.Module], None]) -> None:
    """Replaces a tensor program by a kernel on memrefs, whose ops `body` emits.

    It takes the new function, and the module that the function is alone in.
    """
    module = ir.Module.create(prim_func.op.location)
    function = _declare(prim_func, module)
    with ir.InsertionPoint(function.entry_block), prim_func.op.location:
        end = func.ReturnOp([])
    with ir.InsertionPoint(end), prim_func.op.location:
        body(function, module)
    run_upstream(_CLEAN, module.operation)
    if skip_rounds(module):
        run_upstream(_CLEAN, module.operation)
    module.operation.verify()
    with ir.InsertionPoint(prim_func.op):
        for op in module.body.operations:
            op.operation.clone()
    prim_func.op.operation.erase()


def _declare(prim_func: PrimFunc, module: ir.Module) -> func.FuncOp:
    """The kernel's function: the same attributes, buffers instead of tensors."""
    kinds = [_buffer_type(a.type) for a in prim_func.arguments]
    old = prim_func.op.operation.attributes
    with ir.InsertionPoint(module.body), prim_func.op.location:
        function = func.FuncOp(prim_func.name, ir.FunctionType.get(kinds, []))
    for key in old:
        if key not in ("function_type", "res_attrs", "sym_name"):
            function.operation.attributes[key] = old[key]
    function.operation.attributes[SCHEDULED] = ir.UnitAttr.get()
    function.add_entry_block([a.location for a in prim_func.arguments])
    return function


def _buffer_type(type_: ir.Type) -> ir.Type:
    if not isinstance(type_, ir.RankedTensorType):
        return type_
    kind = ir.RankedTensorType(type_)
    return ir.MemRefType.get(kind.shape, storage_type(kind.element_type))
