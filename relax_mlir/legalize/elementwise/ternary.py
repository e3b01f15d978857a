"""Tensor programs of element-wise operators of three tensors."""

from relax_mlir.bindings import arith
from relax_mlir.dialects.graph import WhereOp

from ..kernel import KernelBuilder, elementwise


def where(op: WhereOp, kernel: KernelBuilder) -> None:
    """A select."""
    kernel.finish(
        elementwise(kernel.ins, kernel.outs[0], lambda c, x, y: arith.SelectOp(c, x, y).result)
    )
