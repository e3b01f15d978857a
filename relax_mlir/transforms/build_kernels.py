"""Schedules each tensor program, and has its code made while the next one is scheduled.

    func.func private @k(%x: tensor<?xf32, #graph.shape<["n"]>>, ...) { ... }
      ->
    func.func private @k(memref<?xf32>, ...) attributes {tir.scheduled}

What is left in the module is a declaration, which says of a kernel what host code has to know; the
code goes to the build that runs the pass. Without one, as in `relax-opt`, it goes to the cache.
A kernel depends on its tensor program, the target and the options of the pass alone, so what was
made of it before is found in the cache, and a module that is changed in one place is scheduled in
that place. `relax-schedule` does the same and leaves the kernels.

Needs: what `relax-schedule` needs. Leaves: declarations, and kernels that were scheduled before.
"""

from dataclasses import dataclass, field
from typing import ClassVar

from relax_mlir import cache
from relax_mlir.analysis.units import declaration
from relax_mlir.bindings import ir
from relax_mlir.codegen import Build, building, current_build
from relax_mlir.diagnostics import wants_details
from relax_mlir.dialects.tir import prim_funcs
from relax_mlir.fingerprint import compiler_fingerprint
from relax_mlir.passes import Pass
from relax_mlir.rewriting import alone
from relax_mlir.schedule.backends import backend_of
from relax_mlir.target import Target, native

from .schedule import schedule_one, unscheduled

SUFFIX = ".kernel"
_END = b"\0"


@dataclass(frozen=True)
class BuildKernels(Pass):
    """Schedules each tensor program, and has its code made while the next one is scheduled."""

    needs_verified: ClassVar[bool] = True

    target: Target = field(default_factory=native)
    fuse: bool = True

    def run(self, op: ir.Operation) -> None:
        """Replaces every tensor program that is not scheduled yet by a declaration."""
        build = current_build()
        if build is None:
            with building(self.target) as build:
                self._build_all(op, build)
                build.keep()
        else:
            self._build_all(op, build)

    def _build_all(self, op: ir.Operation, build: Build) -> None:
        functions = [prim_func.op for prim_func in unscheduled(op)]
        programs = list(map(alone, functions))
        texts = list(map(str, programs))
        # The largest first: the last to be compiled should be a small one.
        for i in sorted(range(len(texts)), key=lambda i: -len(texts[i])):
            declared = self._build(programs[i], texts[i], build)
            ir.InsertionPoint(functions[i]).insert(declared)
            functions[i].operation.erase()

    def _build(self, program: ir.Module, text: str, build: Build) -> ir.Operation:
        """The declaration, in no module yet, of a program, in a module of its own of that text."""
        (prim_func,) = prim_funcs(program.operation)
        name = prim_func.name
        key = repr((text, self.target, self.fuse, build.opt_level, compiler_fingerprint())).encode()
        known = None if wants_details() else cache.read(key, SUFFIX)
        if known is not None:
            declared, _, data = known.partition(_END)
            build.add_object(name, data)
            return ir.Operation.parse(declared.decode()).operation
        kernel = schedule_one(prim_func, backend_of(self.target), self.fuse)
        made = declaration(kernel).operation
        header = made.get_asm(use_local_scope=True).encode()
        build.add_kernel(program, name, lambda code: cache.store(key, [header, _END, code], SUFFIX))
        return made
