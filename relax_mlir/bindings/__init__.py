"""The one package that names the host MLIR package; everything else imports MLIR from here."""

from torch_mlir import ir, passmanager
from torch_mlir._mlir_libs import _mlir
from torch_mlir.dialects import (
    affine,
    arith,
    bufferization,
    builtin,
    cf,
    ext,
    func,
    gpu,
    irdl,
    llvm,
    math,
    memref,
    nvgpu,
    nvvm,
    scf,
    tensor,
    vector,
)

from . import arities, foreign, linalg

# The bindings import the module of a dialect at every attribute of it that they meet, until that
# succeeds; finding ours at once makes passes four times as fast. `linalg` is to be the one here.
_mlir.globals.dialect_search_modules = [__name__, "torch_mlir.dialects", "relax_mlir.dialects"]

__all__ = [
    "affine",
    "arith",
    "arities",
    "bufferization",
    "builtin",
    "cf",
    "ext",
    "foreign",
    "func",
    "gpu",
    "ir",
    "irdl",
    "linalg",
    "llvm",
    "math",
    "memref",
    "nvgpu",
    "nvvm",
    "passmanager",
    "scf",
    "tensor",
    "vector",
]
