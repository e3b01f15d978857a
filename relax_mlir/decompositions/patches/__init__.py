"""Windows as elements of their own: columns of them, positions in them, samples around them."""

from .columns import fold, unfold
from .deformable import deform_conv2d
from .positions import max_pool_with_indices, max_unpool
from .reduction import reduce_window

__all__ = [
    "deform_conv2d",
    "fold",
    "max_pool_with_indices",
    "max_unpool",
    "reduce_window",
    "unfold",
]
