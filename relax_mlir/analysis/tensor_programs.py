"""The ops that a tensor program may contain: one rule, for the verifier and the scheduler.

Ops of linalg, tensor, scf, arith, math and of the dialects that they lower to (affine, index,
bufferization, memref, ub), on scalars, tensors and memrefs of numeric types; in one block.
"""

from collections.abc import Iterator

from relax_mlir.bindings import func, ir

DIALECTS = (
    "affine", "arith", "bufferization", "index", "linalg", "math", "memref", "scf", "tensor", "ub",
)  # fmt: skip
WITHOUT_LOOPS = {
    f"{dialect}.{name}"
    for dialect, names in {
        "affine": ("dma_start", "dma_wait"),
        "arith": ("flush_denormals",),
        "linalg": ("pack", "softmax", "unpack", "winograd_filter_transform",
                   "winograd_input_transform", "winograd_output_transform"),
        "memref": ("alloca_scope", "atomic_rmw", "dma_start", "dma_wait", "generic_atomic_rmw",
                   "get_global", "realloc", "reinterpret_cast", "extract_aligned_pointer_as_index"),
        "tensor": ("gather", "scatter"),
        "ub": ("unreachable",),
    }.items()
    for name in names
}  # fmt: skip
"""Ops of these dialects that have no lowering to loops, or that reach outside the program."""


def unsupported(function: func.FuncOp) -> Iterator[tuple[ir.Operation, str]]:
    """The ops that a tensor program must not contain, each with the reason."""
    if len(function.regions[0].blocks) != 1:
        yield function.operation, "is a tensor program of several blocks; expects one"
        return
    for op in _walk(function.operation):
        reason = reason_against(op)
        if reason is not None:
            yield op, reason


def _walk(op: ir.Operation) -> Iterator[ir.Operation]:
    for region in op.regions:
        for block in region.blocks:
            for child in block.operations:
                yield child.operation
                yield from _walk(child.operation)


def reason_against(op: ir.Operation) -> str | None:
    """Why an op cannot be in a tensor program; None if it can."""
    dialect = op.name.partition(".")[0]
    if op.name != "func.return" and (dialect not in DIALECTS or op.name in WITHOUT_LOOPS):
        return f"cannot be in a tensor program; expects ops of {', '.join(DIALECTS)}"
    if op.name == "tensor.dim" and not _has_known_axis(op):
        return "asks for an extent at an index that is not a constant within the rank"
    for value in op.results:
        if not _is_numeric(value.type):
            return f"has a result of '{value.type}'; expects numbers, or tensors or memrefs of them"
    return None


def _has_known_axis(op: ir.Operation) -> bool:
    type_, owner = op.operands[0].type, op.operands[1].owner
    if isinstance(owner, ir.Block) or owner.name != "arith.constant":
        return False
    axis = ir.IntegerAttr(owner.attributes["value"]).value
    return isinstance(type_, ir.RankedTensorType) and 0 <= axis < type_.rank


def _is_numeric(type_: ir.Type) -> bool:
    if isinstance(type_, ir.RankedTensorType | ir.MemRefType):
        type_ = type_.element_type
    if isinstance(type_, ir.IntegerType):
        return type_.is_signless and type_.width in (1, 8, 16, 32, 64)
    return isinstance(type_, ir.IndexType | ir.F16Type | ir.BF16Type | ir.F32Type | ir.F64Type)
