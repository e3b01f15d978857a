"""Random chains of operators that move elements, with reductions and element-wise work between.

    chain = Chain(seed=3)
    exe = relax_mlir.compile(chain.text)
    want = chain.reference(arrays)

Elements are small integers, in whatever type, so that results are exact.
"""

import random
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from relax_mlir.bindings import func, ir
from relax_mlir.dialects import graph, make_context
from relax_mlir.symbolic import Expr, const, sym

EXTENTS = (0, 1, 2, 3, 5, 7, 8, 13, 15, 16, 17, 31, 32, 33, 63, 64, 65)
DTYPES = {"f32": np.float32, "f64": np.float64, "i32": np.int32, "i64": np.int64, "i8": np.int8}
BOUND = 5
MOST_ELEMENTS = 1 << 14
# The first ones are computed where they are read, the others cost so much that they are kept.
UNARY = {graph.NegativeOp: np.negative, graph.SquareOp: np.square, graph.AbsOp: np.abs}
FLOAT_UNARY = {graph.FloorOp: np.floor, graph.ReluOp: lambda x: np.maximum(x, 0)}
BINARY = {
    graph.AddOp: np.add,
    graph.SubtractOp: np.subtract,
    graph.MaximumOp: np.maximum,
    graph.MinimumOp: np.minimum,
}
COMPARE = {graph.LessOp: np.less, graph.EqualOp: np.equal}


class Node(NamedTuple):
    """A value: in MLIR, its dims, its element type, and its place among the steps."""

    value: ir.Value
    dims: tuple[Expr, ...]
    dtype: str
    index: int


class Chain:
    """A function `main` of a few tensors; the same seed gives the same one."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._steps: list[tuple[Callable[..., Any], tuple[int, ...]]] = []
        self._nodes: list[Node] = []
        dims = [sym("n"), sym("m"), *(const(self._random.choice(EXTENTS)) for _ in range(3))]
        types = [self._random.choice(list(DTYPES)) for _ in range(2)]
        ranks = [self._random.choice((1, 2, 2, 3)) for _ in range(3)]
        shapes = [tuple(self._random.choice(dims) for _ in range(rank)) for rank in ranks]
        self.arguments = [(self._random.choice(types), shape) for shape in shapes]
        with make_context(), ir.Location.unknown():
            module = ir.Module.create()
            kinds = [
                graph.TensorType(shape, ir.Type.parse(dtype)).to_mlir()
                for dtype, shape in self.arguments
            ]
            with ir.InsertionPoint(module.body):
                main = func.FuncOp("main", (kinds, []))
                block = main.add_entry_block()
            with ir.InsertionPoint(block):
                for value in block.arguments:
                    self._add(value, lambda *_: None, ())
                size = self._random.choice((2, 3, 4, 6, 9))
                while len(self._steps) < len(shapes) + size:
                    self._random.choice(self._rules())()
                self.results = self._choose_results()
                func.ReturnOp([node.value for node in self.results])
            main.attributes["function_type"] = ir.TypeAttr.get(
                ir.FunctionType.get(kinds, [node.value.type for node in self.results])
            )
            self.text = str(module)

    def arrays(self, sizes: dict[str, int]) -> list[np.ndarray]:
        """Arguments for the given sizes."""
        generator = np.random.default_rng([*sizes.values()])
        return [
            generator.integers(-BOUND, BOUND, [d.evaluate(sizes) for d in dims]).astype(
                DTYPES[dtype]
            )
            for dtype, dims in self.arguments
        ]

    def reference(self, arrays: Sequence[np.ndarray], sizes: dict[str, int]) -> list[np.ndarray]:
        """What `main` returns, by NumPy."""
        values: list[np.ndarray] = []
        for number, (compute, operands) in enumerate(self._steps):
            if number < len(arrays):
                values.append(arrays[number])
            else:
                with np.errstate(all="ignore"):
                    values.append(compute(sizes, *(values[index] for index in operands)))
        return [values[node.index] for node in self.results]

    def is_large(self, sizes: dict[str, int]) -> bool:
        """Whether a value has so many elements that it would take long."""
        return any(
            np.prod([d.evaluate(sizes) for d in n.dims], dtype=float) > MOST_ELEMENTS
            for n in self._nodes
        )

    def _choose_results(self) -> list[Node]:
        used = {index for _, operands in self._steps for index in operands}
        ends = [n for n in self._nodes[len(self.arguments) :] if n.index not in used]
        return ends[-4:]

    def _rules(self) -> list[Callable[[], None]]:
        moves = [self._slice, self._slice, self._split, self._broadcast, self._reshape]
        moves += [self._permute, self._concat, self._take, self._expand, self._squeeze]
        work = [self._unary, self._binary, self._astype, self._where, self._arange]
        return [*moves, *work, self._sum, self._extremum, self._argmax, self._triangle]

    def _add(self, value: ir.Value, compute: Callable[..., Any], operands: tuple[int, ...]) -> Node:
        kind = graph.TensorType.of(value)
        node = Node(value, kind.dims, str(kind.element), len(self._steps))
        self._steps.append((compute, operands))
        self._nodes.append(node)
        return node

    def _emit(
        self, op: type, nodes: Sequence[Node], compute: Callable[..., Any], **attributes: Any
    ) -> Node:
        """Adds an operator; `compute(sizes, *operands)` is what it means."""
        built = op.build(*(node.value for node in nodes), **attributes)
        return self._add(built.results[0], compute, tuple(node.index for node in nodes))

    def _pick(self, accepts: Callable[[Node], bool] = lambda node: True) -> Node | None:
        """A value of a number type, late ones rather than early ones."""
        found = [node for node in self._nodes if node.dtype in DTYPES and accepts(node)]
        return self._random.choice(found[-5:]) if found else None

    def _unary(self) -> None:
        node = self._pick()
        table = UNARY | (FLOAT_UNARY if node.dtype[0] == "f" else {})
        op = self._random.choice(list(table))
        self._emit(op, [node], lambda _, x: table[op](x))

    def _fitting(self, node: Node) -> Node | None:
        return self._pick(lambda other: other.dtype == node.dtype and _fits(other, node))

    def _binary(self) -> None:
        left = self._pick()
        right = self._fitting(left)
        op = self._random.choice(list(BINARY))
        if self._random.random() < 0.5:
            left, right = right, left
        self._emit(op, [left, right], lambda _, x, y: BINARY[op](x, y))

    def _where(self) -> None:
        x = self._pick()
        other, left, right = self._fitting(x), self._fitting(x), self._fitting(x)
        op = self._random.choice(list(COMPARE))
        condition = self._emit(op, [x, other], lambda _, a, b: COMPARE[op](a, b))
        self._emit(graph.WhereOp, [condition, left, right], lambda _, c, a, b: np.where(c, a, b))

    def _astype(self) -> None:
        node, dtype = self._pick(lambda n: n.dtype[0] == "i"), self._random.choice(list(DTYPES))
        if node is not None:
            self._emit(
                graph.AstypeOp, [node], lambda _, x: x.astype(DTYPES[dtype]),
                dtype=ir.Type.parse(dtype),
            )  # fmt: skip

    def _arange(self) -> None:
        node, dtype = self._pick(lambda n: len(n.dims) > 0), self._random.choice(list(DTYPES))
        end, step = self._random.choice(node.dims), self._random.choice((1, 2))
        self._emit(
            graph.ArangeOp, [],
            lambda sizes: np.arange(0, end.evaluate(sizes), step).astype(DTYPES[dtype]),
            bounds=[0, end, step], dtype=ir.Type.parse(dtype),
        )  # fmt: skip

    def _slice(self) -> None:
        """The first elements, the last ones, or every other one."""
        node = self._pick(lambda n: len(n.dims) > 0)
        axis = self._random.randrange(len(node.dims))
        extent = node.dims[axis]
        begin: int | Expr = 0
        end: int | Expr = extent
        if extent.value:
            begin = self._random.choice((0, 0, self._random.randrange(extent.value)))
            end = self._random.randint(begin, extent.value)
        stride = self._random.choice((1, 1, 1, 2, 3))
        self._emit(
            graph.StridedSliceOp, [node],
            lambda sizes, x: x[(*[slice(None)] * axis, slice(begin, _number(end, sizes), stride))],
            axes=[axis], begin=[begin], end=[end], strides=[stride],
        )  # fmt: skip

    def _split(self) -> None:
        node = self._pick(lambda n: any(d.value for d in n.dims))
        if node is None:
            return
        axis = self._random.choice([i for i, d in enumerate(node.dims) if d.value])
        extent = node.dims[axis].value
        cut = self._random.randint(0, extent)
        built = graph.SplitOp.build(node.value, sizes=[cut, extent - cut], axis=axis)
        for i in range(2):
            self._add(
                built.results[i], lambda _, x, i=i: np.split(x, [cut], axis)[i], (node.index,)
            )

    def _broadcast(self) -> None:
        node = self._pick(lambda n: len(n.dims) <= 2)
        front = self._random.choice([d for n in self._nodes for d in n.dims] or [const(3)])
        shape = (front, *node.dims)
        self._emit(
            graph.BroadcastToOp, [node], lambda sizes, x: np.broadcast_to(x, _shape(shape, sizes)),
            shape=list(shape),
        )  # fmt: skip

    def _reshape(self) -> None:
        """Joins two dims, splits one, or puts the last in front."""
        node = self._pick(lambda n: len(n.dims) > 0)
        shapes = [(node.dims[-1], *node.dims[:-1]), (const(1), *node.dims)]
        if len(node.dims) > 1:
            at = self._random.randrange(len(node.dims) - 1)
            joined = node.dims[at] * node.dims[at + 1]
            shapes.append((*node.dims[:at], joined, *node.dims[at + 2 :]))
        last = node.dims[-1].value
        if last:
            divisor = self._random.choice([d for d in range(1, last + 1) if last % d == 0])
            shapes.append((*node.dims[:-1], const(divisor), const(last // divisor)))
        shape = self._random.choice(shapes)
        self._emit(
            graph.ReshapeOp, [node], lambda sizes, x: x.reshape(_shape(shape, sizes)),
            shape=list(shape),
        )  # fmt: skip

    def _permute(self) -> None:
        node = self._pick(lambda n: 2 <= len(n.dims) <= 4)
        if node is not None:
            axes = self._random.sample(range(len(node.dims)), len(node.dims))
            self._emit(graph.PermuteDimsOp, [node], lambda _, x: x.transpose(axes), axes=axes)

    def _expand(self) -> None:
        node = self._pick(lambda n: len(n.dims) <= 3)
        axis = self._random.randrange(len(node.dims) + 1)
        self._emit(graph.ExpandDimsOp, [node], lambda _, x: np.expand_dims(x, axis), axes=[axis])

    def _squeeze(self) -> None:
        node = self._pick(lambda n: any(d.value == 1 for d in n.dims))
        if node is not None:
            axis = next(i for i, d in enumerate(node.dims) if d.value == 1)
            self._emit(graph.SqueezeOp, [node], lambda _, x: np.squeeze(x, axis), axes=[axis])

    def _concat(self) -> None:
        first = self._pick(lambda n: len(n.dims) > 0)
        axis = self._random.randrange(len(first.dims))
        others = [
            n for n in self._nodes
            if n.dtype == first.dtype and len(n.dims) == len(first.dims)
            and all(a == b for i, (a, b) in enumerate(zip(n.dims, first.dims)) if i != axis)
        ]  # fmt: skip
        chosen = [first, *self._random.choices(others, k=self._random.randint(1, 2))]
        self._emit(graph.ConcatOp, chosen, lambda _, *xs: np.concatenate(xs, axis), axis=axis)

    def _take(self) -> None:
        """Elements at places that are computed: the remainders of an `arange`."""
        node = self._pick(lambda n: any(d.value for d in n.dims))
        if node is None:
            return
        axis = self._random.choice([i for i, d in enumerate(node.dims) if d.value])
        extent, count = node.dims[axis].value, self._random.choice((0, 1, 3, 16, 17))
        at = self._emit(
            graph.ArangeOp, [], lambda _: np.arange(0, count, dtype=np.int64),
            bounds=[0, count, 1], dtype=ir.Type.parse("i64"),
        )  # fmt: skip
        most = self._emit(
            graph.ArangeOp, [], lambda _: np.arange(extent - 1, extent, dtype=np.int64),
            bounds=[extent - 1, extent, 1], dtype=ir.Type.parse("i64"),
        )  # fmt: skip
        at = self._emit(graph.MinimumOp, [at, most], lambda _, x, y: np.minimum(x, y))
        self._emit(graph.TakeOp, [node, at], lambda _, x, i: np.take(x, i, axis), axis=axis)

    def _axes(self, node: Node) -> list[int]:
        return sorted(self._random.sample(range(len(node.dims)), self._random.choice((1, 1, 2))))

    def _sum(self) -> None:
        node = self._pick(lambda n: len(n.dims) > 1)
        if node is not None:
            self._reduce(graph.SumOp, node, lambda x, **k: np.sum(x, dtype=x.dtype, **k))

    def _extremum(self) -> None:
        node = self._pick(lambda n: len(n.dims) > 1 and all(d.value for d in n.dims))
        if node is not None:
            self._reduce(
                *self._random.choice(((graph.MaxOp, node, np.max), (graph.MinOp, node, np.min)))
            )

    def _reduce(self, op: type, node: Node, compute: Callable[..., np.ndarray]) -> None:
        axes, keepdims = self._axes(node), self._random.random() < 0.5
        self._emit(
            op, [node], lambda _, x: compute(x, axis=tuple(axes), keepdims=keepdims),
            axes=axes, keepdims=keepdims,
        )  # fmt: skip

    def _argmax(self) -> None:
        node = self._pick(lambda n: any(d.value for d in n.dims))
        if node is not None:
            axis = next(i for i, d in enumerate(node.dims) if d.value)
            self._emit(
                graph.ArgmaxOp, [node], lambda _, x: np.argmax(x, axis), axis=axis, keepdims=False
            )

    def _triangle(self) -> None:
        node = self._pick(lambda n: len(n.dims) > 1)
        if node is not None:
            k = self._random.choice((-1, 0, 2))
            self._emit(graph.TrilOp, [node], lambda _, x: np.tril(x, k), k=k)


def _number(x: int | Expr, sizes: dict[str, int]) -> int:
    return x if isinstance(x, int) else x.evaluate(sizes)


def _shape(dims: Sequence[Expr], sizes: dict[str, int]) -> list[int]:
    return [dim.evaluate(sizes) for dim in dims]


def _fits(node: Node, other: Node) -> bool:
    """Whether a tensor broadcasts to another one without changing its dims."""
    pairs = zip(reversed(node.dims), reversed(other.dims))
    return len(node.dims) <= len(other.dims) and all(a == b or a.value == 1 for a, b in pairs)
