"""AArch64 for the linker, small code model; pages of up to 64 KiB.

Source: ELF for the Arm 64-bit architecture, chapter 5.
"""

from typing import ClassVar

from relax_mlir.codegen.elf_object import LinkError
from relax_mlir.codegen.machines.machine import (
    RELATIVE64,
    Dynamic,
    Kinds,
    Machine,
    Need,
    fitting,
    insert,
)


class AArch64(Machine):
    """AArch64."""

    elf_id = 183
    page = 0x10000
    stub_size = 16
    dynamic = Dynamic(257, 1027, 1025, 1028, 1030, 1031)
    names: ClassVar[dict[int, str]] = {258: "R_AARCH64_ABS32", 551: "R_AARCH64_TLSLE_ADD_TPREL"}
    kinds: ClassVar[Kinds] = {
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
        RELATIVE64: (Need.ADDRESS, "relative64"),
    }

    def stub(self, address: int, slot: int) -> bytes:
        """`adrp x16, slot; ldr x17, [x16, :lo12:slot]; br x17; nop`."""
        code = bytearray.fromhex("10000090 110240f9 20021fd6 1f2003d5")
        self.write(code, 0, "page21", slot, address, 0)
        self.write(code, 4, "low12_by8", slot, address + 4, 0)
        return bytes(code)

    def write(self, data: bytearray, at: int, how: str, value: int, start: int, base: int) -> None:
        """See `Machine`."""
        if how == "branch26":
            insert(data, at, 0xFC000000, fitting((value - start) >> 2, 26))
        elif how == "page21":
            distance = fitting((value >> 12) - (start >> 12), 21)
            insert(data, at, 0x9F00001F, (distance & 3) << 29 | distance >> 2 << 5)
        elif how.startswith("low12"):
            scale = int(how[8:] or 1)
            if value % scale:
                raise LinkError(f"address {value:#x} is not a multiple of {scale}")
            insert(data, at, 0xFFC003FF, (value & 0xFFF) // scale << 10)
        else:
            super().write(data, at, how, value, start, base)
