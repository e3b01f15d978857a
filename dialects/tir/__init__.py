"""The `tir` dialect: what marks and describes loop-level tensor programs (paper §3.3)."""

from .dialect import PatternAttr, Tir
from .nodes import ACCESS, IN, INOUT, LEAF, TARGETS, VERSIONS, GridSizeOp, NodeIdOp
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
    "VERSIONS",
    "ZERO_PADDED",
    "GridSizeOp",
    "NodeIdOp",
    "PatternAttr",
    "PrimFunc",
    "Tir",
    "prim_funcs",
]
