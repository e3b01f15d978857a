"""Sums of warpgroups, which are structs: of each thread, an array; addresses, as integers."""

from typing import Any

import numpy as np

from relax_mlir.bindings import ir

from ..threads import Threads

__all__ = ["addrspacecast", "extractvalue", "inttoptr", "mlir_zero"]


def mlir_zero(frame: Threads, op: ir.OpView) -> np.ndarray:
    """Zeros; the type is a struct of floats of 32 bits."""
    count = str(op.operation.results[0].type).count("f32")
    return np.zeros((len(frame.running), count), np.float32)


def inttoptr(frame: Threads, op: ir.OpView, address: Any) -> Any:
    """An address."""
    return address


def addrspacecast(frame: Threads, op: ir.OpView, address: Any) -> Any:
    """The same address, as memory of a cluster: of one group."""
    return address


def extractvalue(frame: Threads, op: ir.OpView, struct: Any) -> np.ndarray:
    """An element of each thread."""
    (position,) = ir.DenseI64ArrayAttr(op.operation.attributes["position"])
    return struct[:, position]
