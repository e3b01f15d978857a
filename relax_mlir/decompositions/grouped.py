"""Products of rows in groups, each with a matrix of its own: grouped_mm."""

from relax_mlir.bindings import arith, ir, scf, tensor
from relax_mlir.dialects import graph
from relax_mlir.dialects.graph import RequireOp, ShapeError, dims_differ
from relax_mlir.symbolic import Fact

from .emit import astype, broadcast_to, dims_of, element_of, emit, is_integer, rank_of, scalar
from .loops import Round
from .symbols import bind, fresh_symbols


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
    begin, end = fresh_symbols("group_begin", "group_end")
    first, one = (arith.constant(index, i) for i in (0, 1))
    count = tensor.DimOp(weights, first).result
    products = broadcast_to(scalar(0, element_of(x)), [rows, n])
    loop = scf.ForOp(first, count, one, [products])
    with ir.InsertionPoint(loop.body):
        turn = Round(arith.index_cast(i64, loop.induction_variable))
        position = tensor.FromElementsOp(ir.RankedTensorType.get([1], i64), [turn.index]).result
        own = emit(graph.DynamicSliceOp, bounds, position, sizes=[2])
        bind(own, [begin, end])
        for fact in (Fact(begin, "<=", end), Fact(end, "<=", rows)):
            RequireOp.build([fact], "grouped_mm")
        part = {"axes": [0], "begin": [begin], "end": [end], "strides": [1]}
        product = emit(graph.MatmulOp, emit(graph.StridedSliceOp, x, **part), turn.take(weights, 0))
        new = emit(graph.SliceScatterOp, loop.inner_iter_args[0], product, **part)
        scf.YieldOp([new])
    return loop.results[0]
