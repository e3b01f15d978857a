"""The layouts of ELF's tables, of 64 and of 32 bits, little-endian.

Relocations of 64-bit files have addends; those of 32-bit ones leave them where they apply.

Source: System V ABI, edition 4.1, chapters 4 and 5, and its 64-bit form.
"""

from dataclasses import dataclass, field
from struct import Struct


@dataclass(frozen=True)
class Format:
    """A layout, for addresses of `word` bytes."""

    word: int
    magic: bytes
    header: Struct
    section: Struct
    entry: Struct
    """Of the table `.dynamic`."""
    _symbol: Struct = field(repr=False)
    _relocation: Struct = field(repr=False)
    _segment: Struct = field(repr=False)

    @property
    def symbol_size(self) -> int:
        """The bytes of a row of a symbol table."""
        return self._symbol.size

    @property
    def relocation_size(self) -> int:
        """The bytes of a relocation."""
        return self._relocation.size

    @property
    def segment_size(self) -> int:
        """The bytes of a program header."""
        return self._segment.size

    @property
    def has_addends(self) -> bool:
        """Whether relocations have addends."""
        return self.word == 8

    @property
    def relocation_table(self) -> tuple[str, int]:
        """The name and the section type of the loader's relocations."""
        return (".rela.dyn", 4) if self.has_addends else (".rel.dyn", 9)

    def symbol(self, name: int, info: int, index: int, value: int, size: int) -> bytes:
        """A symbol: the offset of its name, binding and type, section, value, size."""
        if self.word == 8:
            return self._symbol.pack(name, info, 0, index, value, size)
        return self._symbol.pack(name, value, size, info, 0, index)

    def symbols(self, data: bytes) -> list[tuple[int, int, int, int, int, int]]:
        """Name, info, visibility, section, value and size of each symbol."""
        rows = list(self._symbol.iter_unpack(data))
        if self.word == 8:
            return rows
        return [(name, *rest, value, size) for name, value, size, *rest in rows]

    def relocation(self, offset: int, symbol: int, type: int, addend: int) -> bytes:
        """A relocation; without addend if the format has none."""
        if self.has_addends:
            return self._relocation.pack(offset, symbol << 32 | type, addend)
        return self._relocation.pack(offset, symbol << 8 | type)

    def relocations(self, data: bytes) -> list[tuple[int, int, int, int]]:
        """Offset, symbol, type and addend of each relocation."""
        if self.has_addends:
            rows = self._relocation.iter_unpack(data)
            return [(at, info >> 32, info & 0xFFFFFFFF, addend) for at, info, addend in rows]
        return [(at, info >> 8, info & 0xFF, 0) for at, info in self._relocation.iter_unpack(data)]

    def segment(
        self, type: int, flags: int, offset: int, address: int, in_file: int, size: int, align: int
    ) -> bytes:
        """A program header."""
        where = (offset, address, address, in_file, size)
        if self.word == 8:
            return self._segment.pack(type, flags, *where, align)
        return self._segment.pack(type, *where, flags, align)

    def segments(self, data: bytes) -> list[tuple[int, int, int, int, int, int, int]]:
        """Type, flags, offset, address, bytes in the file, size and alignment of each segment."""
        rows = list(self._segment.iter_unpack(data))
        if self.word == 8:
            return [(t, f, offset, at, n, size, a) for t, f, offset, at, _, n, size, a in rows]
        return [(t, f, offset, at, n, size, a) for t, offset, at, _, n, size, f, a in rows]


def _format(word: int, address: str, signed: str, symbol: str, rel: str, segment: str) -> Format:
    return Format(
        word,
        b"\x7fELF" + bytes([word // 4, 1, 1]),
        Struct(f"<16sHHI3{address}IHHHHHH"),
        Struct(f"<II4{address}II2{address}"),
        Struct(f"<2{signed}"),
        Struct(symbol),
        Struct(rel),
        Struct(segment),
    )


ELF64 = _format(8, "Q", "q", "<IBBHQQ", "<QQq", "<IIQQQQQQ")
ELF32 = _format(4, "I", "I", "<IIIBBH", "<II", "<IIIIIIII")
FORMATS = (ELF64, ELF32)


def format_of(data: bytes) -> Format | None:
    """The layout of an ELF file; None if it is not a little-endian one."""
    return next((form for form in FORMATS if data.startswith(form.magic)), None)
