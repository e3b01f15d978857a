"""A complex tensor: two tensors, or one of floats with both parts along its last dim."""

from collections.abc import Callable
from dataclasses import dataclass

from relax_mlir.bindings import ir
from relax_mlir.decompositions.emit import broadcast_to, dims_of, element_of, emit, scalar
from relax_mlir.dialects import graph


@dataclass(frozen=True, eq=False)
class Pair:
    """A complex tensor: its real and its imaginary part, of the same dims."""

    real: ir.Value
    imaginary: ir.Value

    @property
    def parts(self) -> tuple[ir.Value, ir.Value]:
        """Both tensors."""
        return self.real, self.imaginary

    def map(self, function: Callable[[ir.Value], ir.Value]) -> "Pair":
        """A function of each part."""
        return Pair(*map(function, self.parts))


def of_real(x: ir.Value) -> Pair:
    """A real tensor with imaginary parts of 0."""
    return Pair(x, broadcast_to(scalar(0, element_of(x)), dims_of(x)))


def split(value: ir.Value) -> Pair:
    """Both parts of a complex tensor, which lie along its last dim."""
    axis, i64 = len(dims_of(value)) - 1, ir.IntegerType.get_signless(64)
    return Pair(*(emit(graph.TakeOp, value, scalar(i, i64), axis=axis) for i in (0, 1)))


def joined(pair: Pair) -> ir.Value:
    """Both parts along a last dim."""
    return graph.StackOp.build(*pair.parts, axis=-1).operation.results[0]
