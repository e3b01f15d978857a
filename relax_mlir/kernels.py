"""Makes the code of each kernel as soon as it is scheduled, or finds what was made of it before.

    func.func private @k(%x: tensor<?xf32, #graph.shape<["n"]>>, ...) { ... }
      ->
    func.func private @k(memref<?xf32>, ...) attributes {tir.scheduled, tir.unit = "f32"}

What is left in the module is a declaration, which says of a kernel what host code has to know.
LLVM works on one kernel while the next one is scheduled. A kernel depends on its tensor program
and the target alone, so a module that is changed in one place is scheduled in that place.
"""

from collections.abc import Callable
from concurrent.futures import Future
from contextlib import nullcontext
from dataclasses import dataclass, field

from relax_mlir import cache
from relax_mlir.analysis.units import declaration
from relax_mlir.bindings import ir
from relax_mlir.codegen import Build
from relax_mlir.diagnostics import wants_details
from relax_mlir.dialects.tir import prim_funcs
from relax_mlir.fingerprint import compiler_fingerprint
from relax_mlir.passes import Pipeline, Timing
from relax_mlir.passes.elements import Nested
from relax_mlir.rewriting import alone
from relax_mlir.schedule.backends import backend_of
from relax_mlir.target import Target
from relax_mlir.transforms.schedule import Schedule, schedule_one, unscheduled

SUFFIX = ".kernel"
_END = b"\0"


class Kernels:
    """The kernels of a build."""

    def __init__(self, build: Build, timing: Timing | None = None) -> None:
        self._build, self._timing = build, timing
        self._new: list[tuple[bytes, str, Future[bytes]]] = []

    def built_by(self, pipeline: Pipeline) -> Pipeline:
        """The pipeline, whose `relax-schedule` also has each kernel built."""
        elements = tuple(
            _ScheduleAndBuild(element.target, element.fuse, build=self.build)
            if isinstance(element, Schedule)
            else element
            for element in pipeline.root.elements
        )
        return Pipeline(Nested(pipeline.root.anchor, elements))

    def build(self, program: ir.Module, text: str, target: Target, fuse: bool) -> ir.Operation:
        """Builds a tensor program, in a module of its own of that text, which it consumes.

        Returns a declaration of the kernel, which no module holds yet.
        """
        (prim_func,) = prim_funcs(program.operation)
        name = prim_func.name
        key = repr((text, target, fuse, self._build.opt_level, compiler_fingerprint())).encode()
        known = None if wants_details() else cache.read(key, SUFFIX)
        if known is not None:
            declared, _, data = known.partition(_END)
            self._build.add_object(name, data)
            return ir.Operation.parse(declared.decode()).operation
        declared = declaration(schedule_one(prim_func, backend_of(target), fuse)).operation
        with self._timing.span("(code of kernels)") if self._timing else nullcontext():
            made = self._build.add_kernel(program, name)
        self._new.append((key, declared.get_asm(use_local_scope=True), made))
        return declared

    def keep(self) -> None:
        """Puts what was made into the cache, once the build is finished."""
        for key, declared, made in self._new:
            cache.store(key, [declared.encode(), _END, made.result()], SUFFIX)


@dataclass(frozen=True)
class _ScheduleAndBuild(Schedule):
    """`relax-schedule` that leaves declarations of the kernels, and has them built."""

    build: Callable[[ir.Module, str, Target, bool], ir.Operation] = field(kw_only=True)

    @classmethod
    def name(cls) -> str:
        return Schedule.name()

    def run(self, op: ir.Operation) -> None:
        functions = [prim_func.op for prim_func in unscheduled(op)]
        programs = list(map(alone, functions))
        texts = list(map(str, programs))
        # The largest first: the last to be compiled should be a small one.
        for i in sorted(range(len(texts)), key=lambda i: -len(texts[i])):
            declared = self.build(programs[i], texts[i], self.target, self.fuse)
            ir.InsertionPoint(functions[i]).insert(declared)
            functions[i].operation.erase()
