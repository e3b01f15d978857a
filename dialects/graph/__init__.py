"""The `graph` dialect: pure, symbolically shaped tensor operators and calls (paper §3.1-3.3)."""

from .calls import CallDpsLibraryOp, CallOp, CallTirInplaceOp, CallTirOp
from .dialect import Graph, ObjectType, ShapeAttr, ShapeValueType, StorageType
from .linear_algebra import MatmulOp
from .memory import AllocStorageOp, AllocTensorOp, CallDpsOp, ViewOp
from .op import (
    Annotation,
    FlagAttr,
    GraphOp,
    InferredOp,
    IntsAttr,
    annotation_of,
    compatible,
    join,
    to_mlir,
)
from .shapes import MakeShapeOp, MatchCastOp, ShapeOfOp
from .slots import SlotOp
from .types import (
    Dim,
    ShapeError,
    TensorType,
    broadcast,
    dims_differ,
    dims_equal,
    dims_of_attr,
    shape_attr,
    shape_value_dims,
    shape_value_type,
)

__all__ = [
    "AllocStorageOp",
    "AllocTensorOp",
    "Annotation",
    "CallDpsLibraryOp",
    "CallDpsOp",
    "CallOp",
    "CallTirInplaceOp",
    "CallTirOp",
    "Dim",
    "FlagAttr",
    "Graph",
    "GraphOp",
    "InferredOp",
    "IntsAttr",
    "MakeShapeOp",
    "MatchCastOp",
    "MatmulOp",
    "ObjectType",
    "ShapeAttr",
    "ShapeError",
    "ShapeOfOp",
    "ShapeValueType",
    "SlotOp",
    "StorageType",
    "TensorType",
    "ViewOp",
    "annotation_of",
    "broadcast",
    "compatible",
    "dims_differ",
    "dims_equal",
    "dims_of_attr",
    "join",
    "shape_attr",
    "shape_value_dims",
    "shape_value_type",
    "to_mlir",
]
