"""Memory of a kernel: bindings of WebGPU, and how elements are accessed in them.

A binding is a whole word at least, so elements of 8 and 16 bits are parts of words. Threads that
store to different parts of a word do so by atomic operations, which leave the other parts alone.
Where a kernel takes more buffers than WebGPU allows, several share a binding: the host copies them
there, one after the other, and says where each begins.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from relax_mlir.bindings import ir
from relax_mlir.codegen.gpu.device_kernel import DeviceKernel

from .emitter import Buffer
from .kinds import Kind, kind_of

MOST = 8
"""Storage buffers of a stage that every device allows. Source: WebGPU, limits."""


@dataclass(frozen=True)
class Argument:
    """A buffer that a kernel takes: the argument `index`, and whether it stores to it."""

    index: int
    kind: Kind
    is_written: bool

    @property
    def is_packed(self) -> bool:
        """Whether elements are parts of words."""
        return self.kind.bytes < 4

    @property
    def declared(self) -> str:
        """The type of what its memory is an array of."""
        if not self.is_packed:
            return self.kind.value
        return "atomic<u32>" if self.is_written else "u32"


def buffer_arguments(kernel: DeviceKernel) -> list[Argument]:
    """The buffers that a kernel takes."""
    result = []
    for i, type_ in enumerate(kernel.arguments):
        if isinstance(type_, ir.MemRefType):
            kind = kind_of(type_.element_type)
            assert kind is not None, "the device stores such elements"
            result.append(Argument(i, kind, i in kernel.written))
    return result


def bindings_of(arguments: Sequence[Argument]) -> list[list[Argument]]:
    """The buffers of each binding; those that are only read are joined before others.

    There are four types of memory, each read or written, so no more bindings than MOST.
    """
    bindings: dict[object, list[Argument]] = {}
    for may_join in (lambda a: False, lambda a: not a.is_written, lambda a: True):
        bindings = {}
        for a in arguments:
            key = ("joined", a.declared, a.is_written) if may_join(a) else a.index
            bindings.setdefault(key, []).append(a)
        if len(bindings) <= MOST:
            break
    return list(bindings.values())


def declare(binding: int, arguments: Sequence[Argument]) -> str:
    """The declaration of a binding.

    All are writable: parts of one buffer of the device must be used in one way by a launch.
    """
    element = arguments[0].declared
    variable = f"var<storage, read_write> b{binding}: array<{element}>;"
    return f"@group(0) @binding({binding}) {variable}"


def access(binding: int, argument: Argument, is_joined: bool) -> tuple[Buffer, list[str]]:
    """How a buffer is accessed, and the functions that this needs."""
    index = f"u32(INDEX) + params.begin{argument.index}" if is_joined else "INDEX"
    if not argument.is_packed:
        at = f"b{binding}[{index}]"
        return Buffer(argument.kind, at, f"{at} = VALUE;"), []
    position = index if is_joined else "u32(INDEX)"
    kind, own = argument.kind, f"b{binding}_{argument.index}"
    load = _from_bits(kind, f"load_{own}({position})")
    store = f"store_{own}({position}, {_to_bits(kind)});"
    return Buffer(kind, load, store), _functions(binding, own, argument)


def _functions(binding: int, own: str, argument: Argument) -> list[str]:
    """Functions that load and store a part of a word."""
    by, bits = 4 // argument.kind.bytes, 8 * argument.kind.bytes
    word, shift = f"b{binding}[at / {by}u]", f"{bits}u * (at % {by}u)"
    mask = f"0x{2**bits - 1:x}u"
    read = f"atomicLoad(&{word})" if argument.is_written else word
    load = (
        f"fn load_{own}(at: u32) -> u32 {{\n"
        f"  return ({read} >> ({shift})) & {mask};\n}}"
    )  # fmt: skip
    store = (
        f"fn store_{own}(at: u32, bits: u32) {{\n"
        f"  let shift = {shift};\n"
        f"  atomicAnd(&{word}, ~({mask} << shift));\n"
        f"  atomicOr(&{word}, (bits & {mask}) << shift);\n}}"
    )
    return [load, store] if argument.is_written else [load]


def _from_bits(kind: Kind, bits: str) -> str:
    if kind.name == "i1":
        return f"{bits} != 0u"
    return bits if kind.is_float else f"i32_extend(bitcast<i32>({bits}), {8 * kind.bytes}u)"


def _to_bits(kind: Kind) -> str:
    if kind.name == "i1":
        return "u32(VALUE)"
    return "VALUE" if kind.is_float else "bitcast<u32>(VALUE)"


def group_buffer(name: str, type_: ir.MemRefType, kind: Kind) -> tuple[Buffer, str, int]:
    """Memory of a group: how it is accessed, its declaration, and its bytes."""
    (count,) = type_.shape
    declared = f"var<workgroup> {name}: array<{kind.value}, {count}>;"
    at = f"{name}[INDEX]"
    return Buffer(kind, at, f"{at} = VALUE;"), declared, count * max(4, kind.bytes)
