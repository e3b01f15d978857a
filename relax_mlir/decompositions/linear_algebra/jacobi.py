"""Jacobi's rotations: sweeps over all pairs of rows, n / 2 pairs at once.

In round r of n row i is paired with row (r - i) mod n: each two rows meet once in a sweep, and one
row or two are alone. Sweeps end with one in which all was done before, which takes 4 to 10 of them.
Source: Luk and Park, On parallel Jacobi orderings, SIAM J. Sci. Stat. Comput. 10, 1989.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from relax_mlir.bindings import ir
from relax_mlir.dialects import graph
from relax_mlir.symbolic import Expr

from ..emit import (
    add,
    arange,
    binary,
    divide,
    element_of,
    emit,
    expand_dims,
    less,
    maximum,
    multiply,
    reduce,
    reshape,
    scalar,
    subtract,
    symbol,
    where,
)
from ..loops import Round, each_index, truth_of, while_loop

SWEEPS = 40
"""At most: far more than it takes, as rounding must not have them go on for ever."""
EPSILON = {"f32": 2.0**-23, "f64": 2.0**-52}
_SMALLEST = {"f32": (32, 0x7F800000), "f64": (64, 0x7FF0000000000000)}


@dataclass(frozen=True)
class Pairs:
    """The pairs of a round: `partner` [n] of each row, and whether it is another row, and later."""

    partner: ir.Value
    is_pair: ir.Value
    is_first: ir.Value

    def other(self, x: ir.Value, axis: int) -> ir.Value:
        """What the partners along an axis have."""
        return emit(graph.TakeOp, x, self.partner, axis=axis)

    def rotations(self, squares: ir.Value, products: ir.Value) -> tuple[ir.Value, ir.Value]:
        """Cosines and sines [b, n] that make products [b, n] of pairs 0.

        `squares` [b, n] are on the diagonal of the symmetric matrix that is rotated. A row with
        its partner becomes `cos * row - sin * partner`. Small products count too: eigenvectors
        depend on them.
        """
        gap = subtract(self.other(squares, 1), squares)
        twice = where(self.is_pair, multiply(products, 2), 0)
        one = scalar(1, element_of(gap))
        is_equal = binary(graph.EqualOp, gap, 0)
        signs = where(self.is_first, one, -1)  # of equal squares, so that partners differ
        signs = where(is_equal, signs, emit(graph.CopysignOp, one, gap))
        is_done = emit(graph.LogicalAndOp, is_equal, binary(graph.EqualOp, twice, 0))
        gap = where(is_done, 1, gap)
        size = add(emit(graph.AbsOp, gap), emit(graph.HypotOp, gap, twice))
        tangent = divide(multiply(twice, signs), size)
        cosine = divide(1, emit(graph.SqrtOp, add(multiply(tangent, tangent), 1)))
        return cosine, multiply(tangent, cosine)

    def rotated(self, x: ir.Value, rotation: tuple[ir.Value, ir.Value], axis: int = 1) -> ir.Value:
        """Rows of matrices [b, n, m], or columns, each with its partner's."""
        cosine, sine = (expand_dims(each, [3 - axis]) for each in rotation)
        return subtract(multiply(x, cosine), multiply(self.other(x, axis), sine))


def _pairs(turn: Round, n: Expr) -> Pairs:
    i64 = ir.IntegerType.get_signless(64)
    rows = arange(0, n, 1, i64)
    extent = reshape(symbol(n, i64), [])
    partner = binary(graph.RemainderOp, subtract(turn.position, rows), extent)
    return Pairs(partner, binary(graph.NotEqualOp, rows, partner), less(rows, partner))


Turn = Callable[..., tuple[ir.Value, Sequence[ir.Value]]]
"""From the pairs of a round and what is carried: rows [b, n] that are not done, what is carried."""


def sweeps(n: Expr, carried: Sequence[ir.Value], turn: Turn) -> list[ir.Value]:
    """Rotates the pairs of n rows until all are done before it; returns what is carried."""
    i1, i64 = (ir.IntegerType.get_signless(bits) for bits in (1, 64))
    rounds = arange(0, n, 1, i64)

    def more(count: ir.Value, is_left: ir.Value, *carried: ir.Value) -> ir.Value:
        return truth_of(emit(graph.LogicalAndOp, is_left, less(count, SWEEPS)))

    def sweep(count: ir.Value, _: ir.Value, *carried: ir.Value) -> Sequence[ir.Value]:
        def body(at: Round, is_left: ir.Value, *carried: ir.Value) -> Sequence[ir.Value]:
            left, after = turn(_pairs(at, n), *carried)
            return [emit(graph.LogicalOrOp, is_left, reduce(graph.AnyOp, left, [0, 1])), *after]

        return [add(count, 1), *each_index(rounds, 0, [scalar(0, i1), *carried], body)]

    _, _, *after = while_loop([scalar(0, i64), scalar(1, i1), *carried], more, sweep)
    return after


def scale_of(batch: ir.Value) -> ir.Value:
    """tensor<b, 1, 1>: a power of 2, by which no element is above 2 in size; 1 of zeros alone."""
    width, mask = _SMALLEST[str(element_of(batch))]
    most = reduce(graph.MaxOp, emit(graph.AbsOp, batch), [1, 2], keepdims=True)
    most = maximum(most, 0)
    bits = emit(graph.BitcastOp, most, dtype=ir.IntegerType.get_signless(width))
    power = binary(graph.BitwiseAndOp, bits, mask)
    scale = emit(graph.BitcastOp, power, dtype=element_of(batch))
    return where(binary(graph.EqualOp, scale, 0), 1, scale)
