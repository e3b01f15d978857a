"""What matrix multiplication kernels compute: batches of products of matrices, packed or not."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum, auto

from relax_mlir.schedule.build.block import Epilogue
from relax_mlir.schedule.build.loops import Index, floor_div, mul, unravel
from relax_mlir.schedule.cpu.isa.step import Step

from .gemm_tile import Panel
from .packing import Matrix

SHORT_K = 28
"""Steps along k of a tile that is done before the lines are there that it stores to."""


class Widening(Enum):
    """When panels of pairs of bf16 numbers are made f32 numbers."""

    ONCE = auto()
    """To memory, for all rows."""
    IN_REGISTERS = auto()
    """For each tile, while it multiplies."""


@dataclass(frozen=True)
class Problem:
    """What to compute: products that share their left side, for every index of the batch.

    `lhs(batch)` and `rhs[p](batch)` are the matrices at one index; with `packed` the right sides
    are panels [number of panels, depth, columns] of which the matrix describes the first
    (`row_stride` is then the distance of two panels). `depth` counts steps along k; with groups of
    several elements, panels are [number of panels, depth, columns, group]. Sums begin at `initial`,
    and `factor` times the sum of a row of the left side. Where `widening` says how, packed panels
    are of pairs of bf16 elements, and are made f32 elements. Where lines of a result's rows
    displace one another in a cache, it `collides`.
    """

    batch: tuple[Index, ...]
    rows: Index
    columns: Index
    depth: Index
    lhs: Callable[[Sequence[Index]], Matrix]
    rhs: tuple[Callable[[Sequence[Index]], Matrix], ...]
    packed: bool
    initial: float
    epilogue: Epilogue
    step: Step
    factor: int = 0
    widening: Widening | None = None
    collides: bool = False

    @property
    def passes_rows_once(self) -> bool:
        """Whether all columns of a tile's rows come before the next rows, to store in order.

        Panels that are packed on the way would be packed for each tile.
        """
        is_short = isinstance(self.depth, int) and self.depth <= SHORT_K
        return self.packed and self.collides and is_short

    @property
    def batch_size(self) -> Index:
        """Number of matrices."""
        return mul(1, *self.batch)

    def batch_index(self, linear: Index) -> tuple[Index, ...]:
        """The index of the batch that has this number, counted row by row."""
        return unravel(linear, self.batch)


def packed_panel(problem: Problem, side: Matrix, panel: Index, k: Index) -> Panel:
    """A panel of packed weights from k on, as it is multiplied or widened in registers."""
    if problem.widening is Widening.IN_REGISTERS:
        return Panel(side.buffer, side.at(panel, floor_div(k, 2)), halved=True)
    return Panel(side.buffer, side.at(panel, k), side.convert)
