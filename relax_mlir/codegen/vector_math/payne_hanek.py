"""The part of a large f32 that is left of multiples of pi/2, in integers: needs no f64.

x is a mantissa of 24 bits times 2^e, so only 96 bits of 1 / (2 pi) matter: bits before them add
whole turns. The product of 32 by 96 bits has the quadrant and 62 bits of the fraction after it.

Source: M. Payne, R. Hanek: Radian reduction for trigonometric functions, 1983.
"""

import math as pymath

from relax_mlir.bindings import arith, ir
from relax_mlir.codegen.vector_math.lanes import Lanes, absolute, fma, select

# 1 / (2 pi) = 0.28BE60DB9391054A..., in words, after one of zeros.
_WORDS = (
    *(0, 0x28BE60DB, 0x9391054A, 0x7F09D5F4, 0x7D4D3770, 0x36D8A566, 0x4F10E410),
    0x7F9458EA,
)
# pi/2 as a sum, times 2^-62.
_UNIT = (1.57079637 * 2.0**-62, -4.37113883e-08 * 2.0**-62)


def reduce_single(x: Lanes) -> tuple[Lanes, Lanes, Lanes]:
    """(r, lost, n) of an f32 scalar of at least 2: x = r + lost + n pi/2, n modulo 4."""
    long = ir.IntegerType.get_signless(64)
    bits = x.bits()
    exponent = ((bits >> 23) & 255) - 126
    mantissa = _widened((bits << 8) | (1 << 31), long)
    high, middle, low = _window(exponent)
    product = mantissa * _widened(low, long)
    product = mantissa * _widened(middle, long) + (product >> 32)
    product = (_widened(high * ((bits << 8) | (1 << 31)), long) << 32) + product
    quadrant = product >> 62
    fraction = product & ((1 << 62) - 1)
    above = (fraction >> 61).equals(1)
    fraction = select(above, fraction - (1 << 62), fraction)
    quadrant = quadrant + _widened(x.wrap(above.value), long)
    r, lost = _angle(fraction, x)
    negative = x < 0.0
    quadrant = select(negative, -1 * quadrant, quadrant)
    r = select(absolute(x) < pymath.inf, r, pymath.nan)
    return _signed(r, negative), _signed(lost, negative), quadrant.narrowed(bits.element)


def _window(exponent: Lanes) -> tuple[Lanes, Lanes, Lanes]:
    """96 bits of 1 / (2 pi) from the bit `exponent` on, which is counted from the word of zeros."""
    word, shift = exponent >> 5, exponent & 31
    table = [exponent.like(w) for w in _WORDS]
    words = [_chosen(word, table[i:]) for i in range(4)]
    no_shift = shift.equals(0)
    back = select(no_shift, shift.like(1), 32 - shift)

    def part(i: int) -> Lanes:
        shifted = words[i].wrap(arith.shli(words[i].value, shift.value))
        rest = words[i + 1].wrap(arith.shrui(words[i + 1].value, back.value))
        return select(no_shift, words[i], shifted | rest)

    return part(0), part(1), part(2)


def _chosen(index: Lanes, words: list[Lanes]) -> Lanes:
    """The word of an index, which is 0 to 4."""
    result = words[0]
    for i, word in enumerate(words[1:5], 1):
        result = select(index.equals(i), word, result)
    return result


def _widened(x: Lanes, long: ir.Type) -> Lanes:
    return x.wrap(arith.extui(long, x.value))


def _angle(fraction: Lanes, like: Lanes) -> tuple[Lanes, Lanes]:
    """A fraction of 2^62 parts of pi/2, as a sum of two."""
    first = like.wrap(arith.sitofp(like.type, fraction.value))
    rest = fraction - fraction.wrap(arith.fptosi(fraction.type, first.value))
    second = like.wrap(arith.sitofp(like.type, rest.value))
    unit, unit_lost = _UNIT
    r = first * unit
    lost = fma(first, unit, -r) + (first * unit_lost + second * unit)
    return r, lost


def _signed(x: Lanes, is_negative: Lanes) -> Lanes:
    return select(is_negative, -x, x)
