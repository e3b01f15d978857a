"""Recipes of where tensors are: what follows runs on the host, or on the device again."""

from typing import Any

from relax_mlir.dialects import graph

from ..builder import Builder
from .table import recipe

DEVICES = ("cpu", "cpu", "device")


@recipe("placement", graph.ToDeviceOp, graph.HintOnDeviceOp)
def move(b: Builder, op: Any) -> None:
    """Any tensor, to any device."""
    b.emit(op, [b.take()], device=b.random.choice(DEVICES))
