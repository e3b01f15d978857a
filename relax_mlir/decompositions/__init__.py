"""Operators of the standards that are compositions of the dialect's, for frontends and users.

    with ir.InsertionPoint(block):
        y = einsum("bij,bjk->bik", x, w)

Each function builds operators at the insertion point and returns their result; fusion makes one
kernel of what is element-wise. Dims may be expressions. What cannot be right raises ShapeError.
"""

from .adaptive_pooling import adaptive_avg_pool, adaptive_max_pool
from .broadcasts import collapse_sum_like, collapse_sum_to, ewise_fma
from .contraction import dot_general, outer
from .einsum import einsum
from .layout import channel_shuffle, depth_to_space, meshgrid, space_to_depth
from .pooling import (
    avg_pool,
    global_avg_pool,
    global_lp_pool,
    global_max_pool,
    lp_pool,
    max_pool,
    sum_pool,
)
from .searching import bucketize

__all__ = [
    "adaptive_avg_pool",
    "adaptive_max_pool",
    "avg_pool",
    "bucketize",
    "channel_shuffle",
    "collapse_sum_like",
    "collapse_sum_to",
    "depth_to_space",
    "dot_general",
    "einsum",
    "ewise_fma",
    "global_avg_pool",
    "global_lp_pool",
    "global_max_pool",
    "lp_pool",
    "max_pool",
    "meshgrid",
    "outer",
    "space_to_depth",
    "sum_pool",
]
