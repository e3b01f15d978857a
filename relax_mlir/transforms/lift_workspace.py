"""Has graph functions allocate what kernels and library functions need while they run.

    func.func private @k(%x: memref<?x64xf32>, %y: memref<?x64xf32>) {
      %n = memref.dim %x, %c0
      %0 = arith.muli %n, %c64
      %t = memref.alloc(%0) : memref<?xf32>                                 ...
    %y = "graph.call_tir"(%x) {callee = @k} : (tensor<n x 64>) -> tensor<n x 64>
      ->
    func.func private @k(%x: memref<?x64xf32>, %y: memref<?x64xf32>, %t: memref<?xf32>)
    %y, %t = "graph.call_tir"(%x) {callee = @k} : (tensor<n x 64>) -> (tensor<n x 64>, tensor<64*n>)

    %y = "graph.call_dps_library"(%x) {graph.workspace = #graph.shape<["64*n"]>}
      ->
    %y, %t = "graph.call_dps_library"(%x) : (...) -> (tensor<n x 64>, tensor<64*n x ui8>)

A workspace is a result that nobody reads: `relax-plan-memory` gives it memory that other tensors
have before and after the call. Scratch memory, where temporaries are otherwise, is the thread's own
and stays allocated between calls.

A temporary is lifted if it is allocated once per call, its size follows from the dims of the
kernel's arguments, and it is not provably smaller than `min-bytes`. Those that each iteration of a
parallel loop has for itself remain scratch, as do those of kernels whose calls are lowered already.
With `kernels=false`, only what library functions ask for is lifted.

Needs: `relax-schedule` for kernels, and known dims. Leaves: `relax-lower-calls` allocates what was
    lifted, and takes library calls only without further workspaces.
Source: paper §4.4, Figure 11; MLC LLM `LiftTIRGlobalBufferAlloc`.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from relax_mlir.bindings import ir, memref
from relax_mlir.dialects.graph import (
    NUM_WORKSPACES,
    WORKSPACE,
    CallLibraryInplaceOp,
    CallTirInplaceOp,
    CallTirOp,
    Dim,
    LibraryCall,
    TensorType,
    annotation_of,
    element_bits,
    num_workspaces,
    to_mlir,
    workspace_of,
    workspace_type,
)
from relax_mlir.dialects.tir import PrimFunc, prim_funcs
from relax_mlir.passes import Pass
from relax_mlir.program.index_values import IndexValues
from relax_mlir.rewriting import replace, safe_erase, walk_ops
from relax_mlir.symbolic import Expr, bounds, const

Call = CallTirOp | CallTirInplaceOp
NUM_OUTS = "tir.num_outs"


@dataclass(frozen=True)
class LiftWorkspace(Pass):
    """Has graph functions allocate what kernels and library functions need while they run."""

    needs_verified: ClassVar[bool] = True

    kernels: bool = True
    min_bytes: int = 4096

    def run(self, op: ir.Operation) -> None:
        """Changes library calls, and each scheduled kernel that the module calls, and its calls."""
        for call in walk_ops(op):
            if isinstance(call, LibraryCall):
                _lift_library(call)
        if self.kernels:
            self._lift_kernels(op)

    def _lift_kernels(self, op: ir.Operation) -> None:
        calls: dict[str, list[Call]] = defaultdict(list)
        others = set[str]()
        for user in walk_ops(op):
            if isinstance(user, Call):
                calls[user.callee_name].append(user)
            elif "callee" in user.attributes:
                others.add(str(user.attributes["callee"]).removeprefix("@"))
        for kernel in prim_funcs(op):
            if kernel.is_scheduled and not kernel.op.is_external and kernel.name not in others:
                self._lift(kernel, calls[kernel.name])

    def _lift(self, kernel: PrimFunc, calls: Sequence[Call]) -> None:
        workspaces = [each for each in self._workspaces(kernel) if _is_known(each, calls)]
        if workspaces and calls:
            _add_parameters(kernel, workspaces)
            for call in calls:
                _add_results(call, workspaces)

    def _workspaces(self, kernel: PrimFunc) -> "list[_Workspace]":
        """The temporaries that are large enough, in order."""
        sizes = IndexValues(kernel)
        workspaces = []
        for op in kernel.op.entry_block.operations:
            if isinstance(op, memref.AllocOp):
                type_, frees = ir.MemRefType(op.memref.type), _frees(op)
                size = _size(op, type_, sizes)
                if size is not None and frees is not None:
                    most = bounds(size * (element_bits(type_.element_type) // 8))[1]
                    if most is None or most >= self.min_bytes:
                        workspaces.append(_Workspace(op, frees, type_, size))
        return workspaces


@dataclass(frozen=True)
class _Workspace:
    """A temporary of a kernel: where it is allocated and freed, and its size over the arguments."""

    alloc: memref.AllocOp
    frees: memref.DeallocOp
    type: ir.MemRefType
    size: Expr

    def annotation(self, call: Call) -> TensorType | None:
        """What a call returns as workspace, None if a dim that the size needs is not known."""
        values = _dims(call)
        if not self.size.symbols <= values.keys():
            return None
        return TensorType((self.size.substitute(values),), self.type.element_type)


def _size(op: memref.AllocOp, type_: ir.MemRefType, sizes: IndexValues) -> Expr | None:
    """The element count of a flat buffer; None if it is another one, or has no formula."""
    element = type_.element_type
    is_stored = isinstance(element, ir.FloatType) or (
        isinstance(element, ir.IntegerType) and element.width >= 8
    )
    is_plain = type_.rank == 1 and type_ == ir.MemRefType.get(type_.shape, element)
    if not is_stored or not is_plain or "alignment" in op.attributes:
        return None
    dynamic = list(op.dynamicSizes)
    return sizes.value(dynamic[0]) if dynamic else const(type_.shape[0])


def _frees(op: memref.AllocOp) -> memref.DeallocOp | None:
    """The one op that frees a buffer, in the same block; None if there is another way."""
    users = [use.owner.opview for use in op.memref.uses]
    frees = [user for user in users if isinstance(user, memref.DeallocOp)]
    if len(frees) != 1 or frees[0].operation.block != op.operation.block:
        return None
    return frees[0]


def _is_known(workspace: _Workspace, calls: Sequence[Call]) -> bool:
    return all(workspace.annotation(call) is not None for call in calls)


def _dims(call: Call) -> dict[str, Expr]:
    """The values of the names that `IndexValues` has for dims and index arguments."""
    inplace = call.inplace if isinstance(call, CallTirInplaceOp) else ()
    reads = [value for index, value in enumerate(call.ins) if index not in inplace]
    named: dict[str, Dim] = {}
    for index, value in enumerate([*reads, *call.outs]):
        annotation = annotation_of(value)
        if isinstance(annotation, TensorType):
            for axis, dim in enumerate(annotation.dims or ()):
                named[IndexValues.dim_name(index, axis)] = dim
    for index, dim in enumerate(call.symbol_arguments):
        named[IndexValues.argument_name(index)] = dim
    return {name: dim for name, dim in named.items() if dim is not None}


def _add_parameters(kernel: PrimFunc, workspaces: Sequence[_Workspace]) -> None:
    """Makes the temporaries parameters, after the outputs and before the index arguments."""
    function, block = kernel.op, kernel.op.entry_block
    indices, tensors = kernel.sym_args, len(kernel.arguments) - len(kernel.sym_args)
    attributes = list(function.arg_attrs) if "arg_attrs" in function.attributes else []
    for each in workspaces:
        parameter = block.add_argument(each.type, each.alloc.location)
        safe_erase(each.frees)
        each.alloc.memref.replace_all_uses_with(parameter)
        safe_erase(each.alloc)
    for index in indices:
        index.replace_all_uses_with(block.add_argument(index.type, function.location))
    for _ in indices:
        block.erase_argument(tensors)
    types = [argument.type for argument in block.arguments]
    type_ = ir.FunctionType.get(types, function.type.results)
    function.attributes["function_type"] = ir.TypeAttr.get(type_)
    if attributes:
        none = [ir.DictAttr.get({}) for _ in workspaces]
        function.arg_attrs = [*attributes[:tensors], *none, *attributes[tensors:]]
    count = kernel.num_outs + len(workspaces)
    function.attributes[NUM_OUTS] = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), count)


def _lift_library(call: LibraryCall) -> None:
    """Has a library call return the workspaces that it asks for."""
    sizes = workspace_of(call)
    if not sizes:
        return
    types = [annotation_of(result) for result in call.outs]
    types += [workspace_type(size) for size in sizes]
    attributes = {each: call.attributes[each] for each in call.attributes if each != WORKSPACE}
    count = num_workspaces(call) + len(sizes)
    attributes[NUM_WORKSPACES] = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), count)
    if isinstance(call, CallLibraryInplaceOp):
        inplace = [*call.inplace, *(-1 for _ in sizes)]
        attributes["inplace_indices"] = ir.DenseI64ArrayAttr.get(inplace)
    with ir.InsertionPoint(call), call.location:
        made = type(call).create(call.ins, [to_mlir(type_) for type_ in types], attributes)
    replace(call, made.outs[: len(call.outs)])


def _add_results(call: Call, workspaces: Sequence[_Workspace]) -> None:
    """Has a call return the workspaces, too."""
    types = [annotation_of(result) for result in call.outs]
    types += [each for each in (w.annotation(call) for w in workspaces) if each is not None]
    name, arguments = call.callee_name, call.symbol_arguments
    with ir.InsertionPoint(call), call.location:
        if isinstance(call, CallTirInplaceOp):
            inplace = [*call.inplace, *(-1 for _ in workspaces)]
            made = CallTirInplaceOp.build(name, call.ins, inplace, types, arguments).outs
        else:
            made = CallTirOp.build(name, call.ins, types, arguments).outs
    replace(call, made[: len(call.outs)])
