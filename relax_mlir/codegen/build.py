"""Builds a shared object, or a module for WebAssembly, from parts that are compiled early.

The runtime is one part, each kernel is one, and so is the host code. Objects are cached one by one,
so that a change to one kernel recompiles that kernel only.
"""

import time
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from relax_mlir import cache
from relax_mlir.bindings import ir
from relax_mlir.bindings import llvm as llvm_dialect
from relax_mlir.codegen import llvm
from relax_mlir.codegen.elf import link_parts
from relax_mlir.codegen.elf_data import Data
from relax_mlir.codegen.elf_imports import SYSTEMS
from relax_mlir.codegen.elf_object import GLOBAL, read_object
from relax_mlir.codegen.gpu import RUNTIMES, check_device, write_kernels
from relax_mlir.codegen.linkage import with_linkage
from relax_mlir.codegen.lower import allow_contraction, lower_to_llvm, to_llvm_ir
from relax_mlir.codegen.names import PREFIX, protect_names
from relax_mlir.codegen.parallel import outline_parallel
from relax_mlir.codegen.separate import separate_kernels
from relax_mlir.codegen.vector_math import expand_math
from relax_mlir.codegen.wasm import link_module, public_functions
from relax_mlir.data import DATA, contents
from relax_mlir.passes import Timing
from relax_mlir.runtime import bitcode_path
from relax_mlir.runtime.build import PROCESS, THREADS
from relax_mlir.target import WASM, Target

LONG_HOST_CODE = 100_000
"""Characters of host code from which on it is compiled with `quick`."""


@dataclass
class BuildStats:
    """The seconds of a build by stage, and the counts of its objects."""

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


class Build:
    """A shared object that is being built; made by `building`."""

    def __init__(
        self, objects: "_Objects", target: Target, opt_level: int, timing: Timing | None
    ) -> None:
        self.target, self.opt_level = target, opt_level
        self._objects, self._stats, self._timing = objects, objects.stats, timing
        self._kernels: set[str] = set()
        self._unsaved: list[tuple[Future[bytes], Callable[[bytes], object]]] = []
        self._runtimes = _runtimes(target)
        for path in self._runtimes:
            self._objects.add(llvm.Source("", path.read_bytes()))

    def add_kernel(
        self, module: ir.Module, name: str, keep: Callable[[bytes], object] | None = None
    ) -> None:
        """Starts to compile a scheduled kernel, in a module of its own, which it consumes.

        The module that `finish` takes declares the kernel. `keep` is called with the object once
        all are compiled. Raises CompileError, located, if an op cannot be lowered.
        """
        self._kernels.add(name)
        with self._timing.span("(code of kernels)") if self._timing else nullcontext():
            prepare(module, self.target, self._stats)
            protect_names(module, ())
            made = self._add(module, [PREFIX + name])
        if keep is not None:
            self._unsaved.append((made, keep))

    def add_object(self, name: str, data: bytes) -> None:
        """Adds the object that `add_kernel` made of a kernel of that name in an earlier build."""
        self._kernels.add(name)
        self._objects.add_finished(data)

    def finish(self, module: ir.Module, exports: Sequence[str]) -> list[bytes | memoryview]:
        """The parts of the shared object, of all kernels that were added and of a module.

        It consumes the module, and exports the functions named and the runtime's own. Raises
        CompileError: located if an op cannot be lowered, else if LLVM or the linker refuses.
        """
        exports = [name for name in exports if name not in self._kernels]
        if self.target.devices:
            with self._stats.stage("device"):
                write_kernels(module, self.target.devices)
        constants = _take_constants(module)
        prepare(module, self.target, self._stats)
        with self._stats.stage("separate"):
            references = protect_names(module, exports, self._kernels)
            kernels = separate_kernels(module, exports, references)
        for kernel, names in kernels:
            self._add(kernel, names)
        text = with_linkage(lowered(module, self.target, self._stats), (), exports)
        is_host_code = bool(kernels or self._kernels)
        self._objects.add(llvm.Source(text, quick=is_host_code and len(text) > LONG_HOST_CODE))
        data = self.keep()
        with self._stats.stage("link"):
            if self.target.host.arch == WASM:
                shared = has_shared_memory(self.target)
                return link_module(data, [*exports, *public_functions(data[0])], constants, shared)
            public = [name for each in data[: len(self._runtimes)] for name in _public(each)]
            unique = [name for name in public if name.startswith(PROCESS)]
            system = SYSTEMS[self.target.host.system]
            return link_parts(data, [*exports, *public], None, unique, constants, system)

    def keep(self) -> list[bytes]:
        """Waits for all objects and returns them; adds those that were compiled to the cache."""
        with self._stats.stage("llvm"):
            data = self._objects.finished()
        for made, keep in self._unsaved:
            keep(made.result())
        self._unsaved.clear()
        return data

    def llvm_text(self, module: ir.Module) -> str:
        """The LLVM IR of a module, which it consumes; raises CompileError as `finish` does."""
        prepare(module, self.target, self._stats)
        return lowered(module, self.target, self._stats)

    def _add(self, kernel: ir.Module, names: Collection[str]) -> Future[bytes]:
        text = with_linkage(lowered(kernel, self.target, self._stats), names)
        return self._objects.add(llvm.Source(text))


_current: ContextVar[Build | None] = ContextVar("_current", default=None)
_level: ContextVar[int] = ContextVar("_level", default=3)


@contextmanager
def translating() -> Iterator[None]:
    """Has LLVM translate only what is compiled within the block, in a tenth of the time.

    The results are the same. Tile registers are for optimised code only.
    """
    outer = _level.set(0)
    try:
        yield
    finally:
        _level.reset(outer)


def llvm_level() -> int:
    """The level at which LLVM optimises by default: 3, or 0 within `translating`."""
    return _level.get()


@contextmanager
def building(
    target: Target,
    opt_level: int | None = None,
    stats: BuildStats | None = None,
    timing: Timing | None = None,
) -> Iterator[Build]:
    """Yields a build for a target, current within the `with` block.

    `opt_level` is LLVM's, by default `llvm_level()`.

    `timing` receives the time in which kernels are lowered. Jobs that have not started when the
    `with` block ends are dropped. Raises TargetError if kernels are to run on a device for which
    there is no code.
    """
    check_device(target)
    level = llvm_level() if opt_level is None else opt_level
    with llvm.compiling(target, level) as start:
        objects = _Objects(start, target, level, BuildStats() if stats is None else stats)
        build = Build(objects, target, level, timing)
        outer = _current.set(build)
        try:
            yield build
        finally:
            _current.reset(outer)


def current_build() -> Build | None:
    """The build of the innermost enclosing `building`, if any."""
    return _current.get()


def prepare(module: ir.Module, target: Target, stats: BuildStats) -> None:
    """Expands math and outlines parallel loops, in place."""
    with stats.stage("math"):
        allow_contraction(module)
        expand_math(module, target.host)
    with stats.stage("parallel"):
        outline_parallel(module)


def lowered(module: ir.Module, target: Target, stats: BuildStats) -> str:
    """The module as LLVM IR, which it consumes."""
    with stats.stage("lower"):
        lower_to_llvm(module, target.host)
    with stats.stage("translate"):
        return llvm.to_llvm_22(to_llvm_ir(module, is_checked=True), target)


class _Objects:
    """Objects of sources, in order: from the cache, or compiled and added to it."""

    def __init__(
        self,
        start: Callable[[llvm.Source], Future[bytes]],
        target: Target,
        opt_level: int,
        stats: BuildStats,
    ) -> None:
        self._start, self.stats, cpu = start, stats, target.host
        self._settings = (cpu.triple, cpu.cpu, cpu.features, opt_level, llvm.version())
        self._made: list[Future[bytes]] = []
        self._pending: list[tuple[bytes, Future[bytes]]] = []

    def add(self, source: llvm.Source) -> Future[bytes]:
        """Looks a source up in the cache; starts to compile it if it is not there."""
        key = repr((source, self._settings)).encode()
        known = cache.read(key, ".o")
        if known is not None:
            return self.add_finished(known)
        made = self._start(source)
        self._pending.append((key, made))
        return self._added(made)

    def add_finished(self, data: bytes) -> Future[bytes]:
        """Adds an object that is compiled already."""
        self.stats.cached_objects += 1
        made: Future[bytes] = Future()
        made.set_result(data)
        return self._added(made)

    def _added(self, made: Future[bytes]) -> Future[bytes]:
        self.stats.objects += 1
        self._made.append(made)
        return made

    def finished(self) -> list[bytes]:
        """Waits for all objects and returns them; adds those that were compiled to the cache."""
        for key, made in self._pending:
            cache.store(key, [made.result()], ".o")
        return [made.result() for made in self._made]


def _take_constants(module: ir.Module) -> Data:
    """The constants that the linker adds, by the names of their variables."""
    constants = {}
    for op in module.body.operations:
        if isinstance(op, llvm_dialect.GlobalOp) and DATA in op.attributes:
            constants[op.sym_name.value] = contents(op.attributes[DATA])
            del op.attributes[DATA]
    return constants


def has_shared_memory(target: Target) -> bool:
    """Whether modules for WebAssembly have threads."""
    return target.host.arch == WASM and target.host.has("atomics") and not target.devices


def _runtimes(target: Target) -> list[Path]:
    """The parts of the C runtime: for devices there is one of its own, and one of each API."""
    host = target.host
    if not target.devices:
        part = THREADS if has_shared_memory(target) else ""
        return [bitcode_path(host.arch, host.system, part)]
    own = dict.fromkeys(RUNTIMES[device.api] for device in target.devices)
    common = [] if host.arch == WASM else ["device"]
    return [bitcode_path(host.arch, host.system, part) for part in [*common, *own]]


@lru_cache(maxsize=8)  # one per architecture and system
def _public(runtime: bytes) -> list[str]:
    """The runtime functions that a shared object exports to host programs."""
    return [
        symbol.name
        for symbol in read_object(runtime).symbols
        if symbol.binding == GLOBAL and symbol.defined and not symbol.hidden
    ]
