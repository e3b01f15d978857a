"""Bits of elements as elements of other widths: bitcast."""

from relax_mlir.bindings import ir
from relax_mlir.dialects import graph
from relax_mlir.dialects.graph import ShapeError, TensorType, dims_differ
from relax_mlir.dialects.graph.elementwise import is_bool
from relax_mlir.dialects.graph.types import element_bits
from relax_mlir.symbolic import const

from .emit import astype, binary, dims_of, element_of, emit, rank_of, scalar


def bitcast(x: ir.Value, element: ir.Type) -> ir.Value:
    """The bits of each element, as one of another type, or as several along a new last dim.

    To a wider type the last dim becomes one element, and has as many as it takes; the lowest bits
    are first. Source: StableHLO `bitcast_convert`; ONNX `BitCast`.
    """
    if is_bool(element) or is_bool(element_of(x)):
        raise ShapeError(f"expects integers or floats, but got {element_of(x)} and {element}")
    before, after = element_bits(element_of(x)), element_bits(element)
    if before == after:
        return _cast(x, element)
    if before > after:
        words = _cast(x, _integer(before))
        parts = [
            astype(binary(graph.LogicalRightShiftOp, words, i), _integer(after))
            for i in range(0, before, after)
        ]
        return _cast(graph.StackOp.build(*parts, axis=-1).operation.results[0], element)
    count = after // before
    if not rank_of(x) or dims_differ(dims_of(x)[-1], const(count)):
        raise ShapeError(f"makes one element of {count}, but got '{TensorType.of(x)}'")
    return _cast(_joined(_cast(x, _integer(before)), before, after), element)


def _joined(x: ir.Value, before: int, after: int) -> ir.Value:
    """The last dim as one integer."""
    last, joined = rank_of(x) - 1, None
    for i in range(after // before):
        part = emit(graph.TakeOp, x, scalar(i, _integer(64)), axis=last)
        bits = binary(graph.BitwiseAndOp, astype(part, _integer(after)), (1 << before) - 1)
        bits = binary(graph.LeftShiftOp, bits, i * before)
        joined = bits if joined is None else binary(graph.BitwiseOrOp, joined, bits)
    assert joined is not None
    return joined


def _integer(width: int) -> ir.Type:
    return ir.IntegerType.get_signless(width)


def _cast(x: ir.Value, element: ir.Type) -> ir.Value:
    return x if element_of(x) == element else emit(graph.BitcastOp, x, dtype=element)
