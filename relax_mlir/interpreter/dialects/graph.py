"""Calls between functions and levels, casts, and explicit memory.

Tensors in a storage share its bytes, so a plan that assigns the same bytes to two live tensors
gives wrong results here too.
"""

from __future__ import annotations

import builtins
import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from relax_mlir.analysis.functions import inout_arguments
from relax_mlir.analysis.signatures import kind_conflict
from relax_mlir.analysis.symbols import dims_of
from relax_mlir.bindings import func, ir
from relax_mlir.diagnostics import Diagnostic
from relax_mlir.dialects.graph import (
    AllocStorageOp,
    AllocTensorOp,
    AnyTupleType,
    AssertOp,
    CallDpsOp,
    CallLibraryInplaceOp,
    CallOp,
    CallTirInplaceOp,
    CallTirOp,
    CopyOp,
    HostObjectType,
    InplaceCall,
    InvokeClosureOp,
    IsPresentOp,
    KeepOp,
    LibraryCall,
    MakeClosureOp,
    MatchCastOp,
    NodeOp,
    ObjectType,
    PrintOp,
    RequireOp,
    StoreOp,
    TensorType,
    TupleGetOp,
    TupleOp,
    ViewOp,
    annotation_of,
    elements_of,
    exact_dims,
    is_function,
    is_open,
    leaf_suffixes,
    leaf_types,
    workspace_of,
    workspace_type,
)
from relax_mlir.dialects.lib import DLPACK
from relax_mlir.dialects.tir import PrimFunc
from relax_mlir.errors import ExecutionError
from relax_mlir.interpreter import library
from relax_mlir.interpreter.binding import ABSENT, Absent, BoundDim, bind
from relax_mlir.interpreter.depth import MOST_CALLS
from relax_mlir.interpreter.elements import GARBAGE, garbage, stored_dtype
from relax_mlir.interpreter.elements import stored as read
from relax_mlir.interpreter.frame import Code, Frame
from relax_mlir.interpreter.instances import run_node
from relax_mlir.interpreter.text import message

from .tensor import extract

__all__ = ["read"]


def match_cast(frame: Frame, op: MatchCastOp, x: Any) -> Any:
    """The same memory; binds new symbols, and checks the other dims; of all elements of a tuple."""
    types, values = leaf_types(op.result.type), list(_leaves(x, op.result.type))
    for type_, value in zip(types, values, strict=True):
        _require_kind(value, type_)
    where = [f" of element {suffix[1:]}" * bool(suffix) for suffix in leaf_suffixes(op.result.type)]
    bind(
        [
            BoundDim(dim, getattr(value, "shape", value)[axis], f"match_cast: dim {axis}{at}")
            for type_, value, at in zip(types, values, where, strict=True)
            for axis, dim in enumerate(dims_of(annotation_of(type_)))
            if dim is not None
        ],
        frame.symbols,
    )
    for fact in frame.signature.facts:
        frame.symbols.require(fact, frame.signature.name)
    return x


def _require_kinds(value: Any, type_: ir.Type) -> None:
    """Raises ValueError if a value, or an element of it, is not of the type, whatever its dims."""
    for leaf, wanted in zip(_leaves(value, type_), leaf_types(type_), strict=True):
        _require_kind(leaf, wanted)


def _require_kind(value: Any, type_: ir.Type) -> None:
    """Raises ValueError if an object is not of the type, whatever its dims."""
    if isinstance(type_, ObjectType):
        return
    if is_function(type_) or isinstance(value, Closure):
        _require_function(value, type_)
    elif isinstance(type_, AnyTupleType):
        _require_tuple(value, type_)
    elif isinstance(type_, ir.RankedTensorType | ir.UnrankedTensorType):
        annotation = TensorType.of(type_)
        is_array = isinstance(value, np.ndarray)
        if not is_array or not (
            annotation.is_of_any_element or value.dtype == stored_dtype(annotation.element)
        ):
            raise ValueError(f"asserts '{type_}', but the value has other elements")
        if annotation.dims is not None and value.ndim != len(annotation.dims):
            rank = len(annotation.dims)
            raise ValueError(f"has a result of rank {value.ndim}, but {rank} is declared")
    elif isinstance(value, np.ndarray) and value.ndim:
        raise ValueError(f"asserts '{type_}', but the value is a tensor")


def _require_function(value: Any, type_: ir.Type) -> None:
    if not is_function(type_):
        raise ValueError(f"asserts '{type_}', but the value is a function")
    if not isinstance(value, Closure):
        raise ValueError(f"asserts '{type_}', but the value is no function")
    if isinstance(type_, ir.FunctionType):
        own = value.type
        conflict = kind_conflict(type_, own)
        if conflict is not None:
            raise ValueError(f"asserts '{type_}', but the value is '{own}'")


def _require_tuple(value: Any, type_: ir.Type) -> None:
    if not isinstance(value, builtins.tuple):
        raise ValueError(f"asserts '{type_}', but the value is no such tuple")


def _leaves(value: Any, type_: ir.Type) -> Iterator[Any]:
    """The elements of a tuple, with those of nested ones; else the value."""
    types = elements_of(type_)
    if types is None:
        yield value
        return
    if not isinstance(value, builtins.tuple) or len(value) != len(types):
        raise ValueError(f"asserts '{type_}', but the value is no such tuple")
    for each, element in zip(value, types, strict=True):
        yield from _leaves(each, element)


def tuple(frame: Frame, op: TupleOp, *elements: Any) -> Any:
    """The elements."""
    return elements


def tuple_get(frame: Frame, op: TupleGetOp, elements: Sequence[Any]) -> Any:
    """An element."""
    return elements[op.element]


def require(frame: Frame, op: RequireOp) -> list[Any]:
    """Fails unless one of the facts holds."""
    if not any(fact.evaluate(frame.symbols) for fact in op.facts):
        facts = " or ".join(map(str, op.facts))
        known = frame.symbols.described(*op.facts)
        raise ExecutionError(f"'{op.attributes['by'].value}' requires {facts}, but {known}")
    return []


def print(frame: Frame, op: PrintOp, *values: Any) -> list[Any]:
    """Writes a line."""
    sys.stdout.write(_shown(op, values) + "\n")
    return []


def assert_(frame: Frame, op: AssertOp, condition: Any, *values: Any) -> list[Any]:
    """Fails unless the condition holds."""
    if not condition:
        where = Diagnostic.at(op.location, "error", "").where
        raise ExecutionError(f"{where}: " * bool(where) + _shown(op, values))
    return []


def _shown(op: PrintOp | AssertOp, values: Sequence[Any]) -> str:
    """The text of a message."""
    return message(op.pieces, values, _elements(op.values))


def _elements(values: Sequence[ir.Value]) -> list[str]:
    """The element types of values, or their types."""
    types = [value.type for value in values]
    return [str(t.element_type if isinstance(t, ir.ShapedType) else t) for t in types]


def run_function(code: Code, function: func.FuncOp, operands: Sequence[Any]) -> list[Any]:
    """Runs a tensor program on its arguments."""
    signature = code.signature(function)
    frame = Frame(code, signature, symbols=signature.bind(operands))
    return frame.run(function.entry_block, operands)


def _run_called(
    frame: Frame,
    op: CallOp | CallDpsOp | InvokeClosureOp,
    callee: func.FuncOp,
    operands: Sequence[Any],
) -> list[Any]:
    """Runs a graph function that another one calls; those that call themselves are counted."""
    name, depth = callee.name.value, frame.depth
    if frame.code.recursion.is_recursive(frame.signature.name, name):
        if depth == MOST_CALLS:
            text = f"a call of '@{name}' is nested {depth} calls deep, which is the limit"
            raise ExecutionError(str(Diagnostic.at(op.location, "error", text)))
        depth += 1
    signature = frame.code.signature(callee)
    inner = Frame(frame.code, signature, symbols=signature.bind(operands), depth=depth)
    return inner.run(callee.entry_block, operands)


def run_program(
    code: Code,
    name: str,
    ins: Sequence[np.ndarray],
    outs: Sequence[np.ndarray],
    indices: Sequence[int],
) -> list[np.ndarray]:
    """Runs a tensor program; its results have the dims of `outs`.

    A scheduled one writes to `outs`, and returns them.
    """
    function = code.functions.get(name)
    if function is None or function.is_external:
        raise ValueError(f"calls '@{name}', which has no body")
    kernel = PrimFunc(function)
    tensors = [
        x.view(stored_dtype(ir.ShapedType(parameter.type).element_type))
        for x, parameter in zip([*ins, *outs], [*kernel.ins, *kernel.outs], strict=True)
    ]
    results = run_function(code, function, [*tensors, *indices])
    if kernel.is_scheduled:
        return list(outs)
    results = [x.view(out.dtype) for x, out in zip(results, outs, strict=True)]
    for index, (result, out) in enumerate(zip(results, outs, strict=True)):
        if result.shape != out.shape:
            raise ValueError(
                f"has result {index} of dims {list(out.shape)}, but '@{name}' "
                f"returns {list(result.shape)}"
            )
    return results


def _fresh(frame: Frame, annotation: TensorType) -> np.ndarray:
    return garbage(frame.evaluate(exact_dims(annotation.dims)), annotation.element)


def call(frame: Frame, op: CallOp, *operands: Any) -> list[Any]:
    """Runs a graph function."""
    callee = frame.code.functions[op.callee_name]
    for given, value, type_ in zip(op.ins, operands, callee.type.inputs, strict=True):
        if is_open(annotation_of(given)):
            _require_kinds(value, type_)
    return _run_called(frame, op, callee, operands)


def node(frame: Frame, op: NodeOp, *operands: np.ndarray) -> list[np.ndarray]:
    """Runs a dataflow node once for each index of its grid."""
    return run_node(frame, op, operands)


@dataclass(frozen=True)
class Closure:
    """A function, and values for its first parameters."""

    function: func.FuncOp
    captured: Sequence[Any]

    @property
    def type(self) -> ir.FunctionType:
        """What it takes and returns."""
        inputs = list(self.function.type.inputs)[len(self.captured) :]
        return ir.FunctionType.get(inputs, list(self.function.type.results))


def make_closure(frame: Frame, op: MakeClosureOp, *captured: Any) -> Any:
    """The function and what it captures."""
    return [Closure(frame.code.functions[op.callee_name], captured)]


def invoke_closure(frame: Frame, op: InvokeClosureOp, closure: Any, *operands: Any) -> list[Any]:
    """Runs the function of a closure, whose own signature says what fits."""
    name, type_ = closure.function.name.value, closure.type
    counts = (len(type_.inputs), len(type_.results))
    if counts != (len(operands), len(op.outs)):
        raise ValueError(
            f"has {len(operands)} operands and {len(op.outs)} results, but '@{name}' "
            f"takes {counts[0]} and returns {counts[1]}"
        )
    for value, type_ in zip(operands, closure.type.inputs, strict=True):
        _require_kinds(value, type_)
    return _run_called(frame, op, closure.function, (*closure.captured, *operands))


def call_tir(frame: Frame, op: CallTirOp, *operands: np.ndarray) -> list[np.ndarray]:
    """Runs a tensor program on new outputs."""
    outs = [_fresh(frame, TensorType.of(out)) for out in op.outs]
    indices = frame.evaluate(op.symbol_arguments)
    return run_program(frame.code, op.callee_name, operands, outs, indices)


def call_tir_inplace(frame: Frame, op: CallTirInplaceOp, *operands: np.ndarray) -> list[Any]:
    """Runs a tensor program on outputs that are copies of operands."""
    ins, outs = _outputs(frame, op, operands)
    indices = frame.evaluate(op.symbol_arguments)
    return run_program(frame.code, op.callee_name, ins, outs, indices)


def _outputs(
    frame: Frame, op: InplaceCall, operands: Sequence[np.ndarray]
) -> list[list[np.ndarray]]:
    """The operands that are only read, and outputs, which are copies of the others or new."""
    outs = [
        _fresh(frame, TensorType.of(out)) if index < 0 else operands[index].copy()
        for out, index in zip(op.outs, op.inplace, strict=True)
    ]
    return [[x for index, x in enumerate(operands) if index not in op.inplace], outs]


def is_present(frame: Frame, op: IsPresentOp, x: np.ndarray | Absent) -> bool:
    """Whether the caller has passed an argument."""
    return x is not ABSENT


def call_library(frame: Frame, op: LibraryCall, *operands: np.ndarray) -> list[np.ndarray]:
    """Computes the library's function in NumPy, or calls it, if it takes DLPack descriptors."""
    declared, workspace = frame.code.libraries[op.callee_name], _workspace(frame, op)
    if declared.convention.value != DLPACK:
        lifted = [_fresh(frame, TensorType.of(out)) for out in op.outs[1:]]
        return [*_call_library(frame, op, operands), *lifted]
    is_object = [isinstance(value.type, HostObjectType) for value in (*op.ins, *op.outs)]
    outs = [
        np.zeros((), np.int64) if is_handle else _fresh(frame, TensorType.of(out))
        for out, is_handle in zip(op.outs, is_object[len(op.ins) :], strict=True)
    ]
    elements = [*_elements([*op.ins, *op.outs]), *("ui8" for _ in workspace)]
    handles = np.flatnonzero(is_object).tolist()
    library.call_dlpack(declared, operands, [*outs, *workspace], elements, handles)
    return outs


call_dps_library = call_library


def call_library_inplace(
    frame: Frame, op: CallLibraryInplaceOp, *operands: np.ndarray
) -> list[np.ndarray]:
    """Calls the library's function on outputs that are copies of operands."""
    ins, outs = _outputs(frame, op, operands)
    updated = {index for index in op.inplace_indices if index >= 0}
    read = [value for index, value in enumerate(op.ins) if index not in updated]
    workspace = _workspace(frame, op)
    elements = [*_elements([*read, *op.outs]), *("ui8" for _ in workspace)]
    declared = frame.code.libraries[op.callee_name]
    library.call_dlpack(declared, ins, [*outs, *workspace], elements)
    return outs


def _workspace(frame: Frame, op: LibraryCall) -> list[np.ndarray]:
    """The memory that a function uses while it runs, unless results of the call are that."""
    return [_fresh(frame, workspace_type(size)) for size in workspace_of(op)]


def _call_library(
    frame: Frame, op: LibraryCall | CallDpsOp, operands: Sequence[np.ndarray]
) -> list[np.ndarray]:
    """The result of a function that takes no descriptors."""
    convention = frame.code.libraries[op.callee_name].convention.value
    function = getattr(library, convention, None)
    if function is None:
        raise ValueError(f"calls by the convention '{convention}', which is not known")
    return [function(*operands, *frame.evaluate(op.symbol_arguments))]


def alloc_storage(frame: Frame, op: AllocStorageOp) -> np.ndarray:
    """A new array of bytes."""
    (size,) = frame.evaluate([op.bytes])
    return np.full(size, GARBAGE, np.uint8)


def alloc_tensor(frame: Frame, op: AllocTensorOp, storage: np.ndarray | None = None) -> np.ndarray:
    """A tensor in a storage, or in memory of its own."""
    annotation = TensorType.of(op.result)
    if storage is None:
        return _fresh(frame, annotation)
    dtype, shape = stored_dtype(annotation.element), frame.evaluate(exact_dims(annotation.dims))
    (offset,), size = frame.evaluate([op.byte_offset]), math.prod(shape) * dtype.itemsize
    if offset < 0 or offset + size > storage.size:
        raise ValueError(f"takes bytes {offset} to {offset + size} of {storage.size}")
    return storage[offset : offset + size].view(dtype).reshape(shape)


def view(frame: Frame, op: ViewOp, x: np.ndarray) -> np.ndarray:
    """The same memory under another type."""
    annotation = TensorType.of(op.result)
    dtype = stored_dtype(annotation.element)
    seen = x.view(dtype).reshape(frame.evaluate(exact_dims(annotation.dims)))
    assert seen.size == 0 or np.may_share_memory(seen, x)
    return seen


def keep(frame: Frame, op: KeepOp, x: np.ndarray) -> np.ndarray:
    """A copy, in memory that the copy of an earlier round loses."""
    copy, earlier = x.copy(), frame.values.get(op.result)
    if earlier is not None:
        earlier.view(np.uint8).fill(GARBAGE) if earlier.ndim else earlier.fill(0)
    return copy


def store(
    frame: Frame, op: StoreOp, value: Any, destination: np.ndarray, *indices: int
) -> list[Any]:
    """Writes an element."""
    extract(destination, *indices)
    destination[indices] = value
    return []


def copy(frame: Frame, op: CopyOp, x: np.ndarray, destination: np.ndarray) -> list[Any]:
    """Writes a tensor to the memory of another one."""
    if x.shape != destination.shape:
        raise ValueError(f"copies dims {list(x.shape)} to {list(destination.shape)}")
    destination[...] = x
    return []


def _passed(
    callee: func.FuncOp, ins: Sequence[np.ndarray], outs: Sequence[np.ndarray]
) -> list[np.ndarray]:
    """The arguments of a graph function; those that it updates are outputs of the call."""
    updated = {argument: outs[result] for result, argument in inout_arguments(callee).items()}
    rest = iter(ins)
    return [updated[i].copy() if i in updated else next(rest) for i in range(len(callee.arguments))]


def call_dps(frame: Frame, op: CallDpsOp, *operands: np.ndarray) -> list[Any]:
    """Runs a kernel and writes its results to the last operands."""
    first = len(op.sources)
    for written, out in enumerate(operands[first:], first):
        for other, x in enumerate(operands):
            if other != written and np.may_share_memory(out, x):
                does = "reads" if other < first else "also writes"
                raise ValueError(f"writes to operand {written} and {does} it as operand {other}")
    ins, outs = operands[:first], operands[first:]
    declared = frame.code.libraries.get(op.callee_name)
    if declared is not None and declared.convention.value == DLPACK:
        library.call_dlpack(declared, ins, outs, _elements(op.operation.operands))
        return []
    if declared is not None:
        results = [*_call_library(frame, op, ins), *outs[1:]]
    elif not PrimFunc.is_prim_func(frame.code.functions[op.callee_name]):
        callee = frame.code.functions[op.callee_name]
        results = _run_called(frame, op, callee, _passed(callee, ins, outs))
    else:
        indices = frame.evaluate(op.symbol_arguments)
        results = run_program(frame.code, op.callee_name, ins, outs, indices)
    for result, out in zip(results, outs, strict=True):
        out[...] = result
    return []
