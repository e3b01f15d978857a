"""Values that the threads of a warp give each other, without memory.

    shuffled(x, 1)      [a, b, c, d]  ->  [b, a, d, c]
    of_lane(x, 0)       [a, b, c, d]  ->  [a, a, a, a]

A warp is passed words of 32 bits: longer values are several, shorter ones are widened.
"""

from collections.abc import Callable

from relax_mlir.bindings import arith, gpu, ir
from relax_mlir.dialects.graph import element_bits
from relax_mlir.schedule.build import loops
from relax_mlir.schedule.build.loops import Index

WARP = 32
"""Threads that exchange values, where a device says that it has warps."""
_WORD = 32


def shuffled(x: ir.Value, offset: int, width: int = WARP) -> ir.Value:
    """The value of the lane whose index differs in the bits of the offset.

    All of the first `width` lanes of a warp run, and no others.
    """
    by = arith.constant(_integer(_WORD), offset)
    return _by_words(x, lambda word: _shuffle(word, by, width, "xor"))


def of_lane(x: ir.Value, lane: Index, width: int = WARP) -> ir.Value:
    """The value of the lane with an index; as `shuffled`."""
    by = arith.index_cast(_integer(_WORD), loops.value(lane))
    return _by_words(x, lambda word: _shuffle(word, by, width, "idx"))


def _shuffle(word: ir.Value, by: ir.Value, width: int, mode: str) -> ir.Value:
    lanes = arith.constant(_integer(_WORD), width)
    return gpu.ShuffleOp(
        word, by, lanes, ir.Attribute.parse(f"#gpu<shuffle_mode {mode}>")
    ).shuffleResult


def _by_words(x: ir.Value, of_word: Callable[[ir.Value], ir.Value]) -> ir.Value:
    """What becomes of a value whose words become others."""
    kind, word = x.type, _integer(_WORD)
    if kind in (word, ir.F32Type.get()):
        return of_word(x)
    if isinstance(kind, ir.IndexType):
        return arith.index_cast(kind, _by_words(arith.index_cast(_integer(64), x), of_word))
    bits = _integer(element_bits(kind))
    if isinstance(kind, ir.FloatType):
        return arith.bitcast(kind, _by_words(arith.bitcast(bits, x), of_word))
    if bits.width < _WORD:
        return arith.trunci(kind, of_word(arith.extui(word, x)))
    half = arith.constant(bits, _WORD)
    low, high = (of_word(arith.trunci(word, part)) for part in (x, arith.shrui(x, half)))
    return arith.ori(arith.extui(bits, low), arith.shli(arith.extui(bits, high), half))


def _integer(width: int) -> ir.IntegerType:
    return ir.IntegerType.get_signless(width)
