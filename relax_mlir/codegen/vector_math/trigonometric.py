"""Sine, cosine and tangent.

x = n pi/2 + r. Up to a limit, n pi/2 is subtracted in three parts by fused multiply-adds, the first
step exact (Cody-Waite); if a lane exceeds it, all lanes take a slower path for any x (Payne-Hanek).
"""

from relax_mlir.bindings import arith, ir, memref, scf, vector
from relax_mlir.codegen.vector_math.lanes import (
    Lanes,
    absolute,
    any_lane,
    fast_two_sum,
    fma,
    polynomial,
    round_even,
    select,
    two_product,
    two_sum,
)
from relax_mlir.codegen.vector_math.payne_hanek import reduce_single

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
# A power of two by which the values of the last digits are normal.
_DIGIT_SCALE = 2.0**600
# Digits that reach 100 bits below the point for the largest number of the format.
_DIGITS_NEEDED = {32: 9, 64: 45}


def expand_sin(x: Lanes, widest: int = 64) -> Lanes:
    """Sine to 1.5 ulp."""
    r, _, quadrant = _reduce(x, widest)
    result = _on_circle(r, quadrant)
    # -0, and x whose cube underflows.
    return select(x.equals(0.0), x, result)


def expand_cos(x: Lanes, widest: int = 64) -> Lanes:
    """Cosine to 1.5 ulp."""
    r, _, quadrant = _reduce(x, widest)
    return _on_circle(r, quadrant + 1)


def expand_sincos(x: Lanes, widest: int = 64) -> tuple[Lanes, Lanes]:
    """Sine and cosine."""
    r, _, quadrant = _reduce(x, widest)
    sine = select(x.equals(0.0), x, _on_circle(r, quadrant))
    return sine, _on_circle(r, quadrant + 1)


def expand_tan(x: Lanes, widest: int = 64) -> Lanes:
    """Tangent to 2 ulp: sin r / cos r, or -cos r / sin r in odd quadrants."""
    r, lost, quadrant = _reduce(x, widest)
    z = r * r
    sine = fast_two_sum(r, r * z * polynomial(z, _SIN[x.width]))
    cosine = fast_two_sum(x.like(1.0), z * polynomial(z, (-0.5, *_COS[x.width])))
    odd = (quadrant & 1).equals(1)
    top, top_lost = (select(odd, -c, s) for s, c in zip(sine, cosine, strict=True))
    bottom, bottom_lost = (select(odd, s, c) for s, c in zip(sine, cosine, strict=True))
    ratio = top / bottom
    rest = fma(-ratio, bottom, top) + fma(-ratio, bottom_lost, top_lost)
    # The derivative in r is one more than the square, in either case.
    result = fma(lost, fma(ratio, ratio, 1.0), rest / bottom) + ratio
    return select(x.equals(0.0), x, result)


def _sin_cos(r: Lanes) -> tuple[Lanes, Lanes]:
    """sin r and cos r, for |r| up to slightly above pi/4."""
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


def _reduce(x: Lanes, widest: int) -> tuple[Lanes, Lanes, Lanes]:
    """(r, lost, quadrant): x = r + lost + n pi/2, |r| about pi/4 at most, n = quadrant mod 4.

    `widest` is the width of the floats that may be used.
    """
    magic = 1.5 * 2.0**x.mantissa_bits
    shifted = fma(x, _TWO_OVER_PI[x.width], magic)
    n = shifted - magic
    first, second, third = _HALF_PI[x.width]
    # The first step is exact; the rounding error of the second is returned.
    product, product_lost = two_product(n, x.like(second))
    near, lost = two_sum(fma(n, -first, x), -product)
    r, lost = fast_two_sum(near, fma(n, -third, lost - product_lost))
    return _with_large(x, (r, lost, shifted.bits()), widest)


def _with_large(
    x: Lanes, near: tuple[Lanes, Lanes, Lanes], widest: int
) -> tuple[Lanes, Lanes, Lanes]:
    """Replaces the results of lanes that exceed the limit, if there are any."""
    large = absolute(x) > _LIMIT[x.width]
    quadrant = near[2]
    branch = scf.IfOp(any_lane(large), [part.type for part in near], has_else=True)
    with ir.InsertionPoint(branch.then_block):
        if widest == x.width == 32:
            *rest, n = reduce_single(x)
        else:
            *rest, n = _reduce_large(x.converted(ir.F64Type.get()), _DIGITS_NEEDED[x.width])
        far = *(part.converted(x.element) for part in rest), n.narrowed(quadrant.element)
        scf.yield_([select(large, a, b).value for a, b in zip(far, near, strict=True)])
    with ir.InsertionPoint(branch.else_block):
        scf.yield_([part.value for part in near])
    first, second, third = map(x.wrap, branch.results)
    return first, second, third


def _modulo_four(x: Lanes) -> Lanes:
    """The remainder of `x` by 4 that is nearest to 0; exact."""
    return fma(round_even(x * 0.25), -4.0, x)


def _reduce_large(x: Lanes, digits: int) -> tuple[Lanes, Lanes, Lanes]:
    """`_reduce` for large doubles: the products of two halves of x with each digit of 2/pi.

    Every product is exact and reduced modulo whole turns; the sum is compensated.
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
        total, lost = map(x.wrap, loop.inner_iter_args)
        digit = memref.load(table, [loop.induction_variable])
        if isinstance(x.type, ir.VectorType):
            digit = vector.broadcast(x.type, digit)
        for half in halves:
            product = _modulo_four(half * x.wrap(digit))
            previous, total = total, total + product
            before = total - previous
            lost = lost + ((previous - (total - before)) + (product - before))
            total = _modulo_four(total)
        scf.yield_([total.value, lost.value])
    total, lost = map(x.wrap, loop.results)
    n = round_even(total)
    exact = total - n
    fraction = exact + lost
    rest = lost - (fraction - exact)
    first, second, _ = _HALF_PI[64]
    product, lost = two_product(fraction, x.like(first))
    r, lost = fast_two_sum(product, lost + fma(fraction, second, rest * first))
    return r, lost, (n + 1.5 * 2.0**52).bits()


def _table_type() -> ir.Type:
    return ir.MemRefType.get([len(_DIGITS)], ir.F64Type.get())


def declare_table(module: ir.Module) -> None:
    """Adds the table of the digits of 2/pi to a module that does not have it."""
    if _TABLE in ir.SymbolTable(module.operation):
        return
    kind = ir.RankedTensorType.get([len(_DIGITS)], ir.F64Type.get())
    values = [
        ir.FloatAttr.get(ir.F64Type.get(), digit * 2.0 ** (600 - _DIGIT_BITS * (index + 1)))
        for index, digit in enumerate(_DIGITS)
    ]
    with ir.InsertionPoint.at_block_begin(module.body):
        memref.GlobalOp(
            sym_name=_TABLE,
            type_=ir.TypeAttr.get(_table_type()),
            sym_visibility=ir.StringAttr.get("private"),
            initial_value=ir.DenseElementsAttr.get(values, kind),
            constant=True,
        )
