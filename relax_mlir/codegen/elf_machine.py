"""x86-64 and AArch64 for the linker: relocation types, their encoding, stubs.

Source: System V ABI, AMD64 supplement, table 4.10; ELF for the Arm 64-bit architecture, chapter 5.
"""

from dataclasses import dataclass
from enum import Enum
from typing import ClassVar

from relax_mlir.codegen.elf_object import LinkError


class Need(Enum):
    """What a relocation's value is computed from."""

    ADDRESS = "the symbol's address"
    CALL = "the symbol's address, or that of a stub that jumps to it"
    SLOT = "the address of a slot that holds the symbol's address"
    BASE = "the address of the slots"
    TLS_PAIR = "the address of two slots: module and offset of a thread-local variable"
    TLS_MODULE = "the address of two slots: this module and zero"
    TLS_OFFSET = "the offset of a thread-local variable from the start of the module's"
    TLS_STATIC = "the address of a slot: offset of a thread-local variable from thread pointer"
    TLS_DESCRIPTOR = "the address of two slots: a function that finds the variable, and its data"
    NOTHING = "nothing: the relocation is a hint"


@dataclass(frozen=True)
class Dynamic:
    """The relocation types that the loader applies."""

    absolute: int
    relative: int
    slot: int
    tls_module: int
    tls_static: int
    tls_descriptor: int


class X86_64:
    """x86-64, small code model."""

    elf_id = 62
    page = 0x1000
    stub_size = 8
    dynamic = Dynamic(1, 8, 6, 16, 18, 36)
    names: ClassVar[dict[int, str]] = {
        10: "R_X86_64_32",
        11: "R_X86_64_32S",
        23: "R_X86_64_TPOFF32",
    }
    # type -> (source of the value, encoding)
    kinds: ClassVar[dict[int, tuple[Need, str]]] = {
        0: (Need.NOTHING, ""),
        1: (Need.ADDRESS, "absolute64"),  # 64
        2: (Need.ADDRESS, "relative32"),  # PC32
        4: (Need.CALL, "relative32"),  # PLT32
        9: (Need.SLOT, "relative32"),  # GOTPCREL
        41: (Need.SLOT, "relative32"),  # GOTPCRELX
        42: (Need.SLOT, "relative32"),  # REX_GOTPCRELX
        24: (Need.ADDRESS, "relative64"),  # PC64
        25: (Need.ADDRESS, "from_base64"),  # GOTOFF64
        26: (Need.BASE, "relative32"),  # GOTPC32
        27: (Need.SLOT, "from_base64"),  # GOT64
        29: (Need.BASE, "relative64"),  # GOTPC64
        19: (Need.TLS_PAIR, "relative32"),  # TLSGD
        20: (Need.TLS_MODULE, "relative32"),  # TLSLD
        21: (Need.TLS_OFFSET, "value32"),  # DTPOFF32
        22: (Need.TLS_STATIC, "relative32"),  # GOTTPOFF
        34: (Need.TLS_DESCRIPTOR, "relative32"),  # GOTPC32_TLSDESC
        35: (Need.NOTHING, ""),  # TLSDESC_CALL
    }

    @staticmethod
    def stub(address: int, slot: int) -> bytes:
        """`jmp *slot(%rip)`, padded to 8 bytes."""
        return b"\xff\x25" + (slot - address - 6).to_bytes(4, "little", signed=True) + b"\x66\x90"

    @staticmethod
    def write(data: bytearray, at: int, how: str, value: int, place: int, base: int) -> None:
        """Writes a relocation's value; raises OverflowError if it does not fit its field."""
        write_value(data, at, how, value, place, base)


class AArch64:
    """AArch64, small code model; pages of up to 64 KiB."""

    elf_id = 183
    page = 0x10000
    stub_size = 16
    dynamic = Dynamic(257, 1027, 1025, 1028, 1030, 1031)
    names: ClassVar[dict[int, str]] = {258: "R_AARCH64_ABS32", 551: "R_AARCH64_TLSLE_ADD_TPREL"}
    kinds: ClassVar[dict[int, tuple[Need, str]]] = {
        0: (Need.NOTHING, ""),
        256: (Need.NOTHING, ""),
        257: (Need.ADDRESS, "absolute64"),  # ABS64
        260: (Need.ADDRESS, "relative64"),  # PREL64
        261: (Need.ADDRESS, "relative32"),  # PREL32
        314: (Need.CALL, "relative32"),  # PLT32
        282: (Need.CALL, "branch26"),  # JUMP26
        283: (Need.CALL, "branch26"),  # CALL26
        275: (Need.ADDRESS, "page21"),  # ADR_PREL_PG_HI21
        277: (Need.ADDRESS, "low12"),  # ADD_ABS_LO12_NC
        278: (Need.ADDRESS, "low12"),  # LDST8_ABS_LO12_NC
        284: (Need.ADDRESS, "low12_by2"),  # LDST16_ABS_LO12_NC
        285: (Need.ADDRESS, "low12_by4"),  # LDST32_ABS_LO12_NC
        286: (Need.ADDRESS, "low12_by8"),  # LDST64_ABS_LO12_NC
        299: (Need.ADDRESS, "low12_by16"),  # LDST128_ABS_LO12_NC
        311: (Need.SLOT, "page21"),  # ADR_GOT_PAGE
        312: (Need.SLOT, "low12_by8"),  # LD64_GOT_LO12_NC
        541: (Need.TLS_STATIC, "page21"),  # TLSIE_ADR_GOTTPREL_PAGE21
        542: (Need.TLS_STATIC, "low12_by8"),  # TLSIE_LD64_GOTTPREL_LO12_NC
        562: (Need.TLS_DESCRIPTOR, "page21"),  # TLSDESC_ADR_PAGE21
        563: (Need.TLS_DESCRIPTOR, "low12_by8"),  # TLSDESC_LD64_LO12
        564: (Need.TLS_DESCRIPTOR, "low12"),  # TLSDESC_ADD_LO12
        569: (Need.NOTHING, ""),  # TLSDESC_CALL
    }

    @staticmethod
    def stub(address: int, slot: int) -> bytes:
        """`adrp x16, slot; ldr x17, [x16, :lo12:slot]; br x17; nop`."""
        code = bytearray.fromhex("10000090 110240f9 20021fd6 1f2003d5")
        AArch64.write(code, 0, "page21", slot, address, 0)
        AArch64.write(code, 4, "low12_by8", slot, address + 4, 0)
        return bytes(code)

    @staticmethod
    def write(data: bytearray, at: int, how: str, value: int, place: int, base: int) -> None:
        """Writes a relocation's value; raises OverflowError if it does not fit its field."""
        if how == "branch26":
            _signed(distance := (value - place) >> 2, 26)
            _insert(data, at, 0xFC000000, distance & 0x3FFFFFF)
        elif how == "page21":
            _signed(distance := (value >> 12) - (place >> 12), 21)
            _insert(data, at, 0x9F00001F, (distance & 3) << 29 | (distance >> 2 & 0x7FFFF) << 5)
        elif how.startswith("low12"):
            scale = int(how[8:] or 1)
            if value % scale:
                raise LinkError(f"address {value:#x} is not a multiple of {scale}")
            _insert(data, at, 0xFFC003FF, (value & 0xFFF) // scale << 10)
        else:
            write_value(data, at, how, value, place, base)


Machine = type[X86_64] | type[AArch64]
MACHINES: dict[int, Machine] = {machine.elf_id: machine for machine in (X86_64, AArch64)}


def write_value(data: bytearray, at: int, how: str, value: int, place: int, base: int) -> None:
    """Writes a value that fills its bytes: absolute, or relative to the place or to the slots."""
    size = int(how[-2:]) // 8
    if how.startswith("relative"):
        value -= place
    elif how.startswith("from_base"):
        value -= base
    signed = not how.startswith("absolute")
    data[at : at + size] = value.to_bytes(size, "little", signed=signed)


def _signed(value: int, bits: int) -> None:
    if not -(1 << bits - 1) <= value < 1 << bits - 1:
        raise OverflowError


def _insert(data: bytearray, at: int, keep: int, bits: int) -> None:
    """Sets the bits of the instruction at an offset that are not in the mask `keep`."""
    word = int.from_bytes(data[at : at + 4], "little")
    data[at : at + 4] = (word & keep | bits).to_bytes(4, "little")
