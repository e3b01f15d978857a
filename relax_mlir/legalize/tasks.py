"""Sequential loops of tensor programs, and loops over parallel tasks."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from relax_mlir.bindings import arith, bufferization, ir, scf, tensor
from relax_mlir.dialects.tir import BLOCK

from .kernel import PARALLEL, affine_map, dim, empty, generic, index
from .scalars import from_compute, to_compute

_BLOCK = 64
"""Elements of a task along the last dim: several cache lines, so that tasks share none."""

Body = Callable[..., Sequence[ir.Value]]


def in_order(
    count: ir.Value, carried: Sequence[ir.Value], body: Body, first: ir.Value | None = None
) -> list[ir.Value]:
    """Runs `body(i, *carried)` for each i from `first`, or 0, below count; returns the results."""
    start = index(0) if first is None else first
    loop = scf.ForOp(start, count, index(1), list(carried))
    with ir.InsertionPoint(loop.body):
        scf.YieldOp(list(body(loop.induction_variable, *loop.inner_iter_args)))
    return list(loop.results)


def each_in_order(
    counts: Sequence[ir.Value], carried: Sequence[ir.Value], body: Body
) -> list[ir.Value]:
    """Nested loops, the last one innermost; `body` takes all indices and the carried values."""

    def nested(indices: list[ir.Value], values: Sequence[ir.Value]) -> Sequence[ir.Value]:
        if len(indices) == len(counts):
            return body(indices, *values)
        return in_order(counts[len(indices)], values, lambda i, *own: nested([*indices, i], own))

    return list(nested([], carried))


def if_else(
    condition: ir.Value,
    kinds: Sequence[ir.Type],
    then: Callable[[], Sequence[ir.Value]],
    otherwise: Callable[[], Sequence[ir.Value]],
) -> list[ir.Value]:
    """A branch with results."""
    branch = scf.IfOp(condition, list(kinds), has_else=True)
    for block, side in ((branch.then_block, then), (branch.else_block, otherwise)):
        with ir.InsertionPoint(block):
            scf.YieldOp(list(side()))
    return list(branch.results)


@dataclass(frozen=True)
class Lines:
    """A part of a tensor: whole along `along`, one index of other axes, a block of one axis.

    `offsets` and `sizes` are those of the part, by axis: constants or values. The block is of the
    last axis, or of the one before if that is in `along` and `by_rows`.
    """

    along: Sequence[int]
    offsets: Sequence[int | ir.Value]
    sizes: Sequence[int | ir.Value]
    by_rows: bool = False

    @property
    def block(self) -> int | None:
        """The axis that has a block, if there is one."""
        return _block_axis(len(self.sizes), self.along, self.by_rows)

    @property
    def single(self) -> list[int]:
        """The axes that have a single index."""
        known = (*self.along, self.block)
        return [axis for axis in range(len(self.sizes)) if axis not in known]

    def start(self, axis: int) -> ir.Value:
        """Where the part begins along an axis."""
        offset = self.offsets[axis]
        return index(offset) if isinstance(offset, int) else offset

    def of(self, source: ir.Value) -> ir.Value:
        """The part of a tensor of these dims."""
        static = _static(self.sizes)
        kind = ir.RankedTensorType.get(static, ir.ShapedType(source.type).element_type)
        return tensor.ExtractSliceOp(
            kind, source, _dynamic(self.offsets), _dynamic(self.sizes), [],
            _static(self.offsets), static, [1] * len(self.sizes),
        ).result  # fmt: skip

    def put(self, part: ir.Value, out: ir.Value) -> None:
        """Inserts the part into the output, at the end of a task."""
        tensor.ParallelInsertSliceOp(
            part, out, _dynamic(self.offsets), _dynamic(self.sizes), [],
            _static(self.offsets), _static(self.sizes), [1] * len(self.sizes),
        )  # fmt: skip

    def empty(self, element: ir.Type) -> ir.Value:
        """A new tensor of the part's dims."""
        return empty(self.sizes, element)

    def copy(self, source: ir.Value, out: ir.Value) -> ir.Value:
        """A copy of a part, converted to the element type of `out`.

        Later loops update it in place.
        """
        element = ir.ShapedType(out.type).element_type
        if ir.ShapedType(source.type).element_type == element:
            return bufferization.MaterializeInDestinationOp(out.type, source, out).result
        identity = affine_map(len(self.sizes), list(range(len(self.sizes))))

        def body(x: ir.Value, _: ir.Value) -> ir.Value:
            return from_compute(x if x.type == element else to_compute(x), element)

        maps, kinds = [identity, identity], [PARALLEL] * len(self.sizes)
        return generic([source], [out], maps, kinds, body)[0]


def _block_axis(rank: int, along: Sequence[int], by_rows: bool) -> int | None:
    last = rank - 1
    if last in along and by_rows:
        last -= 1
    return None if last in along or last < 0 else last


def _static(values: Sequence[int | ir.Value]) -> list[int]:
    dynamic = ir.ShapedType.get_dynamic_size()
    return [value if isinstance(value, int) else dynamic for value in values]


def _dynamic(values: Sequence[int | ir.Value]) -> list[ir.Value]:
    return [value for value in values if isinstance(value, ir.Value)]


def in_tasks(
    outs: Sequence[ir.Value],
    along: Sequence[int],
    body: Callable[..., Sequence[ir.Value]],
    rows: ir.Value | None = None,
) -> list[ir.Value]:
    """Computes tensors, whose shapes agree except in the axes `along`, part by part.

    `body(lines, *outs)` returns the parts of the outputs. The axes that are not in `along` are
    divided among tasks: by single indices, the last axis of memory by blocks. If that is in
    `along`, so many `rows` are a block.
    """
    if any(0 in ir.RankedTensorType(out.type).shape for out in outs):
        return list(outs)  # a static slice must begin inside of a tensor
    first = outs[0]
    shape = ir.RankedTensorType(first.type).shape
    rank = len(shape)
    divided = [axis for axis in range(rank) if axis not in along]
    sizes: list[int | ir.Value] = [dim(first, i) if n < 0 else n for i, n in enumerate(shape)]
    offsets: list[int | ir.Value] = [0] * rank
    if not divided:
        return list(body(Lines(along, offsets, sizes), *outs))
    block = _block_axis(rank, along, rows is not None)
    width = rows if rows is not None and block != rank - 1 else _BLOCK
    steps = [width if axis == block else 1 for axis in divided]
    loop = scf.ForallOp([0] * len(divided), [sizes[i] for i in divided], steps, list(outs))
    with ir.InsertionPoint(loop.body):
        for axis, step, offset in zip(divided, steps, loop.induction_variables, strict=True):
            offsets[axis] = offset
            extent = index(n) if isinstance(n := sizes[axis], int) else n
            rest = arith.SubIOp(extent, offset).result
            most = index(step) if isinstance(step, int) else step
            sizes[axis] = 1 if step == 1 else _marked(arith.MinSIOp(most, rest))
        lines = Lines(along, offsets, sizes, rows is not None)
        parts = body(lines, *loop.inner_iter_args)
        end = scf.InParallelOp()
    with ir.InsertionPoint(end.region.blocks[0]):
        for part, out in zip(parts, loop.inner_iter_args, strict=True):
            lines.put(part, out)
    return list(loop.results)


def _marked(size: arith.MinSIOp) -> ir.Value:
    """The size of a block, of which schedules are told that they may choose another one."""
    size.operation.attributes[BLOCK] = ir.UnitAttr.get()
    return size.result


def in_parts(
    outs: Sequence[ir.Value],
    axis: int,
    length: ir.Value,
    count: ir.Value,
    size: ir.Value,
    body: Callable[..., Sequence[ir.Value]],
) -> list[ir.Value]:
    """Computes tensors of one index along all axes but one: parts of a size, while there are any.

    `body(lines, *parts)` returns the parts of the outputs, which have `length` elements in all.
    """
    rank = ir.RankedTensorType(outs[0].type).rank
    loop = scf.ForallOp([0], [count], [1], list(outs))
    with ir.InsertionPoint(loop.body):
        begin = arith.MulIOp(loop.induction_variables[0], size).result
        begin = arith.MinUIOp(begin, length).result
        rest = arith.MinUIOp(size, arith.SubIOp(length, begin).result).result
        offsets: list[int | ir.Value] = [0] * rank
        sizes: list[int | ir.Value] = [1] * rank
        offsets[axis], sizes[axis] = begin, rest
        lines = Lines([axis], offsets, sizes)
        parts = body(lines, *map(lines.of, loop.inner_iter_args))
        end = scf.InParallelOp()
    with ir.InsertionPoint(end.region.blocks[0]):
        for part, out in zip(parts, loop.inner_iter_args, strict=True):
            lines.put(part, out)
    return list(loop.results)
