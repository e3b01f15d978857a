"""The tensor program of all instances of a leaf that updates shared tensors, and does nothing else.

    parts of the grid at once:  part = 0;  for each instance: part[i] += x
    then, at once:              bins[i] + part 0[i] + part 1[i] + ...

Updates of integers commute, so a task may have a part of the result for itself, and no two tasks
access the same memory. What has no neutral element, as `exchange`, is done by one task; inside of
internal nodes, where each instance around it has a tensor of its own, by one for each of these.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from relax_mlir.analysis.shared_memory import home
from relax_mlir.bindings import arith, func, ir, scf, tensor
from relax_mlir.dialects.graph import TensorType
from relax_mlir.dialects.tir import EXCHANGE, AtomicOp
from relax_mlir.rewriting import walk_ops
from relax_mlir.symbolic import Facts

from .kernel import PARALLEL, REDUCTION, KernelBuilder, affine_map, dim, empty, fill, generic, index
from .leaves import Axes, Grid, Instance, with_instances
from .tasks import each_in_order, if_else, in_order

MAX_PARTS, MAX_COUNT = 64, 1 << 20
"""Most parts of a grid, and most instances of it that are counted to choose how many."""
_COMBINE = {
    "add": arith.AddIOp,
    "sub": arith.SubIOp,
    "min": arith.MinSIOp,
    "max": arith.MaxSIOp,
    "and": arith.AndIOp,
    "or": arith.OrIOp,
    "xor": arith.XOrIOp,
}


def emit_shared_leaf(
    kernel: KernelBuilder,
    leaf: func.FuncOp,
    grid: Grid,
    axes: Sequence[Axes],
    facts: Facts,
    shared: Sequence[int],
) -> None:
    """Completes the program of a leaf whose results are the new values of `shared` parameters.

    `axes` are those of the grid that index each input first. Outputs have the dims of the grids
    around the leaf's own, then those of the parameter.
    """
    copy = leaf.operation.clone().opview
    _forget_dims(copy)
    inputs = list(zip(kernel.ins, kernel.in_types, strict=True))
    instance = SharedInstance(kernel, copy, grid, list(axes), with_instances(grid, facts), inputs)
    program = _Program(kernel, instance, grid, list(shared))
    kernel.finish(*program.run())
    copy.operation.erase()


def _forget_dims(leaf: func.FuncOp) -> None:
    """Has tensors in the body be those of tensor programs, which have no symbols for dims."""
    values = list(leaf.arguments)
    for op in walk_ops(leaf):
        values += op.operation.results
        for region in op.operation.regions:
            values += [argument for block in region.blocks for argument in block.arguments]
    for value in values:
        kind = value.type
        if isinstance(kind, ir.RankedTensorType) and kind.encoding is not None:
            value.set_type(ir.RankedTensorType.get(kind.shape, kind.element_type))


class SharedInstance(Instance):
    """A copy of a leaf whose grid is no part of its outputs."""

    def replacement(self, op: ir.OpView) -> ir.Value | None:
        """The value of an op that refers to the grid, or of an update."""
        return self._updated(op) if isinstance(op, AtomicOp) else super().replacement(op)

    def extent(self, axis: int) -> ir.Value:
        """An extent of the grid, which the call passes."""
        return self.kernel.symbol(self.grid.extents[axis])

    def _updated(self, op: AtomicOp) -> ir.Value:
        """The tensor with an element updated, or as it is if an index is outside."""
        part, at = op.dest, list(op.indices)

        def update() -> list[ir.Value]:
            if op.kind_name == EXCHANGE:
                return [tensor.InsertOp(op.value, part, at).result]
            old = tensor.ExtractOp(part, at).result
            return [tensor.InsertOp(_COMBINE[op.kind_name](old, op.value).result, part, at).result]

        checks = [
            arith.CmpIOp(arith.CmpIPredicate.ult, position, dim(part, axis)).result
            for axis, position in enumerate(at)
        ]
        if not checks:
            return update()[0]
        is_inside = checks[0]
        for check in checks[1:]:
            is_inside = arith.AndIOp(is_inside, check).result
        return if_else(is_inside, [part.type], update, lambda: [part])[0]


@dataclass
class _Program:
    """The loops over a grid, whose last axes are the leaf's own node's."""

    kernel: KernelBuilder
    instance: SharedInstance
    grid: Grid
    shared: list[int]

    def __post_init__(self) -> None:
        leaf, self.own = self.instance.leaf, self.grid.levels[0].axes
        self.around = range(len(self.grid.extents) - len(self.own))
        self.before = {i: (self.instance.inputs[i][0], self.instance.axes[i]) for i in self.shared}
        self.kinds: dict[int, str] = {}
        for op in walk_ops(leaf, AtomicOp):
            parameter = home(op.dest, leaf)
            if parameter is not None:
                self.kinds[parameter] = op.kind_name

    def run(self) -> list[ir.Value]:
        """Writes the program; returns the filled outputs."""
        outs = self.kernel.outs
        if any(0 in ir.RankedTensorType(out.type).shape for out in outs):
            return list(outs)  # a static slice must begin inside of a tensor
        if len(self.around):
            return self._for_each_around()
        if EXCHANGE in self.kinds.values() or not len(self.own):
            return self._in_order([_copied(self._given(i), out) for i, out in self._pairs()])
        return self._in_parts()

    def _pairs(self) -> list[tuple[int, ir.Value]]:
        return list(zip(self.shared, self.kernel.outs, strict=True))

    def _given(self, position: int) -> ir.Value:
        """What a shared tensor is before, in the instance around."""
        value, own = self.before[position]
        return _Slice([self.instance.ids[axis] for axis in own], value).taken() if own else value

    def _extents(self, axes: Sequence[int]) -> list[ir.Value]:
        return [self.kernel.symbol(self.grid.extents[axis]) for axis in axes]

    def _for_each_around(self) -> list[ir.Value]:
        """A task for each instance around."""
        rank = len(self.around)
        sizes = self._extents(self.around)
        loop = scf.ForallOp([0] * rank, sizes, [1] * rank, list(self.kernel.outs))
        with ir.InsertionPoint(loop.body):
            ids = list(loop.induction_variables)
            self.instance.ids |= dict(zip(self.around, ids, strict=True))
            slices = [_Slice(ids, out) for out in loop.inner_iter_args]
            carried = [
                _copied(self._given(i), part.taken()) for i, part in zip(self.shared, slices)
            ]
            parts = self._in_order(carried)
            end = scf.InParallelOp()
        with ir.InsertionPoint(end.region.blocks[0]):
            for part, into in zip(parts, slices, strict=True):
                into.put(part)
        return list(loop.results)

    def _in_order(
        self, carried: Sequence[ir.Value], bounds: tuple[ir.Value, ir.Value] | None = None
    ) -> list[ir.Value]:
        """All instances of the leaf's own node, or those within bounds of its first axis."""

        def body(ids: Sequence[ir.Value], *values: ir.Value) -> Sequence[ir.Value]:
            self.instance.ids |= dict(zip(self.own, ids, strict=True))
            for position, value in zip(self.shared, values, strict=True):
                kind = self.instance.inputs[position][1]
                own = (kind.dims or ())[len(self.before[position][1]) :]
                self.instance.share(position, value, TensorType(own, kind.element))
            return self.instance.inline()

        counts = self._extents(self.own)
        if bounds is None:
            return each_in_order(counts, carried, body)
        begin, end = bounds

        def rest(first: ir.Value, *values: ir.Value) -> Sequence[ir.Value]:
            def inner(ids: Sequence[ir.Value], *values: ir.Value) -> Sequence[ir.Value]:
                return body([first, *ids], *values)

            return each_in_order(counts[1:], values, inner)

        return in_order(end, carried, rest, begin)

    def _in_parts(self) -> list[ir.Value]:
        """Tasks that have a part of the first axis each, and what they made of it together."""
        first = self._extents(self.own)[0]
        count = self._count()
        length = arith.CeilDivUIOp(first, count).result
        parts = [_partial(out, count) for out in self.kernel.outs]
        loop = scf.ForallOp([0], [count], [1], parts)
        with ir.InsertionPoint(loop.body):
            (part,) = loop.induction_variables
            begin = arith.MinUIOp(arith.MulIOp(part, length).result, first).result
            rest = arith.SubIOp(first, begin).result
            end = arith.AddIOp(begin, arith.MinUIOp(length, rest).result).result
            slices = [_Slice([part], out) for out in loop.inner_iter_args]
            carried = [fill(self._neutral(i), each.taken()) for i, each in zip(self.shared, slices)]
            made = self._in_order(carried, (begin, end))
            done = scf.InParallelOp()
        with ir.InsertionPoint(done.region.blocks[0]):
            for value, into in zip(made, slices, strict=True):
                into.put(value)
        return [
            self._joined(position, made, out)
            for (position, out), made in zip(self._pairs(), loop.results, strict=True)
        ]

    def _count(self) -> ir.Value:
        """How many parts: not so many that filling them is more than what they are filled with."""
        most = index(MAX_COUNT)
        work = most
        for at, extent in enumerate(self._extents(self.own)):
            few = arith.MinUIOp(extent, most).result
            work = few if not at else arith.MinUIOp(arith.MulIOp(work, few).result, most).result
        elements = index(64)
        for out in self.kernel.outs:
            size = index(1)
            for axis in range(ir.RankedTensorType(out.type).rank):
                size = arith.MulIOp(size, dim(out, axis)).result
            elements = arith.MaxUIOp(elements, size).result
        count = arith.DivUIOp(work, elements).result
        return arith.MaxUIOp(arith.MinUIOp(count, index(MAX_PARTS)).result, index(1)).result

    def _neutral(self, position: int) -> ir.Value:
        """The element that an update leaves as the other one is."""
        element = ir.IntegerType(self.instance.inputs[position][1].element)
        least = -(1 << (element.width - 1))
        elements = {"and": -1, "min": -1 - least, "max": least}
        value = elements.get(self.kinds.get(position, "add"), 0)
        return arith.ConstantOp(element, ir.IntegerAttr.get(element, value)).result

    def _joined(self, position: int, parts: ir.Value, out: ir.Value) -> ir.Value:
        """What was there before, and what all parts add to it."""
        rank = ir.RankedTensorType(out.type).rank
        kind = self.kinds.get(position, "add")
        combine = _COMBINE["add" if kind == "sub" else kind]
        maps = [affine_map(rank + 1, list(range(rank + 1)))]
        maps.append(affine_map(rank + 1, list(range(1, rank + 1))))
        before = _copied(self._given(position), out)
        kinds = [REDUCTION] + [PARALLEL] * rank
        return generic([parts], [before], maps, kinds, lambda x, y: combine(y, x).result)[0]


class _Slice:
    """The part of a tensor at indices of its first axes."""

    def __init__(self, ids: Sequence[ir.Value], value: ir.Value) -> None:
        kind, dynamic = ir.RankedTensorType(value.type), ir.ShapedType.get_dynamic_size()
        self.ids, self.value, self.rest = list(ids), value, kind.shape[len(ids) :]
        self.sizes = [
            dim(value, axis) for axis in range(len(ids), kind.rank) if kind.is_dynamic_dim(axis)
        ]
        self.layout = (
            [dynamic] * len(ids) + [0] * len(self.rest),
            [1] * len(ids) + self.rest,
            [1] * kind.rank,
        )

    def taken(self) -> ir.Value:
        """The part as a tensor."""
        kind = ir.RankedTensorType.get(self.rest, ir.ShapedType(self.value.type).element_type)
        return tensor.ExtractSliceOp(
            kind, self.value, self.ids, self.sizes, [], *self.layout
        ).result

    def put(self, part: ir.Value) -> None:
        """Inserts the part, at the end of a task."""
        tensor.ParallelInsertSliceOp(part, self.value, self.ids, self.sizes, [], *self.layout)


def _copied(source: ir.Value, out: ir.Value) -> ir.Value:
    """`out` with the elements of a tensor, which later loops update in place."""
    identity = affine_map(rank := ir.RankedTensorType(out.type).rank, list(range(rank)))
    return generic([source], [out], [identity] * 2, [PARALLEL] * rank, lambda x, _: x)[0]


def _partial(out: ir.Value, count: ir.Value) -> ir.Value:
    """A tensor with a part of an output's dims for each of some tasks."""
    kind = ir.RankedTensorType(out.type)
    shape = [dim(out, i) if size < 0 else size for i, size in enumerate(kind.shape)]
    return empty([count, *shape], kind.element_type)
