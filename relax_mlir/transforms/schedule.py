"""Schedules every tensor program for a target, by rules.

    func.func private @k(%x: tensor<?xf32>, %out: tensor<?xf32>) attributes {tir.prim_func}
      ->
    func.func private @k(%x: memref<?xf32>, %out: memref<?xf32>) attributes {tir.scheduled}

Outputs are computed into the out parameters; intermediate tensors are fused away, stay in
registers, or are scratch memory that the kernel frees. `fuse=false` keeps every op separate, except
epilogues of matrix products, which are always fused. The work of a call stays on the kernel as
`tir.flops` and `tir.bytes`: see `analysis.work`. What functions on the host call is scheduled for
the CPU in front of the target's device: a program that others call too is copied.

Needs: tensor programs of linalg, tensor, arith and math ops. Leaves: no tensor in them.
Source: paper §4.6 (analysis-based program optimisation); TVM DLight.
"""

from dataclasses import dataclass, field, replace
from typing import ClassVar

from relax_mlir.analysis.devices import is_marked
from relax_mlir.analysis.functions import graph_functions
from relax_mlir.analysis.work import work_of
from relax_mlir.bindings import func, ir
from relax_mlir.dialects.graph import CallTirInplaceOp, CallTirOp
from relax_mlir.dialects.tir import PrimFunc, prim_funcs
from relax_mlir.passes import Pass
from relax_mlir.rewriting import SymbolNames, walk_ops
from relax_mlir.schedule.backend import Backend, schedule
from relax_mlir.schedule.backends import backend_of
from relax_mlir.target import Target, native


@dataclass(frozen=True)
class Schedule(Pass):
    """Schedules every tensor program for a target, by rules."""

    needs_verified: ClassVar[bool] = True

    target: Target = field(default_factory=native)
    fuse: bool = True

    def run(self, op: ir.Operation) -> None:
        """Schedules every tensor program of the module that is not scheduled yet."""
        backend, on_host = backend_of(self.target), frozenset[str]()
        of_host = backend
        if self.target.device is not None:
            on_host = separate_host_kernels(op)
            of_host = backend_of(replace(self.target, device=None))
        describe_scheduled(op, backend)
        for prim_func in unscheduled(op):
            own = of_host if prim_func.name in on_host else backend
            schedule_one(prim_func, own, self.fuse)


def unscheduled(module: ir.Operation) -> list[PrimFunc]:
    """The tensor programs of a module that are not scheduled yet."""
    return [prim_func for prim_func in prim_funcs(module) if not prim_func.is_scheduled]


def separate_host_kernels(module: ir.Operation) -> frozenset[str]:
    """The programs that functions on the host call, and no others: those that do get a copy."""
    block, copies = module.regions[0].blocks[0], dict[str, str]()
    names, kernels = SymbolNames(block), {kernel.name: kernel for kernel in prim_funcs(module)}
    calls: dict[bool, list[CallTirOp | CallTirInplaceOp]] = {False: [], True: []}
    for function in graph_functions(module):
        calls[is_marked(function)] += walk_ops(function, CallTirOp)
        calls[is_marked(function)] += walk_ops(function, CallTirInplaceOp)
    elsewhere = {call.callee_name for call in calls[False]}
    for call in calls[True]:
        name = call.callee_name
        if name in elsewhere and name in kernels:
            if name not in copies:
                copies[name] = names.fresh(f"{name}_on_host")
                with ir.InsertionPoint.after(kernels[name].op):
                    copy = kernels[name].op.operation.clone()
                copy.attributes["sym_name"] = ir.StringAttr.get(copies[name])
            call.attributes["callee"] = ir.FlatSymbolRefAttr.get(copies[name])
    return frozenset(call.callee_name for call in calls[True])


def describe_scheduled(module: ir.Operation, backend: Backend) -> None:
    """Writes on kernels that were scheduled before what they are made of, which host code reads."""
    for prim_func in prim_funcs(module):
        if prim_func.is_scheduled and not prim_func.op.is_external:
            backend.tell_instructions(prim_func.op)


def schedule_one(prim_func: PrimFunc, backend: Backend, fuse: bool) -> func.FuncOp:
    """The kernel that replaces a tensor program."""
    name, module, work = prim_func.name, prim_func.op.operation.parent, work_of(prim_func)
    schedule(prim_func, backend, fuse)
    kernel = ir.SymbolTable(module)[name]
    work.annotate(kernel)
    backend.tell_instructions(kernel)
    return kernel
