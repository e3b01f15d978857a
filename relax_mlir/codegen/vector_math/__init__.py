"""Math functions as vector arithmetic: no calls, no tables in the common case."""

from relax_mlir.codegen.vector_math.expand import expand_math

__all__ = ["expand_math"]
