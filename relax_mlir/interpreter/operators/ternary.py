"""Element-wise operators of three tensors."""

import numpy as np

from relax_mlir.interpreter.elements import stored as read

__all__ = ["read"]

where = np.where
