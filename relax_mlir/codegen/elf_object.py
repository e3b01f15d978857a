"""Reads relocatable ELF objects, little-endian, as LLVM emits them.

Source: System V ABI, edition 4.1, chapter 4 (object files), and its 64-bit form.
"""

from dataclasses import dataclass, field

from relax_mlir.errors import CompileError
from relax_mlir.runtime.elf_format import Format, format_of

# Section types and flags.
NOBITS, INIT_ARRAY, FINI_ARRAY = 8, 14, 15
WRITE, ALLOC, EXECUTE, TLS = 0x1, 0x2, 0x4, 0x400
# Symbol bindings, types, section indices.
LOCAL, GLOBAL, WEAK, UNIQUE = 0, 1, 2, 10
OBJECT, FUNCTION = 1, 2
UNDEFINED, ABSOLUTE, COMMON, EXTENDED = 0, 0xFFF1, 0xFFF2, 0xFFFF

COMMON_NAME = "COMMON"
DATA_NAME, ZERO_NAME = ".constants", ".constants.zero"
"""Sections of constants that are not part of an object, those of zeros apart: see `elf_data`."""
INDEX_NAME, PLACE_NAME = ".constants.index", ".constants.place"
"""What constants there are, and where: for who moves them to a file of their own."""

_SYMTAB, _RELA, _REL = 2, 4, 9


class LinkError(CompileError):
    """Objects cannot be linked to a shared object."""


@dataclass(eq=False)
class Section:
    """A section of an object; `address` is assigned by the linker."""

    name: str
    type: int
    flags: int
    size: int
    align: int
    data: bytes = field(repr=False)
    # Relocations refer to symbols, and so to sections: a text of all that would have no end.
    relocations: list["Relocation"] = field(default_factory=list, repr=False)
    address: int = -1


@dataclass(eq=False)
class Symbol:
    """A name for an offset in a section; without a section, undefined or an absolute value."""

    name: str
    binding: int
    type: int
    section: Section | None
    value: int
    size: int
    absolute: bool = False
    hidden: bool = False

    @property
    def defined(self) -> bool:
        """Whether an object defines the symbol."""
        return self.section is not None or self.absolute

    @property
    def address(self) -> int:
        """The address of the symbol, or its value if it is absolute."""
        return self.value + (self.section.address if self.section else 0)


@dataclass(frozen=True)
class Relocation:
    """What to write at an offset of a section: a function of type, symbol and addend.

    A distance is one from `start`, if that is not None, else from the offset.
    """

    offset: int
    type: int
    symbol: Symbol
    addend: int
    start: int | None = None


@dataclass(frozen=True)
class Object:
    """An object: its machine (ELF number), the sections that are loaded, and its symbols."""

    machine: int
    sections: list[Section]
    symbols: list[Symbol]


def read_object(data: bytes) -> Object:
    """Reads an object; LinkError if it is not a relocatable little-endian ELF object.

    Relocations of a format without addends have addends of 0: see `Machine.completed`.
    """
    form = format_of(data)
    if form is None or len(data) < form.header.size:
        raise LinkError("an object to link is not little-endian ELF")
    _, kind, machine, _, _, _, start, _, _, _, _, _, count, names = form.header.unpack_from(data)
    if kind != 1:
        raise LinkError(f"an object to link has ELF type {kind}, but 1 (relocatable) is needed")
    row = form.section
    headers = [row.unpack_from(data, start + i * row.size) for i in range(count)]
    sections = [_section(data, header, headers[names]) for header in headers]
    symbols: list[Symbol] = []
    for header in headers:
        if header[1] == _SYMTAB:
            symbols = _symbols(form, data, header, headers[header[6]], sections)
    for header in headers:
        if header[1] == (_REL if form.has_addends else _RELA):
            raise LinkError("an object to link has relocations of another format")
        if header[1] in (_REL, _RELA):
            content = data[header[4] : header[4] + header[5]]
            sections[header[7]].relocations = [
                Relocation(offset, type, symbols[symbol], addend)
                for offset, symbol, type, addend in form.relocations(content)
            ]
    used = {symbol.section for symbol in symbols}
    commons = [s for s in used if s is not None and s.name == COMMON_NAME]
    loaded = [section for section in sections if section.flags & ALLOC]
    return Object(machine, loaded + sorted(commons, key=lambda s: s.size), symbols)


def _section(data: bytes, header: tuple[int, ...], names: tuple[int, ...]) -> Section:
    name, type, flags, _, offset, size, _, _, align, _ = header
    content = b"" if type == NOBITS else data[offset : offset + size]
    return Section(_text(data, names[4] + name), type, flags, size, max(align, 1), content)


def _symbols(
    form: Format,
    data: bytes,
    header: tuple[int, ...],
    strings: tuple[int, ...],
    sections: list[Section],
) -> list[Symbol]:
    result = []
    content = data[header[4] : header[4] + header[5]]
    for name, info, other, index, value, size in form.symbols(content):
        text = _text(data, strings[4] + name)
        section, absolute = None, index == ABSOLUTE
        if index == COMMON:  # for commons, the value is the alignment
            section = Section(COMMON_NAME, NOBITS, ALLOC | WRITE, size, max(value, 1), b"")
            value = 0
        elif index == EXTENDED:
            raise LinkError(f"symbol '{text}' is in a section with an index above 65279")
        elif index not in (UNDEFINED, ABSOLUTE):
            section = sections[index]
        binding, type, hidden = info >> 4, info & 0xF, other & 3 != 0
        result.append(Symbol(text, binding, type, section, value, size, absolute, hidden))
    return result


def _text(data: bytes, at: int) -> str:
    return data[at : data.index(b"\0", at)].decode()
