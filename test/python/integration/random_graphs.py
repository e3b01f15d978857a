"""Random graphs of operators over tensors with symbolic dims, and the same graphs in NumPy.

    graph = RandomGraph(seed=3, element="f32", size=12)
    exe = relax_mlir.compile(graph.text)
    want = graph.reference(arrays)                 # in float64, or in integers that wrap

Values stay near [-4, 4] and conditions compare arguments only, so that rounding differences stay
small.
"""

import math
import random
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from relax_mlir.bindings import arith, func, ir
from relax_mlir.dialects import graph, make_context
from relax_mlir.symbolic import Expr, const, sym

BOUND = 4.0
EPSILON = 0.25
WIDTHS = (1, 3, 4, 8, 13, 16, 17, 32, 33)
NUM_ROWS = 5
INDICES = (4, 0, 2, 2, 1, 3, 0)

erf = np.vectorize(math.erf, otypes=[float])


def _sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def _softmax(x: np.ndarray, axis: int) -> np.ndarray:
    e = np.exp(x - x.max(axis=axis, keepdims=True)) if x.shape[axis] else x
    return e / e.sum(axis=axis, keepdims=True)


FLOAT_UNARY = {
    graph.TanhOp: np.tanh,
    graph.SinOp: np.sin,
    graph.CosOp: np.cos,
    graph.SigmoidOp: _sigmoid,
    graph.ReluOp: lambda x: np.maximum(x, 0),
    graph.SiluOp: lambda x: x * _sigmoid(x),
    graph.GeluOp: lambda x: 0.5 * x * (1 + erf(x / math.sqrt(2))),
}
UNARY = {graph.AbsOp: np.abs, graph.NegativeOp: np.negative}
BINARY = {
    graph.AddOp: np.add,
    graph.SubtractOp: np.subtract,
    graph.MultiplyOp: np.multiply,
    graph.MaximumOp: np.maximum,
    graph.MinimumOp: np.minimum,
}
INTEGER_BINARY = {
    graph.BitwiseAndOp: np.bitwise_and,
    graph.BitwiseOrOp: np.bitwise_or,
    graph.BitwiseXorOp: np.bitwise_xor,
}
COMPARE = {graph.LessOp: np.less, graph.EqualOp: np.equal, graph.GreaterEqualOp: np.greater_equal}


class Node(NamedTuple):
    """A value: in MLIR, its dims, and its place among the steps."""

    value: ir.Value
    dims: tuple[Expr, ...]
    index: int


class RandomGraph:
    """A function `main` of tensors of dims [n, k], [m, k], [k, j] and [k], and random operators."""

    def __init__(self, seed: int, element: str, size: int) -> None:
        """Builds the module; the same seed gives the same module."""
        self._random = random.Random(seed)
        self._element = element
        self._is_float = element.startswith("f")
        self._steps: list[tuple[Callable[..., Any], tuple[int, ...]]] = []
        self._nodes: list[Node] = []
        k, j = (const(self._random.choice(WIDTHS)) for _ in range(2))
        n, m = sym("n"), sym("m")
        self.dims = ((n, k), (m, k), (k, j), (k,), (const(NUM_ROWS), k))
        with make_context(), ir.Location.unknown():
            module = ir.Module.create()
            self._type = ir.Type.parse(element)
            types = [graph.TensorType(dims, self._type).to_mlir() for dims in self.dims]
            with ir.InsertionPoint(module.body):
                main = func.FuncOp("main", (types, []))
                block = main.add_entry_block()
            with ir.InsertionPoint(block):
                self._inputs = [self._add(value, lambda *_: None, ()) for value in block.arguments]
                while len(self._steps) < size:
                    self._random.choice(self._rules())()
                self._results = self._choose_results()
                func.ReturnOp([node.value for node in self._results])
            outs = [node.value.type for node in self._results]
            type_ = ir.FunctionType.get(types, outs)
            main.attributes["function_type"] = ir.TypeAttr.get(type_)
            self.text = str(module)

    def reference(self, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        """What `main` returns, computed by NumPy: floats in double precision."""
        sizes = {"n": arrays[0].shape[0], "m": arrays[1].shape[0]}
        values: list[np.ndarray] = []
        for number, (compute, operands) in enumerate(self._steps):
            if number < len(arrays):
                values.append(arrays[number].astype(np.float64 if self._is_float else np.int32))
            else:
                values.append(compute(sizes, *(values[index] for index in operands)))
        return [values[node.index] for node in self._results]

    def arrays(self, n: int, m: int) -> list[np.ndarray]:
        """Arguments for the given sizes."""
        generator = np.random.default_rng([n, m])
        shapes = [[dim.evaluate({"n": n, "m": m}) for dim in dims] for dims in self.dims]
        if self._is_float:
            dtype = np.float32 if self._element == "f32" else np.float64
            return [generator.standard_normal(shape).astype(dtype) for shape in shapes]
        return [generator.integers(-1000, 1000, shape).astype(np.int32) for shape in shapes]

    def _choose_results(self) -> list[Node]:
        used = {index for _, operands in self._steps for index in operands}
        ends = [node for node in self._nodes[len(self.dims) :] if node.index not in used]
        return [*ends, self._random.choice(self._nodes)]

    def _rules(self) -> list[Callable[[], None]]:
        rules = [self._unary, self._binary, self._binary, self._where, self._take, self._repeat]
        rules += [self._permute, self._reshape, self._concat, self._split, self._slice, self._sum]
        rules += [self._max, self._expand, self._argmax]
        if self._is_float:
            rules += [self._matmul, self._matmul, self._mean, self._softmax, self._rms_norm]
            rules += [self._layer_norm]
        return rules

    def _add(self, value: ir.Value, compute: Callable[..., Any], operands: tuple[int, ...]) -> Node:
        node = Node(value, graph.TensorType.of(value).dims, len(self._steps))
        self._steps.append((compute, operands))
        self._nodes.append(node)
        return node

    def _emit(
        self, op: type, nodes: Sequence[Node], compute: Callable[..., Any], **attributes: Any
    ) -> Node:
        """Adds an operator; `compute(sizes, *operands)` is what it means."""
        built = op.build(*(node.value for node in nodes), **attributes)
        return self._add(built.results[0], compute, tuple(node.index for node in nodes))

    def _constant(self, number: float) -> Node:
        attribute = (ir.FloatAttr if self._is_float else ir.IntegerAttr).get(self._type, number)
        tensor = ir.DenseElementsAttr.get_splat(ir.RankedTensorType.get([], self._type), attribute)
        return self._add(
            arith.ConstantOp(tensor.type, tensor).result, lambda _: np.array(number), ()
        )

    def _clamp(self, node: Node) -> None:
        """Bounds a value that may have grown."""
        if not self._is_float:
            return
        low = self._emit(
            graph.MaximumOp, [node, self._constant(-BOUND)], lambda _, x, y: np.maximum(x, y)
        )
        self._emit(graph.MinimumOp, [low, self._constant(BOUND)], lambda _, x, y: np.minimum(x, y))

    def _pick(self, accepts: Callable[[tuple[Expr, ...]], bool] = lambda dims: True) -> Node | None:
        """A value of our element type, late ones rather than early ones."""
        found = [
            node
            for node in self._nodes
            if accepts(node.dims) and graph.TensorType.of(node.value).element == self._type
        ]
        return self._random.choice(found[-8:]) if found else None

    def _unary(self) -> None:
        table = UNARY | (FLOAT_UNARY if self._is_float else {})
        op = self._random.choice(list(table))
        self._emit(op, [self._pick()], lambda _, x: table[op](x))

    def _binary(self) -> None:
        table = BINARY | ({} if self._is_float else INTEGER_BINARY)
        op = self._random.choice(list(table))
        left = self._pick()
        right = self._pick(lambda dims: _broadcast(dims, left.dims))
        if self._random.random() < 0.5:
            left, right = right, left
        node = self._emit(op, [left, right], lambda _, x, y: table[op](x, y))
        if op is graph.MultiplyOp:
            self._clamp(node)

    def _where(self) -> None:
        """Chooses by a comparison of arguments, which are known exactly."""
        op = self._random.choice(list(COMPARE))
        x = self._inputs[0]
        other = self._random.choice([self._inputs[3], x])
        condition = self._emit(op, [x, other], lambda _, a, b: COMPARE[op](a, b))
        left, right = (self._pick(lambda dims: _broadcast(dims, x.dims)) for _ in range(2))
        self._emit(graph.WhereOp, [condition, left, right], lambda _, c, a, b: np.where(c, a, b))

    def _take(self) -> None:
        kind = ir.IntegerType.get_signless(64)
        indices = np.array(INDICES, np.int64)
        type_ = ir.RankedTensorType.get([len(INDICES)], kind)
        value = arith.ConstantOp(type_, ir.DenseElementsAttr.get(indices)).result
        node = self._add(value, lambda _: indices, ())
        self._emit(
            graph.TakeOp, [self._inputs[4], node], lambda _, x, i: np.take(x, i, axis=0), axis=0
        )

    def _permute(self) -> None:
        node = self._pick(lambda dims: 2 <= len(dims) <= 4)
        axes = self._random.sample(range(len(node.dims)), len(node.dims))
        self._emit(graph.PermuteDimsOp, [node], lambda _, x: np.transpose(x, axes), axes=axes)

    def _reshape(self) -> None:
        """Joins the first two dims, or puts the last in front."""
        node = self._pick(lambda dims: len(dims) >= 2)
        first, second, *rest = node.dims
        shape = self._random.choice([(first * second, *rest), (node.dims[-1], *node.dims[:-1])])
        self._emit(
            graph.ReshapeOp,
            [node],
            lambda sizes, x: x.reshape([dim.evaluate(sizes) for dim in shape]),
            shape=list(shape),
        )

    def _expand(self) -> None:
        node = self._pick(lambda dims: len(dims) <= 3)
        axis = self._random.randrange(len(node.dims) + 1)
        self._emit(graph.ExpandDimsOp, [node], lambda _, x: np.expand_dims(x, axis), axes=[axis])

    def _repeat(self) -> None:
        """Broadcasts a vector over the rows of the first argument."""
        node = self._pick(lambda dims: len(dims) == 1)
        shape = (self._inputs[0].dims[0], *node.dims)
        self._emit(
            graph.BroadcastToOp,
            [node],
            lambda sizes, x: np.broadcast_to(x, [dim.evaluate(sizes) for dim in shape]),
            shape=list(shape),
        )

    def _concat(self) -> None:
        first = self._pick(lambda dims: len(dims) > 0)
        axis = self._random.randrange(len(first.dims))
        others = [
            node
            for node in self._nodes
            if len(node.dims) == len(first.dims)
            and graph.TensorType.of(node.value).element == self._type
            and all(a == b for i, (a, b) in enumerate(zip(node.dims, first.dims)) if i != axis)
        ]
        chosen = [first, *self._random.choices(others, k=self._random.randint(1, 2))]
        self._emit(graph.ConcatOp, chosen, lambda _, *xs: np.concatenate(xs, axis=axis), axis=axis)

    def _split(self) -> None:
        node = self._pick(lambda dims: dims and dims[-1].value is not None)
        if node is None:
            return
        extent, axis = node.dims[-1].value, len(node.dims) - 1
        cut = self._random.randint(0, extent)
        built = graph.SplitOp.build(node.value, sizes=[cut, extent - cut], axis=axis)
        self._add(built.results[0], lambda _, x: x[..., :cut], (node.index,))
        self._add(built.results[1], lambda _, x: x[..., cut:], (node.index,))

    def _slice(self) -> None:
        """Every other element, or all but the first of a constant dim."""
        node = self._pick(lambda dims: len(dims) > 0)
        axis = self._random.randrange(len(node.dims))
        extent, stride = node.dims[axis], self._random.randint(1, 3)
        begin = self._random.randint(0, extent.value) if extent.value is not None else 0
        where = (*[slice(None)] * axis, slice(begin, None, stride))
        self._emit(
            graph.StridedSliceOp,
            [node],
            lambda _, x: x[where],
            axes=[axis],
            begin=[begin],
            end=[extent],
            strides=[stride],
        )

    def _reduced(self, axes_accept: Callable[[Expr], bool]) -> tuple[Node, list[int]] | None:
        node = self._pick(lambda dims: any(map(axes_accept, dims)))
        if node is None:
            return None
        axes = [axis for axis, dim in enumerate(node.dims) if axes_accept(dim)]
        return node, sorted(self._random.sample(axes, self._random.randint(1, len(axes))))

    def _reduce(
        self, op: type, compute: Callable[..., np.ndarray], accepts: Callable[[Expr], bool]
    ) -> Node | None:
        found = self._reduced(accepts)
        if found is None:
            return None
        node, axes = found
        keepdims = self._random.random() < 0.5
        return self._emit(
            op,
            [node],
            lambda _, x: compute(x, axis=tuple(axes), keepdims=keepdims),
            axes=axes,
            keepdims=keepdims,
        )

    def _sum(self) -> None:
        kind = np.float64 if self._is_float else np.int32
        node = self._reduce(
            graph.SumOp, lambda x, **where: np.sum(x, dtype=kind, **where), lambda dim: True
        )
        if node is not None and self._is_float:
            scale = self._constant(1 / 16)
            self._clamp(self._emit(graph.MultiplyOp, [node, scale], lambda _, x, y: x * y))

    def _max(self) -> None:
        self._reduce(graph.MaxOp, np.max, _is_some)

    def _mean(self) -> None:
        self._reduce(graph.MeanOp, np.mean, _is_some)

    def _argmax(self) -> None:
        """The place of the greatest element of an argument's rows, as our element type."""
        place = self._emit(
            graph.ArgmaxOp,
            [self._inputs[0]],
            lambda _, x: np.argmax(x, axis=1),
            axis=1,
            keepdims=False,
        )
        scale = 64.0 if self._is_float else 1
        node = self._emit(
            graph.AstypeOp, [place], lambda _, x: x.astype(self._numpy()), dtype=self._type
        )
        if self._is_float:
            self._emit(graph.DivideOp, [node, self._constant(scale)], lambda _, x, y: x / y)

    def _numpy(self) -> type:
        return np.float64 if self._is_float else np.int32

    def _matmul(self) -> None:
        left = self._pick(lambda dims: len(dims) >= 2 and dims[-1].value is not None)
        depth = left.dims[-1]
        right = self._pick(lambda dims: len(dims) == 2 and dims[0] == depth)
        if right is None:
            left, right = self._inputs[self._random.randrange(2)], self._inputs[2]
            depth = left.dims[-1]
        node = self._emit(graph.MatmulOp, [left, right], lambda _, x, y: x @ y)
        scale = self._constant(1 / (1 + depth.value))
        self._emit(graph.MultiplyOp, [node, scale], lambda _, x, y: x * y)

    def _softmax(self) -> None:
        node = self._pick(lambda dims: len(dims) > 0)
        axis = self._random.randrange(len(node.dims))
        self._emit(graph.SoftmaxOp, [node], lambda _, x: _softmax(x, axis), axis=axis)

    def _rms_norm(self) -> None:
        weight = self._inputs[3]
        node = self._pick(lambda dims: dims and dims[-1] == weight.dims[0])
        self._emit(
            graph.RmsNormOp,
            [node, weight],
            lambda _, x, w: x / np.sqrt(np.mean(x * x, -1, keepdims=True) + EPSILON) * w,
            epsilon=EPSILON,
        )

    def _layer_norm(self) -> None:
        weight = self._inputs[3]
        node = self._pick(lambda dims: dims and dims[-1] == weight.dims[0])
        self._emit(
            graph.LayerNormOp,
            [node, weight, weight],
            lambda _, x, w, b: (
                (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + EPSILON) * w
                + b
            ),
            epsilon=EPSILON,
        )


def _is_some(dim: Expr) -> bool:
    """Whether a dim is a constant other than 0."""
    return bool(dim.value)


def _broadcast(dims: tuple[Expr, ...], to: tuple[Expr, ...]) -> bool:
    """Whether a tensor broadcasts to the given dims without changing them."""
    pairs = zip(reversed(dims), reversed(to))
    return len(dims) <= len(to) and all(a == b or a.value == 1 for a, b in pairs)
