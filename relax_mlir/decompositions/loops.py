"""Loops over the indices of an axis, whose rounds read one row of tensors and write one."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from relax_mlir.bindings import arith, ir, scf, tensor
from relax_mlir.dialects import graph
from relax_mlir.dialects.graph import TensorType

from .emit import emit, expand_dims, rank_of, reshape


@dataclass(frozen=True)
class Round:
    """A round of a loop, by its index: an i64."""

    index: ir.Value

    @property
    def position(self) -> ir.Value:
        """The index as a tensor of rank 0."""
        kind = ir.RankedTensorType.get([], self.index.type)
        return tensor.FromElementsOp(kind, [self.index]).result

    def take(self, x: ir.Value, axis: int) -> ir.Value:
        """What a tensor has at the index: without the axis."""
        return emit(graph.TakeOp, x, self.position, axis=axis)

    def put(self, x: ir.Value, row: ir.Value, axis: int) -> ir.Value:
        """The tensor with another row at the index, written in place."""
        rank, nothing = rank_of(x), arith.constant(self.index.type, 0)
        starts = [self.index if i == axis else nothing for i in range(rank)]
        kind = ir.RankedTensorType.get([rank], self.index.type)
        start = tensor.FromElementsOp(kind, starts).result
        return emit(graph.DynamicUpdateSliceOp, x, expand_dims(row, [axis]), start)


Body = Callable[..., Sequence[ir.Value]]


def each_index(
    x: ir.Value, axis: int, carried: Sequence[ir.Value], body: Body, backwards: bool = False
) -> list[ir.Value]:
    """Runs `body(round, *carried)` for each index of an axis; returns what the last one leaves."""
    dims = TensorType.of(x).dims
    if dims is not None and dims[axis] == 0:
        return list(carried)  # a body may not be right for no rows
    zero, one = (arith.constant(ir.IndexType.get(), i) for i in (0, 1))
    count = tensor.DimOp(x, arith.constant(ir.IndexType.get(), axis)).result
    loop = scf.ForOp(zero, count, one, list(carried))
    with ir.InsertionPoint(loop.body):
        at: ir.Value = loop.induction_variable
        if backwards:
            at = arith.subi(arith.subi(count, at), one)
        turn = Round(arith.index_cast(ir.IntegerType.get_signless(64), at))
        scf.YieldOp(list(body(turn, *loop.inner_iter_args)))
    return list(loop.results)


def truth_of(condition: ir.Value) -> ir.Value:
    """The one element of a condition."""
    return tensor.ExtractOp(reshape(condition, []), []).result


def while_loop(
    carried: Sequence[ir.Value],
    more: Callable[..., ir.Value],
    body: Callable[..., Sequence[ir.Value]],
) -> list[ir.Value]:
    """Runs `body(*carried)` as long as `more(*carried)`, an i1; returns what is carried then."""
    kinds = [value.type for value in carried]
    loop = scf.WhileOp(kinds, list(carried))
    before = loop.before.blocks.append(*kinds)
    with ir.InsertionPoint(before):
        scf.ConditionOp(more(*before.arguments), list(before.arguments))
    after = loop.after.blocks.append(*kinds)
    with ir.InsertionPoint(after):
        scf.YieldOp(list(body(*after.arguments)))
    return list(loop.results)


def repeat(
    count: int, carried: Sequence[ir.Value], body: Callable[..., Sequence[ir.Value]]
) -> list[ir.Value]:
    """Runs `body(*carried)` so many times; returns what is carried then."""
    zero, one, end = (arith.constant(ir.IndexType.get(), i) for i in (0, 1, count))
    loop = scf.ForOp(zero, end, one, list(carried))
    with ir.InsertionPoint(loop.body):
        scf.YieldOp(list(body(*loop.inner_iter_args)))
    return list(loop.results)
