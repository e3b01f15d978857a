"""Code generation for CPUs: scheduled kernels and host code to a shared object.

func, scf, vector, memref, arith, math, llvm  ->  LLVM IR  ->  objects  ->  shared object

with building(target) as build:
build.add_kernel(kernel, name)           any number of times, or never: compiles it meanwhile
data = build.finish(module, exports)     the rest, with the kernels that are still in it
"""

from relax_mlir.codegen.build import Build, BuildStats, building, current_build

__all__ = ["Build", "BuildStats", "building", "current_build"]
