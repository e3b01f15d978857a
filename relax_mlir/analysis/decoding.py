"""Which tensor programs decode: what they read is at most half as large as what they write.

A program that reads the result (a matrix multiplication) had better decode each element where it
needs it: memory traffic is what it saves, and this holds for every storage format, known or not.
"""

from relax_mlir.bindings import ir
from relax_mlir.dialects.graph import TensorType, annotation_of, exact_dims
from relax_mlir.symbolic import Expr, as_expr, at_most, product

from .compute_pattern import at_most as pattern_at_most
from .dataflow import Node


def decodes(node: Node) -> bool:
    """Whether a call computes each element by itself from operands of at most half the size."""
    if not pattern_at_most(node.kernel.pattern, "injective") or len(node.outs) != 1:
        return False
    annotations = [annotation_of(value) for value in (*node.ins, *node.outs)]
    tensors = [a for a in annotations if isinstance(a, TensorType) and a.is_exact]
    if len(tensors) < len(annotations):
        return False
    *ins, out = map(_bits, tensors)
    return at_most(2 * sum(ins, as_expr(0)), out).proved


def _bits(annotation: TensorType) -> Expr:
    """The size of a tensor, an expression."""
    element = annotation.element
    width = element.width if isinstance(element, ir.IntegerType | ir.FloatType) else 64
    return product(exact_dims(annotation.dims)) * width
