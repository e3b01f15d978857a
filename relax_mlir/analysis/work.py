"""Counts the floating-point operations and bytes of a tensor program before it is scheduled.

    linalg.generic over (n, 576, 576) of mulf and addf      flops = 2 * n * 576 * 576
    decoding one of its factors, of (576, 576), in its body           + 2 * 576 * 576
    a cache of which rows 0 to m + n are read               bytes = those rows, not the cache

Counts are expressions over the arguments of a call: `a1d0` is dim 0 of tensor argument 1, `s0` is
index argument 0. Each floating-point operation counts once, cheap (an addition) or expensive (an
exponential), for each of the iterations that its operands depend on; conversions, comparisons and
integer operations do not count.
Bytes are the least possible memory traffic: each element that is read or written, once.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from relax_mlir.analysis.affine import dims_of
from relax_mlir.bindings import ir, linalg, tensor
from relax_mlir.dialects.graph import element_bits
from relax_mlir.dialects.tir import PrimFunc
from relax_mlir.symbolic import Expr, const, maximum, minimum, product, sym

FLOPS = "tir.flops"
BYTES = "tir.bytes"

_FREE = (
    "arith.bitcast",
    "arith.constant",
    "arith.extf",
    "arith.select",
    "arith.sitofp",
    "arith.truncf",
    "arith.uitofp",
)
_COST = {"math.fma": 2}
_VIEWS = (tensor.CastOp, tensor.CollapseShapeOp, tensor.ExpandShapeOp, tensor.ExtractSliceOp)
_SOFTMAX_FLOPS = 5  # scale, running maximum, difference, exponential, sum

_INDEX_OPS: dict[str, Callable[[Expr, Expr], Expr]] = {
    "arith.addi": lambda a, b: a + b,
    "arith.subi": lambda a, b: a - b,
    "arith.muli": lambda a, b: a * b,
    "arith.divsi": lambda a, b: a // b,
    "arith.divui": lambda a, b: a // b,
    "arith.floordivsi": lambda a, b: a // b,
    "arith.ceildivsi": lambda a, b: (a + b - 1) // b,
    "arith.ceildivui": lambda a, b: (a + b - 1) // b,
    "arith.remsi": lambda a, b: a % b,
    "arith.remui": lambda a, b: a % b,
    "arith.minsi": minimum,
    "arith.minui": minimum,
    "arith.maxsi": maximum,
    "arith.maxui": maximum,
}


@dataclass(frozen=True)
class Work:
    """Operations and bytes of one call; None if the program does not determine them."""

    flops: Expr | None
    bytes: Expr | None

    def annotate(self, op: ir.Operation | ir.OpView) -> None:
        """Writes the counts on a tensor program, as string attributes."""
        for name, count in ((FLOPS, self.flops), (BYTES, self.bytes)):
            if count is not None:
                op.attributes[name] = ir.StringAttr.get(str(count))


class _Unknown(Exception):
    """The count depends on something that is not a dim."""


def work_of(kernel: PrimFunc) -> Work:
    """Counts the work of a tensor program that is not scheduled yet."""
    sizes = _Sizes(kernel)
    return Work(_known(lambda: _flops(kernel, sizes)), _known(lambda: _bytes(kernel, sizes)))


def _known(count: Callable[[], Expr]) -> Expr | None:
    try:
        return count()
    except _Unknown:
        return None


class _Sizes:
    """Dims of the tensors of a program, and its index values, as expressions over its arguments."""

    def __init__(self, kernel: PrimFunc) -> None:
        self._names: dict[ir.Value, str] = {}
        for prefix, values in (("a", [*kernel.ins, *kernel.outs]), ("s", kernel.sym_args)):
            self._names.update({value: f"{prefix}{i}" for i, value in enumerate(values)})

    def dims(self, value: ir.Value) -> tuple[Expr, ...]:
        """Dims of a tensor."""
        type_ = ir.RankedTensorType(value.type)
        if not any(map(type_.is_dynamic_dim, range(type_.rank))):
            return tuple(map(const, type_.shape))
        name = self._names.get(value)
        result = (
            self._from_producer(value)
            if name is None
            else [sym(f"{name}d{i}") for i in range(type_.rank)]
        )
        return tuple(
            result[i] if type_.is_dynamic_dim(i) else const(type_.get_dim_size(i))
            for i in range(type_.rank)
        )

    def _from_producer(self, value: ir.Value) -> Sequence[Expr]:
        op = None if isinstance(value.owner, ir.Block) else value.owner.opview
        if isinstance(op, tensor.CastOp):
            return self.dims(op.source)
        if isinstance(op, tensor.EmptyOp):
            return self._mixed(ir.RankedTensorType(value.type).shape, op.operands)
        if isinstance(op, linalg.GenericOp | linalg.FillOp):
            return self.dims(op.outputs[list(op.results).index(value)])
        if isinstance(op, tensor.InsertSliceOp):
            return self.dims(op.dest)
        if isinstance(op, tensor.ExpandShapeOp):
            return self._mixed(op.static_output_shape, op.output_shape)
        if isinstance(op, tensor.ExtractSliceOp):
            sizes = self._mixed(op.static_sizes, op.sizes)
            if len(sizes) == ir.RankedTensorType(value.type).rank:
                return sizes
        if isinstance(op, tensor.CollapseShapeOp):
            source = self.dims(op.operands[0])
            return [product(source[i.value] for i in group) for group in op.reassociation]
        raise _Unknown

    def _mixed(self, static: Sequence[int], dynamic: Sequence[ir.Value]) -> list[Expr]:
        values = iter(dynamic)
        unknown = ir.ShapedType.get_dynamic_size()
        return [self.index(next(values)) if x == unknown else const(x) for x in static]

    def index(self, value: ir.Value) -> Expr:
        """An index value."""
        if value in self._names:
            return sym(self._names[value])
        if isinstance(value.owner, ir.Block):
            raise _Unknown
        op = value.owner.opview
        name = op.operation.name
        if name == "arith.constant":
            return const(ir.IntegerAttr(op.attributes["value"]).value)
        if name == "arith.index_cast":
            return self.index(op.operands[0])
        if name == "tensor.dim":
            axis = self.index(op.operands[1]).value
            if axis is not None:
                return self.dims(op.operands[0])[axis]
        if name in _INDEX_OPS:
            return _INDEX_OPS[name](*map(self.index, op.operands))
        raise _Unknown

    def bytes(self, value: ir.Value) -> Expr:
        """Bytes of a whole tensor."""
        return product(self.dims(value)) * _element_bytes(ir.ShapedType(value.type).element_type)

    def iterations(self, op: linalg.GenericOp) -> Expr:
        """The iteration count of a linalg op."""
        return product(self.extents(op))

    def extents(self, op: linalg.GenericOp) -> list[Expr]:
        """The extent of each iterator of a linalg op."""
        extents: list[Expr | None] = [None] * len(op.iterator_types)
        for value, map_ in zip([*op.inputs, *op.outputs], _maps(op), strict=True):
            if not isinstance(value.type, ir.RankedTensorType):
                continue
            for expression, extent in zip(map_.results, self.dims(value), strict=True):
                if isinstance(expression, ir.AffineDimExpr):
                    extents[expression.position] = extent
        known = [extent for extent in extents if extent is not None]
        if len(known) < len(extents):
            raise _Unknown
        return known


def _maps(op: linalg.GenericOp) -> list[ir.AffineMap]:
    return [attribute.value for attribute in op.indexing_maps]


def _element_bytes(element: ir.Type) -> int:
    return element_bits(element) // 8


def _require_nests(kernel: PrimFunc) -> None:
    """Raises _Unknown for what has other loops, or branches."""
    for op in kernel.op.entry_block.operations:
        if len(op.operation.regions) and not isinstance(op, linalg.GenericOp | linalg.FillOp):
            raise _Unknown


def _is_structured(op: ir.OpView) -> bool:
    """Whether an op reads its operands as a whole, and not by loops of the program's own."""
    return isinstance(op, tensor.PadOp) or op.operation.name.startswith("linalg.")


def _flops(kernel: PrimFunc, sizes: _Sizes) -> Expr:
    if kernel.schedule_hint == "attention":
        return _attention_flops(kernel, sizes)
    if kernel.schedule_hint == "batched_attention":
        return _batched_attention_flops(kernel, sizes)
    _require_nests(kernel)
    total = const(0)
    for op in kernel.op.entry_block.operations:
        if isinstance(op, linalg.GenericOp):
            total = total + _flops_of_body(op, sizes)
    return total


def _flops_of_body(op: linalg.GenericOp, sizes: _Sizes) -> Expr:
    body = op.regions[0].blocks[0]
    flops = {inner: count for inner in body.operations if (count := _flops_of(inner))}
    if not flops:
        return const(0)
    extents, iterators = sizes.extents(op), _iterators(op)
    return sum(
        (
            product(extents[i] for i in sorted(iterators[inner.results[0]])) * count
            for inner, count in flops.items()
        ),
        const(0),
    )


def _iterators(op: linalg.GenericOp) -> dict[ir.Value, frozenset[int]]:
    """Positions of the iterators that the values in the body of a linalg op depend on."""
    everything = frozenset(range(len(op.iterator_types)))
    body = op.regions[0].blocks[0]
    iterators = dict.fromkeys(body.arguments, everything)  # sums so far depend on all
    for argument, map_ in zip(body.arguments[: len(op.inputs)], _maps(op), strict=False):
        iterators[argument] = frozenset().union(*map(dims_of, map_.results))
    for inner in body.operations:
        if isinstance(inner, linalg.IndexOp):
            own = frozenset([inner.dim.value])
        else:
            own = frozenset().union(*(iterators.get(x, frozenset()) for x in inner.operands))
        iterators.update(dict.fromkeys(inner.results, own))
    return iterators


def _flops_of(op: ir.OpView) -> int:
    name = op.operation.name
    if name in _FREE or not name.startswith(("arith.", "math.")):
        return 0
    is_float = isinstance(op.results[0].type, ir.FloatType)
    return _COST.get(name, 1) if is_float else 0


def _attention_flops(kernel: PrimFunc, sizes: _Sizes) -> Expr:
    """For each pair of a query and a visible key: two products of length d, and the softmax.

    With n queries after m cached keys and a causal mask these are n m + n (n + 1) / 2 pairs.
    """
    if not kernel.sym_args:
        raise _Unknown  # a constant position is not an argument
    n, heads, d = sizes.dims(kernel.outs[0])
    m = sizes.index(kernel.sym_args[0])
    causal = ir.DictAttr(kernel.op.attributes["tir.attention"])["causal"].value
    own = n * (n + 1) // 2 if causal else n * n
    return heads * (n * m + own) * (4 * d + _SOFTMAX_FLOPS)


def _batched_attention_flops(kernel: PrimFunc, sizes: _Sizes) -> Expr:
    """The same for every query of a batch; with a causal mask, query i sees i + 1 keys at most."""
    batch, n, heads, width = sizes.dims(kernel.outs[0])
    depth, keys = sizes.dims(kernel.ins[0])[3], sizes.dims(kernel.ins[1])[1]
    causal = ir.DictAttr(kernel.op.attributes["tir.attention"])["causal"].value
    own = minimum(n, keys)
    pairs = own * (own + 1) // 2 + (n - own) * keys if causal else n * keys
    return batch * heads * pairs * (2 * depth + 2 * width + _SOFTMAX_FLOPS)


def _attention_bytes(kernel: PrimFunc, sizes: _Sizes) -> Expr:
    """Queries, results, and the filled rows of all parts of the caches."""
    operations = kernel.op.entry_block.operations
    products = (op for op in operations if isinstance(op, linalg.GenericOp) and _sums(op))
    product = next(products, None)
    if product is None:
        raise _Unknown
    query = product.inputs[0]
    if not isinstance(query.owner, ir.Block) and isinstance(query.owner.opview, tensor.CastOp):
        query = query.owner.opview.source
    if not kernel.sym_args or query not in kernel.ins:
        raise _Unknown
    length = sizes.dims(kernel.outs[0])[0] + sizes.index(kernel.sym_args[0])
    total = sizes.bytes(query) + sizes.bytes(kernel.outs[0])
    for value in kernel.ins:
        if value != query:
            heads, _, d = sizes.dims(value)
            element = _element_bytes(ir.ShapedType(value.type).element_type)
            total = total + heads * length * d * element
    return total


def _sums(op: linalg.GenericOp) -> bool:
    return any("reduction" in str(kind) for kind in op.iterator_types)


def _bytes(kernel: PrimFunc, sizes: _Sizes) -> Expr:
    if kernel.schedule_hint == "attention":
        return _attention_bytes(kernel, sizes)
    for op in kernel.op.entry_block.operations:
        if len(op.operation.regions) and not _is_structured(op):
            raise _Unknown
    parts = [_read(value, sizes) for value in kernel.ins]
    parts += [_written(value, sizes) for value in kernel.outs]
    return sum(parts, const(0))


def _read(value: ir.Value, sizes: _Sizes) -> Expr:
    """Bytes of a tensor that are read, directly or through views."""
    parts, gathers = [], False
    for use in value.uses:
        op = use.owner.opview
        if isinstance(op, tensor.DimOp):
            continue
        if isinstance(op, _VIEWS):
            parts.append(_read(op.results[0], sizes))
        elif isinstance(op, tensor.ExtractOp) and _enclosing(op) is not None:
            gathers = True
            element = _element_bytes(op.result.type)
            parts.append(sizes.iterations(_enclosing(op)) * element)
        else:
            return sizes.bytes(value)
    return _at_most_whole(parts, gathers, value, sizes)


def _enclosing(op: tensor.ExtractOp) -> linalg.GenericOp | None:
    parent = op.operation.parent.opview
    return parent if isinstance(parent, linalg.GenericOp) else None


def _written(value: ir.Value, sizes: _Sizes) -> Expr:
    """Bytes of an output that are written, by a chain of insertions that may be long."""
    parts, written = [], [value]
    for current in written:
        for use in current.uses:
            op = use.owner.opview
            if isinstance(op, _VIEWS):
                parts.append(_written(op.results[0], sizes))
            elif isinstance(op, tensor.InsertSliceOp) and op.dest == current:
                parts.append(sizes.bytes(op.source))
                written.append(op.result)
            elif isinstance(op, linalg.GenericOp | linalg.FillOp):
                return sizes.bytes(value)
    return _at_most_whole(parts, False, value, sizes)


def _at_most_whole(parts: list[Expr], gathers: bool, value: ir.Value, sizes: _Sizes) -> Expr:
    """The sum of the parts, at most the tensor: parts may overlap, and gathers may repeat."""
    parts = [part for part in parts if part != const(0)]
    total = sum(parts, const(0))
    return minimum(total, sizes.bytes(value)) if gathers or len(parts) > 1 else total
