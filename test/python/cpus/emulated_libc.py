"""The C library as the runtime of compiled modules uses it, for `emulator.py`: one thread.

A function takes the machine and the integer registers of its call and returns an integer.
"""

import re
import struct
from collections.abc import Callable
from typing import Any


def _free(m: Any, address: int, *_: int) -> int:
    if address:
        m.release(address)
    return 0


def _calloc(m: Any, count: int, size: int, *_: int) -> int:
    address = m.allocate(count * size)
    if address:
        m.write(address, bytes(count * size))
    return address


def _copy(m: Any, to: int, source: int, count: int, *_: int) -> int:
    m.write(to, m.read(source, count))
    return to


def _fill(m: Any, to: int, byte: int, count: int, *_: int) -> int:
    m.write(to, bytes([byte & 255]) * count)
    return to


def _format(m: Any, to: int, room: int, template: int, values: int, *_: int) -> int:
    """`vsnprintf` of integers and strings; a `va_list` is a structure that is passed by address."""
    stack, general_top, _, general, _ = struct.unpack("<QQQii", m.read(values, 32))

    def next_value(match: re.Match[str]) -> str:
        nonlocal stack, general
        if general < 0:
            at, general = general_top + general, general + 8
        else:
            at, stack = stack, stack + 8
        (value,) = struct.unpack("<q", m.read(at, 8))
        if match[0] == "%s":
            return m.text(value)
        return str((value + (1 << 31)) % (1 << 32) - (1 << 31) if match[0] == "%d" else value)

    text = re.sub(r"%(?:d|lld|s)", next_value, m.text(template)).encode()
    if room:
        m.write(to, text[: room - 1] + b"\0")
    return len(text)


def _set_jump(m: Any, place: int, *_: int) -> int:
    m.jumps[place] = m.registers()
    return 0


def _jump(m: Any, place: int, value: int, *_: int) -> int:
    m.set_registers(m.jumps[place])  # among them where the call of `_setjmp` returns to
    return value or 1


def _set_specific(m: Any, key: int, value: int, *_: int) -> int:
    m.specific = value
    return 0


def _nothing(*_: Any) -> int:
    return 0


FUNCTIONS: dict[str, Callable[..., int]] = {
    "malloc": lambda m, size, *_: m.allocate(size),
    "calloc": _calloc,
    "aligned_alloc": lambda m, alignment, size, *_: m.allocate(size, alignment),
    "free": _free,
    "mmap": lambda m, _, size, *__: _calloc(m, 1, size),
    "memcpy": _copy,
    "memmove": _copy,
    "memset": _fill,
    "vsnprintf": _format,
    "_setjmp": _set_jump,
    "longjmp": _jump,
    "pthread_getspecific": lambda m, *_: getattr(m, "specific", 0),
    "pthread_setspecific": _set_specific,
    "sched_getaffinity": lambda *_: -1,  # so that there is one thread
    **dict.fromkeys(
        ("getenv", "getpid", "madvise", "munmap", "pthread_key_create", "__register_atfork"),
        _nothing,
    ),
}
