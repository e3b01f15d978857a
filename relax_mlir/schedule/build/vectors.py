"""What loops have to know of the machine that they are for: its vectors, and nothing else."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Vectors:
    """Vectors of so many bytes, and how many registers hold one each."""

    bytes: int
    registers: int

    def lanes(self, bits: int) -> int:
        """How many elements of so many bits a vector holds; 1 if they are as wide or wider."""
        return max(1, 8 * self.bytes // max(8, bits))

    @property
    def has_masks(self) -> bool:
        """Whether elements can be loaded and stored under a mask in an instruction."""
        return self.bytes >= 32
