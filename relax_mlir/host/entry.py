"""The functions that a compiled module exports: arguments and results are DLPack descriptors.

int32_t rx_fn_main(RxContext*, const DLTensor* args, int32_t num_args,
                   DLTensor* results, int32_t num_results)
"""

from collections.abc import Sequence

from relax_mlir.analysis.devices import device_of_argument
from relax_mlir.analysis.functions import (
    argument_name,
    facts_of,
    signature_symbols,
)
from relax_mlir.bindings import func, ir, llvm
from relax_mlir.dialects.graph import ShapeValueType, TensorType, known_dims, shape_value_dims
from relax_mlir.passes import PassFailure
from relax_mlir.symbolic import Facts
from relax_mlir.target.device import HOST

from .builder import Builder
from .dtypes import dlpack_dtype
from .emit import EMITTERS
from .function import HostFunction, HostModule
from .memory import return_results
from .scalars import define_scalars, load_scalar, scalar_type
from .scope import HostTensor
from .tables import KIND_SCALAR, KIND_SHAPE, KIND_TENSOR, Argument

PREFIX = "rx_fn_"
DL_TENSOR = "!llvm.struct<(ptr, i32, i32, i32, i8, i8, i16, ptr, ptr, i64)>"
"""DLTensor of dlpack.h: data, device, ndim, dtype, shape, strides, byte offset."""

DATA, SHAPE = 0, 7


def emit_entry(graph: func.FuncOp, module: HostModule) -> None:
    """Adds the exported function of a graph function to a module.

    Raises PassFailure at an op that host code does not support.
    """
    pointer, i32 = ir.Type.parse("!llvm.ptr"), ir.IntegerType.get_signless(32)
    type_ = ir.FunctionType.get([pointer, pointer, i32, pointer, i32], [i32])
    op = func.FuncOp(PREFIX + graph.name.value, type_, ip=ir.InsertionPoint(module.block))
    with graph.location:
        out = Builder(op, module.runtime)
        host = HostFunction(graph, out, module, _Descriptors(out), EMITTERS)
        symbols, facts = _bind(host)
        define_scalars(host)
        with host.region(graph.entry_block, host.scope.inside(symbols, facts)) as terminator:
            return_results(host, terminator)
        host.scope.close(module.table, host.name)
        out.finish()


class _Descriptors:
    """Arguments and results as arrays of DLTensor."""

    is_host_result = True

    def __init__(self, out: Builder) -> None:
        self._out = out
        _, self._arguments, _, self._results, _ = out.arguments
        self._type = ir.Type.parse(DL_TENSOR)

    def argument(self, index: int, annotation: TensorType) -> HostTensor:
        """Loads the address of an argument, whose byte offset is 0, and its unannotated dims."""
        out = self._out
        data = self._data(index)
        dims = known_dims(annotation.dims)
        if dims is not None:
            return HostTensor(data, dims, annotation.element)
        shape = out.load(out.field(self._arguments, [index, SHAPE], self._type), out.pointer)
        extents = tuple(
            out.load_integer(shape, axis) if dim is None else dim
            for axis, dim in enumerate(annotation.dims or ())
        )
        return HostTensor(data, extents, annotation.element)

    def scalar_argument(self, index: int, type_: ir.Type) -> ir.Value:
        """Loads an argument of rank 0."""
        return load_scalar(self._out, self._data(index), type_)

    def _data(self, index: int) -> ir.Value:
        """Loads the address of an argument."""
        field = self._out.field(self._arguments, [index, DATA], self._type)
        return self._out.load(field, self._out.pointer)

    def result(
        self, index: int, element: ir.Type, dims: Sequence[ir.Value], is_tensor: bool = True
    ) -> ir.Value:
        """The caller's buffer, or new memory that the caller owns."""
        out, callee = self._out, "rx_result" if is_tensor else "rx_host_result"
        code, bits = dlpack_dtype(element)
        integers = [out.integer(n, out.i32) for n in (index, code, bits, len(dims))]
        shape = out.stack(len(dims))
        out.store_integers(dims, shape)
        operands = [out.context, self._results, *integers, shape]
        (pointer,) = out.call_runtime(callee, operands)
        out.fail_if_null(pointer)
        return pointer

    def return_argument(self, index: int, argument: int) -> None:
        """Describes the argument as the result."""
        out = self._out
        descriptor = out.field(self._arguments, [argument], self._type)
        operands = [out.context, self._results, out.integer(index, out.i32), descriptor]
        (status,) = out.call_runtime("rx_result_alias", operands)
        out.fail_unless_zero(status)


def _bind(host: HostFunction) -> tuple[dict[str, ir.Value], Facts]:
    """Checks the arguments against a table; returns the symbols and the facts that hold then."""
    graph, out = host.graph, host.out
    _, descriptors, num_arguments, _, num_results = out.arguments
    symbols = signature_symbols(graph)
    arguments = [_argument(graph, index) for index in range(len(graph.arguments))]
    try:
        facts = facts_of(graph)
    except ValueError as error:
        raise PassFailure(graph, f"has malformed facts: {error}") from None
    at_entry = Facts(tuple(fact for fact in facts if fact.symbols <= set(symbols)))
    host.open_facts = [fact for fact in facts if fact not in at_entry.items]
    num_declared = len(graph.type.results)
    info = host.function_table(
        graph, host.name, arguments, symbols, list(at_entry), num_results=num_declared
    )
    values = out.stack(len(symbols))
    operands = [out.context, info, descriptors, num_arguments, num_results, values]
    (status,) = out.call_runtime("rx_bind", operands)
    out.fail_unless_zero(status)
    if host.module.vector_length:
        _check_vectors(out, host.module.vector_length)
    loaded = {symbol: out.load_integer(values, index) for index, symbol in enumerate(symbols)}
    return loaded, at_entry


def _check_vectors(out: Builder, length: int) -> None:
    """Refuses a machine whose scalable vectors have another length."""
    scale = llvm.intr_vscale(out.i64, ip=out.at)
    (status,) = out.call_runtime("rx_check_vectors", [out.context, out.integer(length), scale])
    out.fail_unless_zero(status)


def _argument(graph: func.FuncOp, index: int) -> Argument:
    """The row of the table that describes an argument."""
    type_, name = graph.arguments[index].type, argument_name(graph, index)
    if isinstance(type_, ShapeValueType):
        return Argument(name, KIND_SHAPE, 0, 64, shape_value_dims(type_))
    scalar = scalar_type(type_)
    annotation = TensorType((), type_) if scalar is not None else TensorType.of(type_)
    try:
        code, bits = dlpack_dtype(annotation.element)
    except ValueError as error:
        raise PassFailure(graph, str(error)) from None
    is_host = scalar is not None or device_of_argument(graph, index) == HOST
    kind = KIND_SCALAR if is_host else KIND_TENSOR
    return Argument(name, kind, code, bits, annotation.dims)
