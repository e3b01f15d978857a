"""The right side of a product, panel by panel: packed on the way, packed ahead, or widened."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from relax_mlir.bindings import ir
from relax_mlir.schedule.build.loops import Index, floor_div, mul
from relax_mlir.schedule.cpu.isa.step import Step

from .micro_kernel import Panel
from .packing import Matrix, copy_panel, widen_panel

Side = Callable[[Sequence[Index]], Matrix]
"""A matrix for every index of the batch."""


class Operand(Protocol):
    """The right side of a product, for every index of the batch."""

    @property
    def packs(self) -> bool:
        """Whether a panel is written to scratch memory before it is multiplied."""

    @property
    def converts(self) -> bool:
        """Whether what is loaded from a panel is not what is multiplied."""

    @property
    def k_unit(self) -> int:
        """Steps along k that a block of k is a multiple of, a power of two."""

    def panel(
        self, batch: Sequence[Index], number: Index, k: Index, depth: Index, room: ir.Value | None
    ) -> Panel:
        """A panel along `depth` steps from k on; `room` is where it is packed, if it `packs`."""


@dataclass(frozen=True)
class Unpacked:
    """A matrix as it lies, of which panels of `vectors` vectors are packed for a step."""

    step: Step
    vectors: int
    side: Side
    packs = True
    converts = False
    k_unit = 1

    def panel(
        self, batch: Sequence[Index], number: Index, k: Index, depth: Index, room: ir.Value | None
    ) -> Panel:
        """See `Operand`."""
        assert room is not None
        column = mul(number, self.vectors * self.step.lanes)
        copy_panel(self.step, self.side(batch), column, k, depth, self.vectors, room)
        return Panel(room, 0)


@dataclass(frozen=True)
class Packed:
    """Panels [panel, k, column, element of the group], packed ahead.

    The matrix describes the first one: `row_stride` is the distance of two panels.
    """

    side: Side
    converts: bool
    packs = False
    k_unit = 1

    def panel(
        self, batch: Sequence[Index], number: Index, k: Index, depth: Index, room: ir.Value | None
    ) -> Panel:
        """See `Operand`."""
        side = self.side(batch)
        return Panel(side.buffer, side.at(number, k), side.convert)


@dataclass(frozen=True)
class Pairs:
    """Panels of pairs of bf16 elements, packed ahead, that are multiplied as f32 elements.

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
        self, batch: Sequence[Index], number: Index, k: Index, depth: Index, room: ir.Value | None
    ) -> Panel:
        """See `Operand`."""
        side = self.side(batch)
        if room is None:
            return Panel(side.buffer, side.at(number, floor_div(k, 2)), halved=True)
        widen_panel(side, number, k, depth, self.lanes, self.vectors, room)
        return Panel(room, 0)
