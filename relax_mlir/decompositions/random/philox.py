"""Random words: elements of i64 from 0 to 2^32 - 1, so that fractions of them are exact."""

from collections.abc import Sequence

from relax_mlir.bindings import ir
from relax_mlir.dialects import graph
from relax_mlir.dialects.graph import Dim, ShapeError, TensorType
from relax_mlir.dialects.graph.elementwise import is_integer
from relax_mlir.dialects.graph.types import as_dims
from relax_mlir.symbolic import Expr, product

from ..emit import (
    add,
    astype,
    binary,
    emit,
    multiply,
    reshape,
    scalar,
    symbol,
    vector,
)

WORD = 0xFFFFFFFF


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


def words(state: ir.Value, count: Expr) -> tuple[ir.Value, ir.Value]:
    """So many words, four for each value of the counter, and the state after them."""
    blocks = (count + 3) // 4
    four = graph.PhiloxOp.build(state, blocks=[blocks]).operation.results
    stacked = graph.StackOp.build(*four, axis=1).operation.results[0]
    line = low_word(astype(reshape(stacked, [blocks * 4]), i64()))
    after = add(state, multiply(vector([0, 1], i64()), symbol(blocks, i64())))
    return first(line, count), after


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
