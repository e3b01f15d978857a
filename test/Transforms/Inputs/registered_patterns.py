"""Patterns that a file outside of the compiler registers."""

from relax_mlir.dialects.graph import TensorType
from relax_mlir.patterns import Match, is_op, register_pattern, wildcard


def is_narrow(matched: Match) -> bool:
    """Whether a product has 32 columns."""
    return str(TensorType.of(matched["y"]).dims[-1]) == "32"


register_pattern(
    "test.narrow", is_op("add")(is_op("matmul").named("y"), wildcard()), check=is_narrow
)
