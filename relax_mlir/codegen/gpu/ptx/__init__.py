"""Kernels as PTX text, by MLIR's lowering to NVVM and LLVM's printer; no driver is needed."""

from .printer import compile_ptx

__all__ = ["compile_ptx"]
