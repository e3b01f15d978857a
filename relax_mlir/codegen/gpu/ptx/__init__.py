"""Kernels as PTX text, by MLIR's lowering to NVVM and LLVM's printer; no driver is needed."""

from .memory import STATIC_BYTES
from .printer import compile_ptx

__all__ = ["STATIC_BYTES", "compile_ptx"]
