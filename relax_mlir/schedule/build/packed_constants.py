"""Weights and filters that are constants, packed into panels in NumPy while compiling.

    weights[n, k]        ->  panels[ceil(n / columns), ceil(k / size), columns, size]
    filters[o, c, u, v]  ->  panels[ceil(o / columns), v, u, c, columns]

The results are bit for bit those of the tensor programs that pack what is known later (see
`packed_weights` and `relax-pack-filters`), but no code has to run, so the target may be any.
"""

import math
from collections.abc import Callable, Iterator, Set
from typing import TypeAlias

import numpy as np

from relax_mlir.bindings import arith, func, ir
from relax_mlir.cache import directory
from relax_mlir.data import (
    ContentName,
    attribute_of,
    elements_of,
    is_data,
)
from relax_mlir.dialects.graph import CallTirOp, TensorType, constant
from relax_mlir.mapped_arrays import release, zeros
from relax_mlir.rewriting import walk_ops
from relax_mlir.schedule.build.packed_weights import TOP_BIT, Groups

Fill: TypeAlias = Callable[[np.ndarray, np.ndarray], Iterator[np.ndarray]]
"""Fills panels, of zeros, with elements; yields each one that is full, in their order."""
SMALL = 1 << 20
"""Bytes of panels that may be any multiple of those of the weights; more may be twice as many."""


def known_weights(function: func.FuncOp, reshapes: Set[str]) -> dict[ir.Value, ir.Attribute]:
    """The tensors of a function whose elements are known, and not all the same, by the constant.

    They are constants, and what calls of `reshapes`, programs that only do this, make of them.
    """
    weights: dict[ir.Value, ir.Attribute] = {
        op.result: op.attributes["value"]
        for op in walk_ops(function, arith.ConstantOp)
        if isinstance(op.result.type, ir.RankedTensorType) and _has_elements(op.attributes["value"])
    }
    for call in walk_ops(function, CallTirOp) if weights else ():
        if call.callee_name in reshapes and call.ins[0] in weights:
            if ir.RankedTensorType(call.outs[0].type).has_static_shape:
                weights[call.outs[0]] = weights[call.ins[0]]
    return weights


def _has_elements(value: ir.Attribute) -> bool:
    is_splat = isinstance(value, ir.DenseElementsAttr) and value.is_splat
    is_dense = isinstance(value, ir.DenseElementsAttr) or is_data(value)
    return is_dense and not is_splat and math.prod(ir.ShapedType(value.type).shape) > 0


def packed_constant(
    weights: ir.Value, known: ir.Attribute, panels: TensorType, fill: Fill
) -> ir.Value | None:
    """A constant of panels after weights that are `known`, filled panel by panel.

    It is of the type that is stored, which has no signs. None if it takes much more memory than
    the weights, which it may replace.
    """
    elements = elements_of(known)
    size = math.prod(_extents(panels)) * elements.itemsize
    if size > max(SMALL, 2 * elements.nbytes):
        return None
    made = zeros(_extents(panels), elements.dtype, directory())
    name = ContentName()
    for panel in fill(elements.reshape(ir.RankedTensorType(weights.type).shape), made):
        name.add(panel)
        release(panel)
    stored = ir.RankedTensorType.get(made.shape, ir.ShapedType(known.type).element_type)
    with ir.InsertionPoint.after(weights.owner), weights.owner.location:
        return constant(attribute_of(stored, made, str(name)))


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
