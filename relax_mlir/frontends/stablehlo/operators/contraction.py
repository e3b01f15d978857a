"""Products of tensors: dot_general and convolutions."""

import re
from collections.abc import Callable, Sequence
from typing import TypeAlias

from relax_mlir import decompositions as d
from relax_mlir.bindings import ir
from relax_mlir.decompositions.emit import (
    astype,
    dims_of,
    element_of,
    emit,
    is_integer,
    permute,
    reshape,
    scalar,
)
from relax_mlir.dialects import graph
from relax_mlir.errors import ModelError

from ...complex.arithmetic import multilinear
from ...elements import mlir_element
from ..node import Node
from ..registry import Value, operator
from ..windows import windows
from .movement import padded

Bilinear: TypeAlias = Callable[[ir.Value, ir.Value], ir.Value]

_CONV = re.compile(r"<\[(.*)\]x\[(.*)\]->\[(.*)\]>")


@operator("dot_general", takes_pairs=True)
def dot_general(node: Node) -> Value:
    """Sums of products over pairs of axes, for each index of others."""
    axes = node.axes_of("dot")
    batch = axes.list("lhs_batching_dimensions"), axes.list("rhs_batching_dimensions")
    contract = axes.list("lhs_contracting_dimensions"), axes.list("rhs_contracting_dimensions")
    return _product(node, lambda a, b: d.dot_general(a, b, batch=batch, contract=contract))


@operator("dot", takes_pairs=True)
def dot(node: Node) -> Value:
    """Sums of products over the last axis of one and the first of the other."""
    contract = [node.rank(0) - 1], [0]
    return _product(node, lambda a, b: d.dot_general(a, b, contract=contract))


def _product(node: Node, multiply: Bilinear) -> Value:
    """A bilinear function in the type of the result, of complex operands by parts."""
    element = node.result_element
    if not node.result.is_complex:
        a, b = (_widened(each, element) for each in node.tensors(0, 2))
        return astype(_bits_or_sum(a, b, multiply), element)
    operands = (node.pair(i).map(lambda part: astype(part, element)) for i in (0, 1))
    return multilinear(multiply, *operands)


def _widened(x: ir.Value, element: ir.Type) -> ir.Value:
    """Elements as those of the result; those of 8 bits that nothing computes with as f32."""
    if str(element).startswith("f8"):
        element = mlir_element("f32")
    return astype(x, element)


def _bits_or_sum(a: ir.Value, b: ir.Value, multiply: Bilinear) -> ir.Value:
    """A product; of truth values whether any pair is true."""
    if str(element_of(a)) != "i1":
        return multiply(a, b)
    i32 = mlir_element("i32")
    return emit(graph.NotEqualOp, multiply(astype(a, i32), astype(b, i32)), scalar(0, i32))


@operator("convolution", takes_pairs=True)
def convolution(node: Node) -> Value:
    """Sums of products of windows with filters."""
    spatial = node.rank() - 2
    padding = node.pairs("padding", spatial)
    return _product(node, lambda a, b: _convolve(node, a, b, padding))


@operator("dynamic_conv", takes_pairs=True)
def dynamic_conv(node: Node) -> Value:
    """A convolution whose padding is an operand."""
    flat = node.constants(2, "padding")
    padding = list(zip(flat[::2], flat[1::2], strict=True))
    return _product(node, lambda a, b: _convolve(node, a, b, padding))


def roles(node: Node) -> list[list[int]]:
    """The axes of the input, the filters and the result, in the order of `conv`."""
    match = _CONV.search(node.axes_of("conv").text)
    assert match is not None
    orders = []
    for text, roles in zip(match.groups(), ("bf", "oi", "bf"), strict=True):
        letters = [each.strip() for each in text.split(",")]
        spatial = [str(i) for i in range(len(letters) - 2)]
        orders.append([letters.index(role) for role in (*roles, *spatial)])
    return orders


def _convolve(
    node: Node, x: ir.Value, weight: ir.Value, padding: Sequence[tuple[int, int]]
) -> ir.Value:
    inputs, filters, outputs = roles(node)
    x, weight = permute(x, inputs), permute(weight, filters)
    spatial = len(inputs) - 2
    ones = [1] * spatial
    strides, base = node.integers("window_strides", ones), node.integers("lhs_dilation", ones)
    dilation = node.integers("rhs_dilation", ones)
    reversed_ = node.flags("window_reversal", [False] * spatial)
    if any(reversed_):
        axes = [2 + i for i, flag in enumerate(reversed_) if flag]
        weight = emit(graph.FlipOp, weight, axes=axes)
    zero = scalar(0, element_of(x))
    low, high = ([0, 0, *(pad[end] for pad in padding)] for end in (0, 1))
    x = padded(x, zero, low, high, [0, 0, *(each - 1 for each in base)])
    groups, batches = node.integer("feature_group_count", 1), node.integer("batch_group_count", 1)
    if batches > 1:
        x, groups = _batches_as_groups(x, batches), batches
    result = _windows(x, weight, strides, dilation, groups)
    return permute(result, [outputs.index(axis) for axis in range(len(outputs))])


def _batches_as_groups(x: ir.Value, count: int) -> ir.Value:
    """Parts of a batch as groups of channels."""
    n, c, *rest = dims_of(x)
    split = permute(reshape(x, [count, n // count, c, *rest]), [1, 0, 2, *range(3, 3 + len(rest))])
    return reshape(split, [n // count, c * count, *rest])


def _windows(
    x: ir.Value, weight: ir.Value, strides: list[int], dilation: list[int], groups: int
) -> ir.Value:
    """A convolution without padding, of as many spatial dims as there are."""
    if not strides:  # a product of matrices for each group
        image, filters = (reshape(each, [*dims_of(each), 1]) for each in (x, weight))
        result = _windows(image, filters, [1], [1], groups)
        return reshape(result, dims_of(result)[:-1])
    if len(strides) > 3 or is_integer(element_of(x)):
        return _general_windows(x, weight, strides, dilation, groups)
    return d.conv(x, weight, strides=strides, dilation=dilation, groups=groups)


def _general_windows(
    x: ir.Value, weight: ir.Value, strides: list[int], dilation: list[int], groups: int
) -> ir.Value:
    """A convolution by products of windows that are taken out: of integers, which wrap."""
    o, c, *taps = dims_of(weight)
    sizes = [tap.value for tap in taps if tap.value is not None]
    if len(sizes) < len(taps):
        raise ModelError("has filters whose dims are not constants")
    ones, spatial = [1, 1], len(sizes)
    taken = windows(x, [*ones, *sizes], [*ones, *strides], [*ones, *dilation])
    n, _, *counts = dims_of(taken)[: 2 + spatial]
    columns = reshape(taken, [n, groups, c, *counts, *sizes])
    filters = reshape(weight, [groups, o // groups, c, *sizes])
    sums = [2, *range(3, 3 + spatial)], [2, *range(3 + spatial, 3 + 2 * spatial)]
    result = d.dot_general(filters, columns, batch=([0], [1]), contract=sums)
    axes = [2, 0, 1, *range(3, 3 + spatial)]
    return reshape(permute(result, axes), [n, o, *counts])
