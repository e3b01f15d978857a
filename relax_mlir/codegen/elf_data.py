"""Large constants in a shared object: sections whose bytes are not copied before they are written.

    name -> array      ->      a read-only segment at the end of the file, a symbol for each array

A constant of a page or more is page-aligned: the loader maps it, processes share it, and pages are
read on first use. An array may repeat elements (a stride of zero): they are written repeatedly from
one copy in memory.
"""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from relax_mlir.codegen.elf_machine import Machine
from relax_mlir.codegen.elf_object import ALLOC, DATA_NAME, GLOBAL, OBJECT, Object, Section, Symbol

Data = Mapping[str, np.ndarray]
"""Constants by symbol name: arrays of any type, in row-major order."""

_LINE = 64
_PIECE = 1 << 20


def data_object(machine: Machine, data: Data) -> Object:
    """An object that defines the constants without their bytes."""
    symbols = [_constant(name, array, machine.page) for name, array in data.items()]
    sections = [symbol.section for symbol in symbols if symbol.section is not None]
    return Object(machine.elf_id, sections, symbols)


def _constant(name: str, array: np.ndarray, page: int) -> Symbol:
    align = page if array.nbytes >= page else _LINE
    section = Section(DATA_NAME, 1, ALLOC, array.nbytes, align, b"")
    return Symbol(name, GLOBAL, OBJECT, section, 0, array.nbytes)


def data_parts(sections: Sequence[Section], data: Data) -> Iterator[bytes | memoryview]:
    """The bytes of the constants, once their sections have addresses, with padding between them."""
    at = sections[0].address if sections else 0
    for section, array in zip(sections, data.values(), strict=True):
        yield bytes(section.address - at)
        yield from _pieces(array)
        at = section.address + section.size


def _pieces(array: np.ndarray) -> Iterator[memoryview]:
    """The bytes of an array, in row-major order."""
    if array.flags.c_contiguous:
        yield array.reshape(-1).view(np.uint8).data
        return
    repeats = array.strides[0] == 0
    step = max(1, _PIECE * len(array) // max(array.nbytes, 1))
    piece = np.ascontiguousarray(array[:step])
    for start in range(0, len(array), step):
        if not repeats:
            piece = np.ascontiguousarray(array[start : start + step])
        rows = piece[: len(array) - start]
        yield rows.reshape(-1).view(np.uint8).data
