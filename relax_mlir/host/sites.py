"""What each call of a host function does: its kernel, bytes and floating-point operations."""

import re
from collections.abc import Mapping

from relax_mlir.analysis.work import BYTES, FLOPS
from relax_mlir.bindings import func, ir
from relax_mlir.dialects.graph import CallDpsOp, TensorType, known_dims
from relax_mlir.dialects.lib import FunctionOp
from relax_mlir.rewriting import walk_ops
from relax_mlir.symbolic import Expr, const, parse, product

from .dtypes import dlpack_dtype

F32, BF16, INT8 = "f32", "bf16", "int8"
_UNITS = {"dpbf16ps": BF16, "vpdpbusd": INT8, "pmadd.ub.sw": INT8}
"""Instructions by parts of LLVM's names, and the arithmetic that a machine's peak is known for."""


def describe_sites(function: func.FuncOp) -> list[dict[str, str | None]]:
    """One description per call, in order; counts are expressions over the function's symbols.

    A count is None where the kernel does not say it; bytes are then those of all tensors.
    """
    kernels = {
        op.attributes["sym_name"].value: op
        for op in function.operation.parent.regions[0].blocks[0].operations
        if isinstance(op, func.FuncOp | FunctionOp)
    }
    units = {}
    calls = [op for op in function.entry_block.operations if isinstance(op, CallDpsOp)]
    for name in {call.callee_name for call in calls}:
        units[name] = _unit(kernels[name]) if name in kernels else F32
    return [_site(call, kernels, units[call.callee_name]) for call in calls]


def _site(call: CallDpsOp, kernels: Mapping[str, ir.OpView], unit: str) -> dict[str, str | None]:
    kernel = kernels.get(call.callee_name)
    if isinstance(kernel, FunctionOp):
        flops, moved = _library_flops(call), None
    else:
        passed = _passed(call)
        flops, moved = (_count(kernel, name, passed) for name in (FLOPS, BYTES))
    moved = _whole_bytes(call) if moved is None else moved
    return {
        "kernel": call.callee_name,
        "bytes": None if moved is None else str(moved),
        "flops": None if flops is None else str(flops),
        "unit": unit,
    }


def _passed(call: CallDpsOp) -> dict[str, Expr]:
    """What `analysis.work` names, as the call passes it; dims that are not known are left out."""
    values: dict[str, Expr] = {}
    for number, value in enumerate(call.ins):
        for axis, dim in enumerate(TensorType.of(value).dims or ()):
            if dim is not None:
                values[f"a{number}d{axis}"] = dim
    for number, symbol in enumerate(call.symbol_arguments):
        if symbol is not None:
            values[f"s{number}"] = symbol
    return values


def _count(kernel: ir.OpView | None, name: str, passed: Mapping[str, Expr]) -> Expr | None:
    if kernel is None or name not in kernel.attributes:
        return None
    count = parse(ir.StringAttr(kernel.attributes[name]).value)
    return count.substitute(passed) if count.symbols <= passed.keys() else None


def _whole_bytes(call: CallDpsOp) -> Expr | None:
    """Each tensor once."""
    total = const(0)
    for value in call.ins:
        annotation = TensorType.of(value)
        dims = known_dims(annotation.dims)
        if dims is None:
            return None
        _, bits = dlpack_dtype(annotation.element)
        total = total + product(dims) * (bits // 8)
    return total


def _library_flops(call: CallDpsOp) -> Expr | None:
    """Of a matrix product, which is what libraries are called for."""
    lhs, *_, out = (known_dims(TensorType.of(value).dims) for value in call.ins)
    if lhs is None or out is None:
        return None
    return product(out) * lhs[-1] * 2


def _unit(kernel: ir.OpView) -> str:
    """The arithmetic that a scheduled kernel's products are made of."""
    if isinstance(kernel, FunctionOp):
        return F32
    pattern = re.compile("|".join(map(re.escape, _UNITS)))
    for op in walk_ops(kernel):
        if op.operation.name == "llvm.call_intrinsic":
            found = pattern.search(op.attributes["intrin"].value)
            if found:
                return _UNITS[found.group()]
    return F32
