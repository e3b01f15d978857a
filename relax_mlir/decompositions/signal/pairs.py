"""Arithmetic of complex elements: tensors whose last dim is 2, the real and the imaginary part."""

from relax_mlir.bindings import ir
from relax_mlir.dialects import graph
from relax_mlir.dialects.graph import ShapeError, dims_differ
from relax_mlir.symbolic import const

from ..emit import (
    add,
    astype,
    dims_of,
    element_of,
    emit,
    is_integer,
    multiply,
    rank_of,
    scalar,
    subtract,
    vector,
    widen,
)


def require_pairs(x: ir.Value) -> None:
    """Raises ShapeError unless the last dim of floats is 2."""
    if not rank_of(x) or dims_differ(dims_of(x)[-1], const(2)) or is_integer(element_of(x)):
        raise ShapeError(f"expects pairs of floats, but got '{graph.TensorType.of(x)}'")


def part(x: ir.Value, index: int) -> ir.Value:
    """The real parts, or the imaginary ones."""
    position = scalar(index, ir.IntegerType.get_signless(64))
    return emit(graph.TakeOp, x, position, axis=rank_of(x) - 1)


def paired(real: ir.Value, imaginary: ir.Value) -> ir.Value:
    """Pairs of real and imaginary parts."""
    return graph.StackOp.build(real, imaginary, axis=-1).operation.results[0]


def complex_multiply(x: ir.Value, y: ir.Value) -> ir.Value:
    """The product, of dims that broadcast. Source: StableHLO `multiply`."""
    require_pairs(x)
    require_pairs(y)
    (a, b), (c, d) = ([part(widen(v), i) for i in (0, 1)] for v in (x, y))
    real = subtract(multiply(a, c), multiply(b, d))
    return astype(paired(real, add(multiply(a, d), multiply(b, c))), element_of(x))


def complex_conj(x: ir.Value) -> ir.Value:
    """The imaginary part with its sign changed. Source: ATen `conj`."""
    require_pairs(x)
    return multiply(x, vector([1, -1], element_of(x)))


def complex_abs(x: ir.Value) -> ir.Value:
    """The distance from 0: a tensor without the last dim. Source: StableHLO `abs`."""
    require_pairs(x)
    return emit(graph.HypotOp, part(x, 0), part(x, 1))


def complex_exp(x: ir.Value) -> ir.Value:
    """e to the power. Source: StableHLO `exponential`."""
    require_pairs(x)
    real, imaginary = (part(widen(x), i) for i in (0, 1))
    size = emit(graph.ExpOp, real)
    parts = [multiply(size, emit(op, imaginary)) for op in (graph.CosOp, graph.SinOp)]
    return astype(paired(*parts), element_of(x))
