"""Weights and filters that are constants, packed into panels in NumPy while compiling.

    weights[n, k]        ->  panels[ceil(n / columns), ceil(k / size), columns, size]
    filters[o, c, u, v]  ->  panels[ceil(o / columns), v, u, c, columns]

The results are bit for bit those of the tensor programs that pack what is known later (see
`packed_weights` and `relax-pack-filters`), but no code has to run, so the target may be any.
"""

import math
from collections.abc import Callable

import numpy as np

from relax_mlir.bindings import arith, func, ir
from relax_mlir.data import attribute_of, bytes_of, elements_of, is_data, stored_width
from relax_mlir.dialects.graph import TensorType, constant
from relax_mlir.rewriting import walk_ops
from relax_mlir.schedule.build.packed_weights import TOP_BIT, Groups

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


def packed_constant(
    weights: ir.Value, panels: TensorType, fill: Callable[[np.ndarray, np.ndarray], None]
) -> ir.Value:
    """A constant of panels after that of weights; `fill` takes the elements and zeroed panels."""
    value = weights.owner.opview.attributes["value"]
    made = np.zeros(_extents(panels), elements_of(value).dtype)
    fill(elements_of(value), made)
    with ir.InsertionPoint.after(weights.owner), weights.owner.location:
        return constant(attribute_of(panels.to_mlir(), made))


def is_worth_it(weights: ir.Value, panels: TensorType) -> bool:
    """Whether panels of a constant take little memory beyond its own, which they may replace."""
    data = bytes_of(weights.owner.opview.attributes["value"])
    size = math.prod(_extents(panels)) * stored_width(panels.element)
    return data is not None and size <= max(SMALL, 2 * data.nbytes)


def _extents(panels: TensorType) -> tuple[int, ...]:
    return tuple(ir.RankedTensorType(panels.to_mlir()).shape)


def fill_weights(weights: np.ndarray, panels: np.ndarray, layout: str, groups: Groups) -> None:
    """Fills panels, of zeros, with weights [n, k], or [k, n] by `layout`."""
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


def fill_filters(filters: np.ndarray, panels: np.ndarray) -> None:
    """Fills panels, of zeros, with filters [o, c, u, v]."""
    columns = panels.shape[-1]
    for index, panel in enumerate(panels):
        part = filters[index * columns : (index + 1) * columns]
        panel[..., : len(part)] = part.transpose(3, 2, 1, 0)
