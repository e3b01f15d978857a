"""Quantised tensors: integers that stand for floats, of a scale for all or for each of an axis."""

from typing import TYPE_CHECKING

from .registry import Entry, Quantized, Value

if TYPE_CHECKING:
    from .node import Node


def concerns(node: "Node") -> bool:
    """Whether an op has quantised operands or results."""
    return any(isinstance(each, Quantized) for each in node.operands) or any(
        "!quant." in str(result.type) for result in node.op.results
    )


def run(node: "Node", entry: Entry) -> "Value | tuple[Value, ...]":
    """What an op yields."""
    raise NotImplementedError
