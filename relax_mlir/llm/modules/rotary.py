"""Rotary positions: cos and sin of each token, which all layers share.

Source: RoFormer (arXiv 2104.09864); LongRoPE (2402.13753); M-RoPE of Qwen2-VL (2409.12191).
"""

from collections.abc import Sequence

import numpy as np

from relax_mlir.bindings import arith, ir
from relax_mlir.dialects import graph
from relax_mlir.llm.modules.attention import CACHED, NEW
from relax_mlir.llm.modules.config import Rope
from relax_mlir.llm.modules.kv_cache import Pages
from relax_mlir.llm.modules.nn import add, arange, multiply, scaled, slice_axis

AXES = ("time", "row", "column")
"""The coordinates of a token, in the order of sections."""


def rotation(
    rope: Rope, pages: Pages | None = None, coordinates: ir.Value | None = None
) -> tuple[ir.Value, ir.Value]:
    """cos and sin of position times frequency, [n, dims / 2].

    With sections, they are of `coordinates` int32[n, 3].
    """
    frequency = _constant(rope.inverse_frequencies())
    if rope.long_factors is not None:
        long = _constant(rope.inverse_frequencies(is_long=True))
        frequency = graph.WhereOp.build(_is_long(rope, pages), long, frequency).result
    if rope.sections:
        assert coordinates is not None
        angle = _angle_of_sections(rope.sections, frequency, coordinates)
    else:
        position = position_of(ir.F32Type.get(), pages)
        angle = multiply(graph.ExpandDimsOp.build(position, axes=[1]).result, frequency)
    cos, sin = graph.CosOp.build(angle).result, graph.SinOp.build(angle).result
    return scaled(cos, rope.scale), scaled(sin, rope.scale)


def _angle_of_sections(
    sections: Sequence[int], frequency: ir.Value, coordinates: ir.Value
) -> ir.Value:
    """Each frequency times the coordinate of its section: others add 0, which is exact."""
    axis_of = np.repeat(np.arange(len(sections)) % len(AXES), sections)
    position = graph.AstypeOp.build(coordinates, dtype=ir.F32Type.get()).result
    parts = [
        multiply(slice_axis(position, 1, axis, axis + 1), multiply(frequency, _constant(is_own)))
        for axis in range(len(AXES))
        if (is_own := axis_of == axis).any()
    ]
    angle = parts[0]
    for part in parts[1:]:
        angle = add(angle, part)
    return angle


def position_of(element: ir.Type, pages: Pages | None) -> ir.Value:
    """The position of each token, [n]."""
    if pages is None:
        return arange(CACHED, f"{CACHED} + {NEW}", element)
    if pages.positions.type.element_type == element:
        return pages.positions
    return graph.AstypeOp.build(pages.positions, dtype=element).result


def _is_long(rope: Rope, pages: Pages | None) -> ir.Value:
    """Whether sequences are longer than the context of pre-training: [1], or of tokens [n, 1]."""
    f32 = ir.F32Type.get()
    if pages is None:
        over = f"min(max({CACHED} + {NEW} - {rope.original_context}, 0), 1)"
        return graph.GreaterOp.build(arange(over, f"{over} + 1", f32), _constant([0.5])).result
    lengths = graph.TakeOp.build(pages.lengths, pages.sequences, axis=0).result
    lengths = graph.AstypeOp.build(lengths, dtype=f32).result
    column = graph.ExpandDimsOp.build(lengths, axes=[1]).result
    return graph.GreaterOp.build(column, _constant([rope.original_context])).result


def _constant(values: Sequence[float] | np.ndarray) -> ir.Value:
    data = ir.DenseElementsAttr.get(np.ascontiguousarray(values, np.float32))
    return arith.ConstantOp(data.type, data).result
