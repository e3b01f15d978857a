"""The vectors of a machine, all that loops know of it."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Vectors:
    """The size of vector registers in bytes, and their count."""

    bytes: int
    registers: int

    def lanes(self, bits: int) -> int:
        """How many elements of `bits` bits a vector has, at least 1."""
        return max(1, 8 * self.bytes // max(8, bits))

    @property
    def has_masks(self) -> bool:
        """Whether there are instructions for masked loads and stores."""
        return self.bytes >= 32
