"""Links relocatable objects to a WebAssembly module, so that users need no linker.

    objects (from LLVM), constants  ->  bytes that any engine instantiates

Only what exported functions reach is in the module. Memory begins with the stack, which grows down:
an overflow is an access below address 0, which traps. Above are data and the heap.

    0            STACK_BYTES      __heap_base
    | <-- stack  | data           | heap -->

Source: WebAssembly tool conventions, "WebAssembly Object File Linking"; WebAssembly Core
Specification 2.0, section 5.5 (modules).
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field

from relax_mlir.codegen.elf_data import Data, pieces
from relax_mlir.codegen.elf_object import LinkError
from relax_mlir.codegen.wasm import encoding, objects
from relax_mlir.codegen.wasm.encoding import PADDED, name, section, signed, unsigned, vector
from relax_mlir.codegen.wasm.objects import Function, Relocation, Segment, Symbol, read_object

STACK_BYTES = 1 << 20
PAGE = 1 << 16
MOST_BYTES = 1 << 32
HOST = "relax"
"""The module whose functions the host program provides."""
ENTRY = "rx_fn_"
"""Of exported functions of this prefix, `rx_entry_` and the rest is their index in the table."""
INITIALISE = "rx_initialize"
NOTHING = b"\x60\0\0"
"""The type of functions without parameters and results."""
SHARED = 3
"""The flags of a memory with a maximum that threads share."""
_LINE = 64
_HEAP = "__heap_base"


def link_module(
    parts: Sequence[bytes], exports: Sequence[str], constants: Data, is_shared: bool = False
) -> list[bytes | memoryview]:
    """The parts, in order, of a module that is linked from objects and constants.

    It exports its memory, the pointer to the stack, and the functions `exports`; `constants` are
    data that objects refer to by name. If threads are to share the memory, it is imported, the
    custom section `relax.pages` has its size, as text, and rx_initialize writes the data.

    Raises LinkError if an object cannot be read, a symbol is defined twice, an export is not
    defined, functions are called by another type than theirs, a reference is to nothing that is
    defined or that the host has, or data exceed the memory.
    """
    return _Link(
        [read_object(each) for each in parts], dict.fromkeys(exports), constants, is_shared
    ).run()


@dataclass
class _Link:
    """The state of a link, and its steps."""

    read: list[list[Symbol]]
    exports: Collection[str]
    constants: Data
    is_shared: bool
    defined: dict[str, Symbol] = field(default_factory=dict)
    functions: list[Function] = field(default_factory=list)
    segments: list[Segment] = field(default_factory=list)
    imports: dict[tuple[str, str], tuple[int, bytes]] = field(default_factory=dict)
    table: dict[int, int] = field(default_factory=dict)
    types: dict[bytes, int] = field(default_factory=dict)
    heap: int = 0
    stored: dict[str, Segment] = field(default_factory=dict)
    num_data: int = 0

    def run(self) -> list[bytes | memoryview]:
        self._define()
        self._reach()
        self._lay_out()
        for index, function in enumerate(self.functions, len(self.imports)):
            function.index = index
        data = [(each.address, bytes(self._relocated(each))) for each in self.segments]
        data = [each for each in data if any(each[1])]
        if self.is_shared:
            self._add_initialiser([(address, len(each)) for address, each in data])
        code = [self._code(function) for function in self.functions]
        head = [encoding.HEADER, *self._head(), section(encoding.CODE, vector(code))]
        return [b"".join(head), *self._data(data)]

    def _large(self) -> dict[str, Segment]:
        """The constants that are written, by names."""
        large = {key: each for key, each in self.stored.items() if not self.constants[key].is_zero}
        return {key: segment for key, segment in large.items() if segment.size}

    def _add_initialiser(self, spans: Sequence[tuple[int, int]]) -> None:
        """Adds the function that writes the data, by addresses and sizes."""
        spans = [*spans, *((each.address, each.size) for each in self._large().values())]
        body = b"".join(encoding.copy_data(i, *span) for i, span in enumerate(spans))
        index = len(self.imports) + len(self.functions)
        function = Function(NOTHING, bytes([0]) + body + bytes([encoding.END]), [], index)
        self.functions.append(function)
        self.defined[INITIALISE] = Symbol(INITIALISE, objects.FUNCTION, 0, function)
        self.exports = [*self.exports, INITIALISE]
        self.num_data = len(spans)

    def _define(self) -> None:
        """Collects the symbols that objects define for others, and those of constants."""
        for name_, contents in self.constants.items():
            size = contents.data.nbytes
            self.stored[name_] = Segment(_LINE, b"", size)
            self.defined[name_] = Symbol(name_, objects.DATA, 0, self.stored[name_])
        for symbol in (each for symbols in self.read for each in symbols):
            if symbol.target is None or symbol.is_local:
                continue
            other = self.defined.get(symbol.name)
            if other is not None and not (other.is_weak or symbol.is_weak):
                raise LinkError(f"'{symbol.name}' is defined twice")
            if other is None or other.is_weak:
                self.defined[symbol.name] = symbol

    def _definition(self, symbol: Symbol) -> Function | Segment | None:
        """What a symbol stands for; None for what the linker or the host defines."""
        if symbol.target is not None and (symbol.is_local or symbol.name not in self.defined):
            return symbol.target
        if symbol.kind not in (objects.FUNCTION, objects.DATA) or symbol.name == _HEAP:
            return None
        definition = self.defined.get(symbol.name)
        if definition is None and symbol.origin[0] == HOST:
            self.imports.setdefault(symbol.origin, (len(self.imports), symbol.signature))
            return None
        if definition is None:
            raise LinkError(f"a reference to '{symbol.name}' is to nothing that is defined")
        if definition.signature != symbol.signature:
            raise LinkError(f"'{symbol.name}' is called as a function of another type")
        return definition.target

    def _reach(self) -> None:
        """Lists the functions and segments that exports refer to, directly or not."""
        missing = [each for each in self.exports if each not in self.defined]
        if missing:
            raise LinkError(f"exports are not defined: {', '.join(missing)}")
        reached: dict[Function | Segment, None] = {}
        todo = [self.defined[each].target for each in self.exports]
        while todo:
            item = todo.pop()
            if item is None or item in reached:
                continue
            reached[item] = None
            symbols = [each.symbol for each in item.relocations if each.symbol is not None]
            todo += [self._definition(symbol) for symbol in symbols]
        self.functions = [each for each in reached if isinstance(each, Function)]
        large = set(self.stored.values())
        self.segments = [e for e in reached if isinstance(e, Segment) and e not in large]
        self.stored = {key: each for key, each in self.stored.items() if each in reached}

    def _lay_out(self) -> None:
        """Assigns addresses."""
        at = STACK_BYTES
        for segment in (*self.segments, *self.stored.values()):
            segment.address = at = -(-at // segment.align) * segment.align
            at += segment.size
        self.heap = -(-at // _LINE) * _LINE
        if self.heap >= MOST_BYTES - PAGE:
            raise LinkError(f"data take {at} bytes, but the memory of a module has 2^32")

    def _code(self, function: Function) -> bytes:
        body = self._relocated(function)
        return unsigned(len(body)) + body

    def _relocated(self, item: Function | Segment) -> bytearray:
        """The bytes of a function or segment for where it is."""
        data = bytearray(item.body if isinstance(item, Function) else item.data)
        for each in item.relocations:
            value = self._value(each)
            data[each.offset : each.offset + len(value)] = value
        return data

    def _value(self, relocation: Relocation) -> bytes:
        """What a relocation writes."""
        kind, symbol = relocation.type, relocation.symbol
        if symbol is None:
            return unsigned(self._type(relocation.signature), PADDED)
        if kind in (objects.GLOBAL_INDEX, objects.WHICH_TABLE):
            return unsigned(0, PADDED)  # the pointer to the stack; the only table
        target = self._definition(symbol)
        if kind in objects.WITH_ADDEND:
            assert target is None or isinstance(target, Segment)
            base = self.heap if target is None else target.address + self._offset(symbol)
            value = (base + relocation.addend) % MOST_BYTES
        else:
            assert target is None or isinstance(target, Function)
            value = self.imports[symbol.origin][0] if target is None else target.index
            if kind != objects.FUNCTION_INDEX:
                value = self._in_table(value)
        if kind in (objects.TABLE_WORD, objects.ADDRESS_WORD):
            return value.to_bytes(4, "little")
        if kind in (objects.TABLE_INDEX, objects.SIGNED_ADDRESS):
            return signed((value + (1 << 31)) % MOST_BYTES - (1 << 31), PADDED)
        return unsigned(value, PADDED)

    def _offset(self, symbol: Symbol) -> int:
        if symbol.is_local or symbol.name not in self.defined:
            return symbol.offset
        return self.defined[symbol.name].offset

    def _in_table(self, function: int) -> int:
        """The index of a function in the table; 0 is no function."""
        return self.table.setdefault(function, len(self.table) + 1)

    def _type(self, signature: bytes) -> int:
        return self.types.setdefault(signature, len(self.types))

    def _head(self) -> Iterator[bytes]:
        """The sections in front of the code."""
        imports = [
            name(module) + name(field_name) + b"\0" + unsigned(self._type(signature))
            for (module, field_name), (_, signature) in self.imports.items()
        ]
        pages = -(-self.heap // PAGE)
        if self.is_shared:
            limits = bytes([SHARED]) + unsigned(pages) + unsigned(MOST_BYTES // PAGE)
            imports.append(name(HOST) + name("memory") + b"\2" + limits)
        functions = [unsigned(self._type(each.signature)) for each in self.functions]
        constants, exports = self._exported()
        elements = vector([unsigned(each) for each in self.table])
        if self.is_shared:
            yield section(encoding.CUSTOM, name("relax.pages"), str(pages).encode())
        yield section(encoding.TYPE, vector(list(self.types)))
        if imports:
            yield section(encoding.IMPORT, vector(imports))
        yield section(encoding.FUNCTION, vector(functions))
        yield section(encoding.TABLE, vector([b"\x70\0" + unsigned(len(self.table) + 1)]))
        if not self.is_shared:
            yield section(encoding.MEMORY, vector([b"\0" + unsigned(pages)]))
        yield section(encoding.GLOBAL, vector(constants))
        yield section(encoding.EXPORT, vector(exports))
        if self.table:
            element = b"\0" + encoding.constant(1) + elements
            yield section(encoding.ELEMENT, vector([element]))
        if self.is_shared:
            yield section(encoding.DATA_COUNT, unsigned(self.num_data))

    def _exported(self) -> tuple[list[bytes], list[bytes]]:
        """The globals, of which the first is the pointer to the stack, and the exports."""
        constants = [bytes([encoding.I32, 1]) + encoding.constant(STACK_BYTES)]
        exports = [name("memory") + b"\x02\0", name("__stack_pointer") + b"\x03\0"]
        for each in self.exports:
            target = self.defined[each].target
            assert isinstance(target, Function)
            exports.append(name(each) + b"\0" + unsigned(target.index))
            if each.startswith(ENTRY):
                entry = "rx_entry_" + each.removeprefix(ENTRY)
                exports.append(name(entry) + b"\x03" + unsigned(len(constants)))
                index = encoding.constant(self._in_table(target.index))
                constants.append(bytes([encoding.I32, 0]) + index)
        return constants, exports

    def _front(self, address: int, size: int) -> bytes:
        """What precedes the bytes of a segment; passive ones have no address."""
        where = b"\1" if self.is_shared else b"\0" + encoding.constant(address)
        return where + unsigned(size)

    def _data(self, segments: list[tuple[int, bytes]]) -> Iterator[bytes | memoryview]:
        """The data section, the bytes of constants as they are."""
        heads = [(self._front(address, len(data)), data) for address, data in segments]
        large = self._large()
        fronts = {key: self._front(each.address, each.size) for key, each in large.items()}
        count = unsigned(len(heads) + len(large))
        size = len(count) + sum(len(head) + len(data) for head, data in heads)
        size += sum(len(fronts[key]) + segment.size for key, segment in large.items())
        yield bytes([encoding.DATA]) + unsigned(size) + count
        yield b"".join(head + data for head, data in heads)
        for key in large:
            yield fronts[key]
            yield from pieces(self.constants[key].data)
