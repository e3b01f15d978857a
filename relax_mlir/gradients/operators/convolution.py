"""Gradients of operators that slide a window over images.

patches : tensor<n, c, kh, y, kw, x>     the element of each window at each of its positions
"""

from collections.abc import Sequence
from dataclasses import dataclass

from relax_mlir.bindings import ir
from relax_mlir.decompositions import conv_transpose, dot_general
from relax_mlir.decompositions.emit import (
    add,
    arange,
    dims_of,
    element_of,
    emit,
    expand_dims,
    multiply,
    permute,
    reshape,
    scalar,
)
from relax_mlir.dialects import graph
from relax_mlir.gradients.reverse import Adjoint, Contributions
from relax_mlir.symbolic import Expr, const

from .gather import add_at


@dataclass(frozen=True)
class _Windows:
    """The windows of an operator: sizes, strides, dilation, of images of the given dims."""

    dims: tuple[Expr, ...]
    counts: tuple[Expr, ...]
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    padding: tuple[int, ...]
    dilation: tuple[int, ...]

    @staticmethod
    def of(op: ir.OpView, input: ir.Value, result: ir.Value, sizes: Sequence[int]) -> "_Windows":
        """Reads the attributes."""
        settings = [tuple(op.attributes[n]) for n in ("strides", "padding", "dilation")]
        return _Windows(dims_of(input), dims_of(result)[2:], tuple(sizes), *settings)

    def pad(self, value: ir.Value, outside: float) -> ir.Value:
        """Images with what the operator takes to be around them."""
        low, high = [0, 0, *self.padding[:2]], [0, 0, *self.padding[2:]]
        return _pad(value, outside, low, high)

    def crop(self, value: ir.Value) -> ir.Value:
        """The images of what is known of them from the first padded row and column on."""
        low = [0, 0, *(-first for first in self.padding[:2])]
        known = dims_of(value)
        high = [dim - own - first for dim, own, first in zip(self.dims, known, low, strict=True)]
        return _pad(value, 0, [const(first) for first in low], high)

    def indices(self, axis: int) -> ir.Value:
        """[size, count]: the positions in padded images of each element of each window."""
        i64 = ir.IntegerType.get_signless(64)
        size, stride, step = self.sizes[axis], self.strides[axis], self.dilation[axis]
        offsets = expand_dims(arange(0, size, step, i64), [1])
        return add(offsets, expand_dims(arange(0, self.counts[axis], stride, i64), [0]))

    def patches(self, padded: ir.Value) -> ir.Value:
        """The elements of each window."""
        columns = emit(graph.TakeOp, padded, self.indices(1), axis=3)
        return emit(graph.TakeOp, columns, self.indices(0), axis=2)

    def images(self, patches: ir.Value) -> ir.Value:
        """Images with each element of each window added to the one that it is."""
        n, c, kh, y, *_ = dims_of(patches)
        low, high = self.padding[:2], self.padding[2:]
        rows, columns = (
            dim + first + last for dim, first, last in zip(self.dims[2:], low, high, strict=True)
        )
        across = add_at(patches, [self.indices(1)], [4], [n, c, kh, y, columns])
        return self.crop(add_at(across, [self.indices(0)], [2], [n, c, rows, columns]))


def _pad(
    value: ir.Value, outside: float, low: Sequence[Expr | int], high: Sequence[Expr | int]
) -> ir.Value:
    around = scalar(outside, element_of(value))
    widths = {"low": list(low), "high": list(high), "interior": [0] * len(low)}
    return emit(graph.PadOp, value, around, mode="constant", **widths)


def conv2d(op: graph.Conv2dOp, adjoint: Adjoint) -> Contributions:
    """A transposed convolution, and products of the gradient with the elements of windows."""
    groups = op.attributes["groups"].value
    o, c, *sizes = dims_of(op.weight)
    constants = [size.value for size in sizes if size.value is not None]
    windows = _Windows.of(op, op.input, op.result, constants)
    if adjoint.wants(op.input):
        whole = conv_transpose(
            adjoint.seed,
            op.weight,
            strides=windows.strides,
            dilation=windows.dilation,
            groups=groups,
        )
        yield op.input, windows.crop(whole)
    if adjoint.wants(op.weight):
        patches = windows.patches(windows.pad(op.input, 0))
        n, _, kh, y, kw, x = dims_of(patches)
        inputs = reshape(patches, [n, groups, c, kh, y, kw, x])
        seeds = reshape(adjoint.seed, [n, groups, o // groups, y, x])
        products = dot_general(seeds, inputs, batch=([1], [1]), contract=([0, 3, 4], [0, 4, 6]))
        yield op.weight, reshape(products, dims_of(op.weight))


def sum_pool2d(op: graph.SumPool2dOp, adjoint: Adjoint) -> Contributions:
    """A transposed convolution of each channel with ones."""
    windows = _Windows.of(op, op.input, op.result, op.attributes["window"])
    n, c, *counts = dims_of(op.result)
    one = scalar(1, element_of(op.input))
    ones = emit(graph.FullOp, one, shape=[1, 1, *windows.sizes])
    planes = reshape(adjoint.seed, [n * c, 1, *counts])
    whole = conv_transpose(planes, ones, strides=windows.strides, dilation=windows.dilation)
    yield op.input, windows.crop(reshape(whole, [n, c, *dims_of(whole)[2:]]))


def max_pool2d(op: graph.MaxPool2dOp, adjoint: Adjoint) -> Contributions:
    """The first of the greatest elements of each window gets it, as in ATen."""
    windows = _Windows.of(op, op.input, op.result, op.attributes["window"])
    kh, kw = windows.sizes
    patches = windows.patches(windows.pad(op.input, float("-inf")))
    lines = permute(patches, [0, 1, 3, 5, 2, 4])
    n, c, y, x, *_ = dims_of(lines)
    best = emit(graph.ArgmaxOp, reshape(lines, [n, c, y, x, kh * kw]), axis=4, keepdims=False)
    element = element_of(op.input)
    chosen = emit(
        graph.OneHotOp, best, scalar(1, element), scalar(0, element), depth=[kh * kw], axis=4
    )
    shares = multiply(expand_dims(adjoint.seed, [4]), chosen)
    spread = permute(reshape(shares, [n, c, y, x, kh, kw]), [0, 1, 4, 2, 5, 3])
    yield op.input, windows.images(spread)
