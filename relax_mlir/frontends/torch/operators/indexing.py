"""Elements by indices: gather in all forms."""

from collections.abc import Sequence
from typing import Any

from relax_mlir import decompositions as d
from relax_mlir.bindings import ir
from relax_mlir.decompositions.emit import (
    add,
    broadcast_to,
    dims_of,
    divide,
    element_of,
    emit,
    expand_dims,
    greater,
    less,
    multiply,
    permute,
    reshape,
    scalar,
    where,
)
from relax_mlir.dialects import graph
from relax_mlir.dialects.graph import TensorType
from relax_mlir.errors import ModelError
from relax_mlir.symbolic import Fact, const, sym

from ..adapters import by_part, by_parts_of, of_truth
from ..call import Call
from ..registry import operator
from .creation import filled
from .reductions import norm_of
from .shaping import from_front, graph_cast, sliced


@operator("embedding", pairs=by_part)
def embedding(
    call: Call, weight: ir.Value, indices: ir.Value, *args: Any, **options: Any
) -> ir.Value:
    """Rows of a table."""
    return emit(graph.TakeOp, weight, indices, axis=0)


@operator("embedding_renorm")
def embedding_renorm(
    call: Call, weight: ir.Value, indices: ir.Value, max_norm: float, norm_type: float
) -> ir.Value:
    """A table of which the rows that indices name have a norm that is bounded."""
    rows = dims_of(weight)[0]
    i1 = ir.IntegerType.get_signless(1)
    line = d.reshape(indices, [-1])
    named = broadcast_to(scalar(0, i1), [rows])
    ones = broadcast_to(scalar(1, i1), dims_of(line))
    named = emit(graph.ScatterElementsOp, named, line, ones, axis=0, reduction="none")
    norm = norm_of(weight, norm_type, [1], True)
    is_long = emit(graph.LogicalAndOp, expand_dims(named, [1]), greater(norm, max_norm))
    return where(is_long, multiply(weight, divide(max_norm, add(norm, 1e-7))), weight)


@operator("index_select", pairs=by_part)
def index_select(call: Call, x: ir.Value, dim: int, index: ir.Value) -> ir.Value:
    """Slices of an axis."""
    if not call.rank(x):
        return x
    return emit(graph.TakeOp, x, d.reshape(index, [-1]), axis=call.axis(dim, call.rank(x)))


@operator("gather", pairs=by_part)
def gather(
    call: Call, x: ir.Value, dim: int, index: ir.Value, sparse_grad: bool = False
) -> ir.Value:
    """Elements along an axis; indices that are none may be of any rank."""
    is_empty = any(dim == 0 for dim in TensorType.of(index).dims or ())
    if is_empty or not (call.rank(x) and call.rank(index)):
        taken = emit(graph.TakeOp, d.reshape(x, [-1]), d.reshape(index, [-1]), axis=0)
        return reshape(taken, call.dims)
    return emit(graph.GatherElementsOp, x, index, axis=call.axis(dim, call.rank(x)))


@operator("index.Tensor", "_unsafe_index.Tensor", pairs=by_part)
def index(call: Call, x: ir.Value, indices: Sequence[ir.Value | None]) -> ir.Value:
    """Elements by tensors of indices, or of truth values, for some axes."""
    first = indices[0]
    if len(indices) == 1 and first is not None and is_mask(first):
        return d.index_by_mask(x, call.tensor(first, ir.IntegerType.get_signless(1)))
    axes, own = indexed(call, x, indices)
    return graph_cast(call, graph.IndexTensorOp.build(x, *own, axes=axes).operation.results[0])


def is_mask(index: ir.Value) -> bool:
    """Whether what an axis is indexed by are truth values, which PyTorch takes bytes for too."""
    return str(element_of(index)) in ("i1", "ui8")


def indexed(
    call: Call, x: ir.Value, indices: Sequence[ir.Value | None]
) -> tuple[list[int], list[ir.Value]]:
    """The axes that are indexed, and indices from the front for each; masks are for several."""
    axes: list[int] = []
    own: list[ir.Value] = []
    axis = 0
    for each in indices:
        rows = _rows(call, x, axis, each) if each is not None and is_mask(each) else [each]
        for row in rows:
            if row is not None:
                axes.append(axis)
                own.append(from_front(row, dims_of(x)[axis]))
            axis += 1
    return axes, own


def _rows(call: Call, x: ir.Value, axis: int, mask: ir.Value) -> list[ir.Value]:
    """Indices for each axis of a mask, where it is true."""
    dims = dims_of(mask)
    if not dims:
        raise ModelError("has a mask of rank 0 next to other indices, which is not supported")
    for own, other in zip(dims, dims_of(x)[axis:], strict=False):
        if own != other:
            graph.RequireOp.build([Fact(own, "==", other)], "a mask has the dims that it indexes")
    rows = emit(graph.NonzeroOp, mask)
    count = sym(call.importer.dims.fresh("true"))
    known = TensorType.of(rows).with_dims([len(dims), count])
    rows = graph.MatchCastOp.build(rows, known).result
    return [
        emit(graph.SqueezeOp, sliced(rows, 0, const(i), const(i + 1)), axes=[0])
        for i in range(len(dims))
    ]


@operator("nonzero", pairs=of_truth)
def nonzero(call: Call, x: ir.Value) -> ir.Value:
    """The indices of elements that are not 0, a row for each."""
    rows = permute(emit(graph.NonzeroOp, x), [1, 0])
    if call.rank(x):
        return rows
    rows = graph.MatchCastOp.build(rows, TensorType.of(rows).with_dims([call.dims[0], 1])).result
    return sliced(rows, 1, const(0), const(0))  # a scalar has no axes


@operator("nonzero_static")
def nonzero_static(call: Call, x: ir.Value, *, size: Any, fill_value: int = -1) -> ir.Value:
    """The indices of so many elements that are not 0; rows that are left have a value."""
    count = call.dims[0]
    if not call.rank(x):
        return filled(call, fill_value)
    rows = permute(emit(graph.FirstNonzeroOp, x, count=[count]), [1, 0])
    return where(less(rows, 0), fill_value, rows)


@operator("masked_select", pairs=by_part)
def masked_select(call: Call, x: ir.Value, mask: ir.Value) -> ir.Value:
    """The elements at which a mask is true."""
    return d.masked_select(x, mask)


@operator("one_hot")
def one_hot(call: Call, x: ir.Value, classes: Any = -1) -> ir.Value:
    """1 at an index, 0 elsewhere."""
    on, off = (d.emit.scalar(value, call.element) for value in (1, 0))
    depth = call.expr(classes)
    if depth.value is not None and depth.value < 0:
        raise ModelError("has as many classes as elements say, which is not supported")
    return emit(graph.OneHotOp, x, on, off, depth=[depth], axis=call.rank(x))


@operator("copy", pairs=by_parts_of(0, 1))
def copy(call: Call, x: ir.Value, source: ir.Value, non_blocking: bool = False) -> ir.Value:
    """Other elements, in the type and dims of a tensor."""
    return broadcast_to(call.tensor(source, call.element), call.dims)
