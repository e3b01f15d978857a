"""Windows along one dim: how many there are, and how many elements each has in the input."""

from dataclasses import dataclass

from relax_mlir.bindings import ir
from relax_mlir.symbolic import Expr, minimum

from .emit import (
    add,
    arange,
    astype,
    floor_divide,
    maximum,
    subtract,
    symbol,
)
from .emit import minimum as smaller


@dataclass(frozen=True)
class Windows:
    """Windows of one spatial dim; `extra` is padding at its end that only `ceil_mode` asks for."""

    size: int
    stride: int
    low: int
    high: int
    dilation: int
    extra: int

    @property
    def extent(self) -> int:
        """The elements from the first one of a window to its last one."""
        return (self.size - 1) * self.dilation + 1

    def count(self, dim: Expr) -> Expr:
        """How many windows there are."""
        padded = dim + self.low + self.high + self.extra
        count = (padded - self.extent) // self.stride + 1
        if self.extra and self.stride > self.extent - self.high:
            return minimum(count, (dim + self.low - 1) // self.stride + 1)
        return count


def counts(
    windows: Windows, count: Expr, ends: tuple[Expr | int, Expr | int], element: ir.Type
) -> ir.Value:
    """How many elements of each window lie from one position of the input to in front of another.

    Those of a window that begins at s are s + i * dilation, for i below its size.
    """
    i64 = ir.IntegerType.get_signless(64)
    starts = arange(-windows.low, count, windows.stride, i64)
    below, above = (_reached(windows, starts, end) for end in ends)
    return astype(maximum(subtract(above, below), 0), element)


def _reached(windows: Windows, starts: ir.Value, end: Expr | int) -> ir.Value:
    """How many elements of each window lie in front of a position."""
    distance = subtract(symbol(end, ir.IntegerType.get_signless(64)), starts)
    if windows.dilation > 1:
        distance = floor_divide(add(distance, windows.dilation - 1), windows.dilation)
    return smaller(maximum(distance, 0), windows.size)
