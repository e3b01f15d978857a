"""AVX-512 instructions: extraction of fractions, and scaling by powers of two.

Both take two cycles of the addition ports, none of the multiplication ports, and are correct for
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
    """Whether the target has the instructions, and the floats of `x` fill whole registers."""
    if (
        not x.cpu.has("avx512f")
        or x.cpu.vector_bytes != 64
        or not isinstance(x.type, ir.VectorType)
    ):
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
    """Calls `build` for each register with its slices and lane count; concatenates the results."""
    first = operands[0]
    total = first.type.shape[0]
    lanes = next(n for bits in _REGISTER_BITS if total % (n := bits // first.width) == 0)
    if total == lanes:
        return first.wrap(build(*(operand.value for operand in operands), lanes))
    kind = ir.VectorType.get([lanes], first.element)
    joined = first.value
    for start in range(0, total, lanes):
        parts = [
            vector.extract_strided_slice(kind, operand.value, [start], [lanes], [1])
            for operand in operands
        ]
        joined = vector.insert_strided_slice(build(*parts, lanes), joined, [start], [1])
    return first.wrap(joined)


def _call(name: str, operands: list[ir.Value], lanes: int, width: int) -> ir.Value:
    # Only the 512-bit forms take a rounding mode.
    if lanes * width == _REGISTER_BITS[0]:
        operands = [*operands, _i32(_CURRENT_DIRECTION)]
    name = f"llvm.x86.avx512.mask.{name}.{_SUFFIX[width]}.{lanes * width}"
    return llvm.call_intrinsic(operands[0].type, name, operands, [], [])


def _i32(value: int) -> ir.Value:
    kind = ir.IntegerType.get_signless(32)
    return llvm.mlir_constant(ir.IntegerAttr.get(kind, value))


def _all_lanes(lanes: int) -> ir.Value:
    kind = ir.IntegerType.get_signless(max(8, lanes))
    return llvm.mlir_constant(ir.IntegerAttr.get(kind, -1))
