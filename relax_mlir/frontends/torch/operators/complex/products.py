"""Products of complex matrices, and convolutions."""

from typing import Any

from relax_mlir import decompositions as d
from relax_mlir.decompositions.emit import per_channel, reduce
from relax_mlir.dialects import graph

from ....complex import Pair
from ....complex.arithmetic import add, conjugate, multilinear, product
from ...adapters import bilinear
from ...call import Call
from ...registry import of_pairs
from .. import linear_algebra, neural


def _matmul(call: Call, a: Any, b: Any) -> Pair:
    return multilinear(d.matmul, call.pair(a), call.pair(b))


def _affine(call: Call, product_: Pair, c: Any, beta: Any, alpha: Any) -> Pair:
    """beta * C + alpha * a product; C does not matter where beta is 0."""
    scaled = product_ if alpha == 1 else product(product_, call.pair(alpha))
    if beta == 0:
        return scaled
    own = call.pair(c)
    return add(scaled, own if beta == 1 else product(own, call.pair(beta)))


@of_pairs("addmm", "baddbmm", "addmv")
def addmm(call: Call, c: Any, a: Any, b: Any, beta: Any = 1, alpha: Any = 1) -> Pair:
    """beta * C + alpha * A B."""
    return _affine(call, _matmul(call, a, b), c, beta, alpha)


@of_pairs("addbmm")
def addbmm(call: Call, c: Any, a: Any, b: Any, beta: Any = 1, alpha: Any = 1) -> Pair:
    """beta * C + alpha * the sum of A B over a batch."""
    total = _matmul(call, a, b).map(lambda part: reduce(graph.SumOp, part, [0]))
    return _affine(call, total, c, beta, alpha)


@of_pairs("vdot")
def vdot(call: Call, a: Pair, b: Pair) -> Pair:
    """The sum of products with conjugates."""
    return _matmul(call, conjugate(a), b)


@of_pairs("einsum")
def einsum(call: Call, equation: str, operands: Any, path: Any = None) -> Pair:
    """Sums of products, by an equation."""
    return multilinear(
        lambda *parts: linear_algebra.einsum(call, equation, parts), *map(call.pair, operands)
    )


@of_pairs("linear")
def linear(call: Call, x: Any, weight: Any, bias: Any = None) -> Pair:
    """x W^T + b."""
    result = bilinear(linear_algebra.linear)(call, x, weight)
    return result if bias is None else add(result, call.pair(bias))


@of_pairs("convolution")
def convolution(call: Call, x: Any, weight: Any, bias: Any, *settings: Any) -> Pair:
    """A convolution, or a transposed one."""
    return _convolved(call, neural.convolution, x, weight, bias, *settings)


@of_pairs("conv1d", "conv2d", "conv3d")
def conv(call: Call, x: Any, weight: Any, bias: Any = None, *settings: Any) -> Pair:
    """A convolution."""
    return _convolved(call, neural.conv, x, weight, bias, *settings)


@of_pairs("conv1d.padding", "conv2d.padding", "conv3d.padding")
def conv_padding(call: Call, x: Any, weight: Any, bias: Any = None, *settings: Any) -> Pair:
    """A convolution of as many windows as elements, or of those within."""
    return _convolved(call, neural.conv_padding, x, weight, bias, *settings)


def _convolved(call: Call, function: Any, x: Any, weight: Any, bias: Any, *settings: Any) -> Pair:
    result = bilinear(function)(call, x, weight, None, *settings)
    if bias is None:
        return result
    rank = call.rank(result)
    axis = rank + 1 - call.rank(weight)
    return add(result, call.pair(bias).map(lambda part: per_channel(part, rank, axis)))
