"""A step along k of sums of products, in vector registers: the inner product of a kernel.

    sums[i] += sum over j < group of left[j] * right[i][j]

`left` is one element of the left side, or a group of elements along k, broadcast to all lanes;
`right` has an element, or a group, for each lane. Kernels ask a step how both are stored and
loaded, so that one nest of loops serves all element types.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass

from relax_mlir.bindings import arith, ir, memref, vector
from relax_mlir.dialects.graph import element_bits
from relax_mlir.schedule.build.loops import (
    Index,
    broadcast,
    splat_of,
    value,
    vector_type,
)

from .pointers import load_at_address


@dataclass(frozen=True)
class Step(ABC):
    """The step for `lanes` sums at once."""

    lanes: int

    @property
    @abstractmethod
    def group(self) -> int:
        """Elements along k that a lane takes in one step."""

    @property
    @abstractmethod
    def element(self) -> ir.Type:
        """The type of a panel's elements."""

    @property
    @abstractmethod
    def storage(self) -> ir.Type:
        """The type in which an element or group of the left side is stored."""

    @property
    @abstractmethod
    def total(self) -> ir.Type:
        """The element type of the sums."""

    @abstractmethod
    def __call__(self, left: ir.Value, right: ir.Value, sums: ir.Value) -> ir.Value:
        """The next sums."""

    @property
    def bytes(self) -> int:
        """Bytes of a lane."""
        return element_bits(self.total) // 8

    @property
    def has_masks(self) -> bool:
        """Whether masked loads cost no more than unmasked ones."""
        return self.bytes * self.lanes == 64

    @property
    def tile_product(self) -> str:
        """The instruction that does the same on tile registers; empty if there is none."""
        return ""

    @property
    def width(self) -> int:
        """Elements of a vector of a panel."""
        return self.group * self.lanes

    @property
    def copied(self) -> int:
        """Elements of the left side that are loaded and packed at a time."""
        return self.width

    @property
    def reads_in_place(self) -> bool:
        """Whether `left_at` also reads the matrix itself, which is not packed."""
        return self.group == 1

    def pack(self, x: ir.Value) -> ir.Value:
        """Packs a vector of elements of the left side to lanes of `storage`."""
        return x

    def unpack(self, x: ir.Value) -> ir.Value:
        """Unpacks lanes of `storage` to factors."""
        return x

    def right_of(self, x: ir.Value) -> ir.Value:
        """The factors of a vector that was loaded from a panel."""
        return x

    def left_at(self, buffer: ir.Value, at: Index) -> ir.Value:
        """The element or group of the left side at an offset, broadcast to every lane."""
        return self.unpack(broadcast(memref.load(buffer, [value(at)]), self.lanes))

    def left_at_address(self, address: ir.Value, offset: int) -> ir.Value:
        """The same at so many bytes after an address (`opaque_address`)."""
        return self.unpack(broadcast(load_at_address(address, offset, self.storage), self.lanes))

    def splat(self, element_value: float) -> ir.Value:
        """Sums that all have one value."""
        return splat_of(element_value, self.lanes, self.total)

    def add(self, a: ir.Value, b: ir.Value) -> ir.Value:
        """The sums of two vectors of sums."""
        return arith.addf(a, b) if isinstance(self.total, ir.FloatType) else arith.addi(a, b)

    def add_up(self, packed: ir.Value, sums: ir.Value) -> ir.Value:
        """Adds the elements in each packed lane of the left side to `sums`."""
        return self(self.unpack(packed), self.ones, sums)

    @property
    def ones(self) -> ir.Value:
        """Factors that are all one."""
        return splat_of(1, self.width, self.element)

    def groups(self, x: ir.Value) -> ir.Value:
        """A vector of elements as one lane for each group, which is transposed to make a panel."""
        kind = ir.VectorType(x.type)
        if self.group == 1:
            return x
        whole = ir.IntegerType.get_signless(kind.element_type.width * self.group)
        return vector.bitcast(vector_type(kind.shape[0] // self.group, whole), x)

    def ungrouped(self, x: ir.Value) -> ir.Value:
        """The elements of a vector that has one lane for each group."""
        if self.group == 1:
            return x
        return vector.bitcast(vector_type(self.width, self.element), x)
