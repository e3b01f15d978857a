"""Quantised tensors, integers that stand for floats: they are refused."""

from typing import TYPE_CHECKING

from relax_mlir.errors import ModelError

from .registry import Entry, Quantized, Value

if TYPE_CHECKING:
    from .node import Node


def concerns(node: "Node") -> bool:
    """Whether an op has quantised operands or results."""
    return any(isinstance(each, Quantized) for each in node.operands) or any(
        "!quant." in str(result.type) for result in node.op.results
    )


def run(node: "Node", entry: Entry) -> "Value | tuple[Value, ...]":
    """Raises ModelError: no op of quantised elements is supported."""
    raise ModelError("has quantised elements, which is not supported")
