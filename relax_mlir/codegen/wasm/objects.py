"""Reads relocatable objects for WebAssembly, as LLVM emits them.

Source: WebAssembly tool conventions, "WebAssembly Object File Linking", version 2.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from relax_mlir.codegen.elf_object import LinkError
from relax_mlir.codegen.wasm import encoding
from relax_mlir.codegen.wasm.encoding import Reader

FUNCTION, DATA, GLOBAL, SECTION, EVENT, TABLE = range(6)
"""Kinds of symbols."""
WEAK, LOCAL, HIDDEN, UNDEFINED, EXPLICIT_NAME = 0x1, 0x2, 0x4, 0x10, 0x40
"""Flags of symbols."""
_SEGMENTS, _INITIALISERS, _SYMBOLS = 5, 6, 8
"""Parts of the section "linking"."""

FUNCTION_INDEX, TABLE_INDEX, TABLE_WORD = 0, 1, 2
ADDRESS, SIGNED_ADDRESS, ADDRESS_WORD = 3, 4, 5
TYPE_INDEX, GLOBAL_INDEX, WHICH_TABLE = 6, 7, 20
"""Types of relocations: an unsigned or signed integer of 5 bytes in LEB128, or a word."""
WITH_ADDEND = (ADDRESS, SIGNED_ADDRESS, ADDRESS_WORD)
KNOWN = (
    FUNCTION_INDEX,
    TABLE_INDEX,
    TABLE_WORD,
    *WITH_ADDEND,
    TYPE_INDEX,
    GLOBAL_INDEX,
    WHICH_TABLE,
)


@dataclass(frozen=True)
class Relocation:
    """What is to be written at an offset: about a symbol, or the index of a type."""

    type: int
    offset: int
    symbol: "Symbol | None"
    signature: bytes
    addend: int


@dataclass(eq=False)
class Function:
    """A function with its encoded type and body; the linker assigns `index`."""

    signature: bytes
    body: bytes
    relocations: list[Relocation] = field(default_factory=list)
    index: int = -1


@dataclass(eq=False)
class Segment:
    """Bytes in memory, aligned to a power of two; the linker assigns `address`."""

    align: int
    data: bytes
    size: int
    relocations: list[Relocation] = field(default_factory=list)
    address: int = -1


@dataclass(eq=False)
class Symbol:
    """A name for a function or for an offset in a segment; without `target`, undefined.

    `origin` is the module and name of an import, `signature` the type of a function.
    """

    name: str
    kind: int
    flags: int
    target: Function | Segment | None = None
    offset: int = 0
    signature: bytes = b""
    origin: tuple[str, str] = ("", "")

    @property
    def is_local(self) -> bool:
        """Whether only its object can refer to it."""
        return bool(self.flags & LOCAL)

    @property
    def is_weak(self) -> bool:
        """Whether another definition replaces it."""
        return bool(self.flags & WEAK)


def read_object(data: bytes) -> list[Symbol]:
    """The symbols of an object, by which all that is in it can be reached.

    Raises LinkError if it is not an object for WebAssembly, or has what is not supported:
    initialisers, thread-local variables, unknown relocations.
    """
    if data[:8] != encoding.HEADER:
        raise LinkError("an object is not for WebAssembly")
    return _Object(data).symbols


def public_functions(data: bytes) -> list[str]:
    """The functions of an object that host programs may call."""
    return [
        symbol.name
        for symbol in read_object(data)
        if isinstance(symbol.target, Function) and not symbol.flags & (LOCAL | HIDDEN)
    ]


class _Object:
    """An object that is read section by section."""

    def __init__(self, data: bytes) -> None:
        self._sections: dict[int, bytes] = {}
        self._custom: dict[str, bytes] = {}
        for kind, content in _sections(data):
            if kind == encoding.CUSTOM:
                reader = Reader(content)
                name = reader.name()
                self._custom[name] = content[reader.at :]
            else:
                self._sections[kind] = content
        self._types = _types(self._reader(encoding.TYPE))
        self._imports = list(_imports(self._reader(encoding.IMPORT), self._types))
        self._functions, self._starts = self._read_functions()
        self._segments, self._offsets = self._read_segments()
        self.symbols: list[Symbol] = []
        self._read_linking()
        for name, spans in (
            ("reloc.CODE", list(zip(self._starts, self._functions, strict=True))),
            ("reloc.DATA", list(zip(self._offsets, self._segments, strict=True))),
        ):
            self._relocate(Reader(self._custom.get(name, b"\0\0")), spans)

    def _reader(self, kind: int) -> Reader:
        return Reader(self._sections.get(kind, b"\0"))

    def _read_functions(self) -> tuple[list[Function], list[int]]:
        kinds, code = self._reader(encoding.FUNCTION), self._reader(encoding.CODE)
        signatures = [self._types[kinds.unsigned()] for _ in range(kinds.unsigned())]
        functions, starts = [], []
        for signature, _ in zip(signatures, range(code.unsigned()), strict=True):
            size = code.unsigned()
            starts.append(code.at)
            functions.append(Function(signature, code.bytes(size)))
        return functions, starts

    def _read_segments(self) -> tuple[list[Segment], list[int]]:
        reader, segments, offsets = self._reader(encoding.DATA), [], []
        for _ in range(reader.unsigned()):
            if reader.unsigned():
                raise LinkError("an object has data that are not at an address")
            reader.byte()
            reader.signed()
            reader.byte()
            size = reader.unsigned()
            offsets.append(reader.at)
            segments.append(Segment(1, reader.bytes(size), size))
        return segments, offsets

    def _read_linking(self) -> None:
        reader = Reader(self._custom.get("linking", b"\0"))
        if reader.unsigned() != 2:
            raise LinkError("an object is not relocatable, or of an unknown version")
        while reader.at < len(reader.data):
            kind, size = reader.byte(), reader.unsigned()
            end = reader.at + size
            if kind == _SEGMENTS:
                for segment in self._segments[: reader.unsigned()]:
                    reader.name()
                    segment.align = 1 << reader.unsigned()
                    reader.unsigned()
            elif kind == _SYMBOLS:
                self.symbols = [self._symbol(reader) for _ in range(reader.unsigned())]
            elif kind == _INITIALISERS and reader.unsigned():
                raise LinkError("an object has initialisers, which modules do not run")
            reader.at = end

    def _symbol(self, reader: Reader) -> Symbol:
        kind, flags = reader.byte(), reader.unsigned()
        defined = not flags & UNDEFINED
        if kind == DATA:
            symbol = Symbol(reader.name(), kind, flags)
            if defined:
                symbol.target = self._segments[reader.unsigned()]
                symbol.offset = reader.unsigned()
                reader.unsigned()
            return symbol
        index = reader.unsigned()
        if kind == SECTION:
            return Symbol("", kind, flags | LOCAL)
        name = reader.name() if defined or flags & EXPLICIT_NAME else ""
        if kind != FUNCTION:
            return Symbol(name or "__stack_pointer", kind, flags | LOCAL)
        if defined:
            function = self._functions[index - len(self._imports)]
            return Symbol(name, kind, flags, function, 0, function.signature)
        module, field_name, signature = self._imports[index]
        return Symbol(name or field_name, kind, flags, None, 0, signature, (module, field_name))

    def _relocate(self, reader: Reader, spans: Sequence[tuple[int, Function | Segment]]) -> None:
        """Gives functions, or segments, their relocations, which come in the order of offsets."""
        reader.unsigned()
        at = 0
        for _ in range(reader.unsigned()):
            kind, offset, index = reader.byte(), reader.unsigned(), reader.unsigned()
            if kind not in KNOWN:
                raise LinkError(f"an object has a relocation of the unknown type {kind}")
            addend = reader.signed() if kind in WITH_ADDEND else 0
            while at + 1 < len(spans) and spans[at + 1][0] <= offset:
                at += 1
            begin, owner = spans[at]
            symbol = None if kind == TYPE_INDEX else self.symbols[index]
            signature = self._types[index] if kind == TYPE_INDEX else b""
            owner.relocations.append(Relocation(kind, offset - begin, symbol, signature, addend))


def _sections(data: bytes) -> Iterator[tuple[int, bytes]]:
    reader = Reader(data, len(encoding.HEADER))
    while reader.at < len(data):
        kind = reader.byte()
        yield kind, reader.bytes(reader.unsigned())


def _types(reader: Reader) -> list[bytes]:
    """The encoded types of functions: the tag, parameters, results."""
    types = []
    for _ in range(reader.unsigned()):
        start = reader.at
        reader.byte()
        reader.bytes(reader.unsigned())
        reader.bytes(reader.unsigned())
        types.append(reader.data[start : reader.at])
    return types


def _imports(reader: Reader, types: list[bytes]) -> Iterator[tuple[str, str, bytes]]:
    """Module, name and type of the functions that are imported."""
    for _ in range(reader.unsigned()):
        module, field_name, kind = reader.name(), reader.name(), reader.byte()
        if kind == 0:
            yield module, field_name, types[reader.unsigned()]
        elif kind == 3:
            reader.bytes(2)
        else:
            if kind == 1:
                reader.byte()
            has_most = reader.byte() & 1
            reader.unsigned()
            if has_most:
                reader.unsigned()
