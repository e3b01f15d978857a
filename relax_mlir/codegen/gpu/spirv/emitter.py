"""Emits a kernel of a device as a function of SPIR-V: one op after another, into blocks.

An index has 32 bits: the host checks that all sizes are small enough. A truth value is a byte in
memory. bf16 are their bits, and what computes with them is expanded before.
"""

import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from relax_mlir.bindings import ir
from relax_mlir.diagnostics import Diagnostic, compile_error
from relax_mlir.errors import CompileError

from .assembler import NO_CONTRACTION, Assembler
from .matrix_type import MatrixType
from .opcodes import Glsl, Op

INDEX_BITS = 32
SCOPE_OF_SUBGROUP = 3
LARGEST_INDEX = (1 << (INDEX_BITS - 1)) - 1


class Emitter:
    """A function that is being emitted: ids of values, and the label of the current block."""

    def __init__(self, rules: Mapping[str, "Rule"], device: str) -> None:
        self.out = Assembler()
        self.values: dict[ir.Value, int] = {}
        self.pointers: dict[ir.Value, tuple[int, int]] = {}
        """The variable of each buffer, and its storage class."""
        self.globals: dict[str, ir.OpView] = {}
        self.indices: dict[str, int] = {}
        """The variables of the indices of threads, by the ops that read them."""
        self._rules, self._device = rules, device
        self.label = 0

    # Ops.

    def block(self, block: ir.Block) -> ir.OpView:
        """Emits the ops of a block; returns its terminator."""
        *operations, terminator = block.operations
        for op in operations:
            rule = self._rules.get(op.operation.name)
            if rule is None:
                raise self.refusal(op, "is not known")
            rule(self, op)
        return terminator

    def refusal(self, op: ir.OpView, why: str) -> CompileError:
        """The error that a kernel has an op that cannot be code of the device."""
        name = op.operation.name
        text = f"'{name}' op cannot be code for '{self._device}': {why}"
        return compile_error((Diagnostic.at(op.operation.location, "error", text),))

    def define(self, op: ir.OpView, *ids: int) -> None:
        """Defines the results of an op."""
        for result, made in zip(op.operation.results, ids, strict=True):
            self.values[result] = made

    def operands(self, op: ir.OpView) -> list[int]:
        """The ids of the operands of an op."""
        return [self.values[value] for value in op.operation.operands]

    # Instructions.

    def add(self, opcode: int, type_: int, *operands: int) -> int:
        """An instruction with a result."""
        made = self.out.new_id()
        self.out.body.append([opcode, type_, made, *operands])
        return made

    def exact(self, opcode: int, type_: int, *operands: int) -> int:
        """An operation on floats, which must not be fused with others."""
        made = self.add(opcode, type_, *operands)
        self.out.decorate(made, NO_CONTRACTION)
        return made

    def glsl(self, function: Glsl, type_: int, *operands: int) -> int:
        """A function of GLSL.std.450."""
        return self.add(Op.ExtInst, type_, self.out.math, function, *operands)

    def plain(self, opcode: int, *operands: int) -> None:
        """An instruction without a result."""
        self.out.body.append([opcode, *operands])

    def start(self, label: int) -> None:
        """Starts a block."""
        self.plain(Op.Label, label)
        self.label = label

    def branch(self, label: int) -> None:
        """Ends the current block."""
        self.plain(Op.Branch, label)

    # Types and constants.

    def type(self, kind: Any) -> int:
        """The type of values of a type of MLIR."""
        if isinstance(kind, ir.IndexType):
            return self.out.integer(INDEX_BITS)
        if isinstance(kind, ir.F16Type | ir.F32Type | ir.F64Type):
            return self.out.real(kind.width)
        matrix = None if isinstance(kind, ir.IntegerType) else MatrixType.of(kind)
        if matrix is not None:
            return self._matrix(matrix)
        width = kind.width
        return self.out.boolean() if width == 1 else self.out.integer(width)

    def _matrix(self, kind: MatrixType) -> int:
        extents = self.integer(kind.rows), self.integer(kind.columns)
        scope, use = self.integer(SCOPE_OF_SUBGROUP), self.integer(kind.use)
        return self.out.cooperative_matrix(self.type(kind.element), scope, *extents, use)

    def integer(self, value: int, width: int = INDEX_BITS) -> int:
        """A constant integer."""
        value &= (1 << width) - 1
        words = [value & 0xFFFFFFFF, *([value >> 32] if width == 64 else [])]
        return self.out.constant(self.out.integer(width), words)

    def real(self, value: float, width: int) -> int:
        """A constant float."""
        code, words = {16: ("<e", 1), 32: ("<f", 1), 64: ("<d", 2)}[width]
        data = struct.pack(code, value).ljust(4 * words, b"\0")
        return self.out.constant(self.out.real(width), struct.unpack(f"<{words}I", data))

    def one_or_zero(self, condition: int, kind: ir.Type, one: float = 1) -> int:
        """A truth value as an integer or float; `one` stands for true."""
        if isinstance(kind, ir.FloatType):
            ends = self.real(one, kind.width), self.real(0.0, kind.width)
        else:
            width = bits_of(kind)
            ends = self.integer(int(one), width), self.integer(0, width)
        return self.add(Op.Select, self.type(kind), condition, *ends)

    def select(self, type_: int, condition: int, a: int, b: int) -> int:
        """The one of two values that a truth value chooses."""
        return self.add(Op.Select, type_, condition, a, b)


Rule = Callable[[Emitter, ir.OpView], None]


def bits_of(kind: Any) -> int:
    """The bits of values as they are computed with."""
    return INDEX_BITS if isinstance(kind, ir.IndexType) else kind.width


def is_bool(kind: ir.Type) -> bool:
    """Whether values are truth values."""
    return isinstance(kind, ir.IntegerType) and kind.width == 1


def is_float(kind: ir.Type) -> bool:
    """Whether values are floats, not bits of them."""
    return isinstance(kind, ir.F16Type | ir.F32Type | ir.F64Type)


def named(prefix: str, rules: Mapping[str, Rule]) -> dict[str, Rule]:
    """Rules by the names of ops of a dialect."""
    return {f"{prefix}.{name}": rule for name, rule in rules.items()}


def operand_type(op: ir.OpView, index: int = 0) -> ir.Type:
    """The type of an operand."""
    return op.operation.operands[index].type


def result_type(op: ir.OpView) -> ir.Type:
    """The type of the only result."""
    return op.operation.results[0].type


Ids = Sequence[int]
