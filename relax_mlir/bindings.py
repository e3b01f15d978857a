"""The one module that names the host MLIR package; everything else imports MLIR from here."""

from torch_mlir import ir, passmanager
from torch_mlir._mlir_libs import _mlir
from torch_mlir.dialects import (
    arith,
    ext,
    func,
    irdl,
    linalg,
    llvm,
    math,
    memref,
    scf,
    tensor,
    vector,
)

# The bindings import the module of a dialect at every attribute of it that they meet, until that
# succeeds; finding ours at once makes passes four times as fast.
_mlir.globals.append_dialect_search_prefix("relax_mlir.dialects")

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
