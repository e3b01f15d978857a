"""Code generation for CPUs: scheduled kernels and host code to a shared object.

    func, scf, vector, memref, arith, math, llvm  ->  LLVM IR  ->  objects  ->  shared object

`build_shared` takes a whole module; `building` takes kernels one by one, and compiles them while
others are scheduled; `build_llvm` goes as far as LLVM IR.
"""

from collections.abc import Sequence

from relax_mlir.bindings import ir
from relax_mlir.codegen.build import Build, BuildStats, building, lowered, prepare
from relax_mlir.target import Target

__all__ = ["Build", "BuildStats", "build_llvm", "build_shared", "building"]


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
    with building(target, opt_level, stats) as build:
        return build.finish(module, exports)


def build_llvm(module: ir.Module, target: Target, stats: BuildStats | None = None) -> str:
    """The LLVM IR of such a module, which it consumes; raises CompileError as `build_shared`."""
    stats = BuildStats() if stats is None else stats
    prepare(module, target, stats)
    return lowered(module, target, stats)
