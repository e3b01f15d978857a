"""Schedules every tensor program for a target, by rules.

    func.func private @k(%x: tensor<?xf32>, %out: tensor<?xf32>) attributes {tir.prim_func}
      ->
    func.func private @k(%x: memref<?xf32>, %out: memref<?xf32>) attributes {tir.scheduled}

Outputs are computed into the out parameters; intermediate tensors are fused away, stay in
registers, or are scratch memory that the kernel frees. `fuse=false` keeps every op separate, except
epilogues of matrix products, which are always fused. The work of a call stays on the kernel as
`tir.flops` and `tir.bytes`: see `analysis.work`. What functions on the host call is scheduled for
the CPU in front of the target's devices, and what those on a device call for that one: a program
that is called on several has a copy for each. `graph.device` says so of a kernel that is of
another device than the first.

Needs: tensor programs of linalg, tensor, arith and math ops. Leaves: no tensor in them.
Source: paper §4.6 (analysis-based program optimisation); TVM DLight.
"""

from dataclasses import dataclass, field, replace
from typing import ClassVar

from relax_mlir.analysis.devices import mark, placed
from relax_mlir.analysis.functions import graph_functions
from relax_mlir.analysis.work import work_of
from relax_mlir.bindings import func, ir
from relax_mlir.dialects.graph import CallTirInplaceOp, CallTirOp
from relax_mlir.dialects.tir import PrimFunc, prim_funcs
from relax_mlir.passes import Pass, PassFailure
from relax_mlir.rewriting import SymbolNames, walk_ops
from relax_mlir.schedule.backend import Backend, schedule
from relax_mlir.schedule.backends import backend_of
from relax_mlir.target import Target, native
from relax_mlir.target.device import DEVICE as OF_TARGET
from relax_mlir.target.device import HOST, device_names, in_names

_Call = CallTirOp | CallTirInplaceOp


@dataclass(frozen=True)
class Schedule(Pass):
    """Schedules every tensor program for a target, by rules."""

    needs_verified: ClassVar[bool] = True

    target: Target = field(default_factory=native)
    fuse: bool = True

    def run(self, op: ir.Operation) -> None:
        """Schedules every tensor program of the module that is not scheduled yet."""
        backends = {OF_TARGET: backend_of(self.target)}
        elsewhere = dict[str, str]()
        if self.target.devices:
            elsewhere = separate_kernels(op)
            backends[HOST] = backend_of(replace(self.target, devices=()))
            for name, one in zip(device_names(self.target.devices), self.target.devices):
                backends[name] = backend_of(replace(self.target, devices=(one,)))
        describe_scheduled(op, backends[OF_TARGET])
        for prim_func in unscheduled(op):
            device = elsewhere.get(prim_func.name, OF_TARGET)
            if device not in backends:
                text = f"is called on '{device}', which target '{self.target}' does not have"
                raise PassFailure(prim_func.op, f"{text}; run relax-place-devices first")
            kernel = schedule_one(prim_func, backends[device], self.fuse)
            if device not in (HOST, OF_TARGET):
                mark(kernel, device)


def unscheduled(module: ir.Operation) -> list[PrimFunc]:
    """The tensor programs of a module that are not scheduled yet."""
    return [prim_func for prim_func in prim_funcs(module) if not prim_func.is_scheduled]


def separate_kernels(module: ir.Operation) -> dict[str, str]:
    """Where the programs run that are not run on the first device.

    A program that is called on several devices is copied for each of them.
    """
    block, callers = module.regions[0].blocks[0], dict[tuple[str, str], list[_Call]]()
    names, kernels = SymbolNames(block), {kernel.name: kernel for kernel in prim_funcs(module)}
    for function in graph_functions(module):
        calls: list[_Call] = [*walk_ops(function, CallTirOp), *walk_ops(function, CallTirInplaceOp)]
        for call in calls:
            if call.callee_name in kernels:
                callers.setdefault((call.callee_name, placed(function)), []).append(call)
    elsewhere, used = dict[str, str](), set[str]()
    for name, device in sorted(callers, key=lambda key: key[1] != OF_TARGET):
        own = name
        if name in used:
            own = names.fresh(f"{name}_on_{in_names(device)}")
            with ir.InsertionPoint.after(kernels[name].op):
                copy = kernels[name].op.operation.clone()
            copy.attributes["sym_name"] = ir.StringAttr.get(own)
            for call in callers[name, device]:
                call.attributes["callee"] = ir.FlatSymbolRefAttr.get(own)
        used.add(name)
        if device != OF_TARGET:
            elsewhere[own] = device
    return elsewhere


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
