"""Schedules each tensor program, and compiles it while the next one is scheduled.

    func.func private @k(%x: tensor<?xf32, #graph.shape<["n"]>>, ...) { ... }
      ->
    func.func private @k(memref<?xf32>, ...) attributes {tir.scheduled}

The module keeps a declaration with the attributes that host code needs; the code goes to the build
that runs the pass. Without one, as in `relax-opt`, it goes to the cache. A kernel depends only on
its tensor program, the target and the options of the pass, so an unchanged kernel is found in the
cache, and after a change to a module only changed kernels are scheduled. `relax-schedule` does the
same and leaves the kernels.

Needs: as `relax-schedule`. Leaves: declarations, and kernels that were scheduled before.
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

from .schedule import describe_scheduled, schedule_one, unscheduled

SUFFIX = ".kernel"
_END = b"\0"


@dataclass(frozen=True)
class BuildKernels(Pass):
    """Schedules each tensor program, and compiles it while the next one is scheduled."""

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
        describe_scheduled(op, backend_of(self.target))
        functions = [prim_func.op for prim_func in unscheduled(op)]
        programs = list(map(alone, functions))
        texts = list(map(str, programs))
        # The largest first, so that the last to be compiled is a small one.
        for i in sorted(range(len(texts)), key=lambda i: -len(texts[i])):
            declared = self._build(programs[i], texts[i], build)
            ir.InsertionPoint(functions[i]).insert(declared)
            functions[i].operation.erase()

    def _build(self, program: ir.Module, text: str, build: Build) -> ir.Operation:
        """Builds a program, alone in its module with the given text; returns its declaration."""
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
