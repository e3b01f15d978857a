"""Makes allocation explicit: calls that return tensors become calls that fill them.

    %y = "graph.call_tir"(%x) {callee = @exp} : (tensor<4xf32>) -> tensor<4xf32>
      ->
    %y = "graph.alloc_tensor"() : () -> tensor<4xf32>
    "graph.call_dps"(%x, %y) {callee = @exp}

A call of a kernel that only reshapes becomes a view; `call_tir_inplace` writes into its
operands, which must not be read afterwards, and may be an argument only if `graph.inout` says so.
Dataflow blocks are dissolved first, since order matters from here on.

Needs: no operator that is not a call. Leaves: no `call_tir`, `call_tir_inplace` or
`call_dps_library`. Source: paper §4.3; TVM `CallTIRRewrite`.
"""

from dataclasses import dataclass

from relax_mlir.analysis.functions import graph_functions, inout_arguments
from relax_mlir.bindings import arith, func, ir, scf
from relax_mlir.dialects.graph import (
    AllocTensorOp,
    CallDpsLibraryOp,
    CallDpsOp,
    CallTirInplaceOp,
    CallTirOp,
    MatchCastOp,
    ViewOp,
    annotation_of,
)
from relax_mlir.dialects.tir import prim_funcs
from relax_mlir.passes import Pass, PassFailure
from relax_mlir.rewriting import safe_erase

RESHAPE = "tir.reshape"
DATAFLOW = "graph.dataflow"


@dataclass(frozen=True)
class LowerCalls(Pass):
    """Makes allocation explicit: calls that return tensors become calls that fill them."""

    def run(self, op: ir.Operation) -> None:
        """Rewrites every graph function of the module."""
        reshapes = {p.name for p in prim_funcs(op) if RESHAPE in p.op.attributes}
        for function in graph_functions(op):
            dissolve_dataflow(function.entry_block)
            for call in list(function.entry_block.operations):
                if isinstance(call, CallTirOp) and call.callee_name in reshapes:
                    _to_view(call)
                elif isinstance(call, CallTirOp | CallDpsLibraryOp):
                    _to_dps(call, [-1] * len(call.outs))
                elif isinstance(call, CallTirInplaceOp):
                    _check_overwritten(function, call)
                    _to_dps(call, call.inplace)


def dissolve_dataflow(block: ir.Block) -> None:
    """Moves the ops of dataflow blocks in front of them and erases the blocks."""
    for region_op in list(block.operations):
        if not isinstance(region_op, scf.ExecuteRegionOp) or DATAFLOW not in region_op.attributes:
            continue
        *body, terminator = list(region_op.regions[0].blocks[0].operations)
        for op in body:
            op.move_before(region_op)
        for result, value in zip(region_op.results, list(terminator.operands)):
            result.replace_all_uses_with(value)
        safe_erase(region_op)


def _check_overwritten(function: func.FuncOp, call: CallTirInplaceOp) -> None:
    """Refuses to write into what is the caller's, a constant, or read afterwards."""
    inout = inout_arguments(function).values()
    for index in filter(lambda index: index >= 0, call.inplace):
        value = call.ins[index]
        for use in value.uses:
            if _is_later(use.owner.operation, call.operation):
                note = (use.owner, "it is read here")
                raise PassFailure(call, f"overwrites operand {index}, which is read later", [note])
        origin = _origin(value)
        if isinstance(origin, ir.BlockArgument) and origin.arg_number not in inout:
            raise PassFailure(
                call, f"overwrites argument {origin.arg_number}, which is not marked graph.inout"
            )
        if isinstance(origin, ir.OpResult) and isinstance(origin.owner.opview, arith.ConstantOp):
            raise PassFailure(call, f"overwrites operand {index}, which is a constant")


def _is_later(op: ir.Operation, call: ir.Operation) -> bool:
    return op.block == call.block and call.is_before_in_block(op)


def _origin(value: ir.Value) -> ir.Value:
    """The value whose memory this one is."""
    while isinstance(value, ir.OpResult) and isinstance(value.owner.opview, ViewOp | MatchCastOp):
        value = value.owner.opview.input
    return value


def _to_view(call: CallTirOp) -> None:
    with ir.InsertionPoint(call), call.location:
        view = ViewOp.build(call.ins[0], annotation_of(call.outs[0]))
    call.outs[0].replace_all_uses_with(view.result)
    safe_erase(call)


def _to_dps(
    call: CallTirOp | CallTirInplaceOp | CallDpsLibraryOp, inplace: list[int] | tuple[int, ...]
) -> None:
    ins = call.ins
    with ir.InsertionPoint(call), call.location:
        outs = [
            AllocTensorOp.build(annotation_of(out)).result if index < 0 else ins[index]
            for out, index in zip(call.outs, inplace)
        ]
        sources = [value for index, value in enumerate(ins) if index not in inplace]
        CallDpsOp.build(call.callee_name, sources, outs, call.symbol_arguments)
    for old, new in zip(call.outs, outs):
        old.replace_all_uses_with(new)
    safe_erase(call)
