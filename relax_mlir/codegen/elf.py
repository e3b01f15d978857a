"""Links relocatable objects to an ELF shared object, so that users need no linker.

    objects (position-independent, from LLVM)  ->  ET_DYN bytes, ready for dlopen

References between the objects are bound at link time and never go through the loader. References
to the C library are bound when the object is loaded, through read-only slots (GOT entries).
Addresses are file offsets, except in the last two segments; each segment starts on a page of its
own.

    read        ELF header, .dynsym .dynstr .hash .rela.dyn, constants
    execute     code, stubs that jump to imported functions
    write once  .tdata, initialisers, constants with addresses, .dynamic, .got
    write       .data .bss
    read        .constants, which are not part of an object: see `elf_data`

Source: System V ABI, edition 4.1, chapter 5 (program loading and dynamic linking); Drepper,
"ELF handling for thread-local storage".
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from relax_mlir.codegen.elf_data import Data, arranged, data_index, data_object, data_parts
from relax_mlir.codegen.elf_file import Loading, Output, SymbolRow, write_file
from relax_mlir.codegen.elf_imports import LINUX, System
from relax_mlir.codegen.elf_object import (
    COMMON_NAME,
    DATA_NAME,
    EXECUTE,
    FINI_ARRAY,
    FUNCTION,
    GLOBAL,
    INIT_ARRAY,
    LOCAL,
    NOBITS,
    PLACE_NAME,
    TLS,
    UNIQUE,
    WEAK,
    WRITE,
    ZERO_NAME,
    LinkError,
    Object,
    Relocation,
    Section,
    Symbol,
    read_object,
)
from relax_mlir.codegen.machines import MACHINES, Machine, Need

_OF_CONSTANTS = (PLACE_NAME, DATA_NAME, ZERO_NAME)
_SLOT_COUNT = {Need.SLOT: 1, Need.TLS_STATIC: 1}  # all others take two


def link_shared(
    objects: Sequence[bytes],
    exports: Sequence[str],
    soname: str | None = None,
    unique: Collection[str] = (),
    data: Data = MappingProxyType({}),
    system: System = LINUX,
) -> bytes:
    """The shared object that `link_parts` makes, as bytes."""
    return b"".join(link_parts(objects, exports, soname, unique, data, system))


def link_parts(
    objects: Sequence[bytes],
    exports: Sequence[str],
    soname: str | None = None,
    unique: Collection[str] = (),
    data: Data = MappingProxyType({}),
    system: System = LINUX,
) -> list[bytes | memoryview]:
    """The parts, in order, of a shared object that is linked from relocatable ones and constants.

    It exports the symbols `exports`; `data` are constants that objects refer to by name.

    Exports that are also `unique` are variables of which a process has one: all shared objects that
    define it use the one that was loaded first, which is never unloaded. On a system that has none,
    each shared object has its own, and is never unloaded.

    Raises LinkError if an object is not position-independent, names an unknown relocation, a
    symbol is defined twice, an export is not defined, or a reference is neither defined nor in
    the C library.
    """
    read = [read_object(object) for object in objects]
    machines = {object.machine for object in read}
    if len(machines) != 1 or not machines <= MACHINES.keys():
        known = ", ".join(map(str, MACHINES))
        raise LinkError(
            f"objects are for ELF machines {sorted(machines)}; one of {known} is linked"
        )
    names = tuple(dict.fromkeys(exports))
    machine = MACHINES[machines.pop()]
    data = arranged(machine, data)
    for object in read:
        for section in object.sections:
            section.relocations = machine.completed(section)
    constants = data_object(machine, data)
    bound = frozenset(unique) if system.has_unique else frozenset()
    link = _Link(machine, system, [*read, constants], names, soname, bound)
    return [link.run(data_index(data)), *data_parts(data)]


@dataclass(frozen=True)
class _Dynamic:
    """A relocation for the loader: at an offset of a section, or in a slot if that is None."""

    type: int
    section: Section | None
    offset: int
    symbol: Symbol | None
    addend: int


@dataclass(frozen=True)
class _Addresses:
    """Addresses: of the slots, of the stubs, and of the thread-local variables' initial values."""

    got: int
    plt: int
    tls: int


@dataclass
class _Link:
    """The state of a link, and its steps."""

    machine: Machine
    system: System
    objects: list[Object]
    exports: tuple[str, ...]
    soname: str | None
    unique: frozenset[str]
    globals: dict[str, Symbol] = field(default_factory=dict)
    undefined: dict[str, Symbol] = field(default_factory=dict)
    imports: tuple[str, ...] = ()
    slots: dict[tuple[Need, Symbol | None], int] = field(default_factory=dict)
    stubs: dict[Symbol, int] = field(default_factory=dict)
    dynamic: list[_Dynamic] = field(default_factory=list)
    slot_words: int = 0
    static_tls: bool = False

    def run(self, index: bytes) -> bytes:
        self._resolve()
        outputs = _outputs([s for object in self.objects for s in object.sections])
        for output in outputs.values():
            for section in output.sections:
                for relocation in section.relocations:
                    self._scan(section, relocation)
        self._find_imports()
        self._slot_relocations()
        return self._write(outputs, index)

    # Symbols

    def _resolve(self) -> None:
        """Finds the definition of each global name; a strong one wins over weak ones."""
        for object in self.objects:
            for symbol in object.symbols:
                if symbol.binding == LOCAL or not symbol.defined:
                    continue
                known = self.globals.get(symbol.name)
                if known is None or (_weak(known) and not _weak(symbol)):
                    self.globals[symbol.name] = symbol
                elif not _weak(symbol):
                    raise LinkError(f"symbol '{symbol.name}' is defined twice")
        missing = [name for name in self.exports if name not in self.globals]
        if missing:
            raise LinkError(f"symbols to export are not defined: {', '.join(missing)}")

    def _target(self, symbol: Symbol) -> Symbol:
        """The definition that a symbol stands for; an undefined symbol if it is imported."""
        if symbol.binding == LOCAL:
            return symbol
        if symbol.name in self.globals:
            return self.globals[symbol.name]
        known = self.undefined.setdefault(
            symbol.name, Symbol(symbol.name, symbol.binding, symbol.type, None, 0, 0)
        )
        if symbol.binding != WEAK:
            known.binding = symbol.binding
        return known

    def _find_imports(self) -> None:
        """Sorts undefined symbols: the C library's, absent weak ones (at zero), and mistakes."""
        unknown = [name for name in self.undefined if self.system.library_of(name) is None]
        missing = [name for name in unknown if self.undefined[name].binding != WEAK]
        if missing:
            raise LinkError(
                f"symbols are neither defined nor in the C library: {', '.join(sorted(missing))}"
            )
        self.imports = tuple(name for name in self.undefined if name not in unknown)

    def _is_unique(self, symbol: Symbol) -> bool:
        return symbol.binding != LOCAL and symbol.name in self.unique

    def _bound_by_loader(self, symbol: Symbol) -> bool:
        """Whether the loader looks a symbol up by its name."""
        return self._is_unique(symbol) if symbol.defined else symbol.name in self.imports

    # Relocations

    def _scan(self, section: Section, relocation: Relocation) -> None:
        """Records what a relocation needs: a slot, a stub, or a relocation by the loader."""
        need, how = self._kind(section, relocation)
        symbol = self._target(relocation.symbol)
        if need is Need.CALL and not symbol.defined:
            self.stubs.setdefault(symbol, len(self.stubs))
            self._slot(Need.SLOT, symbol)
        elif need is Need.SLOT:
            self._slot(need, symbol)
        elif need is Need.TLS_MODULE:
            self._slot(need, None)
        elif need in (Need.TLS_PAIR, Need.TLS_STATIC, Need.TLS_DESCRIPTOR):
            if symbol.section is None or not symbol.section.flags & TLS:
                raise LinkError(f"thread-local variable '{symbol.name}' is not defined")
            self._slot(need, symbol)
        elif need is Need.ADDRESS and how == self.machine.whole:
            if not section.flags & WRITE:
                raise LinkError(
                    f"section '{section.name}' is read-only, but holds the address of "
                    f"'{_called(symbol)}'"
                )
            if not symbol.defined or self._is_unique(symbol):
                type = self.machine.dynamic.absolute
            elif symbol.section is not None:
                type = self.machine.dynamic.relative
            else:
                return
            self.dynamic.append(
                _Dynamic(type, section, relocation.offset, symbol, relocation.addend)
            )
        elif need is Need.ADDRESS and (not symbol.defined or self._is_unique(symbol)):
            raise LinkError(
                f"'{section.name}' reads '{symbol.name}' directly, which may lie in another "
                "library; position-independent code reads it through a slot"
            )

    def _kind(self, section: Section, relocation: Relocation) -> tuple[Need, str]:
        kind = self.machine.kinds.get(relocation.type)
        if kind is None:
            name = self.machine.names.get(relocation.type, str(relocation.type))
            raise LinkError(
                f"relocation {name} of '{_called(relocation.symbol)}' in '{section.name}' is not "
                "one of position-independent code"
            )
        return kind

    def _slot(self, need: Need, symbol: Symbol | None) -> None:
        if (need, symbol) not in self.slots:
            self.slots[need, symbol] = self.slot_words
            self.slot_words += _SLOT_COUNT.get(need, 2)

    def _slot_relocations(self) -> None:
        """Adds the relocations by which the loader fills slots."""
        kinds = self.machine.dynamic
        for (need, symbol), word in self.slots.items():
            if (
                need is Need.SLOT
                and symbol is not None
                and (symbol.section is not None or self._bound_by_loader(symbol))
            ):
                type = kinds.slot if self._bound_by_loader(symbol) else kinds.relative
            elif need in (Need.TLS_PAIR, Need.TLS_MODULE):
                type, symbol = kinds.tls_module, None
            elif need is Need.TLS_STATIC:
                type, self.static_tls = kinds.tls_static, True
            elif need is Need.TLS_DESCRIPTOR:
                type = kinds.tls_descriptor
            else:
                continue
            self.dynamic.append(_Dynamic(type, None, self.machine.word * word, symbol, 0))
        # Absent weak symbols are zero, which needs no work.
        self.dynamic = [
            d
            for d in self.dynamic
            if not d.symbol or d.symbol.defined or self._bound_by_loader(d.symbol)
        ]
        self.dynamic.sort(key=lambda d: d.type != kinds.relative)

    # Layout

    def _write(self, outputs: dict[str, Output], index: bytes) -> bytes:
        rows = [SymbolRow(name, None) for name in self.imports]
        for name in self.exports:
            binding = UNIQUE if name in self.unique else GLOBAL
            rows.append(SymbolRow(name, self.globals[name], binding))
        outputs[".plt"] = Output(".plt", flags=EXECUTE, align=16)
        outputs[".plt"].size = self.machine.stub_size * len(self.stubs)
        outputs[".got"] = Output(".got", flags=WRITE, align=16)
        outputs[".got"].size = self.machine.word * self.slot_words
        libraries = map(self.system.library_of, self.imports)
        loading = Loading(
            needed=sorted({self.system.c_library, *filter(None, libraries)}),
            soname=self.soname,
            relocations=len(self.dynamic),
            static_tls=self.static_tls,
            stays=not self.system.has_unique,
        )
        image = write_file(
            self.machine,
            outputs,
            rows,
            loading,
            local_symbols=[
                s
                for object in self.objects
                for s in object.symbols
                if s.section and s.name and s.name not in self.exports and 0 < s.type <= FUNCTION
            ],
            index=index,
        )
        at = _Addresses(outputs[".got"].address, outputs[".plt"].address, outputs[".tdata"].address)
        for output in outputs.values():
            for section in output.sections:
                self._apply(image.data, section, at)
        self._fill_slots(image.data, at)
        indices = {row.name: i + 1 for i, row in enumerate(rows)}
        for i, entry in enumerate(self.dynamic):
            base = at.got if entry.section is None else entry.section.address
            image.relocation(i, base + entry.offset, *self._row(entry, indices, at.tls))
        return image.finish()

    def _fill_slots(self, data: bytearray, at: "_Addresses") -> None:
        """Writes the stubs, and the slots that are known before the file is loaded."""
        size = self.machine.word
        for imported, index in self.stubs.items():
            address = at.plt + index * self.machine.stub_size
            slot = at.got + self.machine.word * self.slots[Need.SLOT, imported]
            data[address : address + self.machine.stub_size] = self.machine.stub(address, slot)
        for (need, symbol), word in self.slots.items():
            if symbol is None:
                continue
            slot = at.got + size * word
            if need is Need.TLS_PAIR:
                offset = symbol.address - at.tls
                data[slot + size : slot + 2 * size] = offset.to_bytes(size, "little", signed=True)
            elif need is Need.SLOT and symbol.absolute:
                data[slot : slot + size] = symbol.address.to_bytes(size, "little")

    def _row(self, entry: _Dynamic, indices: dict[str, int], tls: int) -> tuple[int, int, int]:
        """The symbol, type and addend of a row of the loader's relocation table."""
        symbol, kinds = entry.symbol, self.machine.dynamic
        if symbol is None:
            return 0, entry.type, entry.addend
        if self._bound_by_loader(symbol):
            return indices[symbol.name], entry.type, entry.addend
        base = tls if entry.type in (kinds.tls_static, kinds.tls_descriptor) else 0
        return 0, entry.type, entry.addend + symbol.address - base

    def _apply(self, data: bytearray, section: Section, at: "_Addresses") -> None:
        """Writes the values of a section's relocations into the file."""
        for relocation in section.relocations:
            need, how = self._kind(section, relocation)
            if need is Need.NOTHING:
                continue
            symbol = self._target(relocation.symbol)
            if need is Need.CALL and not symbol.defined:
                value = at.plt + self.stubs[symbol] * self.machine.stub_size
            elif need in (Need.ADDRESS, Need.CALL):
                value = symbol.address
            elif need is Need.BASE:
                value = at.got
            elif need is Need.TLS_OFFSET:
                value = symbol.address - at.tls
            else:
                owner = None if need is Need.TLS_MODULE else symbol
                value = at.got + self.machine.word * self.slots[need, owner]
            place = start = section.address + relocation.offset
            if relocation.start is not None:
                start = section.address + relocation.start
            try:
                self.machine.write(data, place, how, value + relocation.addend, start, at.got)
            except OverflowError:
                raise LinkError(
                    f"'{_called(symbol)}' is too far from '{section.name}' for its relocation"
                ) from None


def _weak(symbol: Symbol) -> bool:
    is_common = symbol.section is not None and symbol.section.name == COMMON_NAME
    return symbol.binding == WEAK or is_common


def _called(symbol: Symbol) -> str:
    return symbol.name or (symbol.section.name if symbol.section else "?")


def _outputs(sections: Sequence[Section]) -> dict[str, Output]:
    """The sections of the file, each with the sections of the objects that it contains."""
    result = {
        name: Output(name, type=type, flags=flags)
        for name, type, flags in (
            (".rodata", 1, 0),
            (".text", 1, EXECUTE),
            (".tdata", 1, WRITE | TLS),
            (".tbss", NOBITS, WRITE | TLS),
            (".init_array", INIT_ARRAY, WRITE),
            (".fini_array", FINI_ARRAY, WRITE),
            (".data.rel.ro", 1, WRITE),
            (".data", 1, WRITE),
            (".bss", NOBITS, WRITE),
            (PLACE_NAME, 1, 0),
            (DATA_NAME, 1, 0),
            (ZERO_NAME, NOBITS, 0),
        )
    }
    for section in sections:
        # Unwind tables serve exceptions, which nothing throws; notes describe objects.
        if not section.name.startswith((".eh_frame", ".ARM.ex", ".note")):
            result[_output_name(section)].sections.append(section)
    for name in (".init_array", ".fini_array"):
        result[name].sections.sort(key=_priority)
    return result


def _output_name(section: Section) -> str:
    if section.flags & TLS:
        return ".tbss" if section.type == NOBITS else ".tdata"
    if section.flags & EXECUTE:
        return ".text"
    if not section.flags & WRITE:
        return section.name if section.name in _OF_CONSTANTS else ".rodata"
    if section.type in (INIT_ARRAY, FINI_ARRAY):
        return ".init_array" if section.type == INIT_ARRAY else ".fini_array"
    if section.name.startswith((".ctors", ".dtors", ".preinit_array")):
        raise LinkError(f"section '{section.name}' is not run; initialisers belong in .init_array")
    if section.type == NOBITS:
        return ".bss"
    return ".data.rel.ro" if section.name.startswith(".data.rel.ro") else ".data"


def _priority(section: Section) -> int:
    """`.init_array.101` runs before `.init_array.65535` and plain `.init_array`."""
    last = section.name.rsplit(".", 1)[-1]
    return int(last) if last.isdigit() else 65536


__all__ = ["LinkError", "link_parts", "link_shared"]
