"""Static tables of the runtime as LLVM globals: argument descriptions, strings, constants.

The layout is that of `runtime/csrc/relax_runtime.h`. Text is the simplest builder for nested
constants; equal strings and programs are written once.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from relax_mlir.dialects.graph import Dim
from relax_mlir.symbolic import Fact

POINTER = "!llvm.ptr"
DIM = "!llvm.struct<(i64, ptr)>"
ARGUMENT = "!llvm.struct<(ptr, i32, i32, i32, i32, ptr)>"
FACT = "!llvm.struct<(struct<(i64, ptr)>, struct<(i64, ptr)>, i32, i32, ptr)>"
FUNCTION = "!llvm.struct<(ptr, i32, i32, i32, i32, ptr, ptr, ptr, i64, ptr, i32, i32)>"
RELATIONS = {"==": 0, "<=": 1, "<": 2, ">=": 3, ">": 4, "!=": 5}

KIND_TENSOR, KIND_SHAPE = 0, 1
_ESCAPES = {byte: f"\\{byte:02X}" for byte in range(256) if not 32 <= byte < 127 or byte in b'"\\'}


Scalar = tuple[str, int | str | None]
"""A field of a table: its type, and an integer or a global's name, None for null."""
Row = Sequence[Scalar | tuple[str, Sequence[Scalar]]]
"""The fields of a table's row; "dim" has those of an `RxDim`, "self" is all of the row."""


@dataclass(frozen=True)
class Argument:
    """One row of the argument table; `dims` None stands for any rank."""

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
        """With a constant first, as expressions are printed."""
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


@dataclass
class Globals:
    """Collects the text of LLVM globals; every method returns the global's name or `null`.

    `uses_tiles` says whether any kernel needs the system's leave to use tile registers.
    """

    prefix: str
    uses_tiles: bool = False
    lines: list[str] = field(default_factory=list)
    _known: dict[object, str] = field(default_factory=dict)

    def string(self, text: str) -> str:
        """A zero-terminated string."""
        data = text.encode() + b"\0"
        escaped = data.decode("latin-1").translate(_ESCAPES)
        return self._add(("string", text), f'("{escaped}")')

    def integers(self, values: Sequence[int]) -> str | None:
        """An array of 64-bit integers; None if it is empty."""
        if not values:
            return None
        count, listed = len(values), ", ".join(map(str, values))
        body = f"(dense<[{listed}]> : tensor<{count}xi64>) : !llvm.array<{count} x i64>"
        return self._add(("integers", tuple(values)), body)

    def dims(self, dims: Sequence[Dim], symbols: Sequence[str]) -> str | None:
        """An array of `RxDim`."""
        rows = [_dim_fields(self, dim, symbols) for dim in dims]
        return self._structs(DIM, rows)

    def arguments(self, arguments: Sequence[Argument], symbols: Sequence[str]) -> str | None:
        """An array of `RxArg`."""
        rows: list[Row] = []
        for argument in arguments:
            rank = -1 if argument.dims is None else len(argument.dims)
            rows.append(
                [
                    ("ptr", self.string(argument.name)),
                    ("i32", argument.kind),
                    ("i32", argument.code),
                    ("i32", argument.bits),
                    ("i32", rank),
                    ("ptr", self.dims(argument.dims or (), symbols)),
                ]
            )
        return self._structs(ARGUMENT, rows)

    def facts(self, facts: Sequence[Fact], symbols: Sequence[str]) -> str | None:
        """An array of `RxFact`; the sides are nested structs, flattened by position."""
        rows: list[Row] = []
        for fact in facts:
            rows.append(
                [
                    ("dim", _dim_fields(self, fact.lhs, symbols)),
                    ("dim", _dim_fields(self, fact.rhs, symbols)),
                    ("i32", RELATIONS[fact.op]),
                    ("i32", 0),
                    ("ptr", self.string(str(fact))),
                ]
            )
        return self._structs(FACT, rows)

    def function(
        self,
        name: str,
        arguments: Sequence[Argument],
        num_results: int,
        symbols: Sequence[str],
        facts: Sequence[Fact],
    ) -> str:
        """One `RxFunction` with everything it points to."""
        names: list[Row] = [[("self", self.string(symbol))] for symbol in symbols]
        open_ = [i for i, argument in enumerate(arguments) if _mentions_symbols(argument)]
        row: Row = [
            ("ptr", self.string(name)),
            ("i32", len(arguments)),
            ("i32", num_results),
            ("i32", len(symbols)),
            ("i32", len(facts)),
            ("ptr", self.arguments(arguments, symbols)),
            ("ptr", self._structs(POINTER, names)),
            ("ptr", self.facts(facts, symbols)),
            ("i64", len(open_)),
            ("ptr", self.integers(open_)),
            ("i32", int(self.uses_tiles)),
            ("i32", 0),
        ]
        return self._array(FUNCTION, [row])

    def constant(self, attribute: str, llvm_type: str) -> str:
        """A dense constant, aligned for vectors."""
        suffix = f"({attribute}) {{alignment = 64 : i64}} : {llvm_type}"
        return self._add(("constant", attribute), suffix)

    def _add(self, key: object, body: str) -> str:
        if key not in self._known:
            self._known[key] = f"{self.prefix}_{len(self._known)}"
            self.lines.append(f"llvm.mlir.global private constant @{self._known[key]}{body}")
        return self._known[key]

    def _structs(self, row_type: str, rows: Sequence[Row]) -> str | None:
        """An array of structs; None if it is empty."""
        return self._array(row_type, rows) if rows else None

    def _array(self, row_type: str, rows: Sequence[Row]) -> str:
        """Writes an array of structs whose initialiser inserts one field after another."""
        array = f"!llvm.array<{len(rows)} x {row_type.removeprefix('!llvm.')}>"
        body = _Initialiser(array)
        for index, row in enumerate(rows):
            for position, (kind, value) in enumerate(row):
                if isinstance(value, Sequence) and not isinstance(value, str):
                    for inner, (inner_kind, inner_value) in enumerate(value):
                        body.insert(inner_kind, inner_value, [index, position, inner])
                elif kind == "self":
                    body.insert("ptr", value, [index])
                else:
                    body.insert(kind, value, [index, position])
        return self._add(("structs", len(self._known)), f"() : {array} {{\n{body.text()}\n}}")


def _mentions_symbols(argument: Argument) -> bool:
    return any(dim is not None and dim.symbols for dim in argument.dims or ())


def _dim_fields(table: Globals, dim: Dim, symbols: Sequence[str]) -> list[Scalar]:
    code = program(dim, symbols)
    return [("i64", len(code)), ("ptr", table.integers(code))]


class _Initialiser:
    """The region of a global: a chain of `llvm.insertvalue`."""

    def __init__(self, array: str) -> None:
        self.array = array
        self.lines = [f"  %0 = llvm.mlir.undef : {array}"]
        self.current = "%0"

    def insert(self, kind: str, value: int | str | None, path: Sequence[int]) -> None:
        """Inserts an integer, the address of a global, or null (None)."""
        number = len(self.lines)
        where = "[" + ", ".join(map(str, path)) + "]"
        if kind != "ptr":
            self.lines.append(f"  %v{number} = llvm.mlir.constant({value} : {kind}) : {kind}")
        elif value is None:
            self.lines.append(f"  %v{number} = llvm.mlir.zero : !llvm.ptr")
        else:
            self.lines.append(f"  %v{number} = llvm.mlir.addressof @{value} : !llvm.ptr")
        self.lines.append(
            f"  %r{number} = llvm.insertvalue %v{number}, {self.current}{where} : {self.array}"
        )
        self.current = f"%r{number}"

    def text(self) -> str:
        """The region's text."""
        return "\n".join([*self.lines, f"  llvm.return {self.current} : {self.array}"])
