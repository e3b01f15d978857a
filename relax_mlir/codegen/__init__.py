"""Code generation for CPUs: scheduled kernels and host code to a shared object.

    func, scf, vector, memref, arith, math, llvm  ->  LLVM IR  ->  objects  ->  shared object

`build_shared` is the one entry; `build_llvm` goes as far as LLVM IR. The kernels of a module become
objects of their own, compiled on all cores and cached one by one, so that a module that is changed
in one place is built in the time of that place. The runtime is one more object.
"""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from relax_mlir import cache
from relax_mlir.bindings import ir
from relax_mlir.codegen import llvm
from relax_mlir.codegen.elf import link_shared
from relax_mlir.codegen.elf_object import GLOBAL, read_object
from relax_mlir.codegen.lower import allow_contraction, lower_to_llvm, to_llvm_ir
from relax_mlir.codegen.names import protect_names
from relax_mlir.codegen.parallel import outline_parallel
from relax_mlir.codegen.split import split_module
from relax_mlir.codegen.vector_math import expand_math
from relax_mlir.runtime import bitcode_path
from relax_mlir.target import Target


@dataclass
class BuildStats:
    """Where the time of a build went: seconds by stage, and how many objects there were."""

    seconds: dict[str, float] = field(default_factory=dict)
    objects: int = 0
    cached_objects: int = 0

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Adds the time of the `with` block to a stage."""
        start = time.perf_counter()
        yield
        self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - start

    def __str__(self) -> str:
        times = ", ".join(f"{name} {1e3 * value:.0f} ms" for name, value in self.seconds.items())
        return f"{times}; {self.objects} objects, {self.cached_objects} of them cached"


def build_shared(
    module: ir.Module,
    target: Target,
    exports: Sequence[str],
    opt_level: int = 3,
    stats: BuildStats | None = None,
) -> bytes:
    """The shared object of a module of scheduled kernels and host code, which it consumes.

    It exports the functions named and the runtime's own. `opt_level` (0 to 3) is LLVM's. Raises
    CompileError: located if an op cannot be lowered, else if LLVM or the linker refuses.
    """
    stats = BuildStats() if stats is None else stats
    kernels = sum("tir.scheduled" in op.operation.attributes for op in module.body.operations)
    llvm.start_workers(kernels)
    with stats.stage("math"):
        allow_contraction(module)
        expand_math(module, target)
    with stats.stage("parallel"):
        outline_parallel(module)
    with stats.stage("lower"):
        protect_names(module, exports)
        lower_to_llvm(module, target)
    with stats.stage("translate"):
        text = llvm.to_llvm_22(to_llvm_ir(module))
        parts = [llvm.Source(part) for part in split_module(text, exports)]
    with stats.stage("llvm"):
        runtime = llvm.Source("", bitcode_path(target.arch).read_bytes())
        objects = _compile([runtime, *parts], target, opt_level, stats)
    with stats.stage("link"):
        return link_shared(objects, [*exports, *_public(objects[0])])


def build_llvm(module: ir.Module, target: Target, stats: BuildStats | None = None) -> str:
    """The LLVM IR of such a module, which it consumes; raises CompileError as `build_shared`."""
    stats = BuildStats() if stats is None else stats
    with stats.stage("math"):
        allow_contraction(module)
        expand_math(module, target)
    with stats.stage("parallel"):
        outline_parallel(module)
    with stats.stage("lower"):
        lower_to_llvm(module, target)
    with stats.stage("translate"):
        return llvm.to_llvm_22(to_llvm_ir(module))


def _compile(
    sources: Sequence[llvm.Source], target: Target, opt_level: int, stats: BuildStats
) -> list[bytes]:
    """The objects of the sources, from the cache where they are in it."""
    settings = (target.triple, target.cpu, target.features, opt_level, llvm.version())
    keys = [repr((source, settings)).encode() for source in sources]
    paths = [cache.lookup(key, ".o") for key in keys]
    missing = [i for i, path in enumerate(paths) if path is None]
    made = llvm.compile_sources([sources[i] for i in missing], target, opt_level)
    for i, data in zip(missing, made, strict=True):
        paths[i] = cache.store(keys[i], [data], ".o")
    stats.objects += len(sources)
    stats.cached_objects += len(sources) - len(missing)
    return [path.read_bytes() for path in paths]


def _public(runtime: bytes) -> list[str]:
    """The functions that the runtime offers to host programs."""
    return [
        symbol.name
        for symbol in read_object(runtime).symbols
        if symbol.binding == GLOBAL and symbol.defined and not symbol.hidden
    ]
