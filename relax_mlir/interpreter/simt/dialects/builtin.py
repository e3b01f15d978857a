"""Values as other types."""

from typing import Any

import numpy as np

from relax_mlir.bindings import ir

from ..tensor_maps import TensorMap
from ..threads import Threads

__all__ = ["unrealized_conversion_cast"]


def unrealized_conversion_cast(frame: Threads, op: ir.OpView, x: Any) -> TensorMap:
    """A tensor map, whose address a copy takes."""
    if not isinstance(x, TensorMap):
        raise ValueError(f"is the address of '{np.asarray(x).dtype}', which is no tensor map")
    return x
