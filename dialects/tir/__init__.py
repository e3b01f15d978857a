"""The `tir` dialect: what marks and describes loop-level tensor programs (paper §3.3)."""

from .dialect import PatternAttr, Tir
from .nodes import (
    ACCESS,
    IN,
    INOUT,
    LEAF,
    TARGETS,
    TILE,
    VERSIONS,
    WHOLE_TILES,
    GlobalIdOp,
    GlobalSizeOp,
    GridSizeOp,
    NodeIdOp,
    Query,
)
from .prim_func import (
    FUNCTION,
    NOT_POSITIVE,
    NUM_OUTS,
    PATTERNS,
    ZERO_PADDED,
    PrimFunc,
    prim_funcs,
)

__all__ = [
    "ACCESS",
    "FUNCTION",
    "IN",
    "INOUT",
    "LEAF",
    "NOT_POSITIVE",
    "NUM_OUTS",
    "PATTERNS",
    "TARGETS",
    "TILE",
    "VERSIONS",
    "WHOLE_TILES",
    "ZERO_PADDED",
    "GlobalIdOp",
    "GlobalSizeOp",
    "GridSizeOp",
    "NodeIdOp",
    "PatternAttr",
    "PrimFunc",
    "Query",
    "Tir",
    "prim_funcs",
]
