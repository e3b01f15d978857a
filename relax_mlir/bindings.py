"""The one module that names the host MLIR package; everything else imports MLIR from here."""

from torch_mlir import ir, passmanager, rewrite
from torch_mlir._mlir_libs import _mlir
from torch_mlir.dialects import (
    arith,
    bufferization,
    cf,
    ext,
    func,
    linalg,
    llvm,
    math,
    memref,
    scf,
    tensor,
    transform,
    vector,
)
from torch_mlir.dialects.transform import interpreter

# The bindings import the module of a dialect at every attribute of it that they meet, until that
# succeeds; finding ours at once makes passes four times as fast.
_mlir.globals.append_dialect_search_prefix("relax_mlir.dialects")

__all__ = [
    "arith",
    "bufferization",
    "cf",
    "ext",
    "func",
    "interpreter",
    "ir",
    "linalg",
    "llvm",
    "math",
    "memref",
    "passmanager",
    "rewrite",
    "scf",
    "tensor",
    "transform",
    "vector",
]
