"""The micro-kernel of steps that multiply two rows at a time with halves of the columns.

    for each k
      for each two rows and half of the columns of a vector
        sums += left[both, k] * panel[k, half]

Sums are rearranged before and after, see `Int8Matrices.gather`. An odd last row meets itself.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from relax_mlir.bindings import ir
from relax_mlir.schedule.build.loops import Index, add, mul
from relax_mlir.schedule.cpu.blocking import Blocking
from relax_mlir.schedule.cpu.isa.int8_matrices import Int8Matrices
from relax_mlir.schedule.cpu.isa.step import Step

from .micro_kernel import Left, MicroKernel, Panel


@dataclass(frozen=True)
class MatrixKernel(MicroKernel):
    """See `MicroKernel`."""

    step: Int8Matrices

    @property
    def count(self) -> int:
        """See `MicroKernel`."""
        return 2 * len(self._pairs) * self.vectors

    @property
    def _pairs(self) -> list[tuple[int, int]]:
        """The rows that are multiplied together."""
        last = self.height - 1
        return [(row, min(row + 1, last)) for row in range(0, self.height, 2)]

    def sums(
        self, depth: Index, left: Left, last: Index, right: Panel, initial: Sequence[ir.Value]
    ) -> list[ir.Value]:
        """See `MicroKernel`."""
        gathered: list[ir.Value] = []
        for rows in self._pairs:
            for v in range(self.vectors):
                gathered += self.step.gather(*(initial[row * self.vectors + v] for row in rows))
        totals = super().sums(depth, left, last, right, gathered)
        result = list(initial)
        for i, rows in enumerate(self._pairs):
            for v in range(self.vectors):
                at = 2 * (i * self.vectors + v)
                both = self.step.scatter(totals[at : at + 2])
                for row, x in zip(rows, both, strict=True):
                    result[row * self.vectors + v] = x
        return result

    def step_along(
        self, k: Index, left: Left, rows: Sequence[Index], right: Panel, sums: Sequence[ir.Value]
    ) -> list[ir.Value]:
        """See `MicroKernel`."""
        width = self.step.width
        at = mul(k, self.blocking.vectors * width)
        self.prefetch(right, at, width)
        columns = [
            half
            for v in range(self.vectors)
            for half in self.step.columns_of(right.load(add(at, v * width), width, 0, True))
        ]
        start, result = add(left.offset, mul(k, left.pitch)), []
        for i, pair in enumerate(self._pairs):
            both = self.step.both(left.buffer, *(add(start, rows[row]) for row in pair))
            own = sums[i * len(columns) : (i + 1) * len(columns)]
            result += [self.step(both, *of) for of in zip(columns, own, strict=True)]
        return result


def micro_kernel(blocking: Blocking, step: Step, height: int, vectors: int) -> MicroKernel:
    """The micro-kernel of a step."""
    if isinstance(step, Int8Matrices):
        return MatrixKernel(blocking, step, height, vectors)
    return MicroKernel(blocking, step, height, vectors)
