"""Tensor programs that write elements by tensors of indices, and to a slice.

Updates are applied in order along the indexed axes, so that the last one wins on any number of
threads, among which the other axes are divided.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce

from relax_mlir.bindings import arith, ir, tensor
from relax_mlir.dialects.graph import (
    DynamicUpdateSliceOp,
    IndexPutOp,
    ScatterElementsOp,
    ScatterNdOp,
    SliceScatterOp,
    normalize_axis,
)
from relax_mlir.dialects.graph.gather import joint_position

from ..kernel import PARALLEL, KernelBuilder, affine_map, dim, generic, index
from ..scalars import add, compute_type, maximum, minimum, multiply, to_compute, to_index
from ..tasks import Lines, each_in_order, if_else, in_order, in_tasks
from .index import window_at, window_of

_COMBINE = {"add": add, "mul": multiply, "max": maximum, "min": minimum}
Indices = Sequence[ir.Value]
Own = dict[int, ir.Value]


@dataclass(frozen=True)
class _Updates:
    """The updates: `steps` in order, each for every index of the axes that are not indexed.

    `names(step, own)` and `value(step, own)` take the indices of a step and those by axis; they
    return the elements of indices for the indexed axes, and the update. `counts` are the extents of
    updates along axes where they may be fewer than the input's elements. Indices are `shared` if
    they are the same for a whole step.
    """

    axes: Sequence[int]
    steps: Indices
    names: Callable[[Indices, Own], Indices]
    value: Callable[[Indices, Own], ir.Value]
    counts: Own
    reduction: str
    shared: bool


def scatter_elements(op: ScatterElementsOp, kernel: KernelBuilder) -> None:
    """Steps are along the axis."""
    source, indices, updates = kernel.ins
    rank = ir.RankedTensorType(source.type).rank
    axis = normalize_axis(op.attributes["axis"].value, rank)

    def at(step: Indices, own: Own) -> Indices:
        return [step[0] if i == axis else own[i] for i in range(rank)]

    def names(step: Indices, own: Own) -> Indices:
        return [_element(indices, at(step, own))]

    def value(step: Indices, own: Own) -> ir.Value:
        return _element(updates, at(step, own))

    counts = {i: dim(updates, i) for i in range(rank) if i != axis}
    steps = [dim(updates, axis)]
    _scatter(kernel, _Updates([axis], steps, names, value, counts, _reduction(op), False))


def scatter_nd(op: ScatterNdOp, kernel: KernelBuilder) -> None:
    """Steps are along the tuples of indices."""
    _, indices, updates = kernel.ins
    *lead, count = ir.RankedTensorType(indices.type).shape
    axes = list(range(count))

    def names(step: Indices, own: Own) -> Indices:
        return [_element(indices, [*step, index(axis)]) for axis in axes]

    def value(step: Indices, own: Own) -> ir.Value:
        return _element(updates, [*step, *own.values()])

    steps = [dim(indices, i) for i in range(len(lead))]
    _scatter(kernel, _Updates(axes, steps, names, value, {}, _reduction(op), True))


def index_put(op: IndexPutOp, kernel: KernelBuilder) -> None:
    """Steps are along the joint dims of the indices."""
    source, values, *indices = kernel.ins
    rank = ir.RankedTensorType(source.type).rank
    axes = [axis % rank for axis in ir.DenseI64ArrayAttr(op.attributes["axes"])]
    joint = max(ir.RankedTensorType(value.type).rank for value in indices)
    first = joint_position(axes)

    def names(step: Indices, own: Own) -> Indices:
        return [_aligned(value, step) for value in indices]

    def value(step: Indices, own: Own) -> ir.Value:
        others = list(own.values())
        return _aligned(values, [*others[:first], *step, *others[first:]])

    steps = [_extent(indices, joint - i) for i in range(joint)]
    _scatter(kernel, _Updates(axes, steps, names, value, {}, _reduction(op), True))


def _reduction(op: ScatterElementsOp | ScatterNdOp | IndexPutOp) -> str:
    return ir.StringAttr(op.attributes["reduction"]).value


def _element(source: ir.Value, at: Indices) -> ir.Value:
    return tensor.ExtractOp(source, list(at)).result


def _aligned(source: ir.Value, indices: Indices) -> ir.Value:
    """The element at the trailing indices, with 0 for dims of extent 1."""
    shape = ir.RankedTensorType(source.type).shape
    own = list(indices)[len(indices) - len(shape) :]
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

    def task(lines: Lines, target: ir.Value) -> Indices:
        destination = lines.of(target)
        part = destination if compute == element else lines.empty(compute)
        part = _Part(updates, lines).apply(lines.copy(lines.of(source), part))
        return [part if compute == element else lines.copy(part, destination)]

    kernel.finish(*in_tasks([out], updates.axes, task))


@dataclass(frozen=True)
class _Part:
    """The updates that reach a part of the input."""

    updates: _Updates
    lines: Lines

    def apply(self, part: ir.Value) -> ir.Value:
        """The part with all updates."""
        steps = list(self.updates.steps) or [index(1)]
        for axis in self.lines.single:
            if axis in self.updates.counts:
                steps[0] = _if_below(self._start(axis), self.updates.counts[axis], steps[0])
        return each_in_order(steps, [part], self._step)[0]

    def _start(self, axis: int) -> ir.Value:
        offset = self.lines.offsets[axis]
        return index(offset) if isinstance(offset, int) else offset

    def _step(self, indices: Indices, part: ir.Value) -> Indices:
        """The part with the updates of one step."""
        step = indices[: len(self.updates.steps)]
        own = {axis: self._start(axis) for axis in self.lines.single}
        at = dict.fromkeys(self.lines.single, index(0))
        axis = self.lines.block
        if axis is None:
            return self._if_inside(step, own, part, lambda to: self._put(step, own, at | to, part))
        start, width = self._start(axis), dim(part, axis)
        if axis in self.updates.counts:
            rest = arith.SubIOp(self.updates.counts[axis], start).result
            width = arith.MinSIOp(width, rest).result

        def row(to: Own) -> Indices:
            def one(j: ir.Value, accumulator: ir.Value) -> Indices:
                here = own | {axis: arith.AddIOp(start, j).result}
                return self._put(step, here, at | {axis: j} | to, accumulator)

            return in_order(width, [part], one)

        def one(j: ir.Value, accumulator: ir.Value) -> Indices:
            here, to = own | {axis: arith.AddIOp(start, j).result}, at | {axis: j}
            return self._if_inside(
                step, here, accumulator, lambda t: self._put(step, here, to | t, accumulator)
            )

        if self.updates.shared:
            return self._if_inside(step, own, part, row)
        return in_order(width, [part], one)

    def _if_inside(
        self, step: Indices, own: Own, part: ir.Value, write: Callable[[Own], Indices]
    ) -> Indices:
        """`write` at the indices along the indexed axes, if they are within the part."""
        to: Own = {}
        fits = []
        for axis, name in zip(self.updates.axes, self.updates.names(step, own), strict=True):
            to[axis] = to_index(name)
            extent = dim(part, axis)
            fits.append(arith.CmpIOp(arith.CmpIPredicate.ult, to[axis], extent).result)
        fit = reduce(lambda a, b: arith.AndIOp(a, b).result, fits)
        return if_else(fit, [part.type], lambda: write(to), lambda: [part])

    def _put(self, step: Indices, own: Own, to: Own, part: ir.Value) -> Indices:
        """The part with one element changed."""
        at = [to[axis] for axis in sorted(to)]
        value = self.updates.value(step, own)
        if self.updates.reduction != "none":
            value = _COMBINE[self.updates.reduction](_element(part, at), to_compute(value))
        return [tensor.InsertOp(value, part, at).result]


def _if_below(position: ir.Value, count: ir.Value, steps: ir.Value) -> ir.Value:
    """The count of steps, 0 if there are no updates at a position."""
    inside = arith.CmpIOp(arith.CmpIPredicate.slt, position, count).result
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


def dynamic_update_slice(op: DynamicUpdateSliceOp, kernel: KernelBuilder) -> None:
    """The updates inserted where they fit, in place."""
    updates, starts = kernel.ins
    (out,) = kernel.outs
    window = window_at(out, starts, updates)
    kernel.finish(out if window is None else tensor.InsertSliceOp(updates, out, *window).result)
