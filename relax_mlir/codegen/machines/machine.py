"""What the linker asks of a machine: what relocations need, their encoding, stubs."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from enum import Enum
from typing import ClassVar

from relax_mlir.codegen.elf_object import Relocation, Section
from relax_mlir.runtime.elf_format import ELF64, Format

RELATIVE64 = 1 << 16
"""A relocation type of ours: the distance to the symbol, in 64 bits."""


class Need(Enum):
    """What a relocation's value is computed from."""

    ADDRESS = "the symbol's address"
    CALL = "the symbol's address, or that of a stub that jumps to it"
    SLOT = "the address of a slot that holds the symbol's address"
    BASE = "the address of the slots"
    TLS_PAIR = "the address of two slots: module and offset of a thread-local variable"
    TLS_MODULE = "the address of two slots: this module and zero"
    TLS_OFFSET = "the offset of a thread-local variable from the start of the module's"
    TLS_STATIC = "the address of a slot: offset of a thread-local variable from thread pointer"
    TLS_DESCRIPTOR = "the address of two slots: a function that finds the variable, and its data"
    NOTHING = "nothing: the relocation is a hint"


@dataclass(frozen=True)
class Dynamic:
    """The relocation types that the loader applies; -1 for those that no code of ours has."""

    absolute: int
    relative: int
    slot: int
    tls_module: int = -1
    tls_static: int = -1
    tls_descriptor: int = -1


Kinds = dict[int, tuple[Need, str]]
"""Type of a relocation -> source of its value, and its encoding."""


class Machine(ABC):
    """A machine; `page` is the size of the greatest pages that systems for it use."""

    format: ClassVar[Format] = ELF64
    elf_id: ClassVar[int]
    elf_flags: ClassVar[int] = 0
    page: ClassVar[int] = 0x1000
    stub_size: ClassVar[int]
    dynamic: ClassVar[Dynamic]
    names: ClassVar[dict[int, str]] = {}
    kinds: ClassVar[Kinds]

    @property
    def word(self) -> int:
        """The bytes of an address."""
        return self.format.word

    @property
    def whole(self) -> str:
        """The encoding of an address that fills a word, which the loader can write."""
        return f"absolute{8 * self.word}"

    @abstractmethod
    def stub(self, address: int, slot: int) -> bytes:
        """Code at an address that jumps to where the slot says."""

    def write(self, data: bytearray, at: int, how: str, value: int, start: int, base: int) -> None:
        """Writes a relocation's value; a distance is one from `start`, or from the slots at `base`.

        Raises OverflowError if it does not fit its field.
        """
        size = int(how[-2:]) // 8
        if how.startswith("relative"):
            value -= start
        elif how.startswith("from_base"):
            value -= base
        signed = not how.startswith("absolute")
        data[at : at + size] = value.to_bytes(size, "little", signed=signed)

    def completed(self, section: Section) -> list[Relocation]:
        """A section's relocations with what only this machine knows of them."""
        return section.relocations


def fitting(value: int, bits: int) -> int:
    """The value as a field of so many bits; OverflowError if it does not fit one with a sign."""
    if not -(1 << bits - 1) <= value < 1 << bits - 1:
        raise OverflowError
    return value & (1 << bits) - 1


def signed(field: int, bits: int) -> int:
    """The value of a field of so many bits, with a sign."""
    return field - (1 << bits) if field >> bits - 1 else field


def insert(data: bytearray, at: int, keep: int, bits: int, size: int = 4) -> None:
    """Sets the bits of the instruction at an offset that are not in the mask `keep`."""
    word = int.from_bytes(data[at : at + size], "little")
    data[at : at + size] = (word & keep | bits).to_bytes(size, "little")
