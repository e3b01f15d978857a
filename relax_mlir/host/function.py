"""Writes one host function: checks arguments, computes symbols, takes memory, calls kernels.

    func.func @rx_fn_main(%ctx: !llvm.ptr, %args: !llvm.ptr, %num_args: i32,
                          %results: !llvm.ptr, %num_results: i32) -> i32

It is straight-line code but for exits to one failure block. Text is the builder: the parts
(descriptors, address arithmetic) are long in any other form.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from relax_mlir.bindings import ir
from relax_mlir.symbolic import Expr

from .dtypes import memory_type

POINTER = "!llvm.ptr"
DL_TENSOR = "!llvm.struct<(ptr, i32, i32, i32, i8, i8, i16, ptr, ptr, i64)>"
"""DLTensor of dlpack.h: data, device, ndim, dtype, shape, strides, byte offset."""

DATA, SHAPE, BYTE_OFFSET = 0, 7, 9


@dataclass(frozen=True)
class HostTensor:
    """A tensor at run time: where it is, and the SSA names of its dims."""

    pointer: str
    dims: tuple[str, ...]
    element: ir.Type


@dataclass
class HostFunction:
    """The text of a host function under construction.

    `symbols` maps a symbol to the SSA name of its value (an `index`).
    """

    name: str
    symbols: dict[str, str] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)
    _names: int = 0
    _blocks: int = 0
    _expressions: dict[Expr, str] = field(default_factory=dict)

    def value(self, text: str) -> str:
        """Appends an operation with one result; returns the result's name."""
        self._names += 1
        name = f"%v{self._names}"
        self.lines.append(f"  {name} = {text}")
        return name

    def line(self, text: str) -> None:
        """Appends an operation without results."""
        self.lines.append(f"  {text}")

    def integer(self, value: int, type_: str = "index") -> str:
        """A constant of an integer type."""
        return self.value(f"arith.constant {value} : {type_}")

    def null(self) -> str:
        """The null pointer."""
        return self.value(f"llvm.mlir.zero : {POINTER}")

    def address(self, name: str) -> str:
        """The address of a global."""
        return self.value(f"llvm.mlir.addressof @{name} : {POINTER}")

    def as_i64(self, index: str) -> str:
        """An index as a 64-bit integer."""
        return self.value(f"arith.index_cast {index} : index to i64")

    def as_index(self, integer: str) -> str:
        """A 64-bit integer as an index."""
        return self.value(f"arith.index_cast {integer} : i64 to index")

    def array_of_i64(self, length: int) -> str:
        """Stack room for `length` 64-bit integers."""
        count = self.integer(max(1, length), "i64")
        return self.value(f"llvm.alloca {count} x i64 : (i64) -> {POINTER}")

    def element_pointer(self, base: str, index: int, type_: str) -> str:
        """The address of element `index` of an array of `type_`."""
        return self.value(f"llvm.getelementptr {base}[{index}] : ({POINTER}) -> {POINTER}, {type_}")

    def load(self, pointer: str, type_: str) -> str:
        """Loads a scalar."""
        return self.value(f"llvm.load {pointer} : {POINTER} -> {type_}")

    def store(self, value: str, pointer: str, type_: str) -> None:
        """Stores a scalar."""
        self.line(f"llvm.store {value}, {pointer} : {type_}, {POINTER}")

    def call(self, callee: str, arguments: Sequence[tuple[str, str]], result: str) -> str:
        """Calls a function of the runtime; arguments are (name, type)."""
        names = ", ".join(name for name, _ in arguments)
        types = ", ".join(type_ for _, type_ in arguments)
        return self.value(f"func.call @{callee}({names}) : ({types}) -> {result}")

    def fail_if(self, condition: str) -> None:
        """Leaves the function with an error if the condition, an `i1`, is true."""
        self._blocks += 1
        self.line(f"cf.cond_br {condition}, ^fail, ^next{self._blocks}")
        self.lines.append(f"^next{self._blocks}:")

    def fail_unless_zero(self, status: str) -> None:
        """Leaves with an error unless a status of the runtime is 0."""
        zero = self.integer(0, "i32")
        self.fail_if(self.value(f"arith.cmpi ne, {status}, {zero} : i32"))

    def fail_if_null(self, pointer: str) -> None:
        """Leaves with an error if the runtime gave no memory."""
        self.fail_if(self.value(f'llvm.icmp "eq" {pointer}, {self.null()} : {POINTER}'))

    def descriptor_field(self, base: str, index: int, position: int, type_: str) -> str:
        """Loads a field of element `index` of an array of DLTensor."""
        types = f"({POINTER}) -> {POINTER}, {DL_TENSOR}"
        pointer = self.value(f"llvm.getelementptr {base}[{index}, {position}] : {types}")
        return self.load(pointer, type_)

    def argument_pointer(self, index: int) -> str:
        """The address of an argument's first element."""
        data = self.descriptor_field("%args", index, DATA, POINTER)
        offset = self.descriptor_field("%args", index, BYTE_OFFSET, "i64")
        return self.offset_pointer(data, offset)

    def argument_dims(self, index: int, rank: int) -> tuple[str, ...]:
        """The dims that an argument has at run time."""
        shape = self.descriptor_field("%args", index, SHAPE, POINTER)
        pointers = [self.element_pointer(shape, axis, "i64") for axis in range(rank)]
        return tuple(self.as_index(self.load(pointer, "i64")) for pointer in pointers)

    def offset_pointer(self, pointer: str, offset: str) -> str:
        """A pointer moved by a number of bytes, an i64."""
        return self.value(
            f"llvm.getelementptr {pointer}[{offset}] : ({POINTER}, i64) -> {POINTER}, i8"
        )

    def expression(self, expr: Expr) -> str:
        """Computes an expression over the known symbols as an `index`.

        Raises KeyError with the name of a symbol that has no value.
        """
        if expr not in self._expressions:
            self._expressions[expr] = expr.lower(
                const=self.integer,
                symbol=lambda name: self.symbols[name],
                add=lambda a, b: self.value(f"arith.addi {a}, {b} : index"),
                mul=lambda a, b: self.value(f"arith.muli {a}, {b} : index"),
                floordiv=lambda a, b: self.value(f"arith.floordivsi {a}, {b} : index"),
                mod=self._modulo,
                min=lambda a, b: self.value(f"arith.minsi {a}, {b} : index"),
                max=lambda a, b: self.value(f"arith.maxsi {a}, {b} : index"),
            )
        return self._expressions[expr]

    def _modulo(self, a: str, b: str) -> str:
        quotient = self.value(f"arith.floordivsi {a}, {b} : index")
        whole = self.value(f"arith.muli {quotient}, {b} : index")
        return self.value(f"arith.subi {a}, {whole} : index")

    def byte_size(self, tensor: HostTensor) -> str:
        """Bytes of a tensor, as an i64."""
        total = self.integer(int_bytes(memory_type(tensor.element)), "i64")
        for dim in tensor.dims:
            total = self.value(f"arith.muli {total}, {self.as_i64(dim)} : i64")
        return total

    def text(self) -> str:
        """The function's text."""
        head = (
            f"func.func @{self.name}(%ctx: {POINTER}, %args: {POINTER}, %num_args: i32,"
            f" %results: {POINTER}, %num_results: i32) -> i32 {{"
        )
        tail = [
            "  %success = arith.constant 0 : i32",
            "  func.return %success : i32",
            "^fail:",
            "  %failure = arith.constant 1 : i32",
            "  func.return %failure : i32",
            "}",
        ]
        return "\n".join([head, *self.lines, *tail])


def int_bytes(type_: str) -> int:
    """Bytes of a scalar type, from its text."""
    digits = "".join(filter(str.isdigit, type_))
    return 8 if type_ == "index" else int(digits) // 8
