"""What AVX-512 has instructions for: taking fractions, and scaling by powers of two.

Both take two cycles of the units that add, none of those that multiply, and are right for
infinities and at both ends of the range. Source: Intel intrinsics guide; LLVM `IntrinsicsX86.td`.
"""

from collections.abc import Callable

from relax_mlir.bindings import ir, llvm, vector
from relax_mlir.codegen.vector_math.lanes import Lanes

_REGISTER_BITS = (512, 256, 128)
_SUFFIX = {32: "ps", 64: "pd"}
_ROUND_DOWN = 1
_CURRENT_DIRECTION = 4


def takes(x: Lanes) -> bool:
    """Whether the target has the instructions, and `x` is floats that fill whole registers."""
    if x.cpu.vector_bytes != 64 or not isinstance(x.type, ir.VectorType):
        return False
    kind = ir.VectorType(x.type)
    least = _REGISTER_BITS[-1] // x.width
    return kind.rank == 1 and not kind.scalable and kind.shape[0] % least == 0


def fraction(t: Lanes) -> Lanes:
    """`t - floor(t)`; that of an infinity is 0."""

    def reduce(piece: ir.Value, lanes: int) -> ir.Value:
        operands = [piece, _i32(_ROUND_DOWN), piece, _all_lanes(lanes)]
        return _call("reduce", operands, lanes, t.width)

    return _by_register(reduce, t)


def scale(p: Lanes, t: Lanes) -> Lanes:
    """`p * 2^floor(t)`, rounded once."""

    def scalef(piece: ir.Value, exponent: ir.Value, lanes: int) -> ir.Value:
        operands = [piece, exponent, piece, _all_lanes(lanes)]
        return _call("scalef", operands, lanes, p.width)

    return _by_register(scalef, p, t)


def _by_register(build: Callable[..., ir.Value], *operands: Lanes) -> Lanes:
    """Calls `build` with each register's part of the operands and its lanes; joins the results."""
    first = operands[0]
    total = first.type.shape[0]
    lanes = next(n for bits in _REGISTER_BITS if total % (n := bits // first.width) == 0)
    if total == lanes:
        return first.wrap(build(*(operand.value for operand in operands), lanes))
    kind = ir.VectorType.get([lanes], first.element)
    found = first.value
    for start in range(0, total, lanes):
        parts = [
            vector.extract_strided_slice(kind, operand.value, [start], [lanes], [1])
            for operand in operands
        ]
        found = vector.insert_strided_slice(build(*parts, lanes), found, [start], [1])
    return first.wrap(found)


def _call(name: str, operands: list[ir.Value], lanes: int, width: int) -> ir.Value:
    # Only the forms of whole registers name a rounding mode.
    if lanes * width == _REGISTER_BITS[0]:
        operands = [*operands, _i32(_CURRENT_DIRECTION)]
    name = f"llvm.x86.avx512.mask.{name}.{_SUFFIX[width]}.{lanes * width}"
    return llvm.call_intrinsic(operands[0].type, name, operands, [], [])


def _i32(number: int) -> ir.Value:
    kind = ir.IntegerType.get_signless(32)
    return llvm.mlir_constant(ir.IntegerAttr.get(kind, number))


def _all_lanes(lanes: int) -> ir.Value:
    kind = ir.IntegerType.get_signless(max(8, lanes))
    return llvm.mlir_constant(ir.IntegerAttr.get(kind, -1))
