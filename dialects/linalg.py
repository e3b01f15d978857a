"""What the bindings find where they look for the ops of `linalg`, which `bindings` has loaded."""

from relax_mlir.bindings import linalg

__all__ = ["linalg"]
