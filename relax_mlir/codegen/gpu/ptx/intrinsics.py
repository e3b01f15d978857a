"""Math ops that NVIDIA's devices have instructions for, as calls of LLVM's intrinsics.

    math.fma %a, %b, %c : f32   ->   llvm.call_intrinsic "llvm.fma.f32"(%a, %b, %c)

`convert-gpu-to-nvvm` would call libdevice instead.
"""

from relax_mlir.bindings import arith, ir, llvm
from relax_mlir.rewriting import walk

_UNARY = ("floor", "ceil", "trunc", "round", "roundeven", "sqrt", "ctpop", "copysign", "fma")
_NAMES = {f"math.{name}": name for name in _UNARY} | {
    "math.absf": "fabs",
    "arith.maxnumf": "maxnum",
    "arith.minnumf": "minnum",
}
_WITH_FLAG = {"math.absi": "abs", "math.ctlz": "ctlz", "math.cttz": "cttz"}
_CLASSES = {"math.isnan": 0x3, "math.isinf": 0x204, "math.isfinite": 0x1F8, "math.isnormal": 0x108}
"""Bits of the classes of floats, as `llvm.is.fpclass` takes them."""


def call_intrinsics(module: ir.Module) -> None:
    """Rewrites a module in place; ops that no intrinsic computes stay."""
    for op in [op for op in walk(module) if op.name.startswith(("math.", "arith."))]:
        with ir.InsertionPoint(op), op.location:
            made = _computed(op)
        if made is not None:
            op.results[0].replace_all_uses_with(made)
            op.erase()


def _computed(op: ir.Operation) -> ir.Value | None:
    """What an op computes; None for others."""
    type_, operands = op.results[0].type, list(op.operands)
    if op.name in _NAMES:
        return _call(_NAMES[op.name], type_, operands)
    if op.name in _WITH_FLAG:
        return _call(_WITH_FLAG[op.name], type_, [*operands, _constant(1, False)])
    if op.name in _CLASSES:
        name = f"is.fpclass.{operands[0].type}"
        mask = _constant(32, _CLASSES[op.name])
        return llvm.call_intrinsic(type_, f"llvm.{name}", [operands[0], mask], [], [])
    if op.name == "math.rsqrt":
        one = arith.constant(type_, ir.FloatAttr.get(type_, 1.0))
        return arith.divf(one, _call("sqrt", type_, operands))
    return None


def _call(name: str, type_: ir.Type, operands: list[ir.Value]) -> ir.Value:
    return llvm.call_intrinsic(type_, f"llvm.{name}.{type_}", operands, [], [])


def _constant(bits: int, value: int) -> ir.Value:
    type_ = ir.IntegerType.get_signless(bits)
    return llvm.mlir_constant(ir.IntegerAttr.get(type_, value))
