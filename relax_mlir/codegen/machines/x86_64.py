"""x86-64 for the linker, small code model.

Source: System V ABI, AMD64 supplement, table 4.10.
"""

from typing import ClassVar

from relax_mlir.codegen.machines.machine import RELATIVE64, Dynamic, Kinds, Machine, Need


class X86_64(Machine):
    """x86-64."""

    elf_id = 62
    stub_size = 8
    dynamic = Dynamic(1, 8, 6, 16, 18, 36)
    names: ClassVar[dict[int, str]] = {
        10: "R_X86_64_32",
        11: "R_X86_64_32S",
        23: "R_X86_64_TPOFF32",
    }
    kinds: ClassVar[Kinds] = {
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
        RELATIVE64: (Need.ADDRESS, "relative64"),
    }

    def stub(self, address: int, slot: int) -> bytes:
        """`jmp *slot(%rip)`, padded to 8 bytes."""
        return b"\xff\x25" + (slot - address - 6).to_bytes(4, "little", signed=True) + b"\x66\x90"
