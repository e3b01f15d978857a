"""The `lib` dialect: declarations of external libraries' functions (paper §3.3)."""

from .conventions import CUBLAS_NN, CUBLAS_NT, DLPACK, IM2COL, RULES, workspaces
from .dialect import FunctionOp, Lib
from .handed import (
    HOST_OPERANDS,
    HOST_RESULTS,
    TEXTS,
    check_declaration,
    handles_of,
    texts_of,
)

__all__ = [
    "CUBLAS_NN",
    "CUBLAS_NT",
    "DLPACK",
    "HOST_OPERANDS",
    "HOST_RESULTS",
    "IM2COL",
    "RULES",
    "TEXTS",
    "FunctionOp",
    "Lib",
    "check_declaration",
    "handles_of",
    "texts_of",
    "workspaces",
]
