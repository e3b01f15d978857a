"""Weights of recurrent layers in integers, and their products with floats that are rounded."""

from dataclasses import dataclass

from relax_mlir.bindings import ir
from relax_mlir.dialects import graph
from relax_mlir.dialects.graph import ShapeError, dims_differ
from relax_mlir.symbolic import Expr

from ..emit import astype, dims_of, dims_text, element_of, emit, multiply, rank_of, scalar
from ..quantized import dynamic_quantize_linear, matmul_integer
from .steps import Product


@dataclass(frozen=True)
class Quantized:
    """Integers with scales and zero points [directions] or [directions, columns]."""

    values: ir.Value
    scale: ir.Value
    zero_point: ir.Value | None = None

    def product(self, direction: int, columns: Expr) -> Product:
        """The product of floats, rounded to 8 bits by one scale, with weights of a direction."""
        scale = self._part(self.scale, direction, columns)
        zero = None
        if self.zero_point is not None:
            zero = self._part(self.zero_point, direction, columns)

        def build(x: ir.Value, weights: ir.Value) -> ir.Value:
            rounded, own, first = dynamic_quantize_linear(x)
            sums = matmul_integer(rounded, weights, first, zero)
            element = element_of(x)
            factor = multiply(astype(own, element), astype(scale, element))
            return multiply(astype(sums, element), factor)

        return build

    def _part(self, value: ir.Value, direction: int, columns: Expr) -> ir.Value:
        """A parameter of a direction: for all columns, or of rank 0."""
        dims = dims_of(value)
        if rank_of(value) not in (1, 2) or (len(dims) == 2 and dims_differ(dims[1], columns)):
            raise ShapeError(
                f"expects scales of 1 or {columns} columns, but got dims {dims_text(dims)}"
            )
        if dims_differ(dims[0], dims_of(self.values)[0]):
            raise ShapeError(f"has scales of {dims[0]} directions, for {dims_of(self.values)[0]}")
        at = scalar(direction, ir.IntegerType.get_signless(64))
        return emit(graph.TakeOp, value, at, axis=0)
