"""The one module that names the host MLIR package; everything else imports MLIR from here."""

from torch_mlir import ir, passmanager
from torch_mlir._mlir_libs import _mlir

# Its ops alone: the module `linalg` also runs the language that they were once written in.
from torch_mlir.dialects import _linalg_ops_gen as linalg
from torch_mlir.dialects import (
    arith,
    ext,
    func,
    irdl,
    llvm,
    math,
    memref,
    scf,
    tensor,
    vector,
)

# The bindings import the module of a dialect at every attribute of it that they meet, until that
# succeeds; finding ours at once makes passes four times as fast. Ours come first, for `linalg`.
_mlir.globals.dialect_search_modules = [
    "relax_mlir.dialects",
    *_mlir.globals.dialect_search_modules,
]

__all__ = [
    "arith",
    "ext",
    "func",
    "ir",
    "irdl",
    "linalg",
    "llvm",
    "math",
    "memref",
    "passmanager",
    "scf",
    "tensor",
    "vector",
]
