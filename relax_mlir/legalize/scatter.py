"""Tensor programs that write elements by tensors of indices, and to a slice.

Updates are applied in order along the axes that are indexed, so that the last one stays on any
number of threads, which share the other axes.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce

from relax_mlir.bindings import arith, ir, tensor
from relax_mlir.dialects.graph import (
    IndexPutOp,
    ScatterElementsOp,
    ScatterNdOp,
    SliceScatterOp,
    normalize_axis,
)
from relax_mlir.dialects.graph.gather import joint_place

from .index import window_of
from .kernel import PARALLEL, KernelBuilder, affine_map, dim, generic, index
from .scalars import add, compute_type, maximum, minimum, multiply, to_compute
from .tasks import Lines, each_in_order, if_else, in_order, in_tasks

_COMBINE = {"add": add, "mul": multiply, "max": maximum, "min": minimum}
Places = Sequence[ir.Value]
Own = dict[int, ir.Value]


@dataclass(frozen=True)
class _Updates:
    """What is written: `steps` in order, each for every index of the axes that are not indexed.

    `names(step, own)` and `value(step, own)` take the indices of a step and those by axis; they
    give the elements of indices for the indexed axes, and the update. `counts` are the extents of
    updates along axes where they may be fewer than the input's elements. Indices are `shared` if
    they are the same for all of a step.
    """

    axes: Sequence[int]
    steps: Places
    names: Callable[[Places, Own], Places]
    value: Callable[[Places, Own], ir.Value]
    counts: Own
    reduction: str
    shared: bool


def scatter_elements(op: ScatterElementsOp, kernel: KernelBuilder) -> None:
    """Steps go along the axis."""
    source, indices, updates = kernel.ins
    rank = ir.RankedTensorType(source.type).rank
    axis = normalize_axis(op.attributes["axis"].value, rank)

    def at(step: Places, own: Own) -> Places:
        return [step[0] if i == axis else own[i] for i in range(rank)]

    def names(step: Places, own: Own) -> Places:
        return [_element(indices, at(step, own))]

    def value(step: Places, own: Own) -> ir.Value:
        return _element(updates, at(step, own))

    counts = {i: dim(updates, i) for i in range(rank) if i != axis}
    steps = [dim(updates, axis)]
    _scatter(kernel, _Updates([axis], steps, names, value, counts, _reduction(op), False))


def scatter_nd(op: ScatterNdOp, kernel: KernelBuilder) -> None:
    """Steps go along the tuples of indices."""
    _, indices, updates = kernel.ins
    *lead, count = ir.RankedTensorType(indices.type).shape
    axes = list(range(count))

    def names(step: Places, own: Own) -> Places:
        return [_element(indices, [*step, index(number)]) for number in axes]

    def value(step: Places, own: Own) -> ir.Value:
        return _element(updates, [*step, *own.values()])

    steps = [dim(indices, i) for i in range(len(lead))]
    _scatter(kernel, _Updates(axes, steps, names, value, {}, _reduction(op), True))


def index_put(op: IndexPutOp, kernel: KernelBuilder) -> None:
    """Steps go along the joint dims of the indices."""
    source, values, *indices = kernel.ins
    rank = ir.RankedTensorType(source.type).rank
    axes = [axis % rank for axis in ir.DenseI64ArrayAttr(op.attributes["axes"])]
    joint = max(ir.RankedTensorType(value.type).rank for value in indices)
    first = joint_place(axes)

    def names(step: Places, own: Own) -> Places:
        return [_aligned(value, step) for value in indices]

    def value(step: Places, own: Own) -> ir.Value:
        kept = list(own.values())
        return _aligned(values, [*kept[:first], *step, *kept[first:]])

    steps = [_extent(indices, joint - i) for i in range(joint)]
    _scatter(kernel, _Updates(axes, steps, names, value, {}, _reduction(op), True))


def _reduction(op: ScatterElementsOp | ScatterNdOp | IndexPutOp) -> str:
    return ir.StringAttr(op.attributes["reduction"]).value


def _element(source: ir.Value, places: Places) -> ir.Value:
    return tensor.ExtractOp(source, list(places)).result


def _aligned(source: ir.Value, places: Places) -> ir.Value:
    """The element at the last places, at 0 along dims of extent 1."""
    shape = ir.RankedTensorType(source.type).shape
    own = list(places)[len(places) - len(shape) :]
    return _element(source, [index(0) if n == 1 else at for n, at in zip(shape, own)])


def _extent(indices: Sequence[ir.Value], from_end: int) -> ir.Value:
    """The extent of a joint dim: of those that are not 1, else 1."""
    for value in indices:
        type_ = ir.RankedTensorType(value.type)
        if type_.rank >= from_end and type_.shape[type_.rank - from_end] != 1:
            return dim(value, type_.rank - from_end)
    return index(1)


def _scatter(kernel: KernelBuilder, updates: _Updates) -> None:
    source, out = kernel.ins[0], kernel.outs[0]
    element = ir.ShapedType(out.type).element_type
    compute = element if updates.reduction == "none" else compute_type(element)

    def task(lines: Lines, target: ir.Value) -> Places:
        place = lines.of(target)
        part = place if compute == element else lines.empty(compute)
        part = _Part(updates, lines).apply(lines.copy(lines.of(source), part))
        return [part if compute == element else lines.copy(part, place)]

    kernel.finish(*in_tasks([out], updates.axes, task))


@dataclass(frozen=True)
class _Part:
    """The updates that reach a part of the input."""

    updates: _Updates
    lines: Lines

    def apply(self, part: ir.Value) -> ir.Value:
        """The part with all of them."""
        steps = list(self.updates.steps) or [index(1)]
        for axis in self.lines.single:
            if axis in self.updates.counts:
                steps[0] = _if_below(self._start(axis), self.updates.counts[axis], steps[0])
        return each_in_order(steps, [part], self._step)[0]

    def _start(self, axis: int) -> ir.Value:
        place = self.lines.offsets[axis]
        return index(place) if isinstance(place, int) else place

    def _step(self, places: Places, part: ir.Value) -> Places:
        """The part with the updates of one step."""
        step = places[: len(self.updates.steps)]
        own = {axis: self._start(axis) for axis in self.lines.single}
        at = dict.fromkeys(self.lines.single, index(0))
        axis = self.lines.block
        if axis is None:
            return self._if_inside(step, own, part, lambda to: self._put(step, own, at | to, part))
        start, width = self._start(axis), dim(part, axis)
        if axis in self.updates.counts:
            rest = arith.SubIOp(self.updates.counts[axis], start).result
            width = arith.MinSIOp(width, rest).result

        def row(to: Own) -> Places:
            def one(j: ir.Value, held: ir.Value) -> Places:
                here = own | {axis: arith.AddIOp(start, j).result}
                return self._put(step, here, at | {axis: j} | to, held)

            return in_order(width, [part], one)

        def one(j: ir.Value, held: ir.Value) -> Places:
            here, to = own | {axis: arith.AddIOp(start, j).result}, at | {axis: j}
            return self._if_inside(step, here, held, lambda t: self._put(step, here, to | t, held))

        if self.updates.shared:
            return self._if_inside(step, own, part, row)
        return in_order(width, [part], one)

    def _if_inside(
        self, step: Places, own: Own, part: ir.Value, write: Callable[[Own], Places]
    ) -> Places:
        """What `write` makes of the places along the indexed axes, if these are places of it."""
        to: Own = {}
        fits = []
        for axis, name in zip(self.updates.axes, self.updates.names(step, own), strict=True):
            to[axis] = arith.IndexCastOp(ir.IndexType.get(), name).result
            extent = dim(part, axis)
            fits.append(arith.CmpIOp(arith.CmpIPredicate.ult, to[axis], extent).result)
        fit = reduce(lambda a, b: arith.AndIOp(a, b).result, fits)
        return if_else(fit, [part.type], lambda: write(to), lambda: [part])

    def _put(self, step: Places, own: Own, to: Own, part: ir.Value) -> Places:
        """The part with one element changed."""
        at = [to[axis] for axis in sorted(to)]
        value = self.updates.value(step, own)
        if self.updates.reduction != "none":
            value = _COMBINE[self.updates.reduction](_element(part, at), to_compute(value))
        return [tensor.InsertOp(value, part, at).result]


def _if_below(place: ir.Value, count: ir.Value, steps: ir.Value) -> ir.Value:
    """The number of steps, none if there are no updates at a place."""
    inside = arith.CmpIOp(arith.CmpIPredicate.slt, place, count).result
    return arith.SelectOp(inside, steps, index(0)).result


def slice_scatter(op: SliceScatterOp, kernel: KernelBuilder) -> None:
    """A copy of the input, and the updates inserted into it."""
    source, updates = kernel.ins
    out = kernel.outs[0]
    rank = ir.RankedTensorType(out.type).rank
    identity = affine_map(rank, list(range(rank)))
    (copy,) = generic([source], [out], [identity] * 2, [PARALLEL] * rank, lambda x, _: x)
    window = window_of(op, kernel, updates)
    if window is not None:
        copy = tensor.InsertSliceOp(updates, copy, *window).result
    kernel.finish(copy)
