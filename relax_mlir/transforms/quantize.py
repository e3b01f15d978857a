"""Quantises weights, and decodes them where they are read.

    func.func @main(%x, %w) attributes {graph.num_inputs = 1} {
      %y = "graph.matmul"(%x, %w)
      ->
    func.func @main_quantize(%w) -> parts {
      %data, %scale = "graph.quantize"(%w) {scheme = "q4_0", axis = 0}
    func.func @main(%x, %data, %scale) attributes {graph.num_inputs = 1} {
      %d = "graph.dequantize"(%data, %scale) {scheme = "q4_0"}
      %t = "graph.permute_dims"(%d) {axes = [1, 0]}
      %y = "graph.matmul"(%x, %t)

Weights are parameters, the arguments from `graph.num_inputs` on, and constants. The caller passes
the parameters to `@main_quantize` once, and its results to `@main`; constants are quantised here. A
weight is quantised if it is a matrix of floats of known dims whose only uses, possibly transposed
or converted, are the right side of a `graph.matmul` or a `graph.take` of rows. Others stay, with a
remark. Decoding is an operator like any other: `relax-fuse-ops` and `relax-fuse-tir` move it into
the matmul.

    scheme           stored bits of a value          values of a group
    q8_32            8.5                             scale * q, q from -127 to 127
    q4_32            4.5                             scale * q, q from -8 to 7
    q4_32_minimum    5                               scale * q + minimum, q from 0 to 15
    q8_64, q8_128    8.25, 8.125                     as q8_32
    q4_64, q4_128    4.25, 4.125                     as q4_32
    q4_64_minimum    4.5                             as q4_32_minimum
    q4_128_minimum   4.25                            as q4_32_minimum

The names have the bits and the group size: the count of values along the contracted dim that share
a scale, in f16. That dim must be a multiple of it. The first three are also called q8_0, q4_0 and
q4_1. `activations=int8` also quantises the left side of products, to 8 bits in groups of 32, so
that products are of integers. `only` and `skip` are regular expressions that are searched for in
the names of parameters, and in `constant`; weights of less than `min-size` elements stay, as do
constants whose scales exceed f16. `@main_quantize`, which sees parameters only at run time, clamps
such scales, and with them the values: see `graph.quantize`.

Needs: known ranks (`relax-infer-shapes`), weights in the function that reads them
(`relax-inline-functions`). Leaves: valid IR of the same operators.
Source: TVM `relax.transform.LiftTransformParams`, and MLC-LLM's group quantisation, in one.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from relax_mlir.analysis.functions import (
    NAME,
    NUM_INPUTS,
    argument_name,
    graph_functions,
    is_public,
)
from relax_mlir.analysis.trees import give_arguments, keep_arguments
from relax_mlir.bindings import arith, func, ir
from relax_mlir.data import NO_DATA, bytes_of, floats_of, is_data
from relax_mlir.diagnostics import remark
from relax_mlir.dialects.graph import (
    AstypeOp,
    DequantizeBlocksOp,
    DequantizeOp,
    DequantizeRowsOp,
    MatmulOp,
    PermuteDimsOp,
    QuantizeBlocksOp,
    QuantizeOp,
    ReshapeOp,
    StridedSliceOp,
    TakeOp,
    TensorType,
    exact_dims,
    static_extent,
)
from relax_mlir.dialects.graph.quantized import BY_GROUP, PANEL, PARTS, ROUNDED, SCHEMES
from relax_mlir.errors import UsageError
from relax_mlir.panels import is_representable, quantize
from relax_mlir.passes import Pass, PassFailure
from relax_mlir.rewriting import is_unused, safe_erase, walk_ops
from relax_mlir.symbolic import product

NAMES = {
    "q8_32": "q8_0",
    "q4_32": "q4_0",
    "q4_32_minimum": "q4_1",
    **dict(zip(BY_GROUP, BY_GROUP)),
}
"""The scheme of `graph.quantize` for each scheme of this pass."""
ACTIVATIONS = ("f32", "int8")
SUFFIX = "_quantize"
CONSTANT = "constant"
FLOATS = (ir.F32Type, ir.F16Type, ir.BF16Type)


@dataclass(frozen=True)
class Quantize(Pass):
    """Quantises weights, and decodes them where they are read."""

    needs_verified: ClassVar[bool] = True

    scheme: str
    activations: str = "f32"
    only: str = ""
    skip: str = ""
    min_size: int = 1024

    def __post_init__(self) -> None:
        if self.rounding not in ROUNDED:
            raise UsageError(f"unknown scheme '{self.scheme}'; accepted are {', '.join(NAMES)}")
        if self.activations not in ACTIVATIONS:
            known = ", ".join(ACTIVATIONS)
            raise UsageError(f"unknown activations '{self.activations}'; accepted are {known}")
        for pattern in (self.only, self.skip):
            try:
                re.compile(pattern)
            except (re.error, OverflowError, RecursionError) as error:  # `re` raises all three
                raise UsageError(f"'{pattern}' is not a regular expression: {error}") from None

    @property
    def rounding(self) -> str:
        """The scheme of `graph.quantize`."""
        return NAMES.get(self.scheme, self.scheme)

    def run(self, op: ir.Operation) -> None:
        """Rewrites every public graph function."""
        counts = [_Rewriter(self, f).run() for f in graph_functions(op) if is_public(f)]
        if not any(counts):
            remark(op.location, "no weight is quantised; parameters begin at 'graph.num_inputs'")

    def wants(self, name: str, annotation: TensorType) -> bool:
        """Whether a weight of that name and type should be quantised if possible."""
        dims = annotation.dims
        if not isinstance(annotation.element, FLOATS) or dims is None or len(dims) != 2:
            return False
        rows, columns = map(static_extent, dims)
        if rows is not None and columns is not None and rows * columns < self.min_size:
            return False
        skips = self.skip and re.search(self.skip, name)
        return bool(re.search(self.only, name)) and not skips


@dataclass(frozen=True)
class _Matrix:
    """A weight that is quantised: rows of `columns` elements, with blocks along its dim `axis`."""

    weight: ir.Value
    axis: int
    rows: int
    columns: int
    readers: tuple[ir.OpView, ...]


class _Stays(Exception):
    """Raised with the reason why a weight cannot be quantised."""


def _matrix_of(weight: ir.Value, group: int) -> _Matrix | None:
    """How to quantise a weight in groups; None if it is unused. Raises _Stays."""
    by_axis: dict[int, list[ir.OpView]] = {0: [], 1: []}
    for reader, axis in _readers(weight, False):
        by_axis[axis].append(reader)
    if by_axis[0] and by_axis[1]:
        raise _Stays("its rows and its columns are both multiplied or taken")
    readers = [*by_axis[0], *by_axis[1]]
    if not readers:
        return None
    axis = int(bool(by_axis[1]))
    dims = [static_extent(dim) for dim in TensorType.of(weight).dims or ()]
    rows, columns = dims[1 - axis], dims[axis]
    if rows is None or columns is None:
        raise _Stays(f"'{TensorType.of(weight)}' has an unknown dim")
    if columns % group:
        raise _Stays(f"its contracted dim is {columns}, which is not a multiple of {group}")
    return _Matrix(weight, axis, rows, columns, tuple(readers))


def _readers(value: ir.Value, transposed: bool) -> Iterator[tuple[ir.OpView, int]]:
    """The operators that read a weight, each with the dim along which its blocks must be."""
    for use in value.uses:
        op = use.owner.opview
        if isinstance(op, PermuteDimsOp) and tuple(op.attributes["axes"]) == (1, 0):
            yield from _readers(op.result, not transposed)
        elif isinstance(op, AstypeOp) and isinstance(TensorType.of(op.result).element, FLOATS):
            yield from _readers(op.result, transposed)
        elif isinstance(op, MatmulOp) and use.operand_number == 1 and TensorType.of(op.lhs).rank:
            yield op, int(transposed)
        elif (
            isinstance(op, TakeOp)
            and op.attributes["axis"].value in (0, -2)
            and TensorType.of(op.indices).is_exact
        ):
            yield op, int(not transposed)
        else:
            raise _Stays(f"it is read by '{op.operation.name}', in a way that cannot decode")


@dataclass
class _Rewriter:
    """Quantises the weights of one function."""

    options: Quantize
    function: func.FuncOp
    rounded: dict[ir.Value, Sequence[ir.Value]] = field(default_factory=dict)

    @property
    def scheme(self) -> str:
        """The scheme of `graph.quantize`."""
        return self.options.rounding

    def run(self) -> int:
        """Rewrites constants first, then parameters; returns the count."""
        count = sum(map(self._constant, walk_ops(self.function, arith.ConstantOp)))
        if NUM_INPUTS in self.function.attributes:
            count += self._parameters(self.function.attributes[NUM_INPUTS].value)
        return count

    def _find(self, weight: ir.Value, name: str) -> _Matrix | None:
        """How to quantise a weight; None, with a remark, if it stays."""
        if not isinstance(weight.type, ir.RankedTensorType):
            return None
        if not self.options.wants(name, TensorType.of(weight)):
            return None
        try:
            return _matrix_of(weight, SCHEMES[self.scheme].group)
        except _Stays as reason:
            remark(weight.location, f"'{name}' is not quantised: {reason}")
            return None

    def _constant(self, constant: arith.ConstantOp) -> bool:
        elements = constant.attributes["value"]
        if is_data(elements):
            data = bytes_of(elements)
            if data is None:
                raise PassFailure(constant, NO_DATA)
        elif not isinstance(elements, ir.DenseElementsAttr) or elements.is_splat:
            return False
        matrix = self._find(constant.result, CONSTANT)
        if matrix is None:
            return False
        values = floats_of(elements)
        rounded = quantize(np.ascontiguousarray(values if matrix.axis else values.T), self.scheme)
        if not is_representable(rounded):
            remark(
                constant.location,
                f"'constant' is not quantised: it has {np.abs(values).max():g}, which exceeds "
                "the range of float16 scales",
            )
            return False
        with ir.InsertionPoint(constant), constant.location:
            parts = {
                name: arith.ConstantOp(attribute.type, attribute).result
                for name, part in rounded.items()
                for attribute in [ir.DenseElementsAttr.get(part)]
            }
        self._decode(matrix, parts)
        safe_erase(constant)
        return True

    def _parameters(self, first: int) -> int:
        function = self.function
        old = list(function.arguments)[first:]
        names = [argument_name(function, first + i) for i in range(len(old))]
        matrices = [self._find(value, name) for value, name in zip(old, names)]
        if not any(matrices):
            return 0
        made = _Companion(function, old).replace(matrices, self.scheme)
        attributes = _argument_attributes(function)
        entries, described = attributes[:first], attributes[first:]
        for value, name, entry, matrix, types in zip(old, names, described, matrices, made):
            new = [function.entry_block.add_argument(type_, value.location) for type_ in types]
            if matrix is None:
                value.replace_all_uses_with(new[0])
                entries.append(entry)
                continue
            parts = dict(zip(SCHEMES[self.scheme].parts(0, 0), new, strict=True))
            self._decode(matrix, parts)
            entries += [
                ir.DictAttr.get({NAME: ir.StringAttr.get(f"{name}.{part}")}) for part in parts
            ]
        for _ in old:
            function.entry_block.erase_argument(first)
        _set_type(function, [a.type for a in function.arguments], list(function.type.results))
        function.arg_attrs = entries
        keep_arguments(function, range(first))
        return sum(matrix is not None for matrix in matrices)

    def _decode(self, matrix: _Matrix, parts: dict[str, ir.Value]) -> None:
        """Makes the readers of a weight read its parts instead."""
        for reader in matrix.readers:
            present = [parts.get(name) for name in PARTS]
            with ir.InsertionPoint(reader), reader.location:
                if isinstance(reader, MatmulOp):
                    result = self._product(reader, matrix, present)
                elif isinstance(reader, TakeOp):
                    result = self._rows(reader, matrix, present)
                result = _as_element(result, TensorType.of(reader.result).element)
            result.set_type(reader.result.type)
            reader.result.replace_all_uses_with(result)
            chain = reader.operands[int(isinstance(reader, MatmulOp))]
            safe_erase(reader)
            while not isinstance(chain.owner, ir.Block) and is_unused(chain.owner):
                op = chain.owner
                if isinstance(op.opview, arith.ConstantOp):
                    break
                chain = op.operands[0]
                safe_erase(op)

    def _product(
        self, reader: MatmulOp, matrix: _Matrix, slots: Sequence[ir.Value | None]
    ) -> ir.Value:
        """The product with the decoded matrix, in f32."""
        left = self._left(reader)
        decoded = DequantizeOp.build(*slots, scheme=self.scheme).result
        transposed = PermuteDimsOp.build(decoded, axes=[1, 0]).result
        product = MatmulOp.build(left, transposed).result
        if matrix.rows % PANEL == 0:
            return product
        last = ir.RankedTensorType(product.type).rank - 1
        return StridedSliceOp.build(
            product, axes=[last], begin=[0], end=[matrix.rows], strides=[1]
        ).result

    def _left(self, reader: MatmulOp) -> ir.Value:
        """The left side in f32, quantised once for all products with it."""
        left = reader.lhs
        if self.options.activations == "f32":
            return _as_element(left, ir.F32Type.get())
        if left not in self.rounded:
            with _insertion_point_after(left), reader.location:
                widened = _as_element(left, ir.F32Type.get())
                self.rounded[left] = QuantizeBlocksOp.build(widened, symmetric=False).results
        return DequantizeBlocksOp.build(*self.rounded[left]).result

    def _rows(self, reader: TakeOp, matrix: _Matrix, slots: Sequence[ir.Value | None]) -> ir.Value:
        """The decoded rows of the indices, in f32."""
        indices = reader.indices
        dims = exact_dims(TensorType.of(indices).dims)
        if len(dims) != 1:
            indices = ReshapeOp.build(indices, shape=[product(dims)]).result
        rows = DequantizeRowsOp.build(indices, *slots, scheme=self.scheme).result
        if len(dims) == 1:
            return rows
        return ReshapeOp.build(rows, shape=[*dims, matrix.columns]).result


class _Companion:
    """The function that computes the parameters of another one: `@main_quantize`."""

    def __init__(self, function: func.FuncOp, parameters: Sequence[ir.Value]) -> None:
        """Looks it up, or adds one that returns its arguments."""
        self.name = function.name.value + SUFFIX
        types = [value.type for value in parameters]
        block = function.operation.block
        existing = [
            op
            for op in block.operations
            if "sym_name" in op.attributes and op.attributes["sym_name"].value == self.name
        ]
        if existing and (
            not isinstance(existing[0], func.FuncOp) or existing[0].type.results != types
        ):
            raise PassFailure(
                existing[0],
                f"has the name of what makes the parameters of '@{function.name.value}'",
            )
        self.function = existing[0] if existing else self._add(function, parameters, types)

    def _add(
        self, function: func.FuncOp, parameters: Sequence[ir.Value], types: Sequence[ir.Type]
    ) -> func.FuncOp:
        with ir.InsertionPoint(function), function.location:
            new = func.FuncOp(self.name, (types, types))
        new.arg_attrs = _argument_attributes(function)[-len(parameters) :]
        block = new.add_entry_block()
        with ir.InsertionPoint(block), function.location:
            func.ReturnOp(list(block.arguments))
        give_arguments(new, function, len(function.arguments) - len(parameters))
        return new

    def replace(self, matrices: Sequence[_Matrix | None], scheme: str) -> list[list[ir.Type]]:
        """Returns the parts of a matrix instead of it, and the types for each of the results."""
        block = self.function.entry_block
        last = block.operations[len(block.operations) - 1]
        made = []
        for value, matrix in zip(last.operands, matrices, strict=True):
            if matrix is None:
                made.append([value])
                continue
            with ir.InsertionPoint(last), matrix.weight.location:
                op = QuantizeOp.build(value, scheme=scheme, axis=matrix.axis)
            made.append(list(op.results))
        returned = [value for values in made for value in values]
        with ir.InsertionPoint(last), last.location:
            func.ReturnOp(returned)
        safe_erase(last)
        inputs = list(self.function.type.inputs)
        _set_type(self.function, inputs, [value.type for value in returned])
        return [[value.type for value in values] for values in made]


def _argument_attributes(function: func.FuncOp) -> list[ir.DictAttr]:
    """The attributes of each argument."""
    if "arg_attrs" not in function.attributes:
        return [ir.DictAttr.get({})] * len(function.arguments)
    return [ir.DictAttr(entry) for entry in function.attributes["arg_attrs"]]


def _set_type(function: func.FuncOp, inputs: Sequence[ir.Type], results: Sequence[ir.Type]) -> None:
    type_ = ir.FunctionType.get(list(inputs), list(results))
    function.attributes["function_type"] = ir.TypeAttr.get(type_)


def _insertion_point_after(value: ir.Value) -> ir.InsertionPoint:
    """The insertion point after the definition of a value."""
    if isinstance(value.owner, ir.Block):
        return ir.InsertionPoint.at_block_begin(value.owner)
    return ir.InsertionPoint.after(value.owner)


def _as_element(value: ir.Value, element: ir.Type) -> ir.Value:
    """The tensor in another float type."""
    if TensorType.of(value).element == element:
        return value
    return AstypeOp.build(value, dtype=element).result
