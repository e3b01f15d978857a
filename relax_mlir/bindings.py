"""The one module that names the host MLIR package; everything else imports MLIR from here."""

from torch_mlir import ir, passmanager, rewrite
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
