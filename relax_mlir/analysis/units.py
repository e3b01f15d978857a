"""The arithmetic of a scheduled kernel, as attributes that its declaration keeps.

    func.func private @k(%x: memref<?xbf16>) attributes {tir.scheduled, tir.unit = "bf16"} { ... }
      ->
    func.func private @k(memref<?xbf16>) attributes {tir.scheduled, tir.unit = "bf16"}

The backend that schedules a kernel writes them; host code reads them.
"""

from relax_mlir.bindings import func, ir

F32, BF16, INT8 = "f32", "bf16", "int8"
UNIT = "tir.unit"
USES_TILES = "tir.uses_tiles"
VECTOR_LENGTH = "tir.vector_length"
_BODILESS = ("sym_name", "sym_visibility", "function_type")


def set_unit(kernel: func.FuncOp, unit: str, uses_tiles: bool, vector_length: int) -> None:
    """Writes the arithmetic of a kernel's products, and whether it uses tile registers.

    See `Cpu.vector_length`.
    """
    if unit != F32:
        kernel.attributes[UNIT] = ir.StringAttr.get(unit)
    if uses_tiles:
        kernel.attributes[USES_TILES] = ir.UnitAttr.get()
    if vector_length:
        i64 = ir.IntegerType.get_signless(64)
        kernel.attributes[VECTOR_LENGTH] = ir.IntegerAttr.get(i64, vector_length)


def unit_of(kernel: func.FuncOp) -> str:
    """The arithmetic of a kernel's products: "f32", "bf16" or "int8"."""
    given = kernel.attributes
    return ir.StringAttr(given[UNIT]).value if UNIT in given else F32


def uses_tiles(kernel: func.FuncOp) -> bool:
    """Whether a kernel uses tile registers, for which the runtime has to request permission."""
    return USES_TILES in kernel.attributes


def vector_length(kernel: func.FuncOp) -> int:
    """The bytes that a machine's scalable vectors must have for a kernel; 0: any."""
    given = kernel.attributes
    return ir.IntegerAttr(given[VECTOR_LENGTH]).value if VECTOR_LENGTH in given else 0


def declaration(kernel: func.FuncOp) -> func.FuncOp:
    """A declaration of a kernel with its attributes, not in a module yet."""
    function = func.FuncOp(
        kernel.name.value, kernel.type, visibility="private", loc=kernel.location, ip=False
    )
    for name in kernel.attributes:
        if name not in _BODILESS:
            function.attributes[name] = kernel.attributes[name]
    return function
