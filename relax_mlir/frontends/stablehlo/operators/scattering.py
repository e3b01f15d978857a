"""Updates of slices that tensors of indices say: scatter."""

from collections.abc import Callable, Sequence
from functools import partial

from relax_mlir.bindings import ir
from relax_mlir.decompositions.emit import (
    add,
    astype,
    broadcast_to,
    dims_of,
    element_of,
    emit,
    expand_dims,
    greater,
    less,
    maximum,
    multiply,
    reshape,
    scalar,
    symbol,
    where,
)
from relax_mlir.decompositions.loops import Round, each_index
from relax_mlir.dialects import graph
from relax_mlir.symbolic import Expr, const, product

from ...complex import Pair
from ...elements import mlir_element
from ..bodies import each_part, is_update, lifted, promoted, reducers
from ..folds import like, parts_of
from ..node import Node
from ..registry import Value, operator
from .elementwise import is_bool
from .indexing import Roles, index_lines, tuples_of

REDUCTIONS = {"add": "add", "multiply": "mul", "maximum": "max", "minimum": "min"}
OF_TRUTHS = {"add": "max", "or": "max", "maximum": "max", "multiply": "min", "and": "min"}
OF_TRUTHS["minimum"] = "min"


@operator("scatter", takes_pairs=True)
def scatter(node: Node) -> tuple[Value, ...]:
    """Tensors with slices updated by the function of a region; what is outside is left out."""
    node, axes = promoted(node), node.axes_of("scatter")
    roles = Roles(
        axes.list("update_window_dims"),
        axes.list("inserted_window_dims"),
        axes.list("input_batching_dims"),
        axes.list("scatter_indices_batching_dims"),
        axes.list("scatter_dims_to_operand_dims"),
        axes.integer("index_vector_dim"),
    )
    count = len(node.operands) // 2
    values, updates = node.operands[:count], node.operands[count + 1 :]
    tuples, batching = tuples_of(node.tensor(count), roles)
    dims, windows = node.dims(), node.dims(count + 1)
    sizes, rest = [], iter(sorted(roles.windows))
    for axis in range(len(dims)):
        sizes.append(const(1) if axis in roles.outside else windows[next(rest)])
    lines = index_lines(tuples, batching, roles, sizes, None)
    if not dims:
        i64 = mlir_element("i64")
        lines = [reshape(scalar(0, i64), [1] * len(windows))]
        own = [each_part(lambda x: reshape(x, [1]), value, node.scope) for value in values]
        results = put(node, node.regions[0], own, lines, updates)
        return tuple(each_part(lambda x: reshape(x, []), value, node.scope) for value in results)
    return tuple(put(node, node.regions[0], values, lines, updates))


def put(
    node: Node,
    block: ir.Block,
    values: Sequence[Value],
    lines: Sequence[ir.Value],
    updates: Sequence[Value],
) -> list[Value]:
    """Tensors with elements updated, whose indices along each axis broadcast to the updates."""
    if is_update(block):
        pairs = zip(values, updates, strict=True)
        return [_both(node, x, u, lambda x, u: _put(x, lines, u, "none")) for x, u in pairs]
    names = reducers(block)
    if names is None or not all(_is_known(node, n, v) for n, v in zip(names, values)):
        return _one_by_one(node, block, values, lines, updates)
    return [
        _both(node, x, u, partial(_combined, lines=lines, name=name))
        for name, x, u in zip(names, values, updates, strict=True)
    ]


def _is_known(node: Node, name: str, value: Value) -> bool:
    if isinstance(value, Pair):
        return name == "add"
    return name in (OF_TRUTHS if is_bool(node.importer.tensor(value)) else REDUCTIONS)


def _both(
    node: Node, x: Value, update: Value, function: Callable[[ir.Value, ir.Value], ir.Value]
) -> Value:
    """A function of tensors, or of both parts of complex ones."""
    if isinstance(x, Pair):
        parts = zip(node.importer.pair(x).parts, node.importer.pair(update).parts, strict=True)
        return Pair(*(function(*each) for each in parts))
    return function(node.importer.tensor(x), node.importer.tensor(update))


def _put(x: ir.Value, lines: Sequence[ir.Value], update: ir.Value, reduction: str) -> ir.Value:
    axes = list(range(len(lines)))
    op = graph.IndexPutOp.build(x, update, *_full(lines, update), axes=axes, reduction=reduction)
    return op.operation.results[0]


def _full(lines: Sequence[ir.Value], update: ir.Value) -> list[ir.Value]:
    """Indices of which one has the dims of the updates, so that all broadcast to them."""
    first, *others = lines
    dims = dims_of(update)
    return [first if dims_of(first) == dims else broadcast_to(first, list(dims)), *others]


def _combined(x: ir.Value, update: ir.Value, lines: Sequence[ir.Value], name: str) -> ir.Value:
    if not is_bool(x):
        return _put(x, lines, update, REDUCTIONS[name])
    i8 = mlir_element("i8")
    result = _put(astype(x, i8), lines, astype(update, i8), OF_TRUTHS[name])
    return emit(graph.NotEqualOp, result, scalar(0, i8))


def _one_by_one(
    node: Node,
    block: ir.Block,
    values: Sequence[Value],
    lines: Sequence[ir.Value],
    updates: Sequence[Value],
) -> list[Value]:
    """Updates by any function: in one step where no index is there twice, else one by one."""
    flat, sources = parts_of(node.scope, values), parts_of(node.scope, updates)
    dims, total = dims_of(flat[0]), product(dims_of(sources[0]))
    target = dims_of(sources[0])
    linear, valid = _linear(lines, dims)
    at = reshape(broadcast_to(linear, list(target)), [total])
    fits = reshape(broadcast_to(valid, list(target)), [total])
    if total.value == 0:
        return list(values)
    flat = [reshape(x, [product(dims)]) for x in flat]
    sources = [reshape(x, [total]) for x in sources]
    at = where(fits, at, -1)
    safe = maximum(at, 0)

    def updated(
        old: list[ir.Value], new: list[ir.Value], extents: Sequence[Expr]
    ) -> list[ir.Value]:
        arguments = [*like(old, values), *like(new, updates)]
        return parts_of(node.scope, lifted(node.scope, block, arguments, extents))

    if node.flag("unique_indices"):
        old = [emit(graph.TakeOp, x, safe, axis=0) for x in flat]
        results = [_put(x, [at], u, "none") for x, u in zip(flat, updated(old, sources, [total]))]
    else:

        def round_(turn: Round, *carried: ir.Value) -> list[ir.Value]:
            index, inside = turn.take(safe, 0), turn.take(fits, 0)
            old = [emit(graph.TakeOp, x, index, axis=0) for x in carried]
            new = updated(old, [turn.take(x, 0) for x in sources], [])
            chosen = [where(inside, n, o) for n, o in zip(new, old, strict=True)]
            starts = reshape(index, [1])
            return [
                emit(graph.DynamicUpdateSliceOp, x, expand_dims(c, [0]), starts)
                for x, c in zip(carried, chosen, strict=True)
            ]

        results = each_index(at, 0, flat, round_)
    return like([reshape(x, dims) for x in results], values)


def _linear(lines: Sequence[ir.Value], dims: Sequence[Expr]) -> tuple[ir.Value, ir.Value]:
    """Indices of all axes as one, and whether all are inside."""
    linear = valid = None
    for line, dim in zip(lines, dims, strict=True):
        extent = reshape(symbol(dim, element_of(line)), [])
        inside = emit(graph.LogicalAndOp, greater(line, -1), less(line, extent))
        linear = line if linear is None else add(multiply(linear, extent), line)
        valid = inside if valid is None else emit(graph.LogicalAndOp, valid, inside)
    assert linear is not None
    assert valid is not None
    return linear, valid
