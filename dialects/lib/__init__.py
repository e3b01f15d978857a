"""The `lib` dialect: declarations of external libraries' functions (paper §3.3)."""

from .dialect import FunctionOp, Lib

__all__ = ["FunctionOp", "Lib"]
