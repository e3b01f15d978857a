"""Call sites of host functions: kernel, bytes and floating-point operations."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from relax_mlir.analysis.recursion import Recursion
from relax_mlir.analysis.signatures import parameter_types, unify
from relax_mlir.analysis.units import F32, unit_of
from relax_mlir.analysis.work import BYTES, FLOPS
from relax_mlir.bindings import func, ir
from relax_mlir.dialects.graph import CallDpsOp, TensorType, annotation_of, known_dims
from relax_mlir.dialects.lib import FunctionOp
from relax_mlir.dialects.tir import PrimFunc
from relax_mlir.rewriting import walk_ops
from relax_mlir.symbolic import Expr, const, parse, product

from .device_library import APIS
from .dtypes import dlpack_dtype
from .library import CONVENTIONS
from .private import passed_arguments


@dataclass(frozen=True)
class Site:
    """A call of a kernel, in a unit of arithmetic; counts are over the function's symbols.

    A count is None if the kernel does not have it; bytes are then those of all tensors.
    """

    kernel: str
    bytes: Expr | None
    flops: Expr | None
    unit: str

    def described(self) -> dict[str, str | None]:
        """The site as JSON."""
        counts = {"bytes": self.bytes, "flops": self.flops}
        texts = {name: None if n is None else str(n) for name, n in counts.items()}
        return {"kernel": self.kernel, **texts, "unit": self.unit}

    def seen_from(self, values: Mapping[str, Expr]) -> "Site":
        """The site in the symbols of a caller that passes `values`; None for unknown counts."""
        traffic, flops = (
            count.substitute(values)
            if count is not None and count.symbols <= values.keys()
            else None
            for count in (self.bytes, self.flops)
        )
        return replace(self, bytes=traffic, flops=flops)


class Sites:
    """The sites of the functions of a module."""

    def __init__(self, block: ir.Block, recursion: Recursion) -> None:
        self._recursion = recursion
        self._symbols = {
            op.attributes["sym_name"].value: op
            for op in block.operations
            if isinstance(op, func.FuncOp | FunctionOp)
        }
        self._units: dict[str, str] = {}
        self._own: dict[str, list[Site]] = {}
        for name in recursion.order:
            calls = walk_ops(self._symbols[name], CallDpsOp)
            self._own[name] = [site for call in calls for site in self._sites(name, call)]

    def of(self, function: func.FuncOp) -> list[Site]:
        """The sites of a graph function in program order, with those of functions it calls.

        Those of functions that call themselves are in the order of `site_counts`.
        """
        name = function.name.value
        return [site for member in self._recursion.group(name) for site in self._own[member]]

    def _sites(self, caller: str, call: CallDpsOp) -> list[Site]:
        callee = self._symbols.get(call.callee_name)
        if not isinstance(callee, func.FuncOp) or PrimFunc.is_prim_func(callee):
            return [self._site(call, callee)]
        name = callee.name.value
        if self._recursion.is_recursive(caller, name):
            return []
        arguments = [annotation_of(value) for value in passed_arguments(call, callee)]
        values = unify(parameter_types(callee), arguments).values
        if name in self._recursion.groups:
            values = {}  # each call within the group has others
        return [site.seen_from(values) for site in self.of(callee)]

    def _site(self, call: CallDpsOp, kernel: func.FuncOp | FunctionOp | None) -> Site:
        name = call.callee_name
        if name not in self._units:
            self._units[name] = unit_of(kernel) if isinstance(kernel, func.FuncOp) else F32
        if isinstance(kernel, FunctionOp):
            flops, traffic = _library_flops(call, kernel), None
        else:
            passed = _passed(call)
            flops, traffic = (_count(kernel, count, passed) for count in (FLOPS, BYTES))
        traffic = _whole_bytes(call) if traffic is None else traffic
        return Site(name, traffic, flops, self._units[name])


def _passed(call: CallDpsOp) -> dict[str, Expr]:
    """The variables of `analysis.work` as the call passes them, without unknown dims."""
    values: dict[str, Expr] = {}
    for index, value in enumerate(call.ins):
        for axis, dim in enumerate(TensorType.of(value).dims or ()):
            if dim is not None:
                values[f"a{index}d{axis}"] = dim
    for index, symbol in enumerate(call.symbol_arguments):
        if symbol is not None:
            values[f"s{index}"] = symbol
    return values


def _count(kernel: ir.OpView | None, name: str, passed: Mapping[str, Expr]) -> Expr | None:
    if kernel is None or name not in kernel.attributes:
        return None
    count = parse(ir.StringAttr(kernel.attributes[name]).value)
    return count.substitute(passed) if count.symbols <= passed.keys() else None


def _whole_bytes(call: CallDpsOp) -> Expr | None:
    """The bytes of all tensors, each once."""
    total = const(0)
    for value in call.ins:
        annotation = TensorType.of(value)
        dims = known_dims(annotation.dims)
        if dims is None:
            return None
        _, bits = dlpack_dtype(annotation.element)
        total = total + product(dims) * (bits // 8)
    return total


def _library_flops(call: CallDpsOp, library: FunctionOp) -> Expr | None:
    """The operations of a matrix product; None for another function."""
    if library.convention.value not in (*CONVENTIONS, *APIS):
        return None
    lhs, *_, out = (known_dims(TensorType.of(value).dims) for value in call.ins)
    if lhs is None or out is None:
        return None
    return product(out) * lhs[-1] * 2
