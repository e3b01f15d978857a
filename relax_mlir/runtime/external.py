"""Constants of a compiled module in a file of their own, which other programs read too.

    model.so    ->    model.so                          everything else
                      model-5f0c6e2b91d3a874.safetensors   the constants

The second is a safetensors file, whose data is the section `.constants` as the linker wrote it. The
first has pages kept free for it, the file's name, size, and checksums; the runtime maps the file
there when a context is created (`csrc/constants.c`). The name has the checksums too, so that a
shared object never finds the constants of another one, and objects that are replaced in the
midst of being saved work on: the file of constants is there before the object that names it.

Source: safetensors, "Format"; System V ABI, edition 4.1, chapters 4 and 5.
"""

import mmap
import os
import struct
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np

from relax_mlir.runtime.elf_format import ELF64, format_of

DATA, INDEX, PLACE = ".constants", ".constants.index", ".constants.place"
MAX_NAME = 215
_PLACE = struct.Struct("<qqqQQ216s")
_NOBITS, _LOAD = 8, 1
_SAMPLE, _SAMPLES, _SUMMED = 4096, 256, 16 << 20
_PIECE = 1 << 20


@dataclass(frozen=True)
class Place:
    """Where a file has its constants, and where what is to be changed if they are moved."""

    header: int
    """Offset of the section's row in the table of sections."""
    segment: int
    """Offset of the segment's row in the table of segments."""
    emptied: bytes
    """That row for a segment of which the file has no byte."""
    place: int
    """Offset of the `RxConstants`."""
    offset: int
    size: int
    align: int
    index: bytes
    file: str
    """The file that has the constants; none if they are in this one."""


def find_constants(file: BinaryIO) -> Place | None:
    """Where a shared object has its constants; None if it has none, or is no ELF file."""
    fd = file.fileno()
    start = os.pread(fd, ELF64.header.size, 0)
    form = format_of(start)
    if form is None or len(start) < form.header.size:
        return None
    _, _, _, _, _, segments, sections, _, _, _, segment_count, _, count, names = (
        form.header.unpack_from(start)
    )
    table = os.pread(fd, form.section.size * count, sections)
    rows = list(form.section.iter_unpack(table)) if len(table) == form.section.size * count else []
    if not rows:
        return None
    texts = os.pread(fd, rows[names][5], rows[names][4])
    found = {texts[row[0] : texts.find(b"\0", row[0])].decode(): i for i, row in enumerate(rows)}
    if not {DATA, INDEX, PLACE} <= found.keys():
        return None
    data, index, place = (rows[found[name]] for name in (DATA, INDEX, PLACE))
    loaded = os.pread(fd, form.segment_size * segment_count, segments)
    for i, (type, flags, _, address, _, size, align) in enumerate(form.segments(loaded)):
        if type == _LOAD and address == data[3]:
            stored = _PLACE.unpack(os.pread(fd, _PLACE.size, place[4]))
            return Place(
                sections + form.section.size * found[DATA],
                segments + form.segment_size * i,
                form.segment(type, flags, 0, address, 0, size, align),
                place[4],
                data[4],
                data[5],
                align,
                os.pread(fd, index[5], index[4]),
                stored[5].rstrip(b"\0").decode(),
            )
    return None


def save(source: BinaryIO, target: Path, external: bool) -> None:
    """Copies a shared object, with constants in a file beside it if they are `external`.

    Files that are there already are replaced in one step. If the constants of `source` are in a
    file of their own, `source.name` says in which folder, and they remain so.

    Raises:
        OSError: a file cannot be written or read.
    """
    found = find_constants(source)
    if found is not None and found.file:
        with open(Path(source.name).parent / found.file, "rb") as constants:
            with _replacing(target.absolute().parent / found.file, 0o644) as copy:
                _copy(constants, copy, 0, os.fstat(constants.fileno()).st_size)
    elif found is not None and external:
        _split(source, found, target)
        return
    with _replacing(target, 0o755) as copy:
        _copy(source, copy, 0, os.fstat(source.fileno()).st_size)


def _split(source: BinaryIO, found: Place, target: Path) -> None:
    """Writes the constants, then the shared object without them."""
    size = -(-(8 + len(found.index)) // found.align) * found.align
    header = (size - 8).to_bytes(8, "little") + found.index.ljust(size - 8)
    begin = found.offset // mmap.ALLOCATIONGRANULARITY * mmap.ALLOCATIONGRANULARITY
    length = found.offset - begin + found.size
    with mmap.mmap(source.fileno(), length, access=mmap.ACCESS_READ, offset=begin) as pages:
        sums = checksum(header), checksum(memoryview(pages)[found.offset - begin :])
    mark = f"-{sum(sums) % 2**64:016x}.safetensors"
    stem = target.stem.encode()[: MAX_NAME - len(mark)].decode(errors="ignore")
    name = stem + mark
    with _replacing(target.absolute().parent / name, 0o644) as file:
        file.write(header)
        _copy(source, file, found.offset, found.size)
    with _replacing(target, 0o755) as file:
        _copy(source, file, 0, found.offset)
        distance = os.pread(source.fileno(), 8, found.place)
        place = _PLACE.pack(0, found.size, size, *sums, name.encode())
        file.flush()
        os.pwrite(file.fileno(), distance + place[8:], found.place)
        os.pwrite(file.fileno(), _NOBITS.to_bytes(4, "little"), found.header + 4)
        os.pwrite(file.fileno(), found.emptied, found.segment)


@contextmanager
def _replacing(target: Path, mode: int) -> Iterator[BinaryIO]:
    """A new file, which takes the name of `target` when the block ends without an error."""
    with tempfile.NamedTemporaryFile(dir=target.absolute().parent, delete=False) as file:
        try:
            yield file  # type: ignore[misc]  # a wrapper of one
            file.flush()
            os.fchmod(file.fileno(), mode)
            os.replace(file.name, target)
        except BaseException:
            os.unlink(file.name)
            raise


def _copy(source: BinaryIO, target: BinaryIO, begin: int, size: int) -> None:
    """Appends a part of a file, which may be larger than memory, to another one."""
    target.flush()
    end = begin + size
    while begin < end:
        count = os.sendfile(target.fileno(), source.fileno(), begin, end - begin)
        if not count:
            raise OSError(f"'{source.name}' was truncated")
        begin += count


def checksum(data: bytes | memoryview) -> int:
    """The sum that `csrc/constants.c` computes: of all bytes up to 16 MiB, else of samples."""
    total = len(data)
    if total <= _SUMMED:
        return _sum_words(data, 0, total)
    begins = [(total - _SAMPLE) // (_SAMPLES - 1) * i // 8 * 8 for i in range(_SAMPLES)]
    return sum(_sum_words(data, begin, begin + _SAMPLE) for begin in begins) % 2**64


def _sum_words(data: bytes | memoryview, begin: int, end: int) -> int:
    """Of the 8-byte words from byte `begin` on, each mixed with its index."""
    total = 0
    for start in range(begin, end, _PIECE):
        piece = bytes(data[start : min(start + _PIECE, end)])
        words = np.frombuffer(piece + bytes(-len(piece) % 8), "<u8")
        index = np.arange(start // 8, start // 8 + len(words), dtype=np.uint64)
        mixed = (words ^ index * np.uint64(0x9E3779B97F4A7C15)) * np.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ mixed >> np.uint64(29)) * np.uint64(0x94D049BB133111EB)
        total += int((mixed ^ mixed >> np.uint64(32)).sum(dtype=np.uint64))
    return total % 2**64
