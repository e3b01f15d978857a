"""Translates the ops of a graph function, one by one, into host code."""

from collections.abc import Callable, Sequence
from typing import Any

from relax_mlir.analysis.functions import (
    argument_name,
    facts_of,
    inout_arguments,
    signature_symbols,
)
from relax_mlir.analysis.memory import Memory, returned_allocations
from relax_mlir.bindings import arith, func, ir
from relax_mlir.dialects.graph import (
    AllocStorageOp,
    AllocTensorOp,
    CallDpsOp,
    CopyOp,
    Dim,
    MakeShapeOp,
    MatchCastOp,
    RequireOp,
    ShapeOfOp,
    ShapeValueType,
    TensorType,
    ViewOp,
    known_dims,
    shape_value_dims,
)
from relax_mlir.dialects.lib import FunctionOp
from relax_mlir.passes import PassFailure
from relax_mlir.symbolic import Expr, Fact, maximum, minimum

from .adaptor import Adaptors
from .dtypes import dlpack_dtype, memory_type
from .function import DL_TENSOR, POINTER, HostFunction, HostTensor
from .library import CONVENTIONS, slot_name
from .tables import KIND_SHAPE, KIND_TENSOR, Argument, Globals


def emit_function(
    function: func.FuncOp,
    libraries: Sequence[FunctionOp],
    table: Globals,
    adaptors: Adaptors,
) -> str:
    """Returns the text of the host function, whose tables and constants are added to `table`.

    It calls kernels by way of `adaptors`.

    Raises PassFailure at an op that host code cannot do, naming the pass that should have run.
    """
    return _Emitter(function, libraries, table, adaptors).emit()


class _Emitter:
    """One graph function on its way to host code."""

    def __init__(
        self,
        function: func.FuncOp,
        libraries: Sequence[FunctionOp],
        table: Globals,
        adaptors: Adaptors,
    ) -> None:
        self.function = function
        self.adaptors = adaptors
        self.libraries = {library.sym_name.value: library for library in libraries}
        self.table = table
        self.out = HostFunction("rx_fn_" + function.name.value)
        self.tensors: dict[ir.Value, HostTensor] = {}
        self.storages: dict[ir.Value, str] = {}
        self.num_kernels = 0

    def emit(self) -> str:
        self._bind_arguments()
        operations = list(self.function.entry_block.operations)
        self.returned = returned_allocations(self.function, Memory({}))
        for op in operations:
            self._emit_op(op)
        return self.out.text()

    def _bind_arguments(self) -> None:
        out, function = self.out, self.function
        symbols = signature_symbols(function)
        arguments = [self._argument(index) for index in range(len(function.arguments))]
        try:
            facts = list(facts_of(function))
        except ValueError as error:
            raise PassFailure(function, f"has malformed facts: {error}") from None
        at_entry = [fact for fact in facts if fact.symbols <= set(symbols)]
        self.open_facts = [fact for fact in facts if fact not in at_entry]
        info = self.table.function(
            function.name.value, arguments, len(function.type.results), symbols, at_entry
        )
        values = out.array_of_i64(len(symbols))
        status = out.call(
            "rx_bind",
            [
                ("%ctx", POINTER),
                (out.address(info), POINTER),
                ("%args", POINTER),
                ("%num_args", "i32"),
                ("%num_results", "i32"),
                (values, POINTER),
            ],
            "i32",
        )
        out.fail_unless_zero(status)
        for index, symbol in enumerate(symbols):
            value = out.load(out.element_pointer(values, index, "i64"), "i64")
            out.symbols[symbol] = out.as_index(value)
        for index, value in enumerate(function.arguments):
            if isinstance(value.type, ir.RankedTensorType):
                annotation = TensorType.of(value)
                known = known_dims(annotation.dims)
                dims = (
                    out.argument_dims(index, value.type.rank)
                    if known is None
                    else tuple(map(out.expression, known))
                )
                pointer = out.argument_pointer(index)
                self.tensors[value] = HostTensor(pointer, dims, annotation.element)

    def _argument(self, index: int) -> Argument:
        type_ = self.function.arguments[index].type
        name = argument_name(self.function, index)
        if isinstance(type_, ShapeValueType):
            return Argument(name, KIND_SHAPE, 0, 64, shape_value_dims(type_))
        if not isinstance(type_, ir.RankedTensorType):
            raise PassFailure(
                self.function, f"argument {index} '{name}' has type '{type_}', not a ranked tensor"
            )
        annotation = TensorType.of(type_)
        code, bits = self._dtype(annotation.element)
        return Argument(name, KIND_TENSOR, code, bits, annotation.dims)

    def _dtype(self, element: ir.Type) -> tuple[int, int]:
        try:
            return dlpack_dtype(element)
        except ValueError as error:
            raise PassFailure(self.function, str(error)) from None

    def _emit_op(self, op: ir.OpView) -> None:
        emitters: dict[type, Callable[[Any], None]] = {
            AllocStorageOp: self._alloc_storage,
            AllocTensorOp: self._alloc_tensor,
            ViewOp: self._view,
            CopyOp: self._copy,
            CallDpsOp: self._call,
            MatchCastOp: self._match_cast,
            RequireOp: self._require,
            func.ReturnOp: self._return,
            arith.ConstantOp: self._constant,
        }
        if isinstance(op, MakeShapeOp | ShapeOfOp):
            return
        if type(op) not in emitters:
            raise PassFailure(
                op, "cannot be host code; run relax-legalize-ops and relax-lower-calls first"
            )
        emitters[type(op)](op)

    def _expression(self, op: ir.OpView, dim: Dim) -> str:
        if dim is None:
            raise PassFailure(op, "has a dim that is not known; assert it with graph.match_cast")
        try:
            return self.out.expression(dim)
        except KeyError as error:
            raise PassFailure(op, f"uses the symbol {error}, which nothing binds") from None

    def _dims(self, op: ir.OpView, annotation: TensorType) -> tuple[str, ...]:
        if annotation.dims is None:
            raise PassFailure(op, "has a rank that is not known; assert it with graph.match_cast")
        return tuple(self._expression(op, dim) for dim in annotation.dims)

    def _alloc_storage(self, op: AllocStorageOp) -> None:
        if self.storages:
            raise PassFailure(op, "takes a second storage; host code has one for each function")
        size = self.out.as_i64(self._expression(op, op.bytes))
        pointer = self.out.call("rx_arena", [("%ctx", POINTER), (size, "i64")], POINTER)
        self.out.fail_if_null(pointer)
        self.storages[op.result] = pointer

    def _alloc_tensor(self, op: AllocTensorOp) -> None:
        annotation = TensorType.of(op.result)
        dims = self._dims(op, annotation)
        if op.operands:
            offset = self.out.as_i64(self._expression(op, op.byte_offset))
            pointer = self.out.offset_pointer(self.storages[op.operands[0]], offset)
        elif op.result in self.returned:
            index = self.returned[op.result]
            seen = TensorType.of(self.function.entry_block.operations[-1].operands[index])
            pointer = self._result(index, annotation.element, self._dims(op, seen))
        else:
            raise PassFailure(op, "is not planned; run relax-plan-memory before relax-to-host")
        self.tensors[op.result] = HostTensor(pointer, dims, annotation.element)

    def _result(self, index: int, element: ir.Type, dims: Sequence[str]) -> str:
        out = self.out
        code, bits = self._dtype(element)
        shape = out.array_of_i64(len(dims))
        for axis, dim in enumerate(dims):
            out.store(out.as_i64(dim), out.element_pointer(shape, axis, "i64"), "i64")
        numbers = [(out.integer(n, "i32"), "i32") for n in (index, code, bits, len(dims))]
        pointer = out.call(
            "rx_result",
            [("%ctx", POINTER), ("%results", POINTER), *numbers, (shape, POINTER)],
            POINTER,
        )
        out.fail_if_null(pointer)
        return pointer

    def _view(self, op: ViewOp) -> None:
        annotation = TensorType.of(op.result)
        source = self.tensors[op.input]
        self.tensors[op.result] = HostTensor(
            source.pointer, self._dims(op, annotation), annotation.element
        )

    def _copy(self, op: CopyOp) -> None:
        self._memcpy(self.tensors[op.destination].pointer, self.tensors[op.input])

    def _memcpy(self, pointer: str, tensor: HostTensor) -> None:
        size = self.out.byte_size(tensor)
        self.out.value(
            f"llvm.call @memcpy({pointer}, {tensor.pointer}, {size}) :"
            f" ({POINTER}, {POINTER}, i64) -> {POINTER}"
        )

    def _constant(self, op: arith.ConstantOp) -> None:
        type_ = op.result.type
        if not isinstance(type_, ir.RankedTensorType):
            raise PassFailure(op, f"is a constant of type '{type_}', not a tensor")
        element = memory_type(type_.element_type)
        array = element
        for extent in reversed(type_.shape):
            array = f"array<{extent} x {array}>"
        array = f"!llvm.{array}" if type_.rank else element
        text = _dense_text(op, type_, element)
        pointer = self.out.address(self.table.constant(text, array))
        dims = tuple(self.out.integer(extent) for extent in type_.shape)
        self.tensors[op.result] = HostTensor(pointer, dims, type_.element_type)

    def _match_cast(self, op: MatchCastOp) -> None:
        """Binds the symbols that are new here and checks every other dim."""
        out, source = self.out, self.tensors[op.input]
        annotation = TensorType.of(op.result)
        for axis, dim in enumerate(annotation.dims or ()):
            if dim is None:
                continue
            unbound = dim.symbols - out.symbols.keys()
            if unbound and str(dim) in unbound:
                out.symbols[str(dim)] = source.dims[axis]
                continue
            want = self._expression(op, dim)
            self._check(f"match_cast: dim {axis}, '{dim}',", source.dims[axis], want)
        self.tensors[op.result] = HostTensor(source.pointer, source.dims, source.element)
        for fact in [fact for fact in self.open_facts if fact.symbols <= out.symbols.keys()]:
            self.open_facts.remove(fact)
            nearest = _nearest(fact)
            self._check(
                f"fact '{fact}': '{fact.lhs}'",
                self._expression(op, fact.lhs),
                self._expression(op, nearest),
            )

    def _require(self, op: RequireOp) -> None:
        """Fails unless one of the facts holds; the first one's values are reported."""
        out, facts = self.out, op.facts
        got, want = (self._expression(op, e) for e in (facts[0].lhs, _nearest(facts[0])))
        for fact in facts[1:]:
            pair = [self._expression(op, e) for e in (fact.lhs, _nearest(fact))]
            holds = out.value(f"arith.cmpi eq, {pair[0]}, {pair[1]} : index")
            want = out.value(f"arith.select {holds}, {got}, {want} : index")
        text = " or ".join(map(str, facts))
        self._check(f"{op.by.value} requires {text}, but '{facts[0].lhs}'", got, want)

    def _check(self, what: str, got: str, want: str) -> None:
        """Fails unless two index values are equal."""
        out = self.out
        text = out.address(self.table.string(what))
        values = [(out.as_i64(got), "i64"), (out.as_i64(want), "i64")]
        status = out.call("rx_check_dim", [("%ctx", POINTER), (text, POINTER), *values], "i32")
        out.fail_unless_zero(status)

    def _call(self, op: CallDpsOp) -> None:
        site = self.out.integer(self.num_kernels, "i32")
        self.out.line(f"func.call @rx_span_begin({site}) : (i32) -> ()")
        if op.callee_name in self.libraries:
            self._call_library(op, self.libraries[op.callee_name])
        else:
            self._call_kernel(op)
        self.out.line("func.call @rx_span_end() : () -> ()")
        self.num_kernels += 1

    def _call_kernel(self, op: CallDpsOp) -> None:
        tensors = [self.tensors[value] for value in op.ins]
        symbols = [self._expression(op, dim) for dim in op.symbol_arguments]
        try:
            self.adaptors.call(self.out, op.callee_name, tensors, symbols)
        except ValueError as error:
            raise PassFailure(op, str(error)) from None

    def _call_library(self, op: CallDpsOp, library: FunctionOp) -> None:
        convention = library.convention.value
        if convention not in CONVENTIONS:
            known = ", ".join(CONVENTIONS)
            raise PassFailure(library, f"has convention '{convention}'; known are {known}")
        slot = self.out.address(slot_name(op.callee_name))
        callee = self.out.load(slot, POINTER)
        CONVENTIONS[convention](self.out, callee, [self.tensors[value] for value in op.ins])

    def _return(self, op: func.ReturnOp) -> None:
        out = self.out
        inout = inout_arguments(self.function)
        for index, value in enumerate(op.operands):
            tensor = self.tensors[value]
            if index in inout:
                self._return_inout(op, index, value, inout[index])
            elif index not in self.returned.values():
                self._memcpy(self._result(index, tensor.element, tensor.dims), tensor)
        out.line(
            f"func.call @rx_count_kernels({out.integer(self.num_kernels, 'i64')}) : (i64) -> ()"
        )

    def _return_inout(self, op: func.ReturnOp, index: int, value: ir.Value, argument: int) -> None:
        out = self.out
        if self.tensors[value].pointer != self.tensors[self.function.arguments[argument]].pointer:
            name = argument_name(self.function, argument)
            raise PassFailure(
                op, f"returns as result {index} something else than the updated argument '{name}'"
            )
        descriptor = out.element_pointer("%args", argument, DL_TENSOR)
        status = out.call(
            "rx_result_alias",
            [
                ("%ctx", POINTER),
                ("%results", POINTER),
                (out.integer(index, "i32"), "i32"),
                (descriptor, POINTER),
            ],
            "i32",
        )
        out.fail_unless_zero(status)


def _nearest(fact: Fact) -> Expr:
    """The value nearest to the left side with which the fact would hold: equal if it does."""
    lhs, rhs = fact.lhs, fact.rhs
    return {
        "==": rhs,
        "<=": minimum(lhs, rhs),
        "<": minimum(lhs, rhs - 1),
        ">=": maximum(lhs, rhs),
        ">": maximum(lhs, rhs + 1),
        "!=": lhs + 1 - minimum(maximum(lhs - rhs, rhs - lhs), 1),
    }[fact.op]


def _dense_text(op: arith.ConstantOp, type_: ir.RankedTensorType, element: str) -> str:
    """Writes the constant's attribute with the element type it has in memory."""
    attribute = op.attributes["value"]
    if not type_.rank:
        number = attribute.get_splat_value()
        return f"{int(number.value)} : i8" if element == "i8" else str(number)
    if str(type_.element_type) != "i1":
        return str(attribute)
    as_bytes = str(attribute).replace("true", "1").replace("false", "0").replace("xi1>", "xi8>")
    return as_bytes
