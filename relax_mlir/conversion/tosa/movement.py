"""Ops that move elements."""

from relax_mlir.bindings import ir
from relax_mlir.decompositions.emit import broadcast_to, concat, emit, expand_dims, permute, reshape
from relax_mlir.dialects import graph
from relax_mlir.dialects.graph import ShapeError, TensorType
from relax_mlir.symbolic import Expr, Fact, const, product

from ..function import Conversion
from ..registry import converts


@converts("tosa.concat")
def joined(conversion: Conversion, op: ir.Operation) -> None:
    """Tensors in a row."""
    axis = ir.IntegerAttr(op.attributes["axis"]).value
    conversion.define(op, concat([conversion.value(each) for each in op.operands], axis))


@converts("tosa.pad")
def padded(conversion: Conversion, op: ir.Operation) -> None:
    """Elements of one value around those of a tensor."""
    source, padding, *given = op.operands
    value = conversion.value(source)
    rank = len(conversion.dims(source))
    around = conversion.shape(padding)
    if not given:
        raise ShapeError("has no element to pad with")
    element = reshape(conversion.value(given[0]), [])
    low, high = around[::2], around[1::2]
    options = {"low": low, "high": high, "interior": [0] * rank, "mode": "constant"}
    conversion.define(op, emit(graph.PadOp, value, element, **options))


@converts("tosa.reshape")
def reshaped(conversion: Conversion, op: ir.Operation) -> None:
    """The elements under other dims, of which -1 is what is left."""
    value, shape = conversion.value(op.operands[0]), list(conversion.shape(op.operands[1]))
    missing = [axis for axis, dim in enumerate(shape) if dim.value == -1]
    if len(missing) > 1:
        raise ShapeError(f"has {len(missing)} dims of -1; expects one at most")
    if missing:
        count = product(list(conversion.dims(op.operands[0])))
        others = product([dim for dim in shape if dim.value != -1])
        shape[missing[0]] = _divided(conversion, count, others)
    conversion.define(op, reshape(value, shape))


def _divided(conversion: Conversion, count: Expr, others: Expr) -> Expr:
    """The dim that is left of so many elements."""
    if others.value is None or others.value < 1:
        raise ShapeError(f"has a dim of -1 next to dims of {others} elements")
    left = count // others
    conversion.require(Fact(left * others, "==", count))
    return left


@converts("tosa.reverse")
def reversed_(conversion: Conversion, op: ir.Operation) -> None:
    """The elements in reverse order along an axis."""
    axis = ir.IntegerAttr(op.attributes["axis"]).value
    conversion.define(op, emit(graph.FlipOp, conversion.value(op.operands[0]), axes=[axis]))


@converts("tosa.slice")
def sliced(conversion: Conversion, op: ir.Operation) -> None:
    """A part of a tensor."""
    value, dims = conversion.value(op.operands[0]), conversion.dims(op.operands[0])
    starts, sizes = (conversion.shape(each) for each in list(op.operands)[1:])
    rows = []
    for axis, (start, size, dim) in enumerate(zip(starts, sizes, dims, strict=True)):
        end = dim if size.value == -1 else start + size
        conversion.require(Fact(const(0), "<=", start))
        conversion.require(Fact(start, "<=", end))
        conversion.require(Fact(end, "<=", dim))
        if (start, end) != (const(0), dim):
            rows.append((axis, start, end))
    if rows:
        axes, begin, end_ = ([row[i] for row in rows] for i in range(3))
        strides = [1] * len(rows)
        options = {"axes": axes, "begin": begin, "end": end_, "strides": strides}
        value = emit(graph.StridedSliceOp, value, **options)
    conversion.define(op, value)


@converts("tosa.tile")
def tiled(conversion: Conversion, op: ir.Operation) -> None:
    """The whole tensor several times along each axis."""
    value, counts = conversion.value(op.operands[0]), conversion.shape(op.operands[1])
    conversion.define(op, emit(graph.TileOp, value, repeats=list(counts)))


@converts("tosa.transpose")
def transposed(conversion: Conversion, op: ir.Operation) -> None:
    """The dims in another order."""
    axes = list(ir.DenseI32ArrayAttr(op.attributes["perms"]))
    conversion.define(op, permute(conversion.value(op.operands[0]), axes))


@converts("tosa.gather")
def gathered(conversion: Conversion, op: ir.Operation) -> None:
    """Rows of each matrix, by index; an index outside of the matrix is clamped."""
    first, second = (conversion.dims(each)[0] for each in op.operands)
    conversion.same(second, first, "matrices")
    rows = _of_rows(conversion, op.operands[1], conversion.dims(op.operands[0])[2])
    values = conversion.value(op.operands[0])
    conversion.define(op, emit(graph.GatherElementsOp, values, rows, axis=1))


@converts("tosa.scatter")
def scattered(conversion: Conversion, op: ir.Operation) -> None:
    """Each matrix with some rows replaced."""
    into, indices, updates = op.operands
    dims = conversion.dims(updates)
    for axis in range(2):
        conversion.same(dims[axis], conversion.dims(indices)[axis], f"dim {axis}")
    rows = _of_rows(conversion, indices, dims[2])
    operands = (conversion.value(into), rows, conversion.value(updates))
    conversion.define(op, emit(graph.ScatterElementsOp, *operands, axis=1, reduction="none"))


def _of_rows(conversion: Conversion, indices: ir.Value, columns: Expr) -> ir.Value:
    """Indices of rows, for each element of the rows."""
    value = conversion.value(indices)
    dims = [dim for dim in TensorType.of(value).dims or () if dim is not None]
    return broadcast_to(expand_dims(value, [2]), [*dims, columns])
