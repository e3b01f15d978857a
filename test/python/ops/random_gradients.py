"""Random programs of differentiable operators, on matrices of n and m, with branches and loops.

Functions are smooth and bounded, so that differences tell the gradient.
"""

from collections.abc import Callable
from random import Random

from relax_mlir.bindings import arith, ir, scf
from relax_mlir.decompositions.emit import (
    add,
    arange,
    broadcast_to,
    dims_of,
    divide,
    emit,
    less,
    maximum,
    multiply,
    permute,
    reduce,
    reshape,
    subtract,
    where,
)
from relax_mlir.dialects import graph

SMOOTH = (
    *(graph.SinOp, graph.CosOp, graph.TanhOp, graph.SigmoidOp, graph.ErfOp, graph.AtanOp),
    *(graph.AsinhOp, graph.SiluOp, graph.GeluOp, graph.GeluTanhOp),
)
REDUCTIONS = (graph.SumOp, graph.MeanOp, graph.MaxOp, graph.MinOp, graph.LogsumexpOp)


class RandomProgram:
    """Builds a program at the insertion point; it depends on the seed alone."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.depth = 0

    def build(self, *arguments: ir.Value) -> list[ir.Value]:
        """Some results, of matrices that the arguments begin with."""
        pool = list(arguments)
        self._grow(pool, self.random.randint(3, 12))
        return pool[-min(3, len(pool)) :]

    def _grow(self, pool: list[ir.Value], count: int) -> None:
        recipes = [*_RECIPES, *((_branch, _loop) if self.depth < 2 else ())]
        for _ in range(count):
            x = self.random.choice(pool)
            value = self.random.choice(recipes)(self, x, pool)
            pool.append(value if self.random.random() < 0.4 else self.smooth(value))

    def smooth(self, x: ir.Value) -> ir.Value:
        """A bounded function of each element, nearly."""
        return emit(self.random.choice(SMOOTH), x)

    def like(self, x: ir.Value, pool: list[ir.Value]) -> ir.Value:
        """Another value of those dims, or one that broadcasts to them."""
        same = [each for each in pool if dims_of(each) == dims_of(x)]
        other = self.random.choice(same)
        if self.random.random() < 0.3:
            axes = self.random.choice(([0], [1], [0, 1]))
            return reduce(graph.MeanOp, other, axes, keepdims=True)
        return other

    def axis(self) -> int:
        """An axis of a matrix."""
        return self.random.randrange(2)


Recipe = Callable[[RandomProgram, ir.Value, list[ir.Value]], ir.Value]


def _binary(p: RandomProgram, x: ir.Value, pool: list[ir.Value]) -> ir.Value:
    y = p.like(x, pool)
    pair = (x, y) if p.random.random() < 0.5 else (y, x)
    return p.random.choice((add, subtract, multiply, maximum, _quotient))(*pair)


def _quotient(x: ir.Value, y: ir.Value) -> ir.Value:
    return divide(x, add(emit(graph.SquareOp, y), 1))


def _where(p: RandomProgram, x: ir.Value, pool: list[ir.Value]) -> ir.Value:
    y = p.like(x, pool)
    return where(less(x, y), multiply(x, 0.5), y)


def _normal(p: RandomProgram, x: ir.Value, pool: list[ir.Value]) -> ir.Value:
    op = p.random.choice((graph.SoftmaxOp, graph.LogSoftmaxOp))
    return emit(op, x, axis=p.axis())


def _reduced(p: RandomProgram, x: ir.Value, pool: list[ir.Value]) -> ir.Value:
    """A reduction, repeated again."""
    value = reduce(p.random.choice(REDUCTIONS), x, [p.axis()], keepdims=True)
    return broadcast_to(emit(graph.TanhOp, value), dims_of(x))


def _product(p: RandomProgram, x: ir.Value, pool: list[ir.Value]) -> ir.Value:
    y = p.random.choice(pool)
    left, right = dims_of(x), dims_of(y)
    if left[1] == right[0]:
        return emit(graph.MatmulOp, x, y)
    if left[1] == right[1]:
        return emit(graph.MatmulOp, x, permute(y, [1, 0]))
    return emit(graph.MatmulOp, permute(x, [1, 0]), x)


def _moved(p: RandomProgram, x: ir.Value, pool: list[ir.Value]) -> ir.Value:
    axis = p.axis()
    choice = p.random.randrange(5)
    if choice == 0:
        return permute(x, [1, 0])
    if choice == 1:
        return emit(graph.FlipOp, x, axes=[axis])
    if choice == 2:
        return emit(graph.RollOp, x, shifts=[p.random.randint(-3, 3)], axes=[axis])
    if choice == 3:
        rows, columns = dims_of(x)
        return permute(reshape(reshape(x, [rows * columns]), [columns, rows]), [1, 0])
    return emit(graph.CumsumOp, x, axis=axis, exclusive=p.random.random() < 0.5, reverse=False)


def _joined(p: RandomProgram, x: ir.Value, pool: list[ir.Value]) -> ir.Value:
    """Both halves of a concatenation, exchanged or not."""
    y, axis = p.smooth(x), p.axis()
    joint = graph.ConcatOp.build(x, y, axis=axis).outs[0]
    dim = dims_of(x)[axis]
    first, second = graph.SplitOp.build(joint, sizes=[dim, dim], axis=axis).outs
    return second if p.random.random() < 0.5 else subtract(second, first)


def _picked(p: RandomProgram, x: ir.Value, pool: list[ir.Value]) -> ir.Value:
    """Some rows or columns twice, and others not at all."""
    axis = p.axis()
    i64 = ir.IntegerType.get_signless(64)
    indices = arange(0, dims_of(x)[axis], p.random.choice((1, 2)), i64)
    return emit(graph.TakeOp, x, indices, axis=axis)


def _branch(p: RandomProgram, x: ir.Value, pool: list[ir.Value]) -> ir.Value:
    truth = ir.IntegerType.get_signless(1)
    condition = arith.ConstantOp(truth, p.random.randrange(2)).result
    op = scf.IfOp(condition, [x.type], has_else=True)
    for block in (op.then_block, op.else_block):
        _body(p, block, x, pool)
    return op.results[0]


def _loop(p: RandomProgram, x: ir.Value, pool: list[ir.Value]) -> ir.Value:
    index = ir.IndexType.get()
    bounds = [arith.ConstantOp(index, i).result for i in (0, p.random.randint(0, 3), 1)]
    op = scf.ForOp(*bounds, [x])
    _body(p, op.body, op.body.arguments[1], pool)
    return op.results[0]


def _body(p: RandomProgram, block: ir.Block, x: ir.Value, pool: list[ir.Value]) -> None:
    """A few ops on a value and those outside, of which the last of its type is yielded."""
    p.depth += 1
    inner = [*pool, x]
    with ir.InsertionPoint(block):
        p._grow(inner, p.random.randint(1, 4))
        same = [value for value in inner if value.type == x.type]
        scf.YieldOp([emit(graph.TanhOp, same[-1])])
    p.depth -= 1


_RECIPES: tuple[Recipe, ...] = (
    *(_binary, _where, _normal, _reduced, _product, _moved, _joined, _picked),
)
