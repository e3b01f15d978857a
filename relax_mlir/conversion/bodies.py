"""Bodies of ops as bodies of `linalg.generic` in a tensor program, with what they use from outside.

Constants and sizes are known in the program; tensors are passed, and other scalars as tensors of
rank 0, which are operands of the generic.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from relax_mlir.bindings import arith, ir, linalg, tensor
from relax_mlir.dialects.graph import TensorType
from relax_mlir.legalize.kernel import KernelBuilder, affine_map
from relax_mlir.rewriting import copy_op, walk_ops
from relax_mlir.symbolic import Expr, Fact, bounds, const

from .function import Conversion, integer
from .programs import Input
from .safety import IsInside, make_safe


@dataclass
class Body:
    """The body of an op, and the values from outside that its program needs.

    `more` are scalars that the program needs apart from those of the body.
    """

    conversion: Conversion
    op: ir.Operation
    more: Sequence[ir.Value] = ()
    captured: list[ir.Value] = field(init=False)

    def __post_init__(self) -> None:
        self.block = self.op.regions[0].blocks[0]
        self.captured = _captured(self.op)

    @property
    def passed(self) -> list[ir.Value]:
        """What calls have to pass."""
        values = dict.fromkeys((*self.captured, *self.more))
        return [value for value in values if not self.is_known(value)]

    @property
    def scalars(self) -> list[ir.Value]:
        """The scalars among them, which are operands of the generic."""
        return [value for value in self.passed if not _is_tensor(value)]

    def inputs(self) -> list[Input]:
        """What calls have to pass, as tensors."""
        return [
            self.tensor(value, self.conversion.dims(value)) if _is_tensor(value)
            else self.scalar(value)
            for value in self.passed
        ]  # fmt: skip

    def check_tables(self, extents: Sequence[Expr]) -> None:
        """Has indices of loops checked, with which the body extracts elements of tensors.

        Others are clamped: there has to be an element, if the body runs.
        """
        empty = [Fact(extent, "==", const(0)) for extent in extents]
        for op in walk_ops(self.op, tensor.ExtractOp):
            table, *indices = op.operation.operands
            dims = self.conversion.dims(table) if table in self.captured else ()
            for dim, index in zip(dims, indices):
                loop, or_first = self._loop_of(index, dim)
                if loop is None:
                    self.conversion.require(Fact(dim, ">=", const(1)), *empty)
                elif not or_first:
                    self.conversion.require(Fact(extents[loop], "<=", dim), *empty)
                elif self.conversion.broadcasts:
                    one = Fact(dim, "==", const(1))
                    self.conversion.require(Fact(dim, "==", extents[loop]), one)
                else:
                    one = Fact(dim, "==", const(1))
                    self.conversion.require(Fact(extents[loop], "<=", dim), one, *empty)

    def _loop_of(self, index: ir.Value, dim: Expr) -> tuple[int | None, bool]:
        """The loop whose index is used, and whether it is 0 instead where the dim is 1."""
        op = None if isinstance(index.owner, ir.Block) else index.owner.opview
        if isinstance(op, linalg.IndexOp):
            return ir.IntegerAttr(op.operation.attributes["dim"]).value, False
        if not isinstance(op, arith.SelectOp):
            if self.op.name == "tensor.generate" and index in list(self.block.arguments):
                return ir.BlockArgument(index).arg_number, False
            return None, False
        condition, first, other = op.operation.operands
        test = None if isinstance(condition.owner, ir.Block) else condition.owner.opview
        loop, or_first = self._loop_of(other, dim)
        if loop is None or or_first or self._expr(first) != const(0):
            return None, False
        if not isinstance(test, arith.CmpIOp):
            return None, False
        is_equal = ir.IntegerAttr(test.operation.attributes["predicate"]).value == 0
        sides = {self._expr(side) for side in test.operation.operands}
        return (loop, True) if is_equal and sides == {dim, const(1)} else (None, False)

    def _expr(self, value: ir.Value) -> Expr | None:
        """The expression of a size, which the body may ask for itself."""
        op = None if isinstance(value.owner, ir.Block) else value.owner.opview
        if value not in self.conversion.exprs and isinstance(op, tensor.DimOp):
            source, axis = op.operation.operands
            at = self.conversion.exprs.get(axis)
            if at is not None and at.value is not None and source in self.captured:
                return self.conversion.dims(source)[at.value]
        return self.conversion.exprs.get(value)

    def tensor(self, value: ir.Value, dims: Sequence[Expr]) -> Input:
        """A tensor, of these dims in the program."""
        new = self.conversion.value(value)
        return Input(new, TensorType.of(new).with_dims(list(dims)))

    def scalar(self, value: ir.Value) -> Input:
        """A scalar."""
        new = self.conversion.scalar_tensor(self.conversion.value(value))
        return Input(new, TensorType.of(new))

    def is_known(self, value: ir.Value) -> bool:
        """Whether a value is a constant or a size, which the program has otherwise."""
        return constant_of(value) is not None or self._size(value) is not None

    def known(self, builder: KernelBuilder, value: ir.Value) -> ir.Value:
        """A known value, in the program."""
        constant, size = constant_of(value), self._size(value)
        if constant is not None:
            return arith.ConstantOp(value.type, constant).result
        assert size is not None, value
        return builder.symbol(size)

    def _size(self, value: ir.Value) -> Expr | None:
        """The expression of an index that a call can pass as such."""
        expr = self.conversion.exprs.get(value)
        is_index = isinstance(value.type, ir.IndexType)
        low = None if expr is None or not is_index else bounds(expr)[0]
        return expr if low is not None and low >= 0 else None

    def generic(
        self,
        builder: KernelBuilder,
        operands: Sequence[Sequence[ir.Value]],
        maps: Sequence[ir.AffineMap],
        iterators: ir.Attribute,
        given: dict[ir.Value, ir.Value],
    ) -> list[ir.Value]:
        """The generic over inputs and outputs; `given` are the values that are passed."""
        ins, outs = operands
        extra = [given[value] for value in self.scalars]
        every = [
            *maps[: len(ins)],
            *[affine_map(maps[0].n_dims, [])] * len(extra),
            *maps[len(ins) :],
        ]
        generic = linalg.GenericOp(
            [out.type for out in outs],
            [*ins, *extra],
            list(outs),
            ir.ArrayAttr.get([ir.AffineMapAttr.get(each) for each in every]),
            iterators,
        )
        inner = {value: own for value, own in given.items() if _is_tensor(value)}
        for value in self.captured:
            if self.is_known(value):
                with ir.InsertionPoint(generic):
                    inner[value] = self.known(builder, value)
        self._fill(generic, len(ins), inner)
        make_safe(generic, is_inside(builder, generic))
        return list(generic.operation.results)

    def _fill(self, generic: ir.OpView, ins: int, inner: dict[ir.Value, ir.Value]) -> None:
        """Copies the body, of which arguments are the operands, or else the loops' indices."""
        kinds = [ir.RankedTensorType(x.type).element_type for x in generic.operation.operands]
        body = generic.regions[0].blocks.append(*kinds)
        arguments, scalars = list(body.arguments), self.scalars
        values = dict(inner)
        with ir.InsertionPoint(body):
            for value, argument in zip(scalars, arguments[ins:]):
                values[value] = integer(argument, value.type)
            if self.op.name == "tensor.generate":
                indices = [linalg.IndexOp(i).result for i in range(len(self.block.arguments))]
                values.update(zip(self.block.arguments, indices))
            else:
                own = arguments[:ins] + arguments[ins + len(scalars) :]
                values.update(zip(self.block.arguments, own))
            *operations, last = self.block.operations
            for each in operations:
                copy_op(each.operation, values)
            linalg.YieldOp([values.get(value, value) for value in last.operation.operands])


def is_inside(builder: KernelBuilder, generic: ir.OpView) -> IsInside:
    """Whether an index is one of a loop that is as long as the dim of a tensor that is passed."""
    dims = {id_: type_.dims for id_, type_ in zip(builder.ins, builder.in_types)}
    extents: dict[int, Expr] = {}
    maps = [each.value for each in ir.ArrayAttr(generic.attributes["indexing_maps"])]
    shapes = dims | {id_: type_.dims for id_, type_ in zip(builder.outs, builder.out_types)}
    for value, map_ in zip(generic.operation.operands, maps, strict=True):
        for result, dim in zip(map_.results, shapes.get(value) or ()):
            if isinstance(result, ir.AffineDimExpr) and dim is not None:
                extents[result.position] = dim

    def inside(index: ir.Value, source: ir.Value, axis: int) -> bool:
        extent = (dims.get(source) or {axis: None})[axis]
        if extent is None:
            return False
        constant = constant_of(index)
        if constant is not None and extent.value is not None:
            return 0 <= ir.IntegerAttr(constant).value < extent.value
        owner = index.owner
        if isinstance(owner, ir.Block) or owner.name != "linalg.index":
            return False
        return extents.get(ir.IntegerAttr(owner.attributes["dim"]).value) == extent

    return inside


def _captured(op: ir.Operation) -> list[ir.Value]:
    """Values from outside that the ops nested in an op use."""
    inside = {op}
    values: dict[ir.Value, None] = {}
    for each in walk_ops(op):
        inside.add(each.operation)
        if each.operation != op:
            values.update(dict.fromkeys(each.operation.operands))
    return [value for value in values if _maker(value) not in inside]


def _maker(value: ir.Value) -> ir.Operation:
    """The op that makes a value, or has the block whose argument it is."""
    owner = value.owner
    return owner.owner.operation if isinstance(owner, ir.Block) else owner.operation


def _is_tensor(value: ir.Value) -> bool:
    return isinstance(value.type, ir.RankedTensorType)


def constant_of(value: ir.Value) -> ir.Attribute | None:
    """What a scalar constant is."""
    owner = value.owner
    if isinstance(owner, ir.Block) or owner.name != "arith.constant":
        return None
    return None if isinstance(value.type, ir.ShapedType) else owner.attributes["value"]


def passed_values(body: Body, given: Iterator[ir.Value]) -> dict[ir.Value, ir.Value]:
    """The values that are passed, by those outside."""
    return dict(zip(body.passed, given, strict=True))
