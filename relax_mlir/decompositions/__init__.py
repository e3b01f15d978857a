"""Operators of the standards that are compositions of the dialect's, for frontends and users.

    with ir.InsertionPoint(block):
        y = einsum("bij,bjk->bik", x, w)

Each function builds operators at the insertion point and returns their result; fusion makes one
kernel of what is element-wise. Dims may be expressions. What cannot be right raises ShapeError.
"""

from .broadcasts import collapse_sum_like, collapse_sum_to, ewise_fma
from .contraction import dot_general, outer
from .einsum import einsum
from .layout import channel_shuffle, depth_to_space, meshgrid, space_to_depth
from .searching import bucketize

__all__ = [
    "bucketize",
    "channel_shuffle",
    "collapse_sum_like",
    "collapse_sum_to",
    "depth_to_space",
    "dot_general",
    "einsum",
    "ewise_fma",
    "meshgrid",
    "outer",
    "space_to_depth",
]
