"""Tensors in memory: views of flat buffers, loaded and stored for all lanes at once.

Memrefs are flattened to one dim, and a view adds offset and strides, so that slices, reshapes and
transposes are index arithmetic. A predicate (`i1`) takes one byte.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from relax_mlir.bindings import arith, ir, memref, scf, vector

from . import loops
from .affine import IndexLane, Part, plus, resolve, times
from .borders import BORDER
from .deinterleave import load_every, load_repeated, load_runs
from .lanes import (
    Clamped,
    Lane,
    Ramp,
    Repeated,
    Runs,
    Uniform,
    Varying,
    scalar,
    splat,
    to_vector,
    vector_type,
)
from .loops import Index

_SHUFFLED_STEPS = (2, 3, 4)
"""Distances of elements at which vectors and shuffles are faster than a gather."""

_MOST_RUNS = 4
"""So many runs of equal elements are selected faster than gathered."""


@dataclass(frozen=True)
class View:
    """Elements `base[offset + sum(index[i] * strides[i])]` of a 1-D memref.

    `whole` says that it covers its buffer row-major without gaps, so that dims may be merged.
    """

    base: ir.Value
    element: ir.Type
    offset: Index
    sizes: tuple[Index, ...]
    strides: tuple[Index, ...]
    whole: bool = True

    @staticmethod
    def of(buffer: ir.Value, element: ir.Type, sizes: Sequence[Index]) -> "View":
        """All of a memref with identity layout; `element` is the tensor's element type."""
        return View(loops.flatten(buffer), element, 0, tuple(sizes), row_major(sizes))

    def slice(
        self, offsets: Sequence[Index], sizes: Sequence[Index], strides: Sequence[Index]
    ) -> "View":
        """The elements `offsets + index * strides`."""
        shifts = [loops.mul(a, b) for a, b in zip(offsets, self.strides, strict=True)]
        steps = tuple(loops.mul(a, b) for a, b in zip(strides, self.strides, strict=True))
        offset = loops.add(self.offset, *shifts)
        return replace(self, offset=offset, sizes=tuple(sizes), strides=steps, whole=False)

    def drop(self, dims: frozenset[int]) -> "View":
        """Without these dims, whose size is one."""
        keep = [i for i in range(len(self.sizes)) if i not in dims]
        sizes = tuple(self.sizes[i] for i in keep)
        return replace(self, sizes=sizes, strides=tuple(self.strides[i] for i in keep))

    def expand(self, groups: Sequence[Sequence[int]], sizes: Sequence[Index]) -> "View":
        """Dim i split into the dims `groups[i]` of `sizes`."""
        strides: list[Index] = [0] * len(sizes)
        for stride, group in zip(self.strides, groups, strict=True):
            for position in reversed(group):
                strides[position] = stride
                stride = loops.mul(stride, sizes[position])
        strides = strides if groups else list(row_major(sizes))
        return replace(self, sizes=tuple(sizes), strides=tuple(strides))

    def collapse(self, groups: Sequence[Sequence[int]], sizes: Sequence[Index]) -> "View | None":
        """The dims `groups[i]` merged into dim i; None if memory has gaps between them."""
        strides: list[Index] = []
        for group in groups:
            big = [i for i in group if self.sizes[i] != 1]
            if len(big) > 1 and not self.whole:
                return None
            strides.append(self.strides[big[-1] if big else group[-1]])
        return replace(self, sizes=tuple(sizes), strides=tuple(strides))

    def at(self, indices: Sequence[IndexLane], lanes: int) -> Lane:
        """The offset in `base` of these indices."""
        result: Lane = Uniform(self.offset)
        for index, stride in _merged(self, indices, lanes):
            result = plus(result, times(index, Uniform(stride), lanes), lanes)
        return result


def row_major(sizes: Sequence[Index]) -> tuple[Index, ...]:
    """Strides of contiguous dims in row-major order."""
    strides: list[Index] = []
    stride: Index = 1
    for size in reversed(sizes):
        strides.append(stride)
        stride = loops.mul(stride, size)
    return tuple(reversed(strides))


def _merged(view: View, indices: Sequence[IndexLane], lanes: int) -> list[tuple[Lane, Index]]:
    """Index and stride of each dim; collapsed dims are one entry, if memory has no gaps there."""
    result: list[tuple[Lane, Index]] = []
    pairs = [(i, s) for i, s in zip(indices, view.strides, strict=True) if i != Uniform(0)]
    at = 0
    while at < len(pairs):
        index, stride = pairs[at]
        if isinstance(index, Part):
            count = len(index.extents)
            run = [i for i, _ in pairs[at : at + count]]
            is_run = run == [Part(index.flat, index.extents, i) for i in range(count)]
            steps = [stride for _, stride in pairs[at : at + count]]
            if is_run and (view.whole or _have_no_gaps(steps, index.extents)):
                at += count
                result.append((index.flat, pairs[at - 1][1]))
                continue
        at += 1
        result.append((resolve(index, lanes), stride))
    return result


def _have_no_gaps(strides: Sequence[Index], extents: Sequence[Index]) -> bool:
    """Whether dims are known to lie in each other without gaps."""
    known = all(isinstance(x, int) for x in (*strides, *extents))
    inner = zip(strides[1:], extents[1:], strict=True)
    return known and list(strides[:-1]) == [loops.mul(a, b) for a, b in inner]


def storage_type(element: ir.Type) -> ir.Type:
    """The type of an element in memory."""
    is_predicate = isinstance(element, ir.IntegerType) and element.width == 1
    return ir.IntegerType.get_signless(8) if is_predicate else element


def load(
    view: View, indices: Sequence[IndexLane], lanes: int, mask: ir.Value | None = None
) -> Lane:
    """The elements at these indices: scalar load, vector loads or gather.

    Lanes outside of `mask` are zero and not read.
    """
    clamped = [i for i, x in enumerate(indices) if isinstance(x, Clamped)]
    if len(clamped) == 1 and (made := _load_clamped(view, indices, clamped[0], lanes, mask)):
        return made
    offset = view.at(indices, lanes)
    stored = ir.MemRefType(view.base.type).element_type
    if isinstance(offset, Uniform):
        result: Lane = Uniform(memref.load(view.base, [loops.value(offset.value)]))
    elif isinstance(offset, Ramp) and offset.step == 1:
        result = Varying(loops.load(view.base, offset.base, lanes, mask))
    elif isinstance(offset, Ramp) and offset.step in _SHUFFLED_STEPS:
        result = Varying(load_every(view.base, offset.base, offset.step, lanes, mask))
    elif isinstance(offset, Repeated):
        result = Varying(load_repeated(view.base, offset.base, offset.times, lanes, mask))
    elif isinstance(offset, Runs) and mask is None and lanes <= _MOST_RUNS * offset.length:
        run = (offset.base, offset.phase, offset.length)
        result = Varying(load_runs(view.base, *run, lanes))
    else:
        result = _gather(view, offset, lanes, mask)
    return result if stored == view.element else _to_predicate(result, lanes)


def _load_clamped(
    view: View, indices: Sequence[IndexLane], position: int, lanes: int, mask: ir.Value | None
) -> Lane | None:
    """Loads at indices of which one is clamped: as a vector, unless a lane is at the border.

    None if lanes are not contiguous even inside.
    """
    index = indices[position]
    assert isinstance(index, Clamped)
    inside, ramp = list(indices), index.ramp
    inside[position] = ramp
    offset = view.at(inside, lanes)
    if not isinstance(offset, Ramp) or offset.step != 1 or ramp.step != 1:
        return None
    checks = []
    if index.low is not None:
        low = loops.value(index.low)
        checks.append(arith.cmpi(arith.CmpIPredicate.sge, ramp.base, low))
    if index.high is not None:
        last, high = loops.value(loops.add(ramp.base, lanes - 1)), loops.value(index.high)
        checks.append(arith.cmpi(arith.CmpIPredicate.sle, last, high))
    is_inside = checks[0] if len(checks) == 1 else arith.andi(*checks)
    stored = ir.MemRefType(view.base.type).element_type
    branch = scf.IfOp(is_inside, [vector_type(lanes, stored)], has_else=True)
    branch.operation.attributes[BORDER] = ir.UnitAttr.get()
    with ir.InsertionPoint(branch.then_block):
        scf.YieldOp([loops.load(view.base, offset.base, lanes, mask)])
    with ir.InsertionPoint(branch.else_block):
        inside[position] = index.recomputed(lanes)
        scf.YieldOp([to_vector(_gather(view, view.at(inside, lanes), lanes, mask), lanes)])
    result = Varying(branch.results[0])
    return result if stored == view.element else _to_predicate(result, lanes)


def _gather(view: View, offset: Lane, lanes: int, mask: ir.Value | None) -> Varying:
    """The elements at any offsets."""
    base, steps = _scattered(offset, lanes)
    on = mask if mask is not None else loops.constant_mask(lanes, True)
    kind = vector_type(lanes, ir.MemRefType(view.base.type).element_type)
    zero = ir.DenseElementsAttr.get_splat(kind, loops.zero_attr(kind.element_type))
    zeros = arith.constant(kind, zero)
    return Varying(vector.gather(kind, view.base, [loops.value(base)], steps, on, zeros))


def store(
    view: View,
    indices: Sequence[IndexLane],
    lane: Lane,
    lanes: int,
    mask: ir.Value | None = None,
) -> None:
    """Stores one element a lane; lanes that share an address have one value."""
    stored = ir.MemRefType(view.base.type).element_type
    if stored != view.element:
        lane = _from_predicate(lane, stored, lanes)
    offset = view.at(indices, lanes)
    if isinstance(offset, Uniform) and isinstance(lane, Uniform):
        memref.store(loops.value(lane.value), view.base, [loops.value(offset.value)])
        return
    x = to_vector(lane, lanes)
    if isinstance(offset, Ramp) and offset.step == 1:
        loops.store(x, view.base, offset.base, mask)
        return
    base, steps = _scattered(offset, lanes)
    on = mask if mask is not None else loops.constant_mask(lanes, True)
    vector.scatter(None, view.base, [loops.value(base)], steps, on, x)


def prefetch(view: View, indices: Sequence[IndexLane], lanes: int, stores: bool) -> None:
    """Prefetches the elements at these indices, if lanes are contiguous, for a load or a store."""
    offset = view.at(indices, lanes)
    if isinstance(offset, Ramp) and offset.step == 1:
        # Stores prefetch to the L1 cache, reads, of which there may be many, to the L2 cache.
        locality = 3 if stores else 2
        memref.prefetch(view.base, [loops.value(offset.base)], stores, locality, True)


def _scattered(offset: Lane, lanes: int) -> tuple[Index, ir.Value]:
    """Base and per-lane offsets of a gather or scatter."""
    if not isinstance(offset, Ramp):
        return 0, to_vector(offset, lanes)
    distance = Ramp(loops.value(0), offset.step)
    return offset.base, to_vector(distance, lanes)


def _to_predicate(lane: Lane, lanes: int) -> Lane:
    x = scalar(lane)
    element = x.type if isinstance(lane, Uniform) else ir.VectorType(x.type).element_type
    zero = arith.constant(element, 0)
    if isinstance(lane, Uniform):
        return Uniform(arith.cmpi(arith.CmpIPredicate.ne, x, zero))
    return Varying(arith.cmpi(arith.CmpIPredicate.ne, x, splat(zero, lanes)))


def _from_predicate(lane: Lane, stored: ir.Type, lanes: int) -> Lane:
    if isinstance(lane, Uniform):
        return Uniform(arith.extui(stored, lane.value))
    return Varying(arith.extui(vector_type(lanes, stored), to_vector(lane, lanes)))
