"""Large constants in a shared object: sections whose bytes are written from where they are.

    name -> elements    ->    .constants        a read-only segment at the end of the file
                              .constants.zero   one that the file has no bytes of
                              .constants.index  names, types and places in .constants, as JSON
                              .constants.place  where .constants is: `RxConstants` of the runtime

A symbol is defined for each. Constants stand side by side without gaps, so that they and the index
are the two parts of a safetensors file: see `relax_mlir.runtime.external`, which makes one. What
has as many bytes as whole pages comes first, so that weights begin at pages, which the loader maps,
processes share, and nothing reads before it is used. Elements that are repeated are written again
and again, and take no memory; those that are zero are pages of the kernel's.

Source: safetensors, "Format".
"""

import json
from collections.abc import Iterator, Mapping

import numpy as np

from relax_mlir.codegen.elf_object import (
    ALLOC,
    DATA_NAME,
    GLOBAL,
    NOBITS,
    OBJECT,
    PLACE_NAME,
    ZERO_NAME,
    Object,
    Relocation,
    Section,
    Symbol,
)
from relax_mlir.codegen.machines import Machine
from relax_mlir.codegen.machines.machine import RELATIVE64
from relax_mlir.data import DATA_PREFIX, Contents

Data = Mapping[str, Contents]
"""Constants by the names that objects call them."""

PLACE = "rx_constants"
"""The symbol of what the runtime knows of constants."""
PLACE_BYTES = 256
_LINE = 64
_PIECE = 1 << 20
_DTYPES = {
    "f64": "F64",
    "f32": "F32",
    "f16": "F16",
    "bf16": "BF16",
    "f8E4M3FN": "F8_E4M3",
    "f8E5M2": "F8_E5M2",
    "i1": "BOOL",
    "index": "I64",
} | {
    f"{sign}{bits}": f"{'U' if sign == 'ui' else 'I'}{bits}"
    for sign in ("i", "si", "ui")
    for bits in (8, 16, 32, 64)
}


def arranged(machine: Machine, data: Data) -> Data:
    """The constants in the order in which they are stored: whole pages first, zeros last."""

    def rank(item: tuple[str, Contents]) -> tuple[bool, int]:
        return item[1].is_zero, -_alignment(item[1], machine.page)

    return dict(sorted(data.items(), key=rank))


def data_object(machine: Machine, data: Data) -> Object:
    """An object that defines arranged constants, but does not hold their bytes."""
    symbols = []
    for name, constant in data.items():
        size = constant.data.nbytes
        if constant.is_zero:
            section = Section(ZERO_NAME, NOBITS, ALLOC, size, _LINE, b"")
        else:
            align = _alignment(constant, machine.page)
            section = Section(DATA_NAME, 1, ALLOC, size, align, b"")
        symbols.append(_symbol(name, section))
    stored = [s for s in symbols if s.section is not None and s.section.name == DATA_NAME]
    if stored:
        symbols.append(_symbol(PLACE, _place(stored)))
    return Object(machine.elf_id, [s.section for s in symbols if s.section is not None], symbols)


def _alignment(constant: Contents, page: int) -> int:
    """The power of two, up to a page, that the size is a multiple of: so there are no gaps."""
    size = constant.data.nbytes
    return min(size & -size, page) or page


def _symbol(name: str, section: Section) -> Symbol:
    return Symbol(name, GLOBAL, OBJECT, section, 0, section.size)


def _place(symbols: list[Symbol]) -> Section:
    """An `RxConstants`: the distance to the constants, their bytes, nothing of a file."""
    begin, size = symbols[0], sum(symbol.size for symbol in symbols)
    data = bytes(8) + size.to_bytes(8, "little") + bytes(PLACE_BYTES - 16)
    distance = Relocation(0, RELATIVE64, begin, 0)
    return Section(PLACE_NAME, 1, ALLOC, PLACE_BYTES, 8, data, [distance])


def data_index(data: Data) -> bytes:
    """The header of a safetensors file of arranged constants, but for its length."""
    at, entries = 0, {}
    for name, constant in _stored(data):
        end = at + constant.data.nbytes
        dtype = _DTYPES.get(constant.element)
        entries[name.removeprefix(DATA_PREFIX)] = {
            "dtype": dtype or "U8",
            "shape": list(constant.dims) if dtype else [end - at],
            "data_offsets": [at, end],
        }
        at = end
    return json.dumps(entries, separators=(",", ":")).encode()


def data_parts(data: Data) -> Iterator[memoryview]:
    """The bytes of the constants that the file has."""
    for _, constant in _stored(data):
        yield from pieces(constant.data)


def _stored(data: Data) -> Iterator[tuple[str, Contents]]:
    return ((name, constant) for name, constant in data.items() if not constant.is_zero)


def pieces(array: np.ndarray) -> Iterator[memoryview]:
    """The bytes of an array, row by row."""
    if array.flags.c_contiguous:
        yield array.reshape(-1).view(np.uint8).data
        return
    step = max(1, _PIECE * len(array) // max(array.nbytes, 1))
    piece = np.ascontiguousarray(array[:step])
    for start in range(0, len(array), step):
        yield piece[: len(array) - start].reshape(-1).view(np.uint8).data
