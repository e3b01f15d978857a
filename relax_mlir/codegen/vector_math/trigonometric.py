"""Sine, cosine and tangent.

x = n pi/2 + r. Up to a limit n pi/2 is subtracted in three parts by fused multiply-adds, the first
step exact; where a lane is beyond it, all lanes take a slower path, right up to the largest number.
"""

from relax_mlir.bindings import arith, ir, memref, scf, vector
from relax_mlir.codegen.vector_math.lanes import (
    Lanes,
    absolute,
    any_lane,
    fma,
    polynomial,
    round_even,
    select,
)

_TWO_OVER_PI = {32: 0.636619747, 64: 0.6366197723675814}
# pi/2 as a sum, each part rounded to the format.
_HALF_PI = {
    32: (1.57079637, -4.37113883e-08, -1.71512451e-15),
    64: (1.5707963267948966, 6.123233995736766e-17, -1.4973849048591698e-33),
}
_LIMIT = {32: 2.0**17, 64: 2.0**30}

# (sin r - r) / r^3 in r^2 on |r| < 0.789; error of sin r relative: 2^-27.8, 2^-57.7.
_SIN = {
    32: (-0.166666538, 0.00833210628, -0.000195078552),
    64: (
        *(-0.1666666666666663, 0.008333333333321747, -0.0001984126982923853),
        *(2.7557313485893155e-06, -2.505072480464622e-08, 1.5894812247147056e-10),
    ),
}
# (cos r - 1 + r^2 / 2) / r^4 in r^2, same interval; error of cos r relative: 2^-32.9, 2^-68.9.
_COS = {
    32: (0.0416666456, -0.00138873048, 2.44314251e-05),
    64: (
        *(0.041666666666666664, -0.0013888888888888393, 2.4801587301187756e-05),
        *(-2.755731906478173e-07, 2.087672314709971e-09, -1.1467012073860357e-11),
        4.600298179949356e-14,
    ),
}

# 2/pi in digits of 26 bits, so that a product with half a double's mantissa is exact.
_DIGIT_BITS = 26
_DIGITS = (
    *(42722829, 48555073, 21659401, 56087029, 13858563, 28715353, 38736100, 4324945),
    *(26128250, 62674459, 29957006, 37899730, 58726692, 49193117, 6588223, 35515164),
    *(46442140, 65964067, 24988590, 54822121, 41009306, 54917092, 5137525, 37323603),
    *(15192690, 4585659, 58608142, 52426903, 67074070, 25231090, 63202006, 34237727),
    *(28629499, 15891632, 40752081, 37709470, 25143477, 55737260, 33225084, 24853767),
    *(15195689, 19476134, 50255852, 18845021, 2185228, 50622407),
)
_TABLE = "rx_two_over_pi"
# Powers of two that keep the last digits' values normal numbers.
_DIGIT_SCALE = 2.0**600
# Digits that reach 100 bits below the point for the largest number of the format.
_DIGITS_NEEDED = {32: 9, 64: 45}


def expand_sin(x: Lanes) -> Lanes:
    """Sine to 1.5 ulp."""
    r, quadrant = _reduce(x)
    result = _on_circle(r, quadrant)
    # -0 and numbers whose cube vanishes.
    return select(x.equals(0.0), x, result)


def expand_cos(x: Lanes) -> Lanes:
    """Cosine to 1.5 ulp."""
    r, quadrant = _reduce(x)
    return _on_circle(r, quadrant + 1)


def expand_sincos(x: Lanes) -> tuple[Lanes, Lanes]:
    """Sine and cosine."""
    r, quadrant = _reduce(x)
    sine = select(x.equals(0.0), x, _on_circle(r, quadrant))
    return sine, _on_circle(r, quadrant + 1)


def expand_tan(x: Lanes) -> Lanes:
    """Tangent, doubles to 3 ulp: sin r / cos r, or -cos r / sin r in odd quadrants."""
    r, quadrant = _reduce(x)
    sine, cosine = _sin_cos(r)
    odd = (quadrant & 1).equals(1)
    result = select(odd, -cosine, sine) / select(odd, sine, cosine)
    return select(x.equals(0.0), x, result)


def _sin_cos(r: Lanes) -> tuple[Lanes, Lanes]:
    """Both, for |r| <= pi/4 and a little."""
    z = r * r
    sine = fma(r * z, polynomial(z, _SIN[r.width]), r)
    cosine = fma(z, polynomial(z, (-0.5, *_COS[r.width])), 1.0)
    return sine, cosine


def _on_circle(r: Lanes, quadrant: Lanes) -> Lanes:
    """sin(r + quadrant pi/2): sine or cosine by the quadrant's low bit, sign by the next."""
    sine, cosine = _sin_cos(r)
    chosen = select((quadrant & 1).equals(0), sine, cosine)
    sign = (quadrant & 2) << (r.width - 2)
    return (chosen.bits() ^ sign).float_from_bits()


def _reduce(x: Lanes) -> tuple[Lanes, Lanes]:
    """(r, quadrant): x = r + n pi/2, |r| <= pi/4 and a little, n = quadrant modulo 4."""
    magic = 1.5 * 2.0**x.mantissa_bits
    shifted = fma(x, _TWO_OVER_PI[x.width], magic)
    n = shifted - magic
    r = x
    for part in _HALF_PI[x.width]:
        r = fma(n, -part, r)
    return _with_large(x, r, shifted.bits())


def _with_large(x: Lanes, r: Lanes, quadrant: Lanes) -> tuple[Lanes, Lanes]:
    """Puts right the lanes whose number is beyond the limit, if there are any."""
    large = absolute(x) > _LIMIT[x.width]
    branch = scf.IfOp(any_lane(large), [r.type, quadrant.type], has_else=True)
    with ir.InsertionPoint(branch.then_block):
        far, n = _reduce_large(x.converted(ir.F64Type.get()), _DIGITS_NEEDED[x.width])
        far = far.converted(x.element)
        n = n.narrowed(quadrant.element)
        chosen = select(large, far, r), select(large, n, quadrant)
        scf.yield_([lanes.value for lanes in chosen])
    with ir.InsertionPoint(branch.else_block):
        scf.yield_([r.value, quadrant.value])
    first, second = branch.results
    return Lanes(first), Lanes(second)


def _modulo_four(x: Lanes) -> Lanes:
    """What is left of `x` nearest to 0; exact."""
    return fma(round_even(x * 0.25), -4.0, x)


def _reduce_large(x: Lanes, digits: int) -> tuple[Lanes, Lanes]:
    """`_reduce` for large doubles: the products of two halves of x with each digit of 2/pi.

    Every product is exact, whole turns are dropped from each; the sum keeps its rounding errors.
    """
    high_mask = -(1 << _DIGIT_BITS)
    high = (x.bits() & high_mask).float_from_bits()
    halves = [half * (1.0 / _DIGIT_SCALE) for half in (high, x - high)]
    table = memref.get_global(_table_type(), _TABLE)
    index = ir.IndexType.get()
    low, stop, step = (arith.constant(index, bound) for bound in (0, digits, 1))
    zero = x.like(0.0).value
    loop = scf.ForOp(low, stop, step, [zero, zero])
    with ir.InsertionPoint(loop.body):
        total, lost = (Lanes(value) for value in loop.inner_iter_args)
        digit = memref.load(table, [loop.induction_variable])
        if isinstance(x.type, ir.VectorType):
            digit = vector.broadcast(x.type, digit)
        for half in halves:
            product = _modulo_four(half * Lanes(digit))
            previous, total = total, total + product
            before = total - previous
            lost = lost + ((previous - (total - before)) + (product - before))
            total = _modulo_four(total)
        scf.yield_([total.value, lost.value])
    total, lost = (Lanes(value) for value in loop.results)
    n = round_even(total)
    exact = total - n
    fraction = exact + lost
    rest = lost - (fraction - exact)
    first, second, _ = _HALF_PI[64]
    r = fma(fraction, first, fma(fraction, second, rest * first))
    return r, (n + 1.5 * 2.0**52).bits()


def _table_type() -> ir.Type:
    return ir.MemRefType.get([len(_DIGITS)], ir.F64Type.get())


def declare_table(module: ir.Module) -> None:
    """Adds the digits of 2/pi, which the expansions refer to, to a module that lacks them."""
    if _TABLE in ir.SymbolTable(module.operation):
        return
    kind = ir.RankedTensorType.get([len(_DIGITS)], ir.F64Type.get())
    numbers = [
        ir.FloatAttr.get(ir.F64Type.get(), digit * 2.0 ** (600 - _DIGIT_BITS * (place + 1)))
        for place, digit in enumerate(_DIGITS)
    ]
    with ir.InsertionPoint.at_block_begin(module.body):
        memref.GlobalOp(
            sym_name=_TABLE,
            type_=ir.TypeAttr.get(_table_type()),
            sym_visibility=ir.StringAttr.get("private"),
            initial_value=ir.DenseElementsAttr.get(numbers, kind),
            constant=True,
        )
