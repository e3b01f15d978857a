"""Lays out and writes the file of a shared object: headers, segments, tables for the loader.

Source: System V ABI, edition 4.1, chapters 4 and 5.
"""

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from relax_mlir.codegen.elf_object import (
    ALLOC,
    DATA_NAME,
    GLOBAL,
    INDEX_NAME,
    LOCAL,
    NOBITS,
    PLACE_NAME,
    UNIQUE,
    WRITE,
    ZERO_NAME,
    LinkError,
    Section,
    Symbol,
)
from relax_mlir.codegen.machines import Machine
from relax_mlir.runtime.elf_format import Format

_SHT = {"PROGBITS": 1, "SYMTAB": 2, "STRTAB": 3, "HASH": 5, "DYNAMIC": 6, "DYNSYM": 11}
_RELOCATIONS = "relocations"
_BIND_NOW, _STATIC_TLS = 0x8, 0x10
_NOW, _NODELETE = 0x1, 0x8
_GNU = 3  # ELFOSABI_GNU
_MOST_BYTES = (1 << 31) - 1

_READ = (".dynsym", ".dynstr", ".hash", _RELOCATIONS, PLACE_NAME, ".rodata")
_CODE = (".text", ".plt")
_WRITE_ONCE = (".tdata", ".tbss", ".init_array", ".fini_array", ".data.rel.ro", ".dynamic", ".got")
_WRITE = (".data", ".bss")
_DATA, _ZERO = (DATA_NAME,), (ZERO_NAME,)


@dataclass(eq=False)
class Output:
    """A section of the file; `link` names the section it refers to.

    `offset` is its file offset; None if that is its address.
    """

    name: str
    type: int = 1
    flags: int = 0
    align: int = 1
    size: int = 0
    entry: int = 0
    link: str = ""
    info: int = 0
    sections: list[Section] = field(default_factory=list)
    address: int = 0
    offset: int | None = None


@dataclass(frozen=True)
class Loading:
    """What the loader is told: libraries, the object's name, how many relocations it applies.

    An object that `stays` is never unloaded.
    """

    needed: Sequence[str]
    soname: str | None
    relocations: int
    static_tls: bool
    stays: bool


@dataclass(frozen=True)
class SymbolRow:
    """A row of the loader's symbol table; without a symbol, it is imported."""

    name: str
    symbol: Symbol | None
    binding: int = GLOBAL


def align_up(value: int, alignment: int) -> int:
    """Rounds the value up to a multiple of the alignment."""
    return -(-value // alignment) * alignment


def write_file(
    machine: Machine,
    outputs: dict[str, Output],
    rows: Sequence[SymbolRow],
    loading: Loading,
    local_symbols: Sequence[Symbol],
    index: bytes,
) -> "Image":
    """Assigns addresses to sections and writes everything that does not depend on relocations.

    `rows` are the dynamic symbols, imports first; only debuggers and profilers read
    `local_symbols`, and only tools `index`, which says what constants there are.
    """
    strings = _Strings()
    names = [strings.add(row.name) for row in rows]
    for text in (*loading.needed, loading.soname or ""):
        strings.add(text)
    form = machine.format
    _add_tables(form, outputs, len(rows), len(strings.data), loading.relocations)
    outputs[".dynamic"].size = form.entry.size * (
        len(_tags(form, outputs, loading, strings.known)) + 1
    )
    end, file_end = _layout(machine, outputs)
    image = Image(machine, outputs, bytearray(file_end), end, local_symbols, list(rows), index)
    for output in outputs.values():
        if output.type != NOBITS and output.name != DATA_NAME:
            for section in output.sections:
                image.data[section.address : section.address + len(section.data)] = section.data
    indices = image.section_indices()
    symbols = bytearray(form.symbol_size)
    for name, row in zip(names, rows, strict=True):
        symbols += _symbol(form, name, row.binding, row.symbol, indices)
    image.put(".dynsym", symbols)
    image.put(".dynstr", strings.data)
    image.put(".hash", _hash_table([row.name for row in rows]))
    tags = _tags(form, outputs, loading, strings.known)
    image.put(".dynamic", b"".join(form.entry.pack(*tag) for tag in [*tags, (0, 0)]))
    return image


@dataclass
class Image:
    """The file under construction; `data` is indexed by address, which is the file offset."""

    machine: Machine
    outputs: dict[str, Output]
    data: bytearray
    end: int
    local_symbols: Sequence[Symbol]
    rows: list[SymbolRow]
    index: bytes

    def put(self, name: str, content: bytes | bytearray) -> None:
        """Writes the content of a section."""
        at = self.outputs[name].address
        self.data[at : at + len(content)] = content

    def relocation(self, index: int, offset: int, symbol: int, type: int, addend: int) -> None:
        """Writes a row of the loader's relocation table, and the addend if that has none."""
        form = self.machine.format
        at = self.outputs[_RELOCATIONS].address + index * form.relocation_size
        row = form.relocation(offset, symbol, type, addend)
        self.data[at : at + len(row)] = row
        if not form.has_addends:
            self.data[offset : offset + form.word] = (addend & 0xFFFFFFFF).to_bytes(4, "little")

    def section_indices(self) -> dict[int, int]:
        """The file section index of each object section, by its identity."""
        present = _present(self.outputs)
        return {id(s): i + 1 for i, output in enumerate(present) for s in output.sections}

    def finish(self) -> bytes:
        """The bytes of the file up to the constants, which begin at a page."""
        self._append_symbols()
        self._append_index()
        names, row = _Strings(), self.machine.format.section
        shstrtab = Output(".shstrtab", _SHT["STRTAB"])
        present = [*_present(self.outputs), shstrtab]
        rows = [names.add(self._name(output)) for output in present]
        shstrtab.address, shstrtab.size = len(self.data), len(names.data)
        self.data += names.data
        self.data += bytes(align_up(len(self.data), 8) - len(self.data))
        start = len(self.data)
        by_name = {output.name: i + 1 for i, output in enumerate(present)}
        end = align_up(start + row.size * (len(present) + 1), self.machine.page)
        self.outputs[DATA_NAME].offset = end
        self.data += bytes(row.size)
        for name, output in zip(rows, present, strict=True):
            is_loaded = output.name not in (".symtab", ".strtab", ".shstrtab", INDEX_NAME)
            self.data += row.pack(
                name,
                output.type,
                output.flags | (ALLOC if is_loaded else 0),
                output.address if is_loaded else 0,
                output.address if output.offset is None else output.offset,
                output.size,
                by_name.get(output.link, 0),
                output.info,
                output.align,
                output.entry,
            )
        self._headers(start, len(present) + 1)
        if self.outputs[DATA_NAME].sections:
            self.data += bytes(end - len(self.data))
        return bytes(self.data)

    def _name(self, output: Output) -> str:
        if output.name == _RELOCATIONS:
            return self.machine.format.relocation_table[0]
        return output.name

    def _append_symbols(self) -> None:
        """Adds the symbol table for debuggers and profilers: local symbols, then exported ones."""
        indices, strings, form = self.section_indices(), _Strings(), self.machine.format
        table = bytearray(form.symbol_size)
        local = [s for s in self.local_symbols if id(s.section) in indices]
        bound = [(LOCAL, symbol) for symbol in local]
        bound += [(row.binding, row.symbol) for row in self.rows if row.symbol is not None]
        for binding, symbol in bound:
            table += _symbol(form, strings.add(symbol.name), binding, symbol, indices)
        size = form.symbol_size
        for output, content in (
            (Output(".symtab", _SHT["SYMTAB"], 0, 8, entry=size, link=".strtab"), table),
            (Output(".strtab", _SHT["STRTAB"]), strings.data),
        ):
            self.data += bytes(align_up(len(self.data), 8) - len(self.data))
            output.address, output.size = len(self.data), len(content)
            self.data += content
            self.outputs[output.name] = output
        self.outputs[".symtab"].info = len(local) + 1

    def _append_index(self) -> None:
        """Adds what tools have to know of constants."""
        if self.outputs[DATA_NAME].sections:
            output = Output(INDEX_NAME, address=len(self.data), size=len(self.index))
            self.outputs[INDEX_NAME] = output
            self.data += self.index

    def _headers(self, section_table: int, section_count: int) -> None:
        segments, form = _segments(self.machine, self.outputs, self.end), self.machine.format
        form.header.pack_into(
            self.data,
            0,
            form.magic + bytes([_GNU if self._uses_gnu() else 0]),
            3,  # shared object
            self.machine.elf_id,
            1,
            0,
            form.header.size,
            section_table,
            self.machine.elf_flags,
            form.header.size,
            form.segment_size,
            len(segments),
            form.section.size,
            section_count,
            section_count - 1,
        )
        table = b"".join(
            form.segment(type, flags, offset, start, file_end - start, end - start, align)
            for type, flags, offset, start, file_end, end, align in segments
        )
        self.data[form.header.size : form.header.size + len(table)] = table

    def _uses_gnu(self) -> bool:
        """Whether a symbol has GNU's binding, which the file header has to declare."""
        return any(row.binding == UNIQUE for row in self.rows)


class _Strings:
    """A string table."""

    def __init__(self) -> None:
        self.data = bytearray(1)
        self.known = {"": 0}

    def add(self, text: str) -> int:
        if text not in self.known:
            self.known[text] = len(self.data)
            self.data += text.encode() + b"\0"
        return self.known[text]


def _add_tables(
    form: Format, outputs: dict[str, Output], symbols: int, string_bytes: int, relocations: int
) -> None:
    (_, table), row, size = form.relocation_table, form.relocation_size, form.symbol_size
    for output in (
        Output(".dynsym", _SHT["DYNSYM"], 0, 8, size * (symbols + 1), size, ".dynstr", 1),
        Output(".dynstr", _SHT["STRTAB"], 0, 1, string_bytes),
        Output(".hash", _SHT["HASH"], 0, 8, 4 * (2 + 2 * (symbols + 1)), 4, ".dynsym"),
        Output(_RELOCATIONS, table, 0, 8, row * relocations, row, ".dynsym"),
        Output(".dynamic", _SHT["DYNAMIC"], WRITE, 8, entry=form.entry.size, link=".dynstr"),
    ):
        outputs[output.name] = output


def _tags(
    form: Format,
    outputs: dict[str, Output],
    loading: Loading,
    names: Mapping[str, int],
) -> list[tuple[int, int]]:
    """The entries of `.dynamic` except the last; their count does not depend on addresses."""
    tags = [(1, names[library]) for library in loading.needed]
    if loading.soname is not None:
        tags.append((14, names[loading.soname]))
    for name, tag, size_tag in ((".init_array", 25, 27), (".fini_array", 26, 28)):
        if outputs[name].sections:
            size = sum(section.size for section in outputs[name].sections)
            tags += [(tag, outputs[name].address), (size_tag, size)]
    tags += [
        (4, outputs[".hash"].address),
        (5, outputs[".dynstr"].address),
        (6, outputs[".dynsym"].address),
        (10, outputs[".dynstr"].size),
        (11, form.symbol_size),
    ]
    if loading.relocations:
        row, first = form.relocation_size, 7 if form.has_addends else 17
        size = loading.relocations * row
        tags += [(first, outputs[_RELOCATIONS].address), (first + 1, size), (first + 2, row)]
    flags = _BIND_NOW | (_STATIC_TLS if loading.static_tls else 0)
    tags += [(30, flags), (0x6FFFFFFB, _NOW | (_NODELETE if loading.stays else 0))]
    return tags


def _layout(machine: Machine, outputs: dict[str, Output]) -> tuple[int, int]:
    """Assigns addresses to the sections; returns the end in memory and the end in the file."""
    at = machine.format.header.size + 9 * machine.format.segment_size
    for names in (_READ, _CODE, _WRITE_ONCE, _WRITE, _DATA, _ZERO):
        if names is not _READ:
            at = align_up(at, machine.page)
        for name in names:
            output = outputs[name]
            for section in output.sections:
                output.align = max(output.align, section.align)
            if output.align > machine.page:
                raise LinkError(f"'{name}' is aligned to {output.align}, more than a page")
            output.address = end = align_up(at, output.align)
            for section in output.sections:
                section.address = align_up(end, section.align)
                end = section.address + section.size
            output.size = max(output.size, end - output.address)
            if name != ".tbss":  # takes no space here, but in each thread
                at = output.address + output.size
    if machine.word == 4 and at > _MOST_BYTES:
        raise LinkError(f"the module has {at} bytes, more than a 32-bit address space")
    return outputs[".bss"].address + outputs[".bss"].size, outputs[".bss"].address


def _present(outputs: dict[str, Output]) -> list[Output]:
    order = (
        *_READ,
        *_CODE,
        *_WRITE_ONCE,
        *_WRITE,
        *_DATA,
        *_ZERO,
        ".symtab",
        ".strtab",
        INDEX_NAME,
    )
    present = [outputs[name] for name in order if name in outputs]
    return [output for output in present if output.size or output.sections]


def _segments(
    machine: Machine, outputs: dict[str, Output], end: int
) -> list[tuple[int, int, int, int, int, int, int]]:
    """The program headers.

    Type, flags, file offset, start, end of the part in the file, end, alignment.
    """
    page = machine.page

    def last(names: Sequence[str]) -> int:
        return max(outputs[n].address + outputs[n].size for n in names if n != ".tbss")

    code = outputs[".text"].address // page * page
    once = align_up(last(_CODE), page)
    data = align_up(last(_WRITE_ONCE), page)
    file_end = outputs[".bss"].address
    dynamic = outputs[".dynamic"]
    after_dynamic = dynamic.address + dynamic.size
    segments = [
        (1, 4, 0, 0, last(_READ), last(_READ), page),
        (1, 5, code, code, last(_CODE), last(_CODE), page),
        (1, 6, once, once, file_end, end, page),
        (2, 6, dynamic.address, dynamic.address, after_dynamic, after_dynamic, 8),
        (0x6474E551, 6, 0, 0, 0, 0, 16),  # the stack is not executable
        (0x6474E552, 4, once, once, last(_WRITE_ONCE), data, 1),  # read-only after relocation
    ]
    constants = outputs[DATA_NAME]
    if constants.sections:
        assert constants.offset is not None
        stop = constants.address + constants.size
        segments.append((1, 4, constants.offset, constants.address, stop, stop, page))
    zeros = outputs[ZERO_NAME]
    if zeros.sections:
        start = zeros.address
        segments.append((1, 4, 0, start, start, start + zeros.size, page))
    tls = [output for output in (outputs[".tdata"], outputs[".tbss"]) if output.size]
    if tls:
        start = outputs[".tdata"].address
        align = max(output.align for output in tls)
        file_stop = start + outputs[".tdata"].size
        segments.append((7, 4, start, start, file_stop, tls[-1].address + tls[-1].size, align))
    return segments


def _symbol(
    form: Format, name: int, binding: int, symbol: Symbol | None, indices: dict[int, int]
) -> bytes:
    if symbol is None:
        return form.symbol(name, binding << 4, 0, 0, 0)
    index = 0xFFF1 if symbol.absolute else indices[id(symbol.section)]
    return form.symbol(name, binding << 4 | symbol.type, index, symbol.address, symbol.size)


def _hash_table(names: Sequence[str]) -> bytes:
    """The symbol hash table, with a chain for each bucket."""
    count = len(names) + 1
    buckets, chains = [0] * count, [0] * count
    for i, name in enumerate(names, start=1):
        value = 0
        for byte in name.encode():
            value = (value << 4) + byte
            value = (value ^ (value >> 24 & 0xF0)) & 0x0FFFFFFF
        bucket = value % count
        buckets[bucket], chains[i] = i, buckets[bucket]
    return struct.pack(f"<{2 + 2 * count}I", count, count, *buckets, *chains)
