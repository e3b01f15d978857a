"""What AVX-512 has instructions for: taking fractions, and scaling by powers of two.

Both take two cycles of the units that add, none of those that multiply, and are right for
infinities and at both ends of the range. Source: Intel intrinsics guide; LLVM `IntrinsicsX86.td`.
"""

from collections.abc import Callable

from relax_mlir.bindings import ir, llvm, vector
from relax_mlir.codegen.vector_math.lanes import Lanes
from relax_mlir.target import Target

_REGISTERS = (16, 8, 4)
_ROUND_DOWN = 1
_CURRENT_DIRECTION = 4


def takes(target: Target, x: Lanes) -> bool:
    """Whether the target has the instructions, and `x` is singles that fill whole registers."""
    if target.vector_bytes != 64 or not isinstance(x.type, ir.VectorType):
        return False
    kind = ir.VectorType(x.type)
    whole = kind.rank == 1 and not kind.scalable and kind.shape[0] % _REGISTERS[-1] == 0
    return whole and isinstance(x.element, ir.F32Type)


def fraction(t: Lanes) -> Lanes:
    """`t - floor(t)`; that of an infinity is 0."""

    def reduce(piece: ir.Value, lanes: int) -> ir.Value:
        bits = 32 * lanes
        operands = [piece, _i32(_ROUND_DOWN), piece, _all_lanes(lanes)]
        return _call(f"llvm.x86.avx512.mask.reduce.ps.{bits}", operands, bits)

    return _by_register(reduce, t)


def scale(p: Lanes, t: Lanes) -> Lanes:
    """`p * 2^floor(t)`, rounded once."""

    def scalef(piece: ir.Value, exponent: ir.Value, lanes: int) -> ir.Value:
        bits = 32 * lanes
        operands = [piece, exponent, piece, _all_lanes(lanes)]
        return _call(f"llvm.x86.avx512.mask.scalef.ps.{bits}", operands, bits)

    return _by_register(scalef, p, t)


def _by_register(build: Callable[..., ir.Value], *operands: Lanes) -> Lanes:
    """Calls `build` with each register's part of the operands and its lanes; joins the results."""
    total = operands[0].type.shape[0]
    lanes = next(lanes for lanes in _REGISTERS if total % lanes == 0)
    if total == lanes:
        return Lanes(build(*(operand.value for operand in operands), lanes))
    kind = ir.VectorType.get([lanes], operands[0].element)
    found = operands[0].value
    for start in range(0, total, lanes):
        parts = [
            vector.extract_strided_slice(kind, operand.value, [start], [lanes], [1])
            for operand in operands
        ]
        found = vector.insert_strided_slice(build(*parts, lanes), found, [start], [1])
    return Lanes(found)


def _call(name: str, operands: list[ir.Value], bits: int) -> ir.Value:
    # Only the forms of whole registers name a rounding mode.
    if bits == 512:
        operands = [*operands, _i32(_CURRENT_DIRECTION)]
    return llvm.call_intrinsic(operands[0].type, name, operands, [], [])


def _i32(number: int) -> ir.Value:
    kind = ir.IntegerType.get_signless(32)
    return llvm.mlir_constant(ir.IntegerAttr.get(kind, number))


def _all_lanes(lanes: int) -> ir.Value:
    kind = ir.IntegerType.get_signless(max(8, lanes))
    return llvm.mlir_constant(ir.IntegerAttr.get(kind, -1))
