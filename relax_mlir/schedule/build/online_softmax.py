"""What every online softmax is made of. Source: arXiv 1805.02867."""

from relax_mlir.bindings import arith, ir, math
from relax_mlir.dialects.tir import NOT_POSITIVE

LOWEST = -3.4028234663852886e38
"""The least f32, the maximum of no scores: differences of infinities would be NaN."""


def exponential(x: ir.Value, row_max: ir.Value) -> ir.Value:
    """e^(x - row_max), with an error relative to e^0, the largest term."""
    op = math.ExpOp(arith.subf(x, row_max), fastmath=arith.FastMathFlags.afn)
    op.attributes[NOT_POSITIVE] = ir.UnitAttr.get()
    return op.result
