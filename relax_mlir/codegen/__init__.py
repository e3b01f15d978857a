"""Code generation for CPUs: scheduled kernels and host code to a shared object.

    func, scf, vector, memref, arith, math, llvm  ->  LLVM IR  ->  objects  ->  shared object

`build_shared` is the one entry; `build_llvm` goes as far as LLVM IR. The kernels of a module become
objects of their own, compiled on all cores, while others are lowered, and cached one by one, so
that a module that is changed in one place is built in the time of that place. The runtime is one
more object.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from relax_mlir import cache
from relax_mlir.bindings import ir
from relax_mlir.codegen import llvm
from relax_mlir.codegen.elf import link_shared
from relax_mlir.codegen.elf_object import GLOBAL, read_object
from relax_mlir.codegen.lower import allow_contraction, lower_to_llvm, to_llvm_ir
from relax_mlir.codegen.names import protect_names
from relax_mlir.codegen.parallel import outline_parallel
from relax_mlir.codegen.separate import separate_kernels
from relax_mlir.codegen.split import split_module, with_linkage
from relax_mlir.codegen.vector_math import expand_math
from relax_mlir.runtime import bitcode_path
from relax_mlir.target import Target

LONG_HOST_CODE = 100_000
"""Characters from which host code is compiled quickly; shorter code is as fast as it can be."""


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
    with stats.stage("math"):
        allow_contraction(module)
        expand_math(module, target)
    with stats.stage("parallel"):
        outline_parallel(module)
    with stats.stage("separate"):
        kernels = separate_kernels(module, exports, protect_names(module, exports))
    with llvm.compiling(target, opt_level) as start:
        objects = _Objects(start, target, opt_level, stats)
        objects.add(llvm.Source("", bitcode_path(target.arch).read_bytes()))
        for kernel, names in kernels:
            objects.add(llvm.Source(with_linkage(_lowered(kernel, target, stats), names)))
        rest = _lowered(module, target, stats)
        if kernels:  # what is left is host code
            text = with_linkage(rest, (), exports)
            objects.add(llvm.Source(text, quick=len(text) > LONG_HOST_CODE))
        else:
            for part in split_module(rest, exports):
                objects.add(llvm.Source(part))
        with stats.stage("llvm"):
            data = objects.finished()
    with stats.stage("link"):
        return link_shared(data, [*exports, *_public(data[0])])


def _lowered(module: ir.Module, target: Target, stats: BuildStats) -> str:
    """The module as LLVM IR."""
    with stats.stage("lower"):
        lower_to_llvm(module, target)
    with stats.stage("translate"):
        return llvm.to_llvm_22(to_llvm_ir(module, is_checked=True))


def build_llvm(module: ir.Module, target: Target, stats: BuildStats | None = None) -> str:
    """The LLVM IR of such a module, which it consumes; raises CompileError as `build_shared`."""
    stats = BuildStats() if stats is None else stats
    with stats.stage("math"):
        allow_contraction(module)
        expand_math(module, target)
    with stats.stage("parallel"):
        outline_parallel(module)
    return _lowered(module, target, stats)


class _Objects:
    """Objects of sources, in order: from the cache, or compiled meanwhile and put there."""

    def __init__(
        self,
        start: Callable[[llvm.Source], Future[bytes]],
        target: Target,
        opt_level: int,
        stats: BuildStats,
    ) -> None:
        self._start, self._stats = start, stats
        self._settings = (target.triple, target.cpu, target.features, opt_level, llvm.version())
        self._found: list[tuple[bytes, Path | Future[bytes]]] = []

    def add(self, source: llvm.Source) -> None:
        """Looks a source up, and starts to compile it if there is no object of it."""
        key = repr((source, self._settings)).encode()
        path = cache.lookup(key, ".o")
        self._found.append((key, path or self._start(source)))
        self._stats.objects += 1
        self._stats.cached_objects += path is not None

    def finished(self) -> list[bytes]:
        """All objects; waits for those that are being compiled."""
        return [
            made.read_bytes() if isinstance(made, Path) else self._kept(key, made.result())
            for key, made in self._found
        ]

    def _kept(self, key: bytes, data: bytes) -> bytes:
        cache.store(key, [data], ".o")
        return data


@lru_cache(maxsize=4)  # one for each kind of machine
def _public(runtime: bytes) -> list[str]:
    """The functions that the runtime offers to host programs."""
    return [
        symbol.name
        for symbol in read_object(runtime).symbols
        if symbol.binding == GLOBAL and symbol.defined and not symbol.hidden
    ]
