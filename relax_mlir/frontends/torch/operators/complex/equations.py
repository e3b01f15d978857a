"""Linear equations of complex matrices, as those of real ones of twice the size.

Each element a + i b is [[a, -b], [b, a]]: sums, products and inverses of such matrices are such
matrices. Elimination meets its first pivot that is 0 in column 2 k or 2 k + 1, if that of complex
elements is in column k.
"""

from collections.abc import Sequence
from typing import Any

from relax_mlir import decompositions as d
from relax_mlir.bindings import ir
from relax_mlir.decompositions.emit import (
    add,
    dims_of,
    emit,
    expand_dims,
    floor_divide,
    reshape,
    scalar,
)
from relax_mlir.dialects import graph

from ....complex import Pair
from ....complex.arithmetic import negated
from ...call import Call
from ...registry import of_pairs
from ..factorizations import same_batch, transposed


def _real(x: Pair) -> ir.Value:
    """Matrices [..., n, m] as [..., 2 n, 2 m]."""
    first, second = _stacked(x.real, negated(x.imaginary), -1), _stacked(x.imaginary, x.real, -1)
    *lead, n, m = dims_of(x.real)
    return reshape(_stacked(first, second, -3), [*lead, n * 2, m * 2])


def _columns(x: Pair) -> ir.Value:
    """Matrices [..., n, k] as the first of both columns that each has, [..., 2 n, k]."""
    *lead, n, k = dims_of(x.real)
    return reshape(_stacked(*x.parts, -2), [*lead, n * 2, k])


def _stacked(a: ir.Value, b: ir.Value, axis: int) -> ir.Value:
    return graph.StackOp.build(a, b, axis=axis).operation.results[0]


def _complex(x: ir.Value) -> Pair:
    """Complex matrices of their columns."""
    *lead, n, k = dims_of(x)
    rows, i64 = reshape(x, [*lead, n // 2, 2, k]), ir.IntegerType.get_signless(64)
    return Pair(*(emit(graph.TakeOp, rows, scalar(i, i64), axis=len(lead) + 1) for i in (0, 1)))


def _first_columns(x: ir.Value) -> Pair:
    """Complex matrices of real ones, which have two columns for each."""
    axis = len(dims_of(x)) - 1
    bounds = {"begin": [0], "end": [dims_of(x)[-1]], "strides": [2]}
    return _complex(emit(graph.StridedSliceOp, x, axes=[axis], **bounds))


def _position(info: ir.Value) -> ir.Value:
    """The first pivot that is 0, from 1, of complex elements."""
    return floor_divide(add(info, 1), 2)


@of_pairs("linalg_inv_ex")
def inverse(call: Call, x: Pair, check_errors: bool = False) -> tuple[Pair, ir.Value]:
    """The inverse, and whether there is one."""
    result, info = d.inverse_ex(_real(x))
    return _first_columns(result), _position(info)


@of_pairs("_linalg_solve_ex")
def solve_ex(
    call: Call, a: Any, b: Any, *, left: bool = True, check_errors: bool = False
) -> Sequence[Any]:
    """x with A x = b, or x A = b; what it is computed by is for gradients alone."""
    a, b = call.pair(a), call.pair(b)
    is_vector = len(call.first.shape) == call.rank(a) - 1
    if is_vector:
        b = b.map(lambda part: expand_dims(part, [call.rank(part)]))
    if not left:
        a, b = (x.map(transposed) for x in (a, b))
    solution, info = d.solve_ex(*same_batch(_real(a), _columns(b)))
    x = _complex(solution) if left else _complex(solution).map(transposed)
    x = x.map(lambda part: reshape(part, call.dims)) if is_vector else x
    return x, None, None, _position(info)


@of_pairs("linalg_matrix_exp")
def matrix_exp(call: Call, x: Pair) -> Pair:
    """The exponential of matrices."""
    return _first_columns(d.matrix_exp(_real(x)))
