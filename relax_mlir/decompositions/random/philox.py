"""Philox4x32-10: four words of 32 bits for each value of a counter of 128 bits.

Words are elements of i64 from 0 to 2^32 - 1, so that products of two are exact.

Source: Salmon et al., SC 2011 (Random123).
"""

from collections.abc import Sequence

from relax_mlir.bindings import ir
from relax_mlir.dialects import graph
from relax_mlir.dialects.graph import Dim, ShapeError, TensorType, dims_differ
from relax_mlir.dialects.graph.elementwise import is_integer
from relax_mlir.dialects.graph.types import as_dims
from relax_mlir.symbolic import Expr, const, product

from ..emit import (
    Operand,
    add,
    astype,
    binary,
    broadcast_to,
    emit,
    multiply,
    reshape,
    scalar,
    symbol,
    vector,
)

WORD = 0xFFFFFFFF
MULTIPLIERS = 0xD2511F53, 0xCD9E8D57
STEPS = 0x9E3779B9, 0xBB67AE85
ROUNDS = 10


def i64() -> ir.Type:
    """The type of words and counters."""
    return ir.IntegerType.get_signless(64)


def low_word(value: ir.Value) -> ir.Value:
    """The last 32 bits."""
    return binary(graph.BitwiseAndOp, value, WORD)


def shift_right(value: ir.Value, bits: int) -> ir.Value:
    """Bits shifted down; zeros come in."""
    return binary(graph.LogicalRightShiftOp, value, bits)


def shift_left(value: ir.Value, bits: int) -> ir.Value:
    """Bits shifted up."""
    return binary(graph.LeftShiftOp, value, bits)


def _xor(a: Operand, b: Operand) -> ir.Value:
    return binary(graph.BitwiseXorOp, a, b)


def philox(counter: Sequence[ir.Value], key: Sequence[ir.Value]) -> list[ir.Value]:
    """The four words for a counter of four words, the lowest one first, and a key of two."""
    (a, b, c, d), keys = counter, list(key)
    for turn in range(ROUNDS):
        if turn:
            keys = [low_word(add(word, step)) for word, step in zip(keys, STEPS)]
        left, right = multiply(a, MULTIPLIERS[0]), multiply(c, MULTIPLIERS[1])
        a, b, c, d = (
            _xor(_xor(shift_right(right, 32), b), keys[0]),
            low_word(right),
            _xor(_xor(shift_right(left, 32), d), keys[1]),
            low_word(left),
        )
    return [a, b, c, d]


def words(state: ir.Value, count: Expr) -> tuple[ir.Value, ir.Value]:
    """So many words, four for each value of the counter, and the state after them."""
    annotation = TensorType.of(state)
    if annotation.element != i64() or annotation.dims is None or len(annotation.dims) != 1:
        raise ShapeError(f"expects a state of two i64, but got '{annotation}'")
    if dims_differ(annotation.dims[0], const(2)):
        raise ShapeError(f"expects a state of two i64, but got '{annotation}'")
    key, counter = (emit(graph.TakeOp, state, scalar(i, i64()), axis=0) for i in (0, 1))
    blocks = (count + 3) // 4
    values = add(emit(graph.ArangeOp, bounds=[0, blocks, 1], dtype=i64()), counter)
    zeros = broadcast_to(scalar(0, i64()), [blocks])
    four = philox(
        [low_word(values), shift_right(values, 32), zeros, zeros],
        [low_word(key), shift_right(key, 32)],
    )
    stacked = graph.StackOp.build(*four, axis=1).operation.results[0]
    after = add(state, multiply(vector([0, 1], i64()), symbol(blocks, i64())))
    return first(reshape(stacked, [blocks * 4]), count), after


def first(line: ir.Value, count: Expr) -> ir.Value:
    """The leading elements of a line."""
    if TensorType.of(line).dims == (count,):
        return line
    return emit(graph.StridedSliceOp, line, axes=[0], begin=[0], end=[count], strides=[1])


def count_of(dims: Sequence[Dim | int | str]) -> tuple[list[Expr], Expr]:
    """Known dims, and how many elements they have."""
    exact = list(graph.exact_dims(as_dims(dims)))
    return exact, product(exact)


def random_bits(
    state: ir.Value, dims: Sequence[Dim | int | str], element: ir.Type
) -> tuple[ir.Value, ir.Value]:
    """Integers all of whose bits are random, and the next state.

    An element of up to 32 bits is the end of a word; one of 64 bits is two words, the lower first.
    Source: StableHLO `rng_bit_generator`; Philox4x32-10.
    """
    width = width_of(element)
    exact, count = count_of(dims)
    if width == 64:
        line, after = pairs(state, count)
        high, low = (column(line, i) for i in (1, 0))
        line = binary(graph.BitwiseOrOp, shift_left(high, 32), low)
    else:
        line, after = words(state, count)
    return reshape(astype(line, element), exact), after


def width_of(element: ir.Type) -> int:
    """The bits of an integer; raises ShapeError for another element type."""
    if not is_integer(element):
        raise ShapeError(f"expects an integer element type, but got {element}")
    return ir.IntegerType(element).width


def pairs(state: ir.Value, count: Expr) -> tuple[ir.Value, ir.Value]:
    """So many pairs of words, tensor<count, 2>, and the next state."""
    line, after = words(state, count * 2)
    return reshape(line, [count, 2]), after


def column(table: ir.Value, index: int) -> ir.Value:
    """A column of a table."""
    return emit(graph.TakeOp, table, scalar(index, i64()), axis=1)
