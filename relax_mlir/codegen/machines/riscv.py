"""RISC-V of 64 bits for the linker, which relaxes nothing.

Half of a distance is in one instruction and half in another, whose relocation names the first one:

    .Lpcrel_hi0:  auipc a0, %got_pcrel_hi(symbol)
                  ld    a0, %pcrel_lo(.Lpcrel_hi0)(a0)

Source: RISC-V ELF psABI, chapter "ELF object files".
"""

from dataclasses import replace
from typing import ClassVar

from relax_mlir.codegen.elf_object import Relocation, Section
from relax_mlir.codegen.machines.machine import (
    RELATIVE64,
    Dynamic,
    Kinds,
    Machine,
    Need,
    fitting,
    insert,
)

_GOT_HI, _PCREL_HI, _LOW_I, _LOW_S = 20, 23, 24, 25
_COMPRESSED, _DOUBLE_FLOAT_ABI = 1, 4
# Encoding -> the bits of a distance, and which of them go where: (first, count, shift).
_FIELDS: dict[str, tuple[int, tuple[tuple[int, int, int], ...]]] = {
    "branch": (13, ((1, 4, 8), (5, 6, 25), (11, 1, 7), (12, 1, 31))),
    "jump": (21, ((1, 10, 21), (11, 1, 20), (12, 8, 12), (20, 1, 31))),
    "short_branch": (9, ((1, 2, 3), (3, 2, 10), (5, 1, 2), (6, 2, 5), (8, 1, 12))),
    "short_jump": (
        12,
        (
            (1, 3, 3),
            (4, 1, 11),
            (5, 1, 2),
            (6, 1, 7),
            (7, 1, 6),
            (8, 2, 9),
            (10, 1, 8),
            (11, 1, 12),
        ),
    ),
}


def _low(half: int, low: int) -> int:
    """A type of ours: the second half of a distance, whose first half is of type `half`."""
    return RELATIVE64 << 1 | half << 8 | low


class RiscV64(Machine):
    """RV64GC."""

    elf_id = 243
    elf_flags = _COMPRESSED | _DOUBLE_FLOAT_ABI
    stub_size = 16
    dynamic = Dynamic(2, 3, 2)
    names: ClassVar[dict[int, str]] = {
        1: "R_RISCV_32",
        21: "R_RISCV_TLS_GOT_HI20",
        22: "R_RISCV_TLS_GD_HI20",
        _LOW_I: "R_RISCV_PCREL_LO12_I",
        _LOW_S: "R_RISCV_PCREL_LO12_S",
        26: "R_RISCV_HI20",
        43: "R_RISCV_ALIGN",
    }
    kinds: ClassVar[Kinds] = {
        0: (Need.NOTHING, ""),
        2: (Need.ADDRESS, "absolute64"),  # 64
        16: (Need.CALL, "branch"),  # BRANCH
        17: (Need.CALL, "jump"),  # JAL
        18: (Need.CALL, "pair"),  # CALL
        19: (Need.CALL, "pair"),  # CALL_PLT
        _GOT_HI: (Need.SLOT, "high20"),  # GOT_HI20
        _PCREL_HI: (Need.ADDRESS, "high20"),  # PCREL_HI20
        _low(_GOT_HI, _LOW_I): (Need.SLOT, "low12_load"),  # PCREL_LO12_I
        _low(_GOT_HI, _LOW_S): (Need.SLOT, "low12_store"),  # PCREL_LO12_S
        _low(_PCREL_HI, _LOW_I): (Need.ADDRESS, "low12_load"),
        _low(_PCREL_HI, _LOW_S): (Need.ADDRESS, "low12_store"),
        35: (Need.ADDRESS, "add32"),  # ADD32
        36: (Need.ADDRESS, "add64"),  # ADD64
        39: (Need.ADDRESS, "sub32"),  # SUB32
        40: (Need.ADDRESS, "sub64"),  # SUB64
        44: (Need.CALL, "short_branch"),  # RVC_BRANCH
        45: (Need.CALL, "short_jump"),  # RVC_JUMP
        51: (Need.NOTHING, ""),  # RELAX
        57: (Need.ADDRESS, "relative32"),  # 32_PCREL
        59: (Need.CALL, "relative32"),  # PLT32
        RELATIVE64: (Need.ADDRESS, "relative64"),
    }

    def stub(self, address: int, slot: int) -> bytes:
        """`auipc t3, slot; ld t3, slot(t3); jr t3; nop`."""
        code = bytearray.fromhex("170e0000 033e0e00 67000e00 13000000")
        self.write(code, 0, "high20", slot, address, 0)
        self.write(code, 4, "low12_load", slot, address, 0)
        return bytes(code)

    def completed(self, section: Section) -> list[Relocation]:
        """The relocations; those of second halves as ones of the symbol of the first half."""
        halves = {r.offset: r for r in section.relocations if r.type in (_GOT_HI, _PCREL_HI)}
        result = []
        for relocation in section.relocations:
            if relocation.type in (_LOW_I, _LOW_S):
                first = halves.get(relocation.symbol.value)
                if first is not None and relocation.symbol.section is section:
                    kind, at = _low(first.type, relocation.type), relocation.offset
                    relocation = replace(first, offset=at, type=kind, start=first.offset)
            result.append(relocation)
        return result

    def write(self, data: bytearray, at: int, how: str, value: int, start: int, base: int) -> None:
        """See `Machine`."""
        distance = value - start
        if how == "pair":
            self.write(data, at, "high20", value, start, base)
            self.write(data, at + 4, "low12_load", value, start, base)
        elif how == "high20":
            insert(data, at, 0xFFF, fitting(distance + 0x800 >> 12, 20) << 12)
        elif how == "low12_load":
            insert(data, at, 0xFFFFF, (distance & 0xFFF) << 20)
        elif how == "low12_store":
            insert(data, at, 0x1FFF07F, (distance >> 5 & 0x7F) << 25 | (distance & 0x1F) << 7)
        elif how in _FIELDS:
            _jump(data, at, how, distance)
        elif how.startswith(("add", "sub")):
            size, sign = int(how[3:]) // 8, 1 if how.startswith("add") else -1
            total = int.from_bytes(data[at : at + size], "little") + sign * value
            data[at : at + size] = (total % (1 << 8 * size)).to_bytes(size, "little")
        else:
            super().write(data, at, how, value, start, base)


def _jump(data: bytearray, at: int, how: str, distance: int) -> None:
    """Writes the distance of a jump, whose bits lie in any order."""
    bits, fields = _FIELDS[how]
    value, keep, encoded = fitting(distance, bits), 0xFFFFFFFF, 0
    for first, count, shift in fields:
        mask = (1 << count) - 1
        encoded |= (value >> first & mask) << shift
        keep &= ~(mask << shift)
    insert(data, at, keep, encoded, 2 if how.startswith("short") else 4)
