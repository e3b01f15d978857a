"""WebAssembly: reads the objects that LLVM emits for it, and links them to a module."""

from relax_mlir.codegen.wasm.link import link_module
from relax_mlir.codegen.wasm.objects import public_functions

__all__ = ["link_module", "public_functions"]
