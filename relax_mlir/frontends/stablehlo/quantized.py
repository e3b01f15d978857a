"""Ops on quantised tensors, whose values are integers: as they are, or as the floats they mean."""

from dataclasses import replace
from typing import TYPE_CHECKING

from relax_mlir.bindings import ir
from relax_mlir.errors import ModelError

from ..elements import is_float
from .quantization import Quantization, converted, is_quantized
from .registry import Entry, Function, Value, find_of_quantized

if TYPE_CHECKING:
    from .node import Node

ALIGNED = ("reshape", "transpose", "broadcast_in_dim", "dynamic_broadcast_in_dim")
"""Ops of which StableHLO verifies that scales along an axis stay at their elements."""


def concerns(op: ir.Operation) -> bool:
    """Whether an op has quantised operands or results."""
    return any(is_quantized(value.type) for value in (*op.operands, *op.results))


def run(node: "Node", entry: Entry) -> "Value | tuple[Value, ...]":
    """What an op yields: by its own function, of integers that only change position, or of floats.

    Source: StableHLO's specification, "Quantization computations".
    """
    own = find_of_quantized(node.name)
    if own is not None:
        return own(node)
    if len(node.op.regions) or node.op.name == "stablehlo.custom_call":
        raise ModelError("has quantised operands, of which it is not supported")
    if entry.by_part and is_alike(node):
        return entry.function(node)
    return as_floats(node, entry.function)


def is_alike(node: "Node") -> bool:
    """Whether equal integers stand for equal floats in all operands and results."""
    kinds = [*node.operand_kinds, *node.results]
    if any(is_float(kind.element) for kind in kinds):
        return False
    given = [kind.quantization for kind in kinds if kind.quantization is not None]
    if any(each.axis is not None for each in given) and node.name not in ALIGNED:
        return False
    return len({replace(each, axis=None) for each in given}) == 1


def as_floats(node: "Node", function: Function) -> "Value | tuple[Value, ...]":
    """What a function yields of the floats that integers stand for, as integers again."""
    view = node.of_values(
        [
            value if kind.quantization is None else _converted(node, value, kind.quantization, None)
            for value, kind in zip(node.operands, node.operand_kinds, strict=True)
        ],
        [
            kind.element if kind.quantization is None else kind.quantization.expressed
            for kind in node.results
        ],
    )
    made = function(view)
    stored = tuple(
        value if kind.quantization is None else _converted(node, value, None, kind.quantization)
        for value, kind in zip(made if isinstance(made, tuple) else (made,), node.results)
    )
    return stored if isinstance(made, tuple) else stored[0]


def _converted(
    node: "Node", value: Value, by: Quantization | None, to: Quantization | None
) -> ir.Value:
    return converted(node.importer.tensor(value), by, to)
