"""Fields of a message in protobuf's wire format, without a schema.

Source: protobuf encoding specification.
"""

import struct
from collections.abc import Iterator

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
_MAX_VARINT = 10
"""Bytes of an integer of 64 bits."""


class DamagedMessage(ValueError):
    """Bytes that are no message."""


def fields_of(data: bytes) -> Iterator[tuple[int, int | float | bytes]]:
    """The fields of a message in order: ids, and integers, floats (of 32 bits) or bytes.

    Raises DamagedMessage at the first byte that cannot be read.
    """
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        id, kind = tag >> 3, tag & 7
        if kind == BYTES:
            size, at = _varint(data, at)
            if size > len(data) - at:
                raise DamagedMessage(f"field {id} has {size} bytes; {len(data) - at} are left")
            yield id, data[at : at + size]
            at += size
        elif kind == VARINT:
            value, at = _varint(data, at)
            yield id, value
        elif kind in (FIXED32, FIXED64):
            size = 4 if kind == FIXED32 else 8
            if size > len(data) - at:
                raise DamagedMessage(f"field {id} has {size} bytes; {len(data) - at} are left")
            yield id, struct.unpack_from("<f" if kind == FIXED32 else "<d", data, at)[0]
            at += size
        else:
            raise DamagedMessage(f"field {id} has wire type {kind}; expects 0, 1, 2 or 5")


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """An integer without a sign, and what is behind it."""
    value = 0
    for i, byte in enumerate(data[at : at + _MAX_VARINT]):
        value |= (byte & 127) << 7 * i
        if byte < 128:
            return value, at + i + 1
    raise DamagedMessage(f"the integer at byte {at} does not end")
