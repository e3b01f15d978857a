"""Ops of `tensor`: those that move elements become operators, others stay."""

from collections.abc import Iterator, Sequence

from relax_mlir.bindings import ir, tensor
from relax_mlir.decompositions.emit import concat, emit, reshape
from relax_mlir.dialects import graph
from relax_mlir.dialects.graph import MatchCastOp, ShapeError, TensorType
from relax_mlir.symbolic import Expr, Fact, bounds, const, maximum, product

from ..function import Conversion
from ..registry import converts

_DYNAMIC = ir.ShapedType.get_dynamic_size()


def mixed(conversion: Conversion, static: Sequence[int], dynamic: Iterator[ir.Value]) -> list[Expr]:
    """Sizes of which some are constants, and others operands, as expressions."""
    return [conversion.expr(next(dynamic)) if each == _DYNAMIC else const(each) for each in static]


def ints(op: ir.Operation, name: str) -> list[int]:
    """An attribute that is an array of integers."""
    return list(ir.DenseI64ArrayAttr(op.attributes[name]))


@converts("tensor.empty")
def empty(conversion: Conversion, op: ir.Operation) -> None:
    """A tensor that an op fills."""
    shape = ir.RankedTensorType(op.results[0].type).shape
    conversion.begin(op.results[0], mixed(conversion, shape, iter(op.operands)))


@converts("tensor.splat")
def splat(conversion: Conversion, op: ir.Operation) -> None:
    """One element in all positions."""
    value, *sizes = op.operands
    shape = ir.RankedTensorType(op.results[0].type).shape
    conversion.begin(op.results[0], mixed(conversion, shape, iter(sizes)), value)


@converts("tensor.dim")
def dim(conversion: Conversion, op: ir.Operation) -> None:
    """An extent."""
    axis = conversion.exprs.get(op.operands[1])
    dims = conversion.dims(op.operands[0])
    if axis is None or axis.value is None or not 0 <= axis.value < len(dims):
        raise ShapeError(f"expects a constant axis from 0 to {len(dims) - 1}")
    extent = dims[axis.value]
    if extent.value is not None:
        conversion.define(op, conversion.index(extent.value))
    else:
        source = conversion.value(op.operands[0])
        conversion.define(op, tensor.DimOp(source, conversion.index(axis.value)).result)
    conversion.exprs[op.results[0]] = extent


@converts("tensor.rank")
def rank(conversion: Conversion, op: ir.Operation) -> None:
    """The count of dims."""
    count = len(conversion.dims(op.operands[0]))
    conversion.define(op, conversion.index(count))
    conversion.exprs[op.results[0]] = const(count)


@converts("tensor.cast")
def cast(conversion: Conversion, op: ir.Operation) -> None:
    """The tensor itself, whose dims are checked where the type says more."""
    old = op.operands[0]
    if not isinstance(op.results[0].type, ir.RankedTensorType):
        raise ShapeError(f"has a result of '{op.results[0].type}'; expects a known rank")
    if old not in conversion.inits:
        conversion.define(op, conversion.value(old))
        return
    declared = ir.RankedTensorType(op.results[0].type).shape
    init = conversion.inits[old]
    for axis, (own, wanted) in enumerate(zip(init.dims, declared, strict=True)):
        if wanted != _DYNAMIC:
            conversion.same(own, const(wanted), f"dim {axis}")
    dims = [own if its == _DYNAMIC else const(its) for own, its in zip(init.dims, declared)]
    conversion.begin(op.results[0], dims, init.fill)


@converts("tensor.expand_shape")
def expand_shape(conversion: Conversion, op: ir.Operation) -> None:
    """Each dim as several."""
    source, *sizes = op.operands
    shape = mixed(conversion, ints(op, "static_output_shape"), iter(sizes))
    dims = conversion.dims(source)
    for axis, group in enumerate(groups(op)):
        own = product([shape[each] for each in group]) if group else const(1)
        conversion.same(dims[axis], own, f"dim {axis}")
    if source in conversion.inits:
        conversion.begin(op.results[0], shape, conversion.inits[source].fill)
    else:
        conversion.define(op, reshape(conversion.value(source), shape))


@converts("tensor.collapse_shape")
def collapse_shape(conversion: Conversion, op: ir.Operation) -> None:
    """Several dims as one each."""
    source = op.operands[0]
    dims = conversion.dims(source)
    shape = [product([dims[each] for each in group]) for group in groups(op)]
    if not groups(op):
        for axis, own in enumerate(dims):
            conversion.same(own, const(1), f"dim {axis}")
    if source in conversion.inits:
        conversion.begin(op.results[0], shape, conversion.inits[source].fill)
    else:
        conversion.define(op, reshape(conversion.value(source), shape))


def groups(op: ir.Operation) -> list[list[int]]:
    """The axes of the longer shape for each axis of the shorter one."""
    array = ir.ArrayAttr(op.attributes["reassociation"])
    return [[axis.value for axis in ir.ArrayAttr(group)] for group in array]


@converts("tensor.reshape")
def reshaped(conversion: Conversion, op: ir.Operation) -> None:
    """The elements under dims that a tensor has."""
    source, shape = (conversion.value(each) for each in op.operands)
    declared = op.results[0].type
    if not isinstance(declared, ir.RankedTensorType):
        raise ShapeError(f"has a result of '{declared}'; expects a known rank")
    i64 = ir.IntegerType.get_signless(64)
    dims = [conversion.fresh("dim") if e == _DYNAMIC else const(e) for e in declared.shape]
    element = TensorType.of(shape).element
    if not isinstance(element, ir.IndexType) and element != i64:
        shape = emit(graph.AstypeOp, shape, dtype=i64)
    sizes = emit(graph.TensorToShapeOp, shape)
    MatchCastOp.build(sizes, graph.shape_value_type(dims))
    conversion.define(op, reshape(source, dims))


@converts("tensor.concat")
def joined(conversion: Conversion, op: ir.Operation) -> None:
    """Tensors in a row."""
    axis = ir.IntegerAttr(op.attributes["dim"]).value
    conversion.define(op, concat([conversion.value(each) for each in op.operands], axis))


class Slice:
    """The part of a tensor that offsets, sizes and strides say; has checked its bounds."""

    def __init__(
        self,
        conversion: Conversion,
        op: ir.Operation,
        dynamic: list[ir.Value],
        dims: Sequence[Expr],
    ) -> None:
        rest = iter(dynamic)
        static = ints(op, "static_offsets")
        self.starts = [next(rest) if each == _DYNAMIC else each for each in static]
        self.offsets = mixed(conversion, static, (s for s in self.starts if not isinstance(s, int)))
        self.sizes = mixed(conversion, ints(op, "static_sizes"), rest)
        strides = mixed(conversion, ints(op, "static_strides"), rest)
        self.strides = [each.value or 0 for each in strides]
        if min(self.strides, default=1) < 1:
            raise ShapeError(
                f"has strides {[str(each) for each in strides]}; expects constants > 0"
            )
        self.ends = [
            offset + size if stride == 1 else offset + _spanned(size, stride)
            for offset, size, stride in zip(self.offsets, self.sizes, self.strides)
        ]
        for start, end, size, extent in zip(self.offsets, self.ends, self.sizes, dims, strict=True):
            conversion.require(Fact(const(0), "<=", start))
            conversion.require(Fact(const(0), "<=", size))
            conversion.require(Fact(end, "<=", extent))

    def bounds(self, dims: Sequence[Expr]) -> dict:
        """What operators on slices take: the axes that are not whole, and their bounds."""
        rows = [
            (axis, begin, end, stride)
            for axis, (begin, end, stride) in enumerate(zip(self.offsets, self.ends, self.strides))
            if (begin, end, stride) != (const(0), dims[axis], 1)
        ]
        axes, begin, end, strides = ([row[i] for row in rows] for i in range(4))
        return {"axes": axes, "begin": begin, "end": end, "strides": strides}


def _spanned(size: Expr, stride: int) -> Expr:
    """How many elements a slice reaches over."""
    low, _ = bounds(size)
    span = (size - 1) * stride + 1
    return span if low is not None and low >= 1 else maximum(span, 0)


@converts("tensor.extract_slice")
def extract_slice(conversion: Conversion, op: ir.Operation) -> None:
    """A part of a tensor; dims of 1 that the result does not have are dropped."""
    source, *dynamic = op.operands
    dims = conversion.dims(source)
    part = Slice(conversion, op, dynamic, dims)
    shape = dropped(part.sizes, ir.RankedTensorType(op.results[0].type))
    if source in conversion.inits:
        conversion.begin(op.results[0], shape, conversion.inits[source].fill)
        return
    value = conversion.value(source)
    bounds_ = part.bounds(dims)
    if bounds_["axes"]:
        value = emit(graph.StridedSliceOp, value, **bounds_)
        value.set_type(TensorType.of(value).with_dims(part.sizes).to_mlir())
    conversion.define(op, reshape(value, shape))


def dropped(sizes: Sequence[Expr], result: ir.RankedTensorType) -> list[Expr]:
    """The sizes that are dims of the result: as MLIR infers it, first ones of 1 are dropped."""
    wanted, dims = list(result.shape), list[Expr]()
    surplus = len(sizes) - len(wanted)
    for size in sizes:
        position = len(dims)
        fits = position < len(wanted) and wanted[position] in (size.value, _DYNAMIC)
        is_one = size.value == 1 and not (fits and wanted[position] == 1)
        if surplus and is_one:
            surplus -= 1
        else:
            dims.append(size)
    if surplus or len(dims) != len(wanted):
        raise ShapeError(f"has a part of {[str(s) for s in sizes]} as '{result}'")
    return dims


@converts("tensor.insert_slice")
def insert_slice(conversion: Conversion, op: ir.Operation) -> None:
    """A tensor with a part replaced, in place where nothing else needs the tensor."""
    source, into, *dynamic = op.operands
    dims = conversion.dims(into)
    part = Slice(conversion, op, dynamic, dims)
    _check_part(conversion, conversion.dims(source), part.sizes)
    update, target = reshape(conversion.value(source), part.sizes), conversion.value(into)
    if set(part.strides) <= {1} and dims:
        starts = [s if isinstance(s, int) else conversion.values[s] for s in part.starts]
        vector = conversion.vector(starts, ir.IntegerType.get_signless(64))
        conversion.define(op, emit(graph.DynamicUpdateSliceOp, target, update, vector))
        return
    conversion.define(op, emit(graph.SliceScatterOp, target, update, **part.bounds(dims)))


def _check_part(conversion: Conversion, own: Sequence[Expr], sizes: Sequence[Expr]) -> None:
    """Has the dims of an update agree with the sizes, but for dims of 1 that it lacks."""
    if len(own) == len(sizes):
        pairs = list(zip(own, sizes))
    else:
        pairs = list(zip([d for d in own if d.value != 1], [s for s in sizes if s.value != 1]))
    for axis, (dim, size) in enumerate(pairs):
        conversion.same(dim, size, f"dim {axis} of what is inserted")


@converts("tensor.pad")
def pad(conversion: Conversion, op: ir.Operation) -> None:
    """Elements of one value around those of a tensor."""
    source, *dynamic = op.operands
    rest = iter(dynamic)
    low, high = (mixed(conversion, ints(op, f"static_{side}"), rest) for side in ("low", "high"))
    block = op.regions[0].blocks[0]
    (value,) = block.operations[len(block.operations) - 1].operands
    for each in block.operations:
        if each.operation.name == "arith.constant":
            conversion.op(each.operation)
    if value not in conversion.values:
        raise ShapeError("pads with elements that depend on their position; expects one value")
    padding = conversion.scalar_tensor(conversion.value(value))
    interior = [0] * len(low)
    operands = (conversion.value(source), padding)
    options = {"low": low, "high": high, "interior": interior, "mode": "constant"}
    conversion.define(op, emit(graph.PadOp, *operands, **options))


@converts("tensor.bitcast")
def bitcast(conversion: Conversion, op: ir.Operation) -> None:
    """The bits as elements of another type."""
    element = ir.RankedTensorType(op.results[0].type).element_type
    value = conversion.value(op.operands[0])
    conversion.define(op, emit(graph.BitcastOp, value, dtype=element))
