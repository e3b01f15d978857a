"""SPIR-V modules as words: types and constants once each, in the order that SPIR-V demands.

Source: Khronos, SPIR-V specification 1.3, "Binary Form" and "Instructions"; GLSL.std.450.
"""

import struct
from collections.abc import Sequence

from .opcodes import Op

_LOCAL_SIZE, _KEEP_SPECIAL = 17, 4461
_GLSL, _VULKAN = 1, 3
MAGIC, VERSION = 0x07230203, 0x00010300

CAPABILITIES = {
    "Shader": 1,
    "Float16": 9,
    "Float64": 10,
    "Int64": 11,
    "Int16": 22,
    "Int8": 39,
    "GroupNonUniform": 61,
    "SignedZeroInfNanPreserve": 4466,
    "StorageBuffer16BitAccess": 4433,
    "StorageBuffer8BitAccess": 4448,
    "VulkanMemoryModel": 5345,
    "CooperativeMatrixKHR": 6022,
}
"""What a module may need of a device; `vulkan.c` knows the features by these values."""

INPUT, WORKGROUP, PRIVATE, PUSH_CONSTANT, STORAGE_BUFFER = 1, 4, 6, 9, 12
SPEC_ID, BLOCK, ARRAY_STRIDE, BUILT_IN, NON_WRITABLE = 1, 2, 6, 11, 24
RESTRICT, ALIASED = 19, 20
BINDING, DESCRIPTOR_SET, OFFSET, NO_CONTRACTION = 33, 34, 35, 42


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
        self._floats: set[int] = set()
        self._decorated: set[object] = set()
        self.body: list[list[int]] = []
        self.math = self.new_id()
        self.has_vulkan_memory = False

    def new_id(self) -> int:
        """An id that nothing else has."""
        self._next += 1
        return self._next - 1

    def require(self, *capabilities: str) -> None:
        """States that the module needs capabilities."""
        self.capabilities.update(CAPABILITIES[name] for name in capabilities)

    def require_matrices(self) -> None:
        """States that the module has cooperative matrices, which need Vulkan's memory model."""
        self.require("CooperativeMatrixKHR", "VulkanMemoryModel")
        self.extensions |= {"SPV_KHR_cooperative_matrix", "SPV_KHR_vulkan_memory_model"}
        self.has_vulkan_memory = True

    def decorate(self, target: int, *words: int) -> None:
        """Decorates an id."""
        self._decorations.append([Op.Decorate, target, *words])

    def decorate_member(self, target: int, member: int, *words: int) -> None:
        """Decorates a member of a structure."""
        self._decorations.append([Op.MemberDecorate, target, member, *words])

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
        return self._global("void", Op.TypeVoid)

    def boolean(self) -> int:
        """The type of truth values, which have no memory layout."""
        return self._global("bool", Op.TypeBool)

    def integer(self, width: int) -> int:
        """The type of integers without a sign."""
        if width != 32:
            self.require(f"Int{width}")
        return self._global(("int", width), Op.TypeInt, width, 0)

    def real(self, width: int) -> int:
        """The type of floats."""
        if width != 32:
            self.require(f"Float{width}")
        self._floats.add(width)
        return self._global(("float", width), Op.TypeFloat, width)

    def vector(self, element: int, count: int) -> int:
        """The type of vectors."""
        return self._global(("vector", element, count), Op.TypeVector, element, count)

    def array(self, element: int, count: int) -> int:
        """The type of arrays without a layout."""
        length = self.constant(self.integer(32), [count])
        return self._global(("array", element, count), Op.TypeArray, element, length)

    def cooperative_matrix(self, element: int, *parameters: int) -> int:
        """The type of matrices of constant scope, rows, columns and use, in this order."""
        key = ("matrix", element, *parameters)
        return self._global(key, Op.TypeCooperativeMatrixKHR, element, *parameters)

    def pointer(self, storage: int, target: int) -> int:
        """The type of pointers to a class of memory."""
        return self._global(("pointer", storage, target), Op.TypePointer, storage, target)

    def buffer_struct(self, element: int, size: int) -> int:
        """The type of a buffer: a structure of an array whose elements have `size` bytes."""
        key = ("buffer", element)
        if key not in self._known:
            items = self._global(("runtime", element), Op.TypeRuntimeArray, element)
            self.decorate(items, ARRAY_STRIDE, size)
            made = self._global(key, Op.TypeStruct, items)
            self.decorate(made, BLOCK)
            self.decorate_member(made, 0, OFFSET, 0)
        return self._known[key]

    def structure(self, members: Sequence[int], offsets: Sequence[int]) -> int:
        """The type of a block of members at offsets."""
        made = self._global(("struct", *members), Op.TypeStruct, *members)
        self.decorate(made, BLOCK)
        for index, offset in enumerate(offsets):
            self.decorate_member(made, index, OFFSET, offset)
        return made

    def function_type(self) -> int:
        """The type of functions that take and return nothing."""
        return self._global("function", Op.TypeFunction, self.void())

    # Constants and variables.

    def constant(self, type_: int, words: Sequence[int]) -> int:
        """An integer or float, by its bits."""
        return self._global(("constant", type_, *words), Op.Constant, type_, *words, has_type=True)

    def truth(self, value: bool) -> int:
        """A truth value."""
        opcode = Op.ConstantTrue if value else Op.ConstantFalse
        return self._global(("truth", value), opcode, self.boolean(), has_type=True)

    def truth_given(self, index: int) -> int:
        """A truth value that the runtime chooses when it makes the pipeline."""
        key = ("given", index)
        made = self._global(key, Op.SpecConstantTrue, self.boolean(), has_type=True)
        if key not in self._decorated:
            self._decorated.add(key)
            self.decorate(made, SPEC_ID, index)
        return made

    def null(self, type_: int) -> int:
        """Zero of any type."""
        return self._global(("null", type_), Op.ConstantNull, type_, has_type=True)

    def composite(self, type_: int, parts: Sequence[int]) -> int:
        """A constant array."""
        return self._global(
            ("composite", type_, *parts), Op.ConstantComposite, type_, *parts, has_type=True
        )

    def variable(self, storage: int, target: int, *initializer: int) -> int:
        """A new variable outside of functions."""
        key = ("variable", self._next)
        pointer = self.pointer(storage, target)
        return self._global(key, Op.Variable, pointer, storage, *initializer, has_type=True)

    # The module.

    def assemble(self, entry: int, interface: Sequence[int], block: Sequence[int]) -> bytes:
        """The words of the module, whose entry point is called "main".

        It asks to keep infinities, NaN and signs of zeros, which the runtime leaves out for a
        device that does not know of it.
        """
        if self._floats:
            self.require("SignedZeroInfNanPreserve")
            self.extensions.add("SPV_KHR_float_controls")
        rows = [
            *([Op.Capability, capability] for capability in sorted(self.capabilities)),
            *([Op.Extension, *string_words(name)] for name in sorted(self.extensions)),
            [Op.ExtInstImport, self.math, *string_words("GLSL.std.450")],
            [Op.MemoryModel, 0, _VULKAN if self.has_vulkan_memory else _GLSL],
            [Op.EntryPoint, 5, entry, *string_words("main"), *interface],
            [Op.ExecutionMode, entry, _LOCAL_SIZE, *block],
            *([Op.ExecutionMode, entry, _KEEP_SPECIAL, width] for width in sorted(self._floats)),
            *self._decorations,
            *self._globals,
            *self.body,
        ]
        words = [MAGIC, VERSION, 0, self._next, 0]
        for opcode, *operands in rows:
            words += [(len(operands) + 1) << 16 | opcode, *operands]
        return struct.pack(f"<{len(words)}I", *words)
