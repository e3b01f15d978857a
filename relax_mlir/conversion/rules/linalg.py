"""Structured ops: each becomes a tensor program, together with the fill that it begins with."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from relax_mlir.bindings import ir, linalg, tensor
from relax_mlir.decompositions.emit import emit
from relax_mlir.dialects import graph
from relax_mlir.dialects.graph import ShapeError, TensorType
from relax_mlir.legalize.kernel import PARALLEL, REDUCTION, KernelBuilder, fill, scalar
from relax_mlir.symbolic import Expr, at_most

from ..bodies import Body, passed_values
from ..function import Conversion
from ..loops import Loops, loops_of
from ..programs import Input, Output
from ..registry import converts
from .tensors import mixed

NAMED = tuple(
    op.OPERATION_NAME
    for name, op in vars(linalg).items()
    if name.endswith("Op") and hasattr(op, "OPERATION_NAME")
)
WITHOUT_LOOPS = ("index", "yield", "fill", "softmax", "pack", "unpack")
UNSUPPORTED = ("winograd_filter_transform", "winograd_input_transform", "winograd_output_transform")


@converts(*(n for n in NAMED if n.partition(".")[2] not in (*WITHOUT_LOOPS, *UNSUPPORTED)))
def structured(conversion: Conversion, op: ir.Operation) -> None:
    """An op with maps and a body."""
    attribute = linalg.get_indexing_maps(op)
    if attribute is None or len(op.results) == 0:
        raise ShapeError("works on memory; expects tensors")
    maps = [each.value for each in attribute]
    shapes = [
        conversion.dims(value) if isinstance(value.type, ir.ShapedType) else ()
        for value in op.operands
    ]
    program = _Program(conversion, op, loops_of(conversion, maps, shapes), shapes)
    if (value := program.one_value()) is not None:
        conversion.begin(op.results[0], shapes[-1], value)
    else:
        program.call()


@converts("linalg.fill")
def filled(conversion: Conversion, op: ir.Operation) -> None:
    """One element in all positions; what uses it begins with it."""
    value, out = op.operands
    dims = conversion.dims(out)
    conversion.begin(op.results[0], dims, value)


@converts("linalg.softmax")
def softmax(conversion: Conversion, op: ir.Operation) -> None:
    """Exponentials over their sum."""
    axis = ir.IntegerAttr(op.attributes["dimension"]).value
    value = conversion.value(op.operands[0])
    conversion.define(op, emit(graph.SoftmaxOp, value, axis=axis))


@dataclass
class _Program:
    """The program of a structured op, which is a `linalg.generic` there."""

    conversion: Conversion
    op: ir.Operation
    loops: Loops
    shapes: Sequence[Sequence[Expr]]

    @cached_property
    def first_out(self) -> int:
        """The index of the first operand that is an output."""
        return len(self.op.operands) - len(self.op.results)

    @cached_property
    def body(self) -> Body:
        """The body; its program needs the elements of fills as well."""
        fills = [self._fill(index) for index in range(self.first_out, len(self.op.operands))]
        return Body(self.conversion, self.op, [value for value in fills if value is not None])

    def one_value(self) -> ir.Value | None:
        """What an op writes to each element if that is one value from outside, as a fill does."""
        operations = list(self.body.block.operations)
        values = list(operations[-1].operands)
        if self.first_out or len(values) != 1 or len(operations) > 1 or not self._writes_all(0):
            return None
        return values[0] if values[0] in self.body.captured else None

    def call(self) -> None:
        """Builds the program and calls it."""
        self.body.check_tables(self.loops.extents)
        ins = [self._in(index) for index in range(self.first_out)]
        passed = [each for each in ins if each is not None] + self.body.inputs()
        outs = [self._out(index) for index in range(self.first_out, len(self.op.operands))]
        results = self.conversion.programs.call(self._name(), passed, outs, self._write)
        self.conversion.define(self.op, *results)

    def _name(self) -> str:
        name = self.op.name.partition(".")[2]
        if name != "generic":
            return name
        ops = [each.operation.name for each in self.body.block.operations]
        own = [each for each in ops if each not in ("arith.constant", "linalg.index")][:-1]
        return own[-1].partition(".")[2] if own else "copy"

    def _in(self, index: int) -> Input | None:
        """What is passed for an input; None for a scalar that is known."""
        value = self.op.operands[index]
        if isinstance(value.type, ir.RankedTensorType):
            return self.body.tensor(value, self.loops.dims(index, self.shapes[index]))
        return None if self.body.is_known(value) else self.body.scalar(value)

    def _fill(self, index: int) -> ir.Value | None:
        """The scalar with which an output is filled at first, if the body reads it."""
        init = self.conversion.inits.get(self.op.operands[index])
        return None if init is None or not self._reads(index) else init.fill

    def _out(self, index: int) -> Output:
        value = self.op.operands[index]
        dims = list(self.loops.dims(index, self.shapes[index]))
        if value in self.conversion.inits or not self._reads(index):
            element = ir.RankedTensorType(value.type).element_type
            own = TensorType(tuple(self.shapes[index]), element)
            return Output(own, own.with_dims(dims))
        new = self.conversion.value(value)
        own = TensorType.of(new)
        return Output(own, own.with_dims(dims), new)

    def _reads(self, index: int) -> bool:
        """Whether the result has what is in an output: the body reads it, or leaves some of it."""
        arguments = self.op.regions[0].blocks[0].arguments
        is_used = index < len(arguments) and next(iter(arguments[index].uses), None) is not None
        return is_used or not self._writes_all(index)

    def _writes_all(self, index: int) -> bool:
        """Whether an output is written whole: its dims are loops, and no other loop is empty."""
        results = self.loops.maps[index].results
        written = {each.position for each in results if isinstance(each, ir.AffineDimExpr)}
        others = [e for i, e in enumerate(self.loops.extents) if i not in written]
        return len(written) == len(results) and all(at_most(1, each).proved for each in others)

    def _write(self, builder: KernelBuilder) -> list[ir.Value]:
        """The ops of the program; returns its results."""
        given = iter(builder.ins)
        ins = [
            self.body.known(builder, self.op.operands[index])
            if self._in_is_known(index)
            else next(given)
            for index in range(self.first_out)
        ]
        passed = passed_values(self.body, given)
        outs = [
            self._begun(builder, passed, index, out)
            for index, out in enumerate(builder.outs, self.first_out)
        ]
        return self.body.generic(builder, (ins, outs), self.loops.maps, self._iterators(), passed)

    def _in_is_known(self, index: int) -> bool:
        value = self.op.operands[index]
        return not isinstance(value.type, ir.RankedTensorType) and self.body.is_known(value)

    def _begun(
        self, builder: KernelBuilder, passed: dict[ir.Value, ir.Value], index: int, out: ir.Value
    ) -> ir.Value:
        """An output with the elements that the op begins with."""
        if self.op.operands[index] not in self.conversion.inits or not self._reads(index):
            return out
        value = self._fill(index)
        if value is None:
            return fill(scalar(ir.RankedTensorType(out.type).element_type, 0), out)
        if value in passed:
            return fill(tensor.ExtractOp(passed[value], []).result, out)
        return fill(self.body.known(builder, value), out)

    def _iterators(self) -> ir.Attribute:
        """The kinds of the loops; of named ops, those that no output has are reductions."""
        if "iterator_types" in self.op.attributes:
            return self.op.attributes["iterator_types"]
        written = {
            result.position
            for map_ in self.loops.maps[self.first_out :]
            for result in map_.results
            if isinstance(result, ir.AffineDimExpr)
        }
        count = self.loops.maps[0].n_dims
        return iterators([PARALLEL if i in written else REDUCTION for i in range(count)])


def iterators(kinds: Sequence[str]) -> ir.Attribute:
    """The attribute of a generic for these kinds of loops."""
    return ir.ArrayAttr.get([ir.Attribute.parse(f"#linalg.iterator_type<{k}>") for k in kinds])


@converts("tensor.generate")
def generate(conversion: Conversion, op: ir.Operation) -> None:
    """A tensor whose elements are computed from their indices."""
    type_ = ir.RankedTensorType(op.results[0].type)
    dims = mixed(conversion, type_.shape, iter(op.operands))
    out = TensorType(tuple(dims), type_.element_type)
    body, rank = Body(conversion, op), len(dims)
    body.check_tables(dims)

    def write(builder: KernelBuilder) -> list[ir.Value]:
        passed = passed_values(body, iter(builder.ins))
        identity = [ir.AffineMap.get_identity(rank)]
        kinds = iterators([PARALLEL] * rank)
        return body.generic(builder, ([], builder.outs), identity, kinds, passed)

    results = conversion.programs.call("generate", body.inputs(), [Output(out, out)], write)
    conversion.define(op, *results)
