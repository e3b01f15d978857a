"""Memory of a group as warpgroups read it: rows of 128 bytes, of which 16 are in another order.

    element (outer, inner) of a step  ->  block inner / 64, row outer, unit inner / 8 xor outer

so that units of eight rows are in different banks, in whichever direction they are read. What is
multiplied is named by a descriptor: where it begins, and how far apart its parts are.

Source: NVIDIA, PTX ISA 8.5, asynchronous warpgroup-level matrix instructions, matrix descriptor.
"""

from dataclasses import dataclass

from relax_mlir.bindings import arith, ir
from relax_mlir.schedule.build import loops
from relax_mlir.schedule.build.loops import Index

from .copies import UNIT_BYTES, SidePlan

ROW, ROW_BYTES = 64, 128
"""Elements and bytes of a row, which is one of eight that are in an order of their own."""
UNIT = 8
"""Elements of 16 bytes."""
STEP = 16
"""Elements along k of a product."""
_EIGHT_ROWS = 8 * ROW_BYTES
_SWIZZLE = 1 << 62
"""Of a descriptor: rows have 128 bytes, whose units are in another order."""


@dataclass(frozen=True)
class SwizzledPlan(SidePlan):
    """A side as warpgroups read it; see `SidePlan`."""

    @property
    def elements(self) -> int:
        """Elements of memory for a step."""
        return self.outer * self.inner

    def position(self, outer: Index, inner: Index) -> Index:
        """Where in memory of a step an element is."""
        block, own = loops.floor_div(inner, ROW), loops.mod(inner, ROW)
        unit, rest = loops.floor_div(own, UNIT), loops.mod(own, UNIT)
        swizzled = arith.xori(loops.value(unit), loops.value(loops.mod(outer, UNIT)))
        return loops.add(
            loops.mul(block, self.outer * ROW),
            loops.mul(outer, ROW),
            loops.mul(swizzled, UNIT),
            rest,
        )

    def descriptor(self, address: Index, k: int) -> ir.Value:
        """What names the rows from an address on, which begins with a row, at `k` of a step."""
        begin = k * ROW_BYTES
        if self.along_depth:
            begin = k // UNIT * UNIT_BYTES
        i64 = ir.IntegerType.get_signless(64)
        units = loops.value(loops.floor_div(loops.add(address, begin), UNIT_BYTES))
        # How far apart blocks are; where rows are along k there is one, and the field is to be 1.
        blocks = (1 if self.along_depth else self.outer * ROW_BYTES // UNIT_BYTES) << 16
        rows = _EIGHT_ROWS // UNIT_BYTES << 32
        layout = ir.IntegerAttr.get(i64, _SWIZZLE | rows | blocks)
        return arith.ori(arith.index_cast(i64, units), arith.constant(i64, layout))
