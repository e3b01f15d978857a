"""Which instructions a CPU's kernels are made of, and what the parts that know no CPU ask of them.

func.func private @k(%x: memref<?xbf16>) attributes {tir.scheduled} { ... dpbf16ps ... }
->
func.func private @k(...) attributes {tir.scheduled, tir.unit = "bf16"} { ... dpbf16ps ... }
"""

import re

from relax_mlir.analysis.units import BF16, F32, INT8, set_unit
from relax_mlir.bindings import func, ir
from relax_mlir.schedule.build.vectors import Vectors
from relax_mlir.target import Cpu

CONFIGURE_TILES = "llvm.x86.ldtilecfg"
_UNITS = {"dpbf16ps": BF16, "vpdpbusd": INT8, "pmadd.ub.sw": INT8}
_UNITS |= {"neon.bfdot": BF16, "neon.sdot": INT8, "neon.udot": INT8, "neon.usdot": INT8}
_UNITS |= {f"neon.{signs}mmla": INT8 for signs in ("s", "u", "us")}
_UNITS |= {f"tdpb{left}{right}d": INT8 for left in "us" for right in "us"}
"""Instructions by parts of LLVM's names, and the arithmetic that a machine's peak is known for."""
_PART = re.compile("|".join(map(re.escape, _UNITS)))


def vectors_of(cpu: Cpu) -> Vectors:
    """What loops have to know of a CPU."""
    return Vectors(cpu.vector_bytes, cpu.registers)


def tell_instructions(kernel: func.FuncOp, cpu: Cpu) -> None:
    """Writes on a kernel what its products are made of, and which registers it needs."""
    names = _intrinsics(kernel)
    matches = filter(None, map(_PART.search, names))
    unit = next((_UNITS[match.group()] for match in matches), F32)
    set_unit(kernel, unit, CONFIGURE_TILES in names, cpu.vector_length)


def _intrinsics(kernel: func.FuncOp) -> list[str]:
    """The names of the intrinsics that a body calls, in order."""
    names: list[str] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        if op.name == "llvm.call_intrinsic":
            names.append(ir.StringAttr(op.attributes["intrin"]).value)
        return ir.WalkResult.ADVANCE

    kernel.operation.walk(visit)
    return names
