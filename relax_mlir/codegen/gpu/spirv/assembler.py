"""SPIR-V modules as words: types and constants once each, in the order that SPIR-V demands.

Source: Khronos, SPIR-V specification 1.3, "Binary Form" and "Instructions"; GLSL.std.450.
"""

import struct
from collections.abc import Sequence

MAGIC, VERSION = 0x07230203, 0x00010300

CAPABILITIES = {
    "Shader": 1,
    "Float16": 9,
    "Float64": 10,
    "Int64": 11,
    "Int16": 22,
    "Int8": 39,
    "StorageBuffer16BitAccess": 4433,
    "StorageBuffer8BitAccess": 4448,
}
"""What a module may need of a device; `vulkan.c` knows the features by these numbers."""

UNIFORM_CONSTANT, INPUT, WORKGROUP, PRIVATE, PUSH_CONSTANT, STORAGE_BUFFER = 0, 1, 4, 6, 9, 12
BLOCK, ARRAY_STRIDE, BUILT_IN, NON_WRITABLE, BINDING, DESCRIPTOR_SET, OFFSET, NO_CONTRACTION = (
    2, 6, 11, 24, 33, 34, 35, 42,
)  # fmt: skip


def string_words(text: str) -> list[int]:
    """A string with the zero that ends it, as words."""
    data = text.encode() + b"\0"
    data += b"\0" * (-len(data) % 4)
    return list(struct.unpack(f"<{len(data) // 4}I", data))


class Assembler:
    """A module that is being assembled. Ids are integers; an instruction is a list of words."""

    def __init__(self) -> None:
        self._next = 1
        self.capabilities: set[int] = {CAPABILITIES["Shader"]}
        self._known: dict[object, int] = {}
        self.extensions: set[str] = set()
        self._decorations: list[list[int]] = []
        self._globals: list[list[int]] = []
        self.body: list[list[int]] = []
        self.math = self.new_id()

    def new_id(self) -> int:
        """An id that nothing else has."""
        self._next += 1
        return self._next - 1

    def require(self, *capabilities: str) -> None:
        """States that the module needs capabilities."""
        self.capabilities.update(CAPABILITIES[name] for name in capabilities)

    def decorate(self, target: int, *words: int) -> None:
        """Decorates an id."""
        self._decorations.append([71, target, *words])

    def decorate_member(self, target: int, member: int, *words: int) -> None:
        """Decorates a member of a structure."""
        self._decorations.append([72, target, member, *words])

    def _global(self, key: object, opcode: int, *words: int, has_type: bool = False) -> int:
        """The result of an instruction outside of functions, which is written once."""
        if key not in self._known:
            made = self._known[key] = self.new_id()
            row = [opcode, words[0], made, *words[1:]] if has_type else [opcode, made, *words]
            self._globals.append(row)
        return self._known[key]

    # Types.

    def void(self) -> int:
        """The type of nothing."""
        return self._global("void", 19)

    def boolean(self) -> int:
        """The type of truth values, which have no memory layout."""
        return self._global("bool", 20)

    def integer(self, width: int) -> int:
        """The type of integers without a sign."""
        if width != 32:
            self.require(f"Int{width}")
        return self._global(("int", width), 21, width, 0)

    def real(self, width: int) -> int:
        """The type of floats."""
        if width != 32:
            self.require(f"Float{width}")
        return self._global(("float", width), 22, width)

    def vector(self, element: int, count: int) -> int:
        """The type of vectors."""
        return self._global(("vector", element, count), 23, element, count)

    def array(self, element: int, count: int) -> int:
        """The type of arrays without a layout."""
        length = self.constant(self.integer(32), [count])
        return self._global(("array", element, count), 28, element, length)

    def pointer(self, storage: int, target: int) -> int:
        """The type of pointers to a class of memory."""
        return self._global(("pointer", storage, target), 32, storage, target)

    def buffer_struct(self, element: int, size: int) -> int:
        """The type of a buffer: a structure of an array whose elements have `size` bytes."""
        key = ("buffer", element)
        if key not in self._known:
            items = self._global(("runtime", element), 29, element)
            self.decorate(items, ARRAY_STRIDE, size)
            made = self._global(key, 30, items)
            self.decorate(made, BLOCK)
            self.decorate_member(made, 0, OFFSET, 0)
        return self._known[key]

    def structure(self, members: Sequence[int], offsets: Sequence[int]) -> int:
        """The type of a block of members at offsets."""
        made = self._global(("struct", *members), 30, *members)
        self.decorate(made, BLOCK)
        for index, offset in enumerate(offsets):
            self.decorate_member(made, index, OFFSET, offset)
        return made

    def function_type(self) -> int:
        """The type of functions that take and return nothing."""
        return self._global("function", 33, self.void())

    # Constants and variables.

    def constant(self, type_: int, words: Sequence[int]) -> int:
        """A number, by its bits."""
        return self._global(("constant", type_, *words), 43, type_, *words, has_type=True)

    def truth(self, value: bool) -> int:
        """A truth value."""
        return self._global(("truth", value), 41 if value else 42, self.boolean(), has_type=True)

    def null(self, type_: int) -> int:
        """Zero of any type."""
        return self._global(("null", type_), 46, type_, has_type=True)

    def composite(self, type_: int, parts: Sequence[int]) -> int:
        """A constant array."""
        return self._global(("composite", type_, *parts), 44, type_, *parts, has_type=True)

    def variable(self, storage: int, target: int, *initializer: int) -> int:
        """A new variable outside of functions."""
        key = ("variable", self._next)
        pointer = self.pointer(storage, target)
        return self._global(key, 59, pointer, storage, *initializer, has_type=True)

    # The module.

    def assemble(self, entry: int, interface: Sequence[int], block: Sequence[int]) -> bytes:
        """The words of the module, whose entry point is called "main"."""
        rows = [
            *([17, capability] for capability in sorted(self.capabilities)),
            *([10, *string_words(name)] for name in sorted(self.extensions)),
            [11, self.math, *string_words("GLSL.std.450")],
            [14, 0, 1],
            [15, 5, entry, *string_words("main"), *interface],
            [16, entry, 17, *block],
            *self._decorations,
            *self._globals,
            *self.body,
        ]
        words = [MAGIC, VERSION, 0, self._next, 0]
        for opcode, *operands in rows:
            words += [(len(operands) + 1) << 16 | opcode, *operands]
        return struct.pack(f"<{len(words)}I", *words)
