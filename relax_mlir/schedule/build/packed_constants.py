"""Weights and filters that are constants, packed into panels in NumPy while compiling.

    weights[n, k]        ->  panels[ceil(n / columns), ceil(k / size), columns, size]
    filters[o, c, u, v]  ->  panels[ceil(o / columns), v, u, c, columns]

The results are bit for bit those of the tensor programs that pack what is known later (see
`packed_weights` and `relax-pack-filters`), but no code has to run, so the target may be any.
"""

import math
from collections.abc import Callable, Iterator
from typing import TypeAlias

import numpy as np

from relax_mlir.bindings import arith, func, ir
from relax_mlir.cache import directory
from relax_mlir.data import (
    ContentName,
    attribute_of,
    bytes_of,
    elements_of,
    is_data,
    stored_width,
)
from relax_mlir.dialects.graph import TensorType, constant
from relax_mlir.mapped_arrays import release, zeros
from relax_mlir.rewriting import walk_ops
from relax_mlir.schedule.build.packed_weights import TOP_BIT, Groups

Fill: TypeAlias = Callable[[np.ndarray, np.ndarray], Iterator[np.ndarray]]
"""Fills panels, of zeros, with elements; yields each one that is full, in their order."""
SMALL = 1 << 20
"""Bytes of panels that may be any multiple of those of the weights; more may be twice as many."""


def known_weights(function: func.FuncOp) -> list[ir.Value]:
    """The tensors of a function whose elements are known, and not all the same."""
    return [
        op.result
        for op in walk_ops(function, arith.ConstantOp)
        if isinstance(op.result.type, ir.RankedTensorType) and _has_elements(op.attributes["value"])
    ]


def _has_elements(value: ir.Attribute) -> bool:
    is_splat = isinstance(value, ir.DenseElementsAttr) and value.is_splat
    is_dense = isinstance(value, ir.DenseElementsAttr) or is_data(value)
    return is_dense and not is_splat and math.prod(ir.ShapedType(value.type).shape) > 0


def packed_constant(weights: ir.Value, panels: TensorType, fill: Fill) -> ir.Value:
    """A constant of panels after that of weights, filled panel by panel."""
    elements = elements_of(weights.owner.opview.attributes["value"])
    made = zeros(_extents(panels), elements.dtype, directory())
    name = ContentName()
    for panel in fill(elements, made):
        name.add(panel)
        release(panel)
    with ir.InsertionPoint.after(weights.owner), weights.owner.location:
        return constant(attribute_of(panels.to_mlir(), made, str(name)))


def is_worth_it(weights: ir.Value, panels: TensorType) -> bool:
    """Whether panels of a constant take little memory beyond its own, which they may replace."""
    data = bytes_of(weights.owner.opview.attributes["value"])
    size = math.prod(_extents(panels)) * stored_width(panels.element)
    return data is not None and size <= max(SMALL, 2 * data.nbytes)


def _extents(panels: TensorType) -> tuple[int, ...]:
    return tuple(ir.RankedTensorType(panels.to_mlir()).shape)


def fill_weights(
    weights: np.ndarray, panels: np.ndarray, layout: str, groups: Groups
) -> Iterator[np.ndarray]:
    """Fills panels with weights [n, k], or [k, n] by `layout`: see `Fill`."""
    rows = weights if layout == "nk" else weights.T
    columns, size = panels.shape[2], groups.size
    grouped = panels.reshape(*panels.shape[:3], size)
    for index, panel in enumerate(grouped):
        part = rows[index * columns : (index + 1) * columns]
        for i in range(size):
            elements = part[:, i::size].T
            if groups.is_biased:
                elements = elements ^ np.int8(TOP_BIT).view(elements.dtype)
            panel[: len(elements), : len(part), i] = elements
        yield panel


def fill_filters(filters: np.ndarray, panels: np.ndarray) -> Iterator[np.ndarray]:
    """Fills panels with filters [o, c, u, v]: see `Fill`."""
    columns = panels.shape[-1]
    for index, panel in enumerate(panels):
        part = filters[index * columns : (index + 1) * columns]
        panel[..., : len(part)] = part.transpose(3, 2, 1, 0)
        yield panel
