"""Writes the float constants of LLVM IR as bit patterns that every version of LLVM reads.

    fadd float %0, 1.000000e-01      ->   fadd float %0, 0x3FB99999A0000000
    splat (float f0x3FB8AA3B)        ->   splat (float 0x3FF7154760000000)
    fcmp olt double %0, +inf         ->   fcmp olt double %0, 0x7FF0000000000000

LLVM 24 prints shortest decimals, `f0x` patterns and names; LLVM 22 reads only decimals that are
exact and its own patterns, where that of a `float` is that of the `double` of the same value.

Source: LLVM language reference, "Simple Constants".
"""

import re
import struct

# A float type, or a constant; a constant's type is the last one named on its line.
_TOKEN = re.compile(
    r"(?<![\w.%@])(float|double|half|bfloat)\b"
    r"|(?<=[ \[(<])(f0x[0-9A-F]+|-?\d+\.\d+(?:e[+-]\d+)?|[+-](?:inf|qnan|s?nan\(0x[0-9A-Fa-f]+\)))"
    r"(?=[,\s)\]>]|$)"
)
# A quick filter: every line with a constant matches, and few others.
_HINT = re.compile(r"f0x|\d\.\d|inf|nan")
# name -> (integer of the same size, float), as `struct` calls them
_FORMATS = {"half": ("<H", "<e"), "float": ("<I", "<f"), "double": ("<Q", "<d")}


def spell_floats(text: str) -> str:
    """LLVM IR text with all float constants as bit patterns; strings are not changed."""
    return "\n".join(_line(line) if _HINT.search(line) else line for line in text.split("\n"))


def _line(line: str) -> str:
    if ' c"' in line:
        return line
    kind = None

    def spell(match: re.Match[str]) -> str:
        nonlocal kind
        kind = match[1] or kind
        return match[0] if match[1] or kind is None else _pattern(kind, match[2])

    return _TOKEN.sub(spell, line)


def _pattern(kind: str, constant: str) -> str:
    """One constant of the type `kind`."""
    if kind == "bfloat":
        return f"0xR{_bits('float', constant, extra=16) >> 16:04X}"
    bits = _bits(kind, constant)
    if kind == "half":
        return f"0xH{bits:04X}"
    if kind == "float":
        bits = _widened(bits)
    return f"0x{bits:016X}"


def _bits(kind: str, constant: str, extra: int = 0) -> int:
    """The bits of a constant; the last `extra` ones are rounded away, but not cleared."""
    integer, real = _FORMATS[kind]
    if constant.startswith("f0x"):
        return int(constant[3:], 16) << extra
    sign = -1.0 if constant.startswith("-") else 1.0
    if "nan" in constant:
        payload = re.search(r"0x([0-9A-Fa-f]+)", constant)
        mantissa = {"half": 10, "float": 23, "double": 52}[kind]
        infinity = struct.unpack(integer, struct.pack(real, float("inf") * sign))[0]
        quiet = 0 if constant[1] == "s" else 1 << (mantissa - 1)
        return infinity | quiet | (int(payload[1], 16) << extra if payload else 0)
    bits = struct.unpack(integer, struct.pack(real, float(constant)))[0]
    return bits + (1 << extra >> 1)


def _widened(bits: int) -> int:
    """The pattern of the double with the value of this float, NaN included."""
    sign, exponent, mantissa = bits >> 31, bits >> 23 & 0xFF, bits & 0x7FFFFF
    if exponent == 0xFF:
        return sign << 63 | 0x7FF << 52 | mantissa << 29
    value = struct.unpack("<f", struct.pack("<I", bits))[0]
    return struct.unpack("<Q", struct.pack("<d", value))[0]
