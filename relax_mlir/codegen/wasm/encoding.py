"""The binary format of WebAssembly: integers, names, vectors, sections.

Source: WebAssembly Core Specification 2.0, section 5 (binary format).
"""

from collections.abc import Sequence

HEADER = b"\0asm\x01\0\0\0"
CUSTOM, TYPE, IMPORT, FUNCTION, TABLE, MEMORY, GLOBAL, EXPORT = range(8)
ELEMENT, CODE, DATA, DATA_COUNT = 9, 10, 11, 12
"""Ids of sections."""

PADDED = 5
"""Bytes of an integer of 32 bits that can be replaced by any other."""
I32, I32_CONST, END = 0x7F, 0x41, 0x0B
PREFIX = (0xFC,)
"""Of instructions on blocks of memory."""


class Reader:
    """Reads a sequence of bytes from a position on."""

    def __init__(self, data: bytes, at: int = 0) -> None:
        self.data, self.at = data, at

    def byte(self) -> int:
        """The next byte."""
        self.at += 1
        return self.data[self.at - 1]

    def unsigned(self) -> int:
        """An unsigned integer in LEB128."""
        value = shift = 0
        while True:
            byte = self.byte()
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    def signed(self) -> int:
        """A signed integer in LEB128."""
        start = self.at
        value = self.unsigned()
        bits = 7 * (self.at - start)
        return value - (1 << bits) if self.data[self.at - 1] & 0x40 else value

    def bytes(self, count: int) -> bytes:
        """The next `count` bytes."""
        self.at += count
        return self.data[self.at - count : self.at]

    def name(self) -> str:
        """A name in UTF-8."""
        return self.bytes(self.unsigned()).decode()


def unsigned(value: int, width: int = 0) -> bytes:
    """An unsigned integer in LEB128, of at least `width` bytes."""
    out = bytearray()
    while value >= 0x80 or len(out) + 1 < width:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def signed(value: int, width: int = 0) -> bytes:
    """A signed integer in LEB128, of at least `width` bytes."""
    out = bytearray()
    while not -0x40 <= value < 0x40 or len(out) + 1 < width:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value & 0x7F])


def name(text: str) -> bytes:
    """A name in UTF-8."""
    data = text.encode()
    return unsigned(len(data)) + data


def vector(items: Sequence[bytes]) -> bytes:
    """Encoded items after their count."""
    return unsigned(len(items)) + b"".join(items)


def section(kind: int, *parts: bytes) -> bytes:
    """A section with its id and size."""
    return bytes([kind]) + unsigned(sum(map(len, parts))) + b"".join(parts)


def constant(value: int) -> bytes:
    """The expression of an address; addresses from 2^31 on are negative integers."""
    return bytes([I32_CONST, *signed((value + (1 << 31)) % (1 << 32) - (1 << 31)), END])


def copy_data(segment: int, address: int, size: int) -> bytes:
    """Instructions that copy a passive segment to memory, and drop it."""
    operands = b"".join(constant(each)[:-1] for each in (address, 0, size))
    copy = bytes([*PREFIX, 8]) + unsigned(segment) + b"\0"
    return operands + copy + bytes([*PREFIX, 9]) + unsigned(segment)
