"""What the program of one instance of a dataflow node may contain.

Arithmetic, structured control flow that ends, elements of the tensors that it gets, and tensors of
its own, whose dims are static. An index outside of a tensor is clamped (docs/dataflow.md), so no
input makes an instance read out of bounds.
"""

from collections.abc import Iterator

from relax_mlir.bindings import func, ir, scf, tensor
from relax_mlir.dialects.tir import ACCESS, IN, INOUT, SHARED, AtomicOp, BarrierOp, Query
from relax_mlir.rewriting import walk_ops

from .tensor_programs import reason_against

DIALECTS = ("arith", "linalg", "math")
OTHERS = (
    "scf.for", "scf.if", "scf.yield", "tensor.dim", "tensor.empty", "tensor.extract",
    "tensor.from_elements", "tensor.generate", "tensor.insert", "tensor.splat", "tensor.yield",
)  # fmt: skip
READS = (tensor.ExtractOp, tensor.DimOp)
_PASSES_ON = (AtomicOp, BarrierOp, scf.ForOp, scf.IfOp, scf.YieldOp)
"""Ops that may pass on a shared tensor, whose dims need not be static."""


def broken_in_leaf(function: func.FuncOp) -> Iterator[tuple[ir.OpView, str]]:
    """The ops of a leaf that it must not contain, each with the reason."""
    if function.is_external:
        return
    for type_ in (*function.type.inputs, *function.type.results):
        if not _is_piece(type_):
            yield function, f"has '{type_}'; a leaf takes and returns scalars and ranked tensors"
    shared = {function.type.inputs[i] for i in _marked(function, SHARED)}
    for type_ in function.type.results:
        is_shared = type_ in shared
        if isinstance(type_, ir.RankedTensorType) and not (type_.has_static_shape or is_shared):
            yield function, f"returns '{type_}'; a leaf returns scalars and tensors of static dims"
    if len(function.body.blocks) != 1:
        yield function, "is a leaf of several blocks; control flow of leaves is scf"
        return
    yield from _broken_access(function)
    for op in walk_ops(function):
        reason = _reason(op, shared)
        if reason is not None:
            yield op, reason


def access_of(function: func.FuncOp) -> list[str]:
    """What a leaf does with each parameter; raises ValueError if an attribute says neither."""
    if "arg_attrs" not in function.attributes:
        return [IN] * len(function.type.inputs)
    entries = [ir.DictAttr(entry) for entry in ir.ArrayAttr(function.attributes["arg_attrs"])]
    marks = [str(entry[ACCESS]).strip('"') if ACCESS in entry else IN for entry in entries]
    for mark in marks:
        if mark not in (IN, INOUT, SHARED):
            raise ValueError(f"has '{ACCESS}' {mark}; expects {IN}, {INOUT} or {SHARED}")
    return marks


def updated_parameters(function: func.FuncOp) -> list[int]:
    """The parameters that are `inout`; the first results of the leaf are their new values."""
    return [i for i, mark in enumerate(access_of(function)) if mark == INOUT]


def shared_parameters(function: func.FuncOp) -> list[int]:
    """The parameters that all instances update; the first results are their new values."""
    return _marked(function, SHARED)


def _marked(function: func.FuncOp, mark: str) -> list[int]:
    try:
        return [i for i, each in enumerate(access_of(function)) if each == mark]
    except ValueError:
        return []  # an error of its own


def _broken_access(function: func.FuncOp) -> Iterator[tuple[ir.OpView, str]]:
    try:
        updated = updated_parameters(function)
    except ValueError as error:
        yield function, str(error)
        return
    inputs, results = function.type.inputs, function.type.results
    for result, index in enumerate(updated):
        is_tensor = (
            isinstance(inputs[index], ir.RankedTensorType) and inputs[index].has_static_shape
        )
        if not is_tensor or result >= len(results) or results[result] != inputs[index]:
            what = f"parameter {index} of '{inputs[index]}', which is {INOUT}"
            yield function, f"has {what}; expects a static tensor that is result {result} too"
    for op in walk_ops(function, tensor.InsertOp):
        for root in _roots(op.dest):
            index = root.arg_number
            if index not in updated:
                mark = access_of(function)[index]
                wanted = "tir.atomic" if mark == SHARED else f'{ACCESS} = "{INOUT}"'
                yield op, f"stores to parameter {index}, which is {mark}; expects {wanted}"


def _roots(value: ir.Value) -> Iterator[ir.BlockArgument]:
    """The parameters that a store updates, but for those that earlier stores of a chain do."""
    for root in origins(value):
        if isinstance(root.owner, ir.Block) and isinstance(root.owner.owner, func.FuncOp):
            yield ir.BlockArgument(root)


def origins(value: ir.Value) -> list[ir.Value]:
    """What loops, branches and atomic updates may have made a value of: none of their results."""
    seen, rest, roots = {value}, [value], []
    while rest:
        value = rest.pop()
        sources = _sources(value)
        if not sources:
            roots.append(value)
        before = [source for source in sources if source not in seen]
        seen.update(before)
        rest += before
    return roots


def _sources(value: ir.Value) -> list[ir.Value]:
    """What loops, branches and atomic updates may have passed on as a value."""
    owner = value.owner
    if isinstance(owner, ir.Block):
        loop, index = owner.owner, ir.BlockArgument(value).arg_number - 1
        if not isinstance(loop, scf.ForOp) or index < 0:
            return []
        return [loop.initArgs[index], _yielded(loop.body)[index]]
    op, index = owner.opview, list(owner.results).index(value)
    if isinstance(op, scf.ForOp):
        return [op.initArgs[index], _yielded(op.body)[index]]
    if isinstance(op, scf.IfOp):
        return [_yielded(region.blocks[0])[index] for region in op.operation.regions]
    if isinstance(op, AtomicOp):
        return [op.dest]
    return []


def _yielded(block: ir.Block) -> list[ir.Value]:
    return list(block.operations[len(block.operations) - 1].operands)


def _reason(op: ir.OpView, shared: set[ir.Type]) -> str | None:
    """Why an op cannot be in a leaf; None if it can. Shared tensors are of some types."""
    name = op.operation.name
    if name in ("func.func", "func.return"):
        return None
    if isinstance(op, Query):
        if not isinstance(op.result.type, ir.IndexType):
            return f"has a result of '{op.result.type}'; expects index"
        level = op.position[0]
        return f"asks for level {level}; the leaf is level 0" if level < 0 else None
    if isinstance(op, AtomicOp | BarrierOp):
        return None  # analysis/shared_memory.py has their rules
    if name == "graph.node":
        return "cannot be in a leaf; expects an internal node, which has nodes only"
    if name.partition(".")[0] not in DIALECTS and name not in OTHERS:
        return f"cannot be in a leaf; expects {', '.join(DIALECTS)}, {', '.join(OTHERS)}"
    if (general := reason_against(op.operation)) is not None:
        return general
    if isinstance(op, scf.ForOp) and not _is_positive(op.step):
        return "has a step that is no constant above 0, so it may not end"
    if isinstance(op, READS):
        return None
    if isinstance(op, tensor.InsertOp) and 0 in ir.RankedTensorType(op.dest.type).shape:
        return f"stores to '{op.dest.type}', which has no element"
    for value in (*op.operation.operands, *op.operation.results):
        type_ = value.type
        if type_ in shared and isinstance(op, _PASSES_ON):
            continue
        if isinstance(type_, ir.RankedTensorType) and not type_.has_static_shape:
            return f"has '{type_}' in a leaf; tensor.extract reads tensors of dynamic dims"
    return None


def _is_positive(value: ir.Value) -> bool:
    owner = value.owner
    if isinstance(owner, ir.Block) or owner.name != "arith.constant":
        return False
    return bool(ir.IntegerAttr(owner.attributes["value"]).value > 0)


def _is_piece(type_: ir.Type) -> bool:
    """Whether instances may take or return a type: scalars of a memory format, tensors of them."""
    if isinstance(type_, ir.RankedTensorType):
        type_ = type_.element_type
    if isinstance(type_, ir.IntegerType):
        return bool(type_.is_signless) and type_.width in (1, 8, 16, 32, 64)
    return isinstance(type_, ir.F16Type | ir.BF16Type | ir.F32Type | ir.F64Type)
