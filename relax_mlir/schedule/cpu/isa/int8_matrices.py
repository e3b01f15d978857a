"""The step of a product of 8-bit matrices by products of small matrices, exact modulo 2^32.

    sums[i][j] += sum over l < 8 of left[i][l] * right[j][l]      i, j < 2, in each 16 bytes

    i8mm (aarch64)    smmla     both sides signed
                      ummla     both sides unsigned
                      usmmla    one side is signed, one unsigned

Two rows of the left side meet pairs of columns. While sums are added up, a vector has those of both
rows, so that two vectors have what two rows of sums are otherwise: half as many instructions as dot
products take.

Source: Arm architecture reference manual; LLVM `IntrinsicsAArch64.td`.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from relax_mlir.bindings import arith, ir, llvm, vector
from relax_mlir.schedule.build.loops import Index, load, splat_integer, vector_type
from relax_mlir.target import Cpu

from .step import Step

GROUP = 8
"""Elements along k that a row and a column have in an instruction."""
_SEGMENT = 2 * GROUP
"""Bytes of two rows, or of two columns."""
_NAMES = {(True, True): "smmla", (False, False): "ummla"}


@dataclass(frozen=True)
class Int8Matrices(Step):
    """The step for two rows; `left` and `right` say whether a side is signed."""

    left: bool
    right: bool

    @staticmethod
    def of(cpu: Cpu, left: bool, right: bool) -> "Int8Matrices | None":
        """The step of a target for sides that are stored as signed or as unsigned elements."""
        if cpu.arch != "aarch64" or not cpu.has("i8mm") or cpu.f32_lanes < _SEGMENT // 4:
            return None
        return Int8Matrices(cpu.f32_lanes, left, right)

    @property
    def group(self) -> int:
        """See `Step`."""
        return GROUP

    @property
    def element(self) -> ir.Type:
        """See `Step`."""
        return ir.IntegerType.get_signless(8)

    @property
    def storage(self) -> ir.Type:
        """See `Step`."""
        return ir.IntegerType.get_signless(8 * GROUP)

    @property
    def total(self) -> ir.Type:
        """See `Step`."""
        return ir.IntegerType.get_signless(32)

    @property
    def bytes(self) -> int:
        """Bytes of a lane while it is multiplied, in two vectors."""
        return GROUP

    def pack(self, x: ir.Value) -> ir.Value:
        """See `Step`."""
        return self.groups(x)

    def add_up(self, packed: ir.Value, sums: ir.Value) -> ir.Value:
        """See `Step`."""
        ones = splat_integer(1, self.width // 2, self.element)
        name = f"llvm.aarch64.neon.{'sdot' if self.left else 'udot'}"
        zero = self.splat(0)
        halves = [
            llvm.call_intrinsic(sums.type, name, [zero, half, ones], [], [])
            for half in self._halves(self.ungrouped(packed))
        ]
        parts = [vector.shuffle(*halves, list(range(i, 2 * self.lanes, 2))) for i in range(2)]
        return arith.addi(sums, arith.addi(*parts))

    def __call__(self, left: ir.Value, right: ir.Value, sums: ir.Value) -> ir.Value:
        """The next sums of two rows and half of the columns of a vector."""
        operands = [right, left] if self._is_swapped else [left, right]
        name = f"llvm.aarch64.neon.{_NAMES.get((self.left, self.right), 'usmmla')}"
        return llvm.call_intrinsic(sums.type, name, [sums, *operands], [], [])

    def both(self, buffer: ir.Value, first: Index, second: Index) -> ir.Value:
        """The groups of two rows at their offsets, in each segment of a vector."""
        groups = [load(buffer, at, 1) for at in (first, second)]
        order = [0, 1] * (self.lanes // 4)
        kind = vector_type(self.lanes // 2 * GROUP, self.element)
        return vector.bitcast(kind, vector.shuffle(*groups, order))

    def columns_of(self, right: ir.Value) -> list[ir.Value]:
        """The two halves of the columns of a vector of a panel."""
        return self._halves(right)

    def gather(self, first: ir.Value, second: ir.Value) -> list[ir.Value]:
        """Two rows of sums as those of halves of the columns."""
        return [vector.shuffle(first, second, self._order(half)) for half in range(2)]

    def scatter(self, halves: Sequence[ir.Value]) -> list[ir.Value]:
        """The inverse of `gather`."""
        order = [*self._order(0), *self._order(1)]
        inverse = sorted(range(len(order)), key=order.__getitem__)
        rows = (inverse[: self.lanes], inverse[self.lanes :])
        return [vector.shuffle(*halves, row) for row in rows]

    def _order(self, half: int) -> list[int]:
        """Where the sums of half of the columns are in two rows, one after the other."""
        begin = half * self.lanes // 2
        inner = [(r, c) for r in range(2) for c in range(2)]
        if self._is_swapped:
            inner = [(r, c) for c in range(2) for r in range(2)]
        segments = range(begin, begin + self.lanes // 2, 2)
        return [self.lanes * r + column + c for column in segments for r, c in inner]

    @property
    def _is_swapped(self) -> bool:
        """Whether the right side is the first operand, which is unsigned if one is."""
        return self.left and not self.right

    def _halves(self, x: ir.Value) -> list[ir.Value]:
        size = self.width // 2
        kind = vector_type(size, self.element)
        return [vector.extract_strided_slice(kind, x, [begin], [size], [1]) for begin in (0, size)]
