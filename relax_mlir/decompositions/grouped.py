"""Products of rows in groups, each with a matrix of its own: grouped_mm."""

from collections.abc import Iterator

from relax_mlir.bindings import arith, func, ir, scf, tensor
from relax_mlir.dialects import graph
from relax_mlir.dialects.graph import MatchCastOp, RequireOp, ShapeError, TensorType, dims_differ
from relax_mlir.symbolic import Expr, Fact, sym

from .emit import astype, broadcast_to, dims_of, element_of, emit, is_integer, rank_of, scalar
from .loops import Round


def grouped_mm(x: ir.Value, weights: ir.Value, ends: ir.Value) -> ir.Value:
    """Row i of x [rows, k] times weights[g] of [groups, k, n], where group g ends before ends[g].

    `ends` are integers that do not decrease, of rows that a mixture of experts has sorted; a call
    with others ends with an error. Rows after the last end are 0. Source: ATen `_grouped_mm`.
    """
    if [rank_of(v) for v in (x, weights, ends)] != [2, 3, 1] or not is_integer(element_of(ends)):
        ranks = ", ".join(str(rank_of(v)) for v in (x, weights, ends))
        raise ShapeError(f"expects [rows, k], [groups, k, n], integers [groups], not ranks {ranks}")
    (rows, k), (groups, depth, n) = dims_of(x), dims_of(weights)
    if dims_differ(k, depth) or dims_differ(groups, dims_of(ends)[0]):
        raise ShapeError(f"has rows of {k} for {depth}, and {dims_of(ends)[0]} ends for {groups}")
    i64, index = ir.IntegerType.get_signless(64), ir.IndexType.get()
    zero = broadcast_to(scalar(0, i64), [1])
    bounds = graph.ConcatOp.build(zero, astype(ends, i64), axis=0).operation.results[0]
    begin, end = _fresh_symbols("group_begin", "group_end")
    first, one = (arith.constant(index, i) for i in (0, 1))
    count = tensor.DimOp(weights, first).result
    products = broadcast_to(scalar(0, element_of(x)), [rows, n])
    loop = scf.ForOp(first, count, one, [products])
    with ir.InsertionPoint(loop.body):
        turn = Round(arith.index_cast(i64, loop.induction_variable))
        position = tensor.FromElementsOp(ir.RankedTensorType.get([1], i64), [turn.index]).result
        own = emit(graph.DynamicSliceOp, bounds, position, sizes=[2])
        _name(emit(graph.TensorToShapeOp, own), [begin, end])
        for fact in (Fact(begin, "<=", end), Fact(end, "<=", rows)):
            RequireOp.build([fact], "grouped_mm")
        part = {"axes": [0], "begin": [begin], "end": [end], "strides": [1]}
        product = emit(graph.MatmulOp, emit(graph.StridedSliceOp, x, **part), turn.take(weights, 0))
        new = emit(graph.SliceScatterOp, loop.inner_iter_args[0], product, **part)
        scf.YieldOp([new])
    return loop.results[0]


def _name(shape: ir.Value, symbols: list[Expr]) -> None:
    """Binds symbols to the elements of a shape value."""
    MatchCastOp.build(shape, graph.shape_value_type(symbols))


def _fresh_symbols(*names: str) -> list[Expr]:
    """Symbols that the function around the insertion point does not use yet."""
    op = ir.InsertionPoint.current.block.owner
    while op is not None and not isinstance(op.opview, func.FuncOp):
        op = op.operation.parent
    taken: set[str] = set() if op is None else set(_used(op.opview))
    symbols = []
    for name in names:
        suffix = 0
        while (fresh := f"{name}_{suffix}") in taken:
            suffix += 1
        symbols.append(sym(fresh))
    return symbols


def _used(function: func.FuncOp) -> Iterator[str]:
    """Symbols that arguments or casts of a function bind."""
    values = list(function.arguments)

    def visit(op: ir.Operation) -> ir.WalkResult:
        if isinstance(op.opview, MatchCastOp):
            values.append(op.results[0])
        return ir.WalkResult.ADVANCE

    function.operation.walk(visit)
    for value in values:
        if isinstance(value.type, ir.RankedTensorType):
            dims = TensorType.of(value).dims or ()
        elif isinstance(value.type, graph.ShapeValueType):
            dims = graph.shape_value_dims(value.type) or ()
        else:
            continue
        for dim in dims:
            yield from () if dim is None else dim.symbols
