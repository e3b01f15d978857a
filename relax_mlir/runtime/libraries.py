"""Shared objects: whether one is complete and for which machine, and functions of libraries."""

import ctypes
import ctypes.util
import os
import platform
import struct
from collections.abc import Iterator, Sequence
from importlib import metadata
from typing import BinaryIO

from relax_mlir.runtime.callees import PYTHON, address_of
from relax_mlir.runtime.elf_format import ELF32, ELF64, format_of

PT_LOAD = 1

# Names of `platform.machine` by the machine ids of ELF.
_ARCHITECTURES = {40: "armv7l", 62: "x86_64", 183: "aarch64", 243: "riscv64"}


def find_function(symbol: str, providers: Sequence[str]) -> int:
    """Address of the C function `symbol` in the first of `providers` that has it.

    A provider is a shared object ("libopenblas.so.0", or a path), an installed Python distribution
    that contains one ("scipy-openblas64"), or a library's name ("openblas"). "python" has the
    functions that `relax_mlir.register_function` names.

    Raises:
        LookupError: no provider has it; the message lists them.
    """
    for provider in providers:
        if provider == PYTHON:
            return address_of(symbol)
        for file in _shared_objects(provider):
            try:
                function = getattr(ctypes.CDLL(file), symbol)
            except (OSError, AttributeError):
                continue  # the next candidate may have it
            address = ctypes.cast(function, ctypes.c_void_p).value
            if address is not None:
                return address
    raise LookupError(f"'{symbol}' is in none of: {', '.join(providers) or '(no libraries)'}")


def _shared_objects(provider: str) -> Iterator[str]:
    if ".so" in provider:
        yield provider
        return
    try:
        files = metadata.files(provider) or []
    except metadata.PackageNotFoundError:
        files = []
    for file in files:
        if ".so" in file.name and file.name.startswith("lib"):
            yield str(file.locate())
    path = ctypes.util.find_library(provider)
    if path:
        yield path


def architecture(file: BinaryIO) -> str | None:
    """The architecture that a shared object is for, as `platform.machine` names it.

    None if modules are not compiled for it, or the file is not a shared object.
    """
    header = os.pread(file.fileno(), ELF32.header.size, 0)
    if len(header) < ELF32.header.size or format_of(header) is None:
        return None
    return _ARCHITECTURES.get(struct.unpack_from("<H", header, 18)[0])


def this_architecture() -> str:
    """The architecture of this process, which on 64-bit Arm may be of 32 bits."""
    machine, is_small = platform.machine(), struct.calcsize("P") == 4
    return "armv7l" if is_small and machine in ("aarch64", "armv8l") else machine


def is_truncated(file: BinaryIO) -> bool:
    """Whether a segment of a shared object ends beyond the end of the file.

    The loader maps such a file, and the process dies when it touches the missing part.
    """
    size = os.fstat(file.fileno()).st_size
    header = os.pread(file.fileno(), ELF64.header.size, 0)
    form = format_of(header)
    if form is None or len(header) < form.header.size:
        return False  # the loader rejects it
    _, _, _, _, _, offset, _, _, _, entry, count, *_ = form.header.unpack_from(header)
    table = os.pread(file.fileno(), entry * count, offset)
    if entry != form.segment_size or len(table) < entry * count:
        return True
    return any(
        type == PT_LOAD and begin + length > size
        for type, _, begin, _, length, _, _ in form.segments(table)
    )
