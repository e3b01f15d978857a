"""New tensors."""

from typing import Any

from relax_mlir.bindings import ir
from relax_mlir.decompositions.emit import (
    add,
    astype,
    broadcast_to,
    emit,
    expand_dims,
    multiply,
    reshape,
)
from relax_mlir.decompositions.emit import arange as arange_of
from relax_mlir.dialects import graph

from ..adapters import by_part, by_parts_of
from ..call import Call
from ..registry import Function, operator


def filled(call: Call, value: Any) -> ir.Value:
    """One value everywhere."""
    single = call.tensor(value, call.element)
    return broadcast_to(single, call.dims) if call.dims else single


@operator("full", "full_like", "new_full", pairs=by_parts_of())
def full(call: Call, shape: Any, *args: Any, **options: Any) -> ir.Value:
    """A given value."""
    return filled(call, args[-1])


@operator(
    "zeros",
    "zeros_like",
    "new_zeros",
    "empty.memory_format",
    "empty_like",
    "new_empty",
    pairs=by_parts_of(),
)
def zeros(call: Call, *args: Any, **options: Any) -> ir.Value:
    """0."""
    return filled(call, 0)


@operator("empty_permuted", "empty_strided", "new_empty_strided", pairs=by_parts_of())
def empty(call: Call, *args: Any, **options: Any) -> ir.Value:
    """Anything: 0."""
    return filled(call, 0)


@operator("ones", "ones_like", "new_ones", pairs=by_parts_of())
def ones(call: Call, *args: Any, **options: Any) -> ir.Value:
    """1."""
    return filled(call, 1)


@operator("scalar_tensor", pairs=by_parts_of())
def scalar_tensor(call: Call, value: Any, **options: Any) -> ir.Value:
    """A scalar."""
    return call.tensor(value, call.element)


@operator("arange", "arange.start", "arange.start_step")
def arange(call: Call, *bounds: Any, **options: Any) -> ir.Value:
    """Elements from a start by a step."""
    start, step = 0, 1
    if len(bounds) == 1:
        (end,) = bounds
    else:
        start, end, *rest = bounds
        step = rest[0] if rest else 1
    element = call.element
    if all(not isinstance(each, float) for each in (start, end, step)):
        exprs = call.exprs([start, end, step])
        if (exprs[2].value or 0) > 0:
            return emit(graph.ArangeOp, bounds=exprs, dtype=element)
    at = emit(graph.ArangeOp, bounds=[0, call.dims[0], 1], dtype=element)
    return add(multiply(at, call.tensor(step, element)), call.tensor(start, element))


@operator("eye", "eye.m")
def eye(call: Call, *args: Any, **options: Any) -> ir.Value:
    """1 on the diagonal."""
    return emit(graph.EyeOp, shape=call.dims, k=0, dtype=call.element)


def _triangle(op: type[graph.InferredOp]) -> Function:
    """Rows and columns of the elements whose column less the offset is so next to the row."""

    def build(call: Call, rows: Any, columns: Any, offset: Any = 0, **_: Any) -> ir.Value:
        i64 = ir.IntegerType.get_signless(64)
        row = expand_dims(arange_of(0, call.expr(rows), 1, i64), [1])
        column = expand_dims(arange_of(0, call.expr(columns), 1, i64), [0])
        inside = emit(op, column, add(row, call.tensor(call.expr(offset), i64)))
        return astype(emit(graph.FirstNonzeroOp, inside, count=[call.dims[1]]), call.element)

    return build


operator("tril_indices")(_triangle(graph.LessEqualOp))
operator("triu_indices")(_triangle(graph.GreaterEqualOp))


@operator("tril", pairs=by_part)
def tril(call: Call, x: ir.Value, diagonal: int = 0) -> ir.Value:
    """What is below a diagonal."""
    return emit(graph.TrilOp, x, k=diagonal)


@operator("triu", pairs=by_part)
def triu(call: Call, x: ir.Value, diagonal: int = 0) -> ir.Value:
    """What is above a diagonal."""
    return emit(graph.TriuOp, x, k=diagonal)


@operator("fill.Scalar", "fill.Tensor", pairs=by_parts_of(0, 1))
def fill(call: Call, x: ir.Value, value: Any) -> ir.Value:
    """A value in the shape of a tensor."""
    return filled(call, reshape(value, []) if isinstance(value, ir.Value) else value)
