"""32-bit Arm for the linker: instructions of 32 bits (no Thumb), hard floats; pages of 64 KiB.

Source: ELF for the Arm architecture, chapter 5.
"""

from dataclasses import replace
from typing import ClassVar

from relax_mlir.codegen.elf_object import LinkError, Relocation, Section
from relax_mlir.codegen.machines.machine import (
    RELATIVE64,
    Dynamic,
    Kinds,
    Machine,
    Need,
    fitting,
    insert,
    signed,
)
from relax_mlir.runtime.elf_format import ELF32

_EABI_5, _HARD_FLOAT = 0x05000000, 0x400


class Arm(Machine):
    """Armv7."""

    format = ELF32
    elf_id = 40
    elf_flags = _EABI_5 | _HARD_FLOAT
    page = 0x10000
    stub_size = 16
    dynamic = Dynamic(2, 23, 21)
    names: ClassVar[dict[int, str]] = {
        10: "R_ARM_THM_CALL",
        43: "R_ARM_MOVW_ABS_NC",
        104: "R_ARM_TLS_GD32",
        107: "R_ARM_TLS_IE32",
    }
    kinds: ClassVar[Kinds] = {
        0: (Need.NOTHING, ""),
        2: (Need.ADDRESS, "absolute32"),  # ABS32
        3: (Need.ADDRESS, "relative32"),  # REL32
        24: (Need.ADDRESS, "from_base32"),  # GOTOFF32
        25: (Need.BASE, "relative32"),  # BASE_PREL
        26: (Need.SLOT, "from_base32"),  # GOT_BREL
        28: (Need.CALL, "branch24"),  # CALL
        29: (Need.CALL, "branch24"),  # JUMP24
        38: (Need.ADDRESS, "absolute32"),  # TARGET1
        40: (Need.NOTHING, ""),  # V4BX
        45: (Need.ADDRESS, "low16"),  # MOVW_PREL_NC
        46: (Need.ADDRESS, "high16"),  # MOVT_PREL
        96: (Need.SLOT, "relative32"),  # GOT_PREL
        RELATIVE64: (Need.ADDRESS, "relative64"),
    }

    def stub(self, address: int, slot: int) -> bytes:
        """`ldr ip, [pc, #4]; add ip, pc, ip; ldr pc, [ip]` and the distance of the slot."""
        code = bytearray.fromhex("04c09fe5 0cc08fe0 00f09ce5 00000000")
        self.write(code, 12, "relative32", slot, address + 12, 0)
        return bytes(code)

    def completed(self, section: Section) -> list[Relocation]:
        """The relocations with the addends that instructions and words hold."""
        return [
            replace(relocation, addend=_addend(section, relocation.offset, how))
            if (how := self.kinds.get(relocation.type, (None, ""))[1])
            and relocation.type != RELATIVE64
            else relocation
            for relocation in section.relocations
        ]

    def write(self, data: bytearray, at: int, how: str, value: int, start: int, base: int) -> None:
        """See `Machine`."""
        if how == "branch24":
            distance = value - start
            if distance & 3:
                raise LinkError(f"a call to address {value:#x} needs Thumb instructions")
            insert(data, at, 0xFF000000, fitting(distance >> 2, 24))
        elif how in ("low16", "high16"):
            half = (value - start) >> (16 if how == "high16" else 0) & 0xFFFF
            insert(data, at, 0xFFF0F000, half >> 12 << 16 | half & 0xFFF)
        else:
            super().write(data, at, how, value, start, base)


def _addend(section: Section, at: int, how: str) -> int:
    """What a relocated instruction or word holds."""
    word = int.from_bytes(section.data[at : at + 4], "little")
    if how == "branch24":
        return signed(word & 0xFFFFFF, 24) << 2
    if how in ("low16", "high16"):
        return signed(word >> 4 & 0xF000 | word & 0xFFF, 16)
    return signed(word, 32)
