"""Static tables of the runtime as LLVM globals: argument descriptions, strings, constants.

The layout is that of `runtime/csrc/relax_runtime.h`. Tables of the same content are written once.
"""

from array import array
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from relax_mlir.analysis.symbols import joint_bindings
from relax_mlir.bindings import ir, llvm
from relax_mlir.data import DATA, DATA_PREFIX, is_data, name_of
from relax_mlir.dialects.graph import Dim, shape_value_type
from relax_mlir.symbolic import Expr, Fact

DIM = "struct<(i64, ptr)>"
ARGUMENT = "struct<(ptr, array<4 x i32>, ptr)>"
FACT = f"struct<({DIM}, {DIM}, array<2 x i32>, ptr)>"
FUNCTION = "struct<(ptr, array<4 x i32>, ptr, ptr, ptr, i64, ptr, array<2 x i32>, i64, ptr)>"
TERM = "struct<(i64, array<2 x i32>)>"
SOLUTION = f"struct<(i64, array<2 x i32>, ptr, {DIM})>"
SIZE = f"struct<({DIM}, array<2 x i32>)>"
SIZES = "struct<(ptr, array<2 x i32>, ptr, ptr)>"
"""Tables of the runtime; adjacent fields of 32 bits are an array."""

RELATIONS = {"==": 0, "<=": 1, "<": 2, ">=": 3, ">": 4, "!=": 5}
KIND_TENSOR, KIND_SHAPE, KIND_SCALAR = 0, 1, 2
INTEGER, DIMENSION, BYTES = 0, 1, 2

Field: TypeAlias = int | str | tuple[int, ...] | list | None
"""A 64-bit integer, the address of a global, null, 32-bit integers, or a struct of fields."""


@dataclass(frozen=True)
class Argument:
    """One row of the argument table; `dims` None means any rank."""

    name: str
    kind: int
    code: int
    bits: int
    dims: tuple[Dim, ...] | None


def program(dim: Dim, symbols: Sequence[str]) -> tuple[int, ...]:
    """Compiles a dim to the runtime's postfix pairs; an unknown dim is empty (unchecked)."""
    if dim is None:
        return ()

    def binary(opcode: int):
        return lambda a, b: (*a, *b, opcode, 0)

    def product(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
        """A product with its constant first, as expressions are printed."""
        is_constant = len(b) == 2 and b[0] == 0
        return (*b, *a, 4, 0) if is_constant else (*a, *b, 4, 0)

    return dim.lower(
        const=lambda value: (0, value),
        symbol=lambda name: (1, symbols.index(name)),
        add=binary(2),
        mul=product,
        floordiv=binary(5),
        mod=binary(6),
        min=binary(7),
        max=binary(8),
    )


_ALIGNMENT = 16


class Globals:
    """Writes LLVM globals into a block; every method returns the global's name, or None for null.

    `uses_tiles` says whether a kernel needs permission to use tile registers.
    """

    def __init__(self, block: ir.Block, prefix: str, uses_tiles: bool = False) -> None:
        self.prefix, self.uses_tiles = prefix, uses_tiles
        self._at = ir.InsertionPoint(block)
        self._names: dict[object, str] = {}
        self._private = ir.Attribute.parse("#llvm.linkage<private>")

    def string(self, text: str) -> str:
        """A zero-terminated string."""
        data = text.encode() + b"\0"
        return self._constant(data, f"array<{len(data)} x i8>", ir.StringAttr.get(data))

    def bytes(self, data: bytes) -> str:
        """Bytes, aligned as anything that may be in them has to be."""
        key = (_ALIGNMENT, data)
        if key not in self._names:
            type_ = ir.Type.parse(f"!llvm.array<{len(data)} x i8>")
            value = ir.StringAttr.get(data)
            self._new_global(key, type_, value=value, alignment=_ALIGNMENT)
        return self._names[key]

    def integers(self, values: Sequence[int]) -> str | None:
        """An array of 64-bit integers; None if it is empty."""
        if not values:
            return None
        data = array("q", values)
        value = ir.DenseElementsAttr.get(data)
        return self._constant(tuple(values), f"array<{len(values)} x i64>", value)

    def dims(self, dims: Sequence[Dim], symbols: Sequence[str]) -> str | None:
        """An array of `RxDim`."""
        return self._rows(DIM, [self._dim(dim, symbols) for dim in dims])

    def arguments(self, arguments: Sequence[Argument], symbols: Sequence[str]) -> str | None:
        """An array of `RxArg`."""
        return self._rows(
            ARGUMENT,
            [
                [
                    self.string(argument.name),
                    (argument.kind, argument.code, argument.bits, _rank(argument)),
                    self.dims(argument.dims or (), symbols),
                ]
                for argument in arguments
            ],
        )

    def facts(self, facts: Sequence[Fact], symbols: Sequence[str]) -> str | None:
        """An array of `RxFact`."""
        return self._rows(
            FACT,
            [
                [
                    self._dim(fact.lhs, symbols),
                    self._dim(fact.rhs, symbols),
                    (RELATIONS[fact.op], 0),
                    self.string(str(fact)),
                ]
                for fact in facts
            ],
        )

    def function(
        self,
        name: str,
        arguments: Sequence[Argument],
        symbols: Sequence[str],
        facts: Sequence[Fact],
        num_results: int = 0,
        known: Collection[str] | None = None,
    ) -> str:
        """One `RxFunction` with everything that it points to.

        `known` are symbols that are bound before, for a match_cast of the only argument.

        Raises OverflowError if a dim or a fact has a constant beyond 64 bits.
        """
        solutions = self._solutions(arguments, symbols, known or ())
        open_ = [i for i, argument in enumerate(arguments) if _mentions_symbols(argument)]
        return self._table(
            FUNCTION,
            [
                self.string(name),
                (len(arguments), num_results, len(symbols), len(facts)),
                self.arguments(arguments, symbols),
                self._names_of(symbols),
                self.facts(facts, symbols),
                len(open_),
                self.integers(open_),
                (int(self.uses_tiles), int(known is not None)),
                len(solutions),
                self._rows(SOLUTION, solutions),
            ],
        )

    def _solutions(
        self, arguments: Sequence[Argument], symbols: Sequence[str], known: Collection[str]
    ) -> list[Field]:
        """Rows of `RxSolution`."""
        annotations = [shape_value_type(argument.dims or ()) for argument in arguments]
        rows: list[Field] = []
        for each in joint_bindings(annotations, set(known)):
            solution = each.solution
            terms: list[Field] = [
                [weight, dim] for (_, weight), dim in zip(solution.weights, each.dims, strict=True)
            ]
            row: list[Field] = [
                solution.divisor,
                (symbols.index(solution.symbol), len(terms)),
                self._rows(TERM, terms),
                self._dim(solution.offset, symbols),
            ]
            rows.append(row)
        return rows

    def sizes(self, function: str, sizes: Mapping[Expr, int], symbols: Sequence[str]) -> str:
        """One `RxSizes`: expressions, each with its kind, such as `BYTES`."""
        rows: list[Field] = [[self._dim(size, symbols), (kind, 0)] for size, kind in sizes.items()]
        return self._table(
            SIZES,
            [
                self.string(function),
                (len(sizes), len(symbols)),
                self._rows(SIZE, rows),
                self._names_of(symbols),
            ],
        )

    def constant(self, value: ir.Attribute, type_: ir.Type) -> str:
        """A dense constant, aligned for vectors."""
        if value not in self._names:
            self._new_global(value, type_, value=value, alignment=64)
        return self._names[value]

    def data(self, value: ir.Attribute) -> str:
        """A large constant, which the linker stores: see `relax_mlir.data`."""
        if value not in self._names:
            given = name_of(value) if is_data(value) else f"splat_{len(self._names)}"
            name = self._names[value] = DATA_PREFIX + given
            kind = ir.Type.parse("!llvm.array<0 x i8>")
            linkage = ir.Attribute.parse("#llvm.linkage<external>")
            made = llvm.GlobalOp(kind, name, linkage, constant=True, ip=self._at)
            made.attributes[DATA] = value
        return self._names[value]

    def public(self, name: str, row_type: str, rows: list[Field]) -> None:
        """An array of structs and, as `rx_num_..`, their count; the runtime knows both by name."""
        i32 = ir.IntegerType.get_signless(32)
        external = ir.Attribute.parse("#llvm.linkage<external>")
        kind = ir.Type.parse(f"!llvm.array<{max(len(rows), 1)} x {row_type}>")
        table = llvm.GlobalOp(kind, f"rx_{name}", external, constant=True, ip=self._at)
        _Initialiser(table, kind).fill(rows)
        count = ir.IntegerAttr.get(i32, len(rows))
        llvm.GlobalOp(i32, f"rx_num_{name}", external, constant=True, value=count, ip=self._at)

    def _names_of(self, symbols: Sequence[str]) -> str | None:
        return self._rows("ptr", [self.string(symbol) for symbol in symbols])

    def _dim(self, dim: Dim, symbols: Sequence[str]) -> Field:
        code = program(dim, symbols)
        return [len(code), self.integers(code)]

    def _table(self, row_type: str, row: Field) -> str:
        """One struct."""
        name = self._rows(row_type, [row])
        assert name is not None
        return name

    def _rows(self, row_type: str, rows: list[Field]) -> str | None:
        """An array of structs; None if it is empty."""
        if not rows:
            return None
        key = (row_type, repr(rows))
        if key not in self._names:
            kind = ir.Type.parse(f"!llvm.array<{len(rows)} x {row_type}>")
            _Initialiser(self._new_global(key, kind), kind).fill(rows)
        return self._names[key]

    def _constant(self, key: object, type_: str, value: ir.Attribute) -> str:
        if key not in self._names:
            self._new_global(key, ir.Type.parse(f"!llvm.{type_}"), value=value)
        return self._names[key]

    def _new_global(self, key: object, type_: ir.Type, **attributes: Any) -> llvm.GlobalOp:
        name = self._names[key] = f"{self.prefix}_{len(self._names)}"
        return llvm.GlobalOp(type_, name, self._private, constant=True, ip=self._at, **attributes)


def _rank(argument: Argument) -> int:
    return -1 if argument.dims is None else len(argument.dims)


def _mentions_symbols(argument: Argument) -> bool:
    return any(dim is not None and dim.symbols for dim in argument.dims or ())


class _Initialiser:
    """The region of a global: zero, with one field after another inserted."""

    def __init__(self, op: llvm.GlobalOp, type_: ir.Type) -> None:
        self._at = ir.InsertionPoint(op.operation.regions[0].blocks.append())
        self._value = llvm.ZeroOp(type_, ip=self._at).res
        self._made: dict[object, ir.Value] = {}

    def fill(self, rows: list[Field]) -> None:
        """Writes an array of structs."""
        self._insert(rows, [])
        llvm.ReturnOp(arg=self._value, ip=self._at)

    def _insert(self, field: Field, path: list[int]) -> None:
        if isinstance(field, list):
            for index, inner in enumerate(field):
                self._insert(inner, [*path, index])
        elif field:
            if field not in self._made:
                self._made[field] = self._scalar(field)
            made = self._made[field]
            self._value = llvm.InsertValueOp(self._value, made, path, ip=self._at).res

    def _scalar(self, field: int | str | tuple[int, ...]) -> ir.Value:
        if isinstance(field, str):
            return llvm.AddressOfOp(llvm.PointerType.get(), field, ip=self._at).res
        if isinstance(field, int):
            i64 = ir.IntegerType.get_signless(64)
            return llvm.ConstantOp(i64, ir.IntegerAttr.get(i64, field), ip=self._at).res
        kind = ir.Type.parse(f"!llvm.array<{len(field)} x i32>")
        value = ir.DenseElementsAttr.get(array("i", field))
        return llvm.ConstantOp(kind, value, ip=self._at).res
