"""Code generation for CPUs: scheduled kernels and host code to a shared object.

func, scf, vector, memref, arith, math, llvm  ->  LLVM IR  ->  objects  ->  shared object

with building(target) as build:
    build.add_kernel(kernel, name)         zero or more times: compiles it in the background
    data = build.finish(module, exports)   the rest, including kernels that were not added
"""

from relax_mlir.codegen.build import (
    Build,
    BuildStats,
    building,
    current_build,
    llvm_level,
    translating,
)

__all__ = ["Build", "BuildStats", "building", "current_build", "llvm_level", "translating"]
