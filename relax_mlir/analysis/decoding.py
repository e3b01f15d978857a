"""Which tensor programs decode: they read at most half as many bytes as they write.

A consumer of the result (a matrix multiplication) had better decode each element at its use: that
saves memory traffic, whatever the storage format.
"""

from collections.abc import Sequence

from relax_mlir.bindings import ir
from relax_mlir.dialects.graph import TensorType, annotation_of, exact_dims, recall
from relax_mlir.symbolic import Expr, as_expr, at_most, product

from .compute_pattern import at_most as pattern_at_most
from .dataflow import Node


def decodes(node: Node) -> bool:
    """Whether a call computes each element independently, from operands at most half as large."""
    if not pattern_at_most(node.pattern, "injective") or len(node.outs) != 1:
        return False
    types = [value.type for value in (*node.ins, *node.outs)]
    return recall(("decodes", *types), lambda: _halves(types))


def _halves(types: Sequence[ir.Type]) -> bool:
    """Whether the last tensor is at least twice as large as the others together."""
    annotations = list(map(annotation_of, types))
    tensors = [a for a in annotations if isinstance(a, TensorType) and a.is_exact]
    if len(tensors) < len(annotations):
        return False
    *ins, out = map(_bits, tensors)
    return at_most(2 * sum(ins, as_expr(0)), out).proved


def _bits(annotation: TensorType) -> Expr:
    """The size of a tensor in bits."""
    element = annotation.element
    width = element.width if isinstance(element, ir.IntegerType | ir.FloatType) else 64
    return product(exact_dims(annotation.dims)) * width
