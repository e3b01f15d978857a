"""What each call of a host function does: its kernel, bytes and floating-point operations."""

from collections.abc import Mapping

from relax_mlir.analysis.instructions import F32, unit_of
from relax_mlir.analysis.work import BYTES, FLOPS
from relax_mlir.bindings import func, ir
from relax_mlir.dialects.graph import CallDpsOp, TensorType, known_dims
from relax_mlir.dialects.lib import FunctionOp
from relax_mlir.symbolic import Expr, const, parse, product

from .dtypes import dlpack_dtype


def describe_sites(function: func.FuncOp) -> list[dict[str, str | None]]:
    """One description per call, in order; counts are expressions over the function's symbols.

    A count is None where the kernel does not say it; bytes are then those of all tensors.
    """
    kernels = {
        op.attributes["sym_name"].value: op
        for op in function.operation.parent.regions[0].blocks[0].operations
        if isinstance(op, func.FuncOp | FunctionOp)
    }
    calls = [op for op in function.entry_block.operations if isinstance(op, CallDpsOp)]
    called = {call.callee_name: kernels.get(call.callee_name) for call in calls}
    units = {
        name: unit_of(kernel) if isinstance(kernel, func.FuncOp) else F32
        for name, kernel in called.items()
    }
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
