"""The machines that the linker knows: their relocations, and stubs that call the C library."""

from relax_mlir.codegen.machines.aarch64 import AArch64
from relax_mlir.codegen.machines.arm import Arm
from relax_mlir.codegen.machines.machine import Machine, Need
from relax_mlir.codegen.machines.riscv import RiscV64
from relax_mlir.codegen.machines.x86_64 import X86_64

__all__ = ["MACHINES", "Machine", "Need"]

MACHINES = {machine.elf_id: machine for machine in (X86_64(), AArch64(), Arm(), RiscV64())}
"""By the machine ids of ELF."""
