"""The right side of a product, panel by panel: packed on the way, packed before, or widened."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from relax_mlir.bindings import ir
from relax_mlir.schedule.build.loops import Index, floor_div, mul
from relax_mlir.schedule.cpu.isa.step import Step

from .micro_kernel import Panel
from .packing import Matrix, copy_panel, widen_panel

Side = Callable[[Sequence[Index]], Matrix]
"""A matrix for each index of the batch."""


class Operand(Protocol):
    """The right side of a product, for each index of the batch."""

    @property
    def packs(self) -> bool:
        """Whether a panel is written to scratch memory before it is multiplied."""

    @property
    def converts(self) -> bool:
        """Whether elements of a panel are converted before they are multiplied."""

    @property
    def k_unit(self) -> int:
        """Blocks of k are multiples of so many steps, a power of two."""

    def panel(
        self, batch: Sequence[Index], index: Index, k: Index, depth: Index, buffer: ir.Value | None
    ) -> Panel:
        """A panel along `depth` steps from k on; `buffer` is where it is packed, if it `packs`."""


@dataclass(frozen=True)
class Unpacked:
    """A matrix in memory, which is packed for a step in panels of `vectors` vectors."""

    step: Step
    vectors: int
    side: Side
    packs = True
    converts = False
    k_unit = 1

    def panel(
        self, batch: Sequence[Index], index: Index, k: Index, depth: Index, buffer: ir.Value | None
    ) -> Panel:
        """See `Operand`."""
        assert buffer is not None
        column = mul(index, self.vectors * self.step.lanes)
        copy_panel(self.step, self.side(batch), column, k, depth, self.vectors, buffer)
        return Panel(buffer, 0)


@dataclass(frozen=True)
class Packed:
    """Panels [panel, k, column, element of the group], packed before the call.

    The matrix describes the first one: `row_stride` is the distance between panels.
    """

    side: Side
    converts: bool
    packs = False
    k_unit = 1

    def panel(
        self, batch: Sequence[Index], index: Index, k: Index, depth: Index, buffer: ir.Value | None
    ) -> Panel:
        """See `Operand`."""
        side = self.side(batch)
        return Panel(side.buffer, side.at(index, k), side.convert)


@dataclass(frozen=True)
class Pairs:
    """Panels of pairs of bf16 elements, packed before the call, multiplied as f32 elements.

    They are widened `once` for all rows, to memory, or in registers for each register block.
    """

    side: Side
    lanes: int
    vectors: int
    once: bool
    converts = True
    k_unit = 2

    @property
    def packs(self) -> bool:
        """See `Operand`."""
        return self.once

    def panel(
        self, batch: Sequence[Index], index: Index, k: Index, depth: Index, buffer: ir.Value | None
    ) -> Panel:
        """See `Operand`."""
        side = self.side(batch)
        if buffer is None:
            return Panel(side.buffer, side.at(index, floor_div(k, 2)), halved=True)
        widen_panel(side, index, k, depth, self.lanes, self.vectors, buffer)
        return Panel(buffer, 0)
