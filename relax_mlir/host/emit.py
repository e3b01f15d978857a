"""The table of emitters: how each op is lowered to host code."""

from collections.abc import Mapping

from relax_mlir.bindings import arith, ir, scf, tensor
from relax_mlir.dialects.graph import (
    AllocStorageOp,
    AllocTensorOp,
    AssertOp,
    CallDpsOp,
    CopyOp,
    KeepOp,
    MakeShapeOp,
    MatchCastOp,
    PrintOp,
    RequireOp,
    ShapeOfOp,
    StoreOp,
    TensorToShapeOp,
    ViewOp,
)

from . import control
from .calls import call_dps
from .checks import match_cast, require
from .function import Emitter
from .memory import alloc_storage, alloc_tensor, constant, copy, keep, view
from .messages import assert_, print_
from .scalars import ARITHMETIC, extract, store, to_shape

EMITTERS: Mapping[type[ir.OpView], Emitter] = {
    AllocStorageOp: alloc_storage,
    AllocTensorOp: alloc_tensor,
    AssertOp: assert_,
    CallDpsOp: call_dps,
    CopyOp: copy,
    KeepOp: keep,
    MakeShapeOp: lambda host, op: None,  # shape values are in their types
    MatchCastOp: match_cast,
    PrintOp: print_,
    RequireOp: require,
    ShapeOfOp: lambda host, op: None,
    StoreOp: store,
    TensorToShapeOp: to_shape,
    ViewOp: view,
    **ARITHMETIC,
    arith.ConstantOp: constant,
    scf.ForOp: control.for_,
    scf.IfOp: control.if_,
    scf.IndexSwitchOp: control.index_switch,
    scf.WhileOp: control.while_,
    tensor.DimOp: control.dim,
    tensor.ExtractOp: extract,
}
