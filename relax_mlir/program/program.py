"""A tensor program read into stages: loops over index spaces that read and write tensors.

    func.func @k(%x, %out)                       Argument, Argument
      tensor.empty, linalg.fill                  Empty, Splat: no memory, no loops
      tensor.extract_slice, reshapes             Slice, Reshape: views of a tensor
      linalg.generic, tensor.insert_slice        Stage: loops; its results are Computed
      arith, tensor.dim, ...                     scalars, in `Program.items` among the stages

Nothing here emits code; dynamic extents are None.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias, TypeVar

from relax_mlir.bindings import arith, func, ir, linalg, tensor
from relax_mlir.dialects.graph import TensorType
from relax_mlir.dialects.tir import PrimFunc
from relax_mlir.passes.base import PassFailure

T = TypeVar("T")
MixedIndex: TypeAlias = int | ir.Value  # a constant, or a scalar of the old function


def all_known(maybe: Iterable[T | None]) -> list[T] | None:
    """All items, or None if one of them is None."""
    items = list(maybe)
    known = [x for x in items if x is not None]
    return known if len(known) == len(items) else None


@dataclass(eq=False)
class Tensor:
    """A tensor value: static extents (None if dynamic), element type, and the op for messages."""

    shape: tuple[int | None, ...]
    element: ir.Type
    op: ir.OpView


@dataclass(eq=False)
class Argument(Tensor):
    """Parameter `position`; `out` is its index among the outputs, or None."""

    position: int
    out: int | None


@dataclass(eq=False)
class Empty(Tensor):
    """A tensor of undefined elements; `sizes` are all its extents."""

    sizes: list[MixedIndex]


@dataclass(eq=False)
class Splat(Tensor):
    """A tensor of equal elements, with the extents of `like`, if there is one."""

    scalar: ir.Value | ir.Attribute
    like: Tensor | None


@dataclass(eq=False)
class Constant(Tensor):
    """Constant elements."""

    value: ir.Attribute


@dataclass(frozen=True)
class Window:
    """Offsets, sizes and strides of a slice, and the unit dims that it drops."""

    offsets: tuple[MixedIndex, ...]
    sizes: tuple[MixedIndex, ...]
    strides: tuple[MixedIndex, ...]
    dropped: frozenset[int]


@dataclass(eq=False)
class Slice(Tensor):
    """A window of another tensor."""

    source: Tensor
    window: Window


@dataclass(eq=False)
class Reshape(Tensor):
    """Dims of `source` collapsed in groups, or expanded to `sizes`."""

    source: Tensor
    groups: list[list[int]]
    sizes: list[MixedIndex] | None

    @property
    def expands(self) -> bool:
        """Whether dims are expanded."""
        return self.sizes is not None


@dataclass(eq=False)
class Computed(Tensor):
    """Result `index` of a stage."""

    stage: "Stage"
    index: int


@dataclass(frozen=True)
class Operand:
    """A tensor accessed at affine expressions of a stage's loop indices."""

    tensor: Tensor
    indices: tuple[ir.AffineExpr, ...]


@dataclass(eq=False)
class Stage:
    """A loop nest: for all indices, `block` computes elements of `inits` from those of `reads`.

    `block` None copies the only read. `window` is the part of the output that an insertion
    writes. `gathers` are the tensors that the block reads by computed indices.
    """

    op: ir.OpView
    order: int
    extents: tuple[int | None, ...]
    reduces: tuple[bool, ...]
    reads: list[Operand]
    inits: list[Operand]
    block: ir.Block | None
    window: Window | None = None
    gathers: list[Tensor] = field(default_factory=list)
    results: list[Computed] = field(default_factory=list)

    def uses_init(self, index: int) -> bool:
        """Whether the block reads the former contents of an output."""
        if self.block is None:
            return False
        argument = self.block.arguments[len(self.reads) + index]
        return next(iter(argument.uses), None) is not None

    @property
    def body(self) -> ir.Block:
        """The block of a stage that computes."""
        assert self.block is not None, "a copy has no block"
        return self.block

    @property
    def uses_index(self) -> bool:
        """Whether the block reads its loop indices."""
        operations = self.block.operations if self.block is not None else ()
        return any(isinstance(op, linalg.IndexOp) for op in operations)

    @property
    def has_reduction(self) -> bool:
        """Whether some loop accumulates."""
        return any(self.reduces)


@dataclass
class Program:
    """A tensor program in order: scalar ops and stages, and what it returns.

    `dim_names` are the symbolic extents of each tensor argument as canonical text, empty where
    unknown; `sym_names` the symbols that index arguments stand for.
    """

    op: func.FuncOp
    dim_names: Sequence[Sequence[str]]
    sym_names: dict[ir.Value, str]
    items: list[ir.OpView | Stage] = field(default_factory=list)
    tensors: dict[ir.Value, Tensor] = field(default_factory=dict)
    arguments: list[Argument] = field(default_factory=list)
    returned: list[Tensor] = field(default_factory=list)

    @property
    def stages(self) -> list[Stage]:
        """The stages, in order."""
        return [item for item in self.items if isinstance(item, Stage)]


def read_program(op: func.FuncOp, origin: PrimFunc) -> Program:
    """Reads a function whose named linalg ops are generalised; raises PassFailure at an unknown op.

    It is a copy of the tensor program `origin`, which has the names of dims.
    """
    arguments = list(op.entry_block.arguments)
    tensors = [a for a in arguments if isinstance(a.type, ir.RankedTensorType)]
    scalars = [a for a in arguments if isinstance(a.type, ir.IndexType)]
    named = [a for a in origin.arguments if isinstance(a.type, ir.RankedTensorType)]
    dim_names = [["" if d is None else str(d) for d in TensorType.of(a).dims or ()] for a in named]
    program = Program(op, dim_names, dict(zip(scalars, origin.sym_names, strict=True)))
    num_outs = origin.num_outs
    for position, value in enumerate(tensors):
        out = position - (len(tensors) - num_outs)
        argument = Argument(*_kind(value), op, position, out if out >= 0 else None)
        program.tensors[value] = argument
        program.arguments.append(argument)
    for child in op.entry_block.operations:
        _read(program, child)
    return program


def _kind(value: ir.Value) -> tuple[tuple[int | None, ...], ir.Type]:
    kind = ir.RankedTensorType(value.type)
    dims = range(kind.rank)
    shape = tuple(None if kind.is_dynamic_dim(i) else kind.get_dim_size(i) for i in dims)
    return shape, kind.element_type


def _read(program: Program, op: ir.OpView) -> None:
    reader = _READERS.get(op.operation.name)
    if reader is not None:
        reader(program, op)
    elif _is_scalar(op):
        program.items.append(op)
    else:
        raise PassFailure(op, "has no vector form")


def _is_scalar(op: ir.OpView) -> bool:
    values = [*op.operands, *op.results]
    return not len(op.regions) and not any(isinstance(v.type, ir.ShapedType) for v in values)


def _cast(program: Program, op: tensor.CastOp) -> None:
    program.tensors[op.result] = program.tensors[op.source]


def _empty(program: Program, op: tensor.EmptyOp) -> None:
    shape, element = _kind(op.result)
    dynamic = iter(op.operands)
    sizes = [next(dynamic) if extent is None else extent for extent in shape]
    program.tensors[op.result] = Empty(shape, element, op, sizes)


def _fill(program: Program, op: linalg.FillOp) -> None:
    scalar, like = op.operands
    result = op.results[0]
    program.tensors[result] = Splat(*_kind(result), op, scalar, program.tensors[like])


def _splat(program: Program, op: ir.OpView) -> None:
    shape, element = _kind(op.results[0])
    if None in shape:
        raise PassFailure(op, "has a dynamic extent; linalg.fill of a tensor.empty is accepted")
    program.tensors[op.results[0]] = Splat(shape, element, op, op.operands[0], None)


def _constant(program: Program, op: arith.ConstantOp) -> None:
    if not isinstance(op.result.type, ir.RankedTensorType):
        program.items.append(op)
        return
    value = op.attributes["value"]
    shape, element = _kind(op.result)
    elements = ir.DenseElementsAttr(value) if isinstance(value, ir.DenseElementsAttr) else None
    if elements is not None and elements.is_splat:
        scalar = elements.get_splat_value()
        program.tensors[op.result] = Splat(shape, element, op, scalar, None)
    else:
        program.tensors[op.result] = Constant(shape, element, op, value)


def _dim(program: Program, op: tensor.DimOp) -> None:
    program.items.append(op)


def mixed(static: Iterable[int], dynamic: list[ir.Value]) -> list[MixedIndex]:
    """Static integers, with values instead of the dynamic ones."""
    values = iter(dynamic)
    unknown = ir.ShapedType.get_dynamic_stride_or_offset()
    size = ir.ShapedType.get_dynamic_size()
    return [next(values) if x in (unknown, size) else x for x in static]


def _window(op: ir.OpView, full: ir.Value, small: ir.Value) -> Window:
    offsets = mixed(op.static_offsets, list(op.offsets))
    sizes = mixed(op.static_sizes, list(op.sizes))
    strides = mixed(op.static_strides, list(op.strides))
    remaining = list(_kind(small)[0])
    dropped = []
    for position, size in enumerate(sizes):
        if remaining and remaining[0] == (size if isinstance(size, int) else None):
            remaining.pop(0)
        else:
            dropped.append(position)
    return Window(tuple(offsets), tuple(sizes), tuple(strides), frozenset(dropped))


def _extract_slice(program: Program, op: tensor.ExtractSliceOp) -> None:
    window = _window(op, op.source, op.result)
    source = program.tensors[op.source]
    program.tensors[op.result] = Slice(*_kind(op.result), op, source, window)


def _insert_slice(program: Program, op: tensor.InsertSliceOp) -> None:
    source, dest = program.tensors[op.source], program.tensors[op.dest]
    window = _window(op, op.dest, op.source)
    identity = identity_of(len(source.shape))
    stage = Stage(
        op, len(program.items), source.shape, (False,) * len(source.shape),
        [Operand(source, identity)], [Operand(dest, identity)], None, window,
    )  # fmt: skip
    _finish(program, stage, [op.result])


def identity_of(rank: int) -> tuple[ir.AffineExpr, ...]:
    """d0, d1, ..."""
    return tuple(ir.AffineExpr.get_dim(i) for i in range(rank))


def _reshape(program: Program, op: ir.OpView) -> None:
    source = program.tensors[op.operands[0]]
    groups = [[i.value for i in group] for group in op.reassociation]
    sizes = None
    if op.operation.name == "tensor.expand_shape":
        sizes = mixed(op.static_output_shape, list(op.output_shape))
    result = op.results[0]
    program.tensors[result] = Reshape(*_kind(result), op, source, groups, sizes)


def _filled(op: linalg.GenericOp) -> ir.Value | None:
    """The scalar that the op fills its result with, as a generalised linalg.fill does."""
    block = op.regions[0].blocks[0]
    last = block.operations[len(block.operations) - 1]
    if len(op.outputs) != 1 or any("reduction" in str(kind) for kind in op.iterator_types):
        return None
    for value, argument in zip(op.inputs, block.arguments, strict=False):
        if last.operands[0] == argument and not isinstance(value.type, ir.ShapedType):
            return value
    return None


def _generic(program: Program, op: linalg.GenericOp) -> None:
    scalar = _filled(op)
    if scalar is not None:
        result = op.results[0]
        like = program.tensors[op.outputs[0]]
        program.tensors[result] = Splat(*_kind(result), op, scalar, like)
        return
    maps = [attribute.value for attribute in op.indexing_maps]
    kinds = tuple("reduction" in str(kind) for kind in op.iterator_types)
    operands = [
        Operand(_as_tensor(program, value, op), tuple(map_.results))
        for value, map_ in zip([*op.inputs, *op.outputs], maps, strict=True)
    ]
    count = len(op.inputs)
    block = op.regions[0].blocks[0]
    stage = Stage(
        op, len(program.items), _extents(operands, len(kinds)), kinds,
        operands[:count], operands[count:], block,
    )  # fmt: skip
    for child in block.operations:
        if isinstance(child, tensor.ExtractOp):
            stage.gathers.append(_as_tensor(program, child.operands[0], child))
    _finish(program, stage, list(op.results))


def _as_tensor(program: Program, value: ir.Value, op: ir.OpView) -> Tensor:
    if isinstance(value.type, ir.RankedTensorType):
        return program.tensors[value]
    return Splat((), value.type, op, value, None)


def _finish(program: Program, stage: Stage, results: list[ir.Value]) -> None:
    program.items.append(stage)
    for index, value in enumerate(results):
        computed = Computed(*_kind(value), stage.op, stage, index)
        program.tensors[value] = computed
        stage.results.append(computed)


def _extents(operands: list[Operand], rank: int) -> tuple[int | None, ...]:
    extents: list[int | None] = [None] * rank
    for operand in operands:
        for expression, extent in zip(operand.indices, operand.tensor.shape, strict=True):
            if isinstance(expression, ir.AffineDimExpr) and extent is not None:
                extents[expression.position] = extent
    return tuple(extents)


def _extract(program: Program, op: tensor.ExtractOp) -> None:
    program.items.append(op)


def _return(program: Program, op: func.ReturnOp) -> None:
    program.returned = [program.tensors[value] for value in op.operands]


_READERS = {
    "arith.constant": _constant,
    "func.return": _return,
    "linalg.fill": _fill,
    "linalg.generic": _generic,
    "tensor.cast": _cast,
    "tensor.collapse_shape": _reshape,
    "tensor.dim": _dim,
    "tensor.empty": _empty,
    "tensor.expand_shape": _reshape,
    "tensor.extract": _extract,
    "tensor.extract_slice": _extract_slice,
    "tensor.insert_slice": _insert_slice,
    "tensor.splat": _splat,
}
