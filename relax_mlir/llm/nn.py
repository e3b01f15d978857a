"""A small module layer that writes `graph` IR: layers hold parameters, calls make operators.

    class Mlp(Module):
        def __init__(self):
            self.up = Linear(576, 1536, ["up_proj"])
        def __call__(self, x):
            return silu(self.up(x))

A `Parameter` is an argument of the graph function that is being built; which one, `Scope` knows.
Source: the `nn.Module` layer that the paper's models are written in (§5.1).
"""

from collections.abc import Iterator, Sequence
from contextvars import ContextVar
from dataclasses import dataclass

from relax_mlir.bindings import ir
from relax_mlir.dialects import graph
from relax_mlir.dialects.graph import Dim, TensorType
from relax_mlir.symbolic import Expr, as_expr

DimLike = Dim | int | str


@dataclass(frozen=True, eq=False)
class Parameter:
    """A weight of float32: its dims, and the checkpoint's tensors that it joins along dim 0."""

    dims: tuple[int, ...]
    sources: tuple[str, ...]

    @property
    def name(self) -> str:
        """Name of the argument: the sources, joined."""
        return "+".join(self.sources)


class Module:
    """A layer; its parameters are those of its fields, in order of assignment."""

    def parameters(self) -> Iterator[Parameter]:
        """Yields every parameter below this layer once."""
        for value in vars(self).values():
            for item in value if isinstance(value, list) else [value]:
                if isinstance(item, Parameter):
                    yield item
                elif isinstance(item, Module):
                    yield from item.parameters()


_VALUES: ContextVar[dict[Parameter, ir.Value]] = ContextVar("parameter values")


class Scope:
    """Within it, parameters stand for the given values (of the function that is being built)."""

    def __init__(self, values: dict[Parameter, ir.Value]) -> None:
        self._values = values

    def __enter__(self) -> None:
        self._token = _VALUES.set(self._values)

    def __exit__(self, *_: object) -> None:
        _VALUES.reset(self._token)


def value_of(parameter: Parameter) -> ir.Value:
    """Returns the value that a parameter stands for in the current scope."""
    return _VALUES.get()[parameter]


class Linear(Module):
    """x times the transpose of a weight of [out, in]; no bias."""

    def __init__(self, inputs: int, outputs: int, sources: Sequence[str]) -> None:
        self.weight = Parameter((outputs, inputs), tuple(sources))

    def __call__(self, x: ir.Value) -> ir.Value:
        """Maps [..., in] to [..., out]."""
        return matmul_transposed(x, value_of(self.weight))


class RmsNorm(Module):
    """Root-mean-square normalisation over the last dim, scaled by a weight."""

    def __init__(self, size: int, epsilon: float, source: str) -> None:
        self.weight = Parameter((size,), (source,))
        self.epsilon = epsilon

    def __call__(self, x: ir.Value) -> ir.Value:
        """Normalises [..., size]."""
        return graph.RmsNormOp.build(x, value_of(self.weight), epsilon=self.epsilon).result


class Embedding(Module):
    """A table of [vocabulary, size] read by token id."""

    def __init__(self, count: int, size: int, source: str) -> None:
        self.weight = Parameter((count, size), (source,))

    def __call__(self, ids: ir.Value) -> ir.Value:
        """Maps int32[n] to [n, size]."""
        return graph.TakeOp.build(value_of(self.weight), ids, axis=0).result


def matmul_transposed(x: ir.Value, weight: ir.Value) -> ir.Value:
    """x[..., in] times the transpose of weight[out, in]."""
    transposed = graph.PermuteDimsOp.build(weight, axes=[1, 0]).result
    return graph.MatmulOp.build(x, transposed).result


def add(a: ir.Value, b: ir.Value) -> ir.Value:
    """a + b."""
    return graph.AddOp.build(a, b).result


def multiply(a: ir.Value, b: ir.Value) -> ir.Value:
    """a * b."""
    return graph.MultiplyOp.build(a, b).result


def silu(x: ir.Value) -> ir.Value:
    """x * sigmoid(x)."""
    return graph.SiluOp.build(x).result


def reshape(x: ir.Value, dims: Sequence[DimLike]) -> ir.Value:
    """The same elements under other dims."""
    return graph.ReshapeOp.build(x, shape=dims).result


def slice_axis(x: ir.Value, axis: int, begin: DimLike, end: DimLike) -> ir.Value:
    """Elements begin to end of one axis."""
    return graph.StridedSliceOp.build(x, axes=[axis], begin=[begin], end=[end], strides=[1]).result


def arange(start: Expr | str, stop: Expr | str, element: ir.Type) -> ir.Value:
    """The numbers from start up to, not including, stop."""
    return graph.ArangeOp.build(bounds=[as_expr(start), as_expr(stop), 1], dtype=element).result


def dims_of(x: ir.Value) -> tuple[Dim, ...]:
    """Returns the annotated dims of a tensor."""
    return TensorType.of(x).dims
