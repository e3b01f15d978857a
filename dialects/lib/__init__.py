"""The `lib` dialect: declarations of external libraries' functions (paper §3.3)."""

from .conventions import DLPACK, RULES
from .dialect import FunctionOp, Lib

__all__ = ["DLPACK", "RULES", "FunctionOp", "Lib"]
