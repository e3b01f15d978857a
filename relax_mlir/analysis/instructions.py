"""What a scheduled kernel computes with: host code asks, and a mere declaration still says it.

func.func private @k(%x: memref<?xbf16>) attributes {tir.scheduled} { ... dpbf16ps ... }
  ->
func.func private @k(memref<?xbf16>) attributes {tir.scheduled, tir.unit = "bf16"}
"""

import re

from relax_mlir.bindings import func, ir

F32, BF16, INT8 = "f32", "bf16", "int8"
CONFIGURE_TILES = "llvm.x86.ldtilecfg"
UNIT = "tir.unit"
USES_TILES = "tir.uses_tiles"
_UNITS = {"dpbf16ps": BF16, "vpdpbusd": INT8, "pmadd.ub.sw": INT8}
"""Instructions by parts of LLVM's names, and the arithmetic that a machine's peak is known for."""
_PART = re.compile("|".join(map(re.escape, _UNITS)))
_BODILESS = ("sym_name", "sym_visibility", "function_type")


def unit_of(kernel: func.FuncOp) -> str:
    """The arithmetic that a kernel's products are made of: "f32", "bf16" or "int8"."""
    if kernel.is_external:
        given = kernel.attributes
        return ir.StringAttr(given[UNIT]).value if UNIT in given else F32
    found = filter(None, map(_PART.search, _intrinsics(kernel)))
    return next((_UNITS[match.group()] for match in found), F32)


def uses_tiles(kernel: func.FuncOp) -> bool:
    """Whether a kernel configures tile registers, which the runtime has to ask for."""
    if kernel.is_external:
        return USES_TILES in kernel.attributes
    return CONFIGURE_TILES in _intrinsics(kernel)


def declaration(kernel: func.FuncOp) -> func.FuncOp:
    """A declaration of a kernel, in no module yet, with all that is said of it."""
    found = func.FuncOp(
        kernel.name.value, kernel.type, visibility="private", loc=kernel.location, ip=False
    )
    for name in kernel.attributes:
        if name not in _BODILESS:
            found.attributes[name] = kernel.attributes[name]
    found.attributes[UNIT] = ir.StringAttr.get(unit_of(kernel))
    if uses_tiles(kernel):
        found.attributes[USES_TILES] = ir.UnitAttr.get()
    return found


def _intrinsics(kernel: func.FuncOp) -> list[str]:
    """The names of the intrinsics that a body calls, in order."""
    found: list[str] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        if op.name == "llvm.call_intrinsic":
            found.append(ir.StringAttr(op.attributes["intrin"]).value)
        return ir.WalkResult.ADVANCE

    kernel.operation.walk(visit)
    return found
