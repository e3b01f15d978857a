"""The tensor program of all instances of a leaf, over the grids of all nodes around it.

Scalars that a leaf returns are a `linalg.generic` over the grid, which fuses and becomes vectors as
operators do, and so are loops that sum (`leaf_folds.py`). A leaf with tensors of its own, or with
other loops, is the body of a `scf.forall`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce

from relax_mlir.bindings import arith, func, ir, linalg, scf, tensor
from relax_mlir.dialects.graph import TensorType
from relax_mlir.dialects.tir import (
    TILE,
    WHOLE_TILES,
    AtomicOp,
    GlobalIdOp,
    GlobalSizeOp,
    GridSizeOp,
    NodeIdOp,
    Query,
)
from relax_mlir.rewriting import walk_ops
from relax_mlir.symbolic import Expr, Facts, as_expr, at_most, equal

from .kernel import (
    PARALLEL,
    REDUCTION,
    KernelBuilder,
    affine_map,
    dim,
    empty,
    fill,
    generic,
    index,
    scalar,
)
from .leaf_bounds import is_inside, is_read
from .leaf_folds import Fold, bound_of, elements_at_ids, fold_of, leaf_of_terms, remove_unused

Axes = tuple[int, ...]


@dataclass(frozen=True)
class Level:
    """The axes of a node; if tiles have these sizes, of the node of tiles, or of that inside."""

    axes: range
    sizes: tuple[int, ...] = ()
    is_inside: bool = False


@dataclass(frozen=True)
class Grid:
    """The nested grids of a leaf as one: extents, the axes of each node, innermost first."""

    extents: tuple[Expr, ...]
    levels: tuple[Level, ...]

    def axis(self, query: Query) -> int:
        """The axis that an instance asks about."""
        level, at = query.position
        return self.levels[level].axes[at]

    @property
    def has_tiles(self) -> bool:
        """Whether a node around a leaf, or its own, is of tiles."""
        return any(level.sizes for level in self.levels)

    def with_axis(self, extent: Expr) -> "Grid":
        """This grid with one more axis, the last one of the leaf's own node."""
        rank, own = len(self.extents), self.levels[0]
        longer = replace(own, axes=range(rank - len(own.axes), rank + 1))
        return Grid((*self.extents, extent), (longer, *self.levels[1:]))

    @property
    def tile(self) -> list[int]:
        """The extents of a tile in each dim, 1 around the leaf's own node; empty without tiles."""
        own = self.levels[0]
        return [1] * own.axes.start + list(own.sizes) if own.sizes else []


def emit_leaf(
    kernel: KernelBuilder,
    leaf: func.FuncOp,
    grid: Grid,
    axes: Sequence[Axes],
    facts: Facts,
    updated: Sequence[int] = (),
) -> None:
    """Completes the program of a leaf; `axes` are those of the grid that index each input first.

    `updated` are parameters that come as the first outputs instead of as inputs.
    """
    inside, tile = with_instances(grid, facts), grid.tile
    copy = leaf.operation.clone().opview
    grid = _without_tiles(copy, grid)
    ins, types = iter(kernel.ins), iter(kernel.in_types)
    inputs = [
        (kernel.outs[updated.index(i)], kernel.out_types[updated.index(i)])
        if i in updated
        else (next(ins), next(types))
        for i in range(len(axes))
    ]
    instance = Instance(kernel, copy, grid, list(axes), inside, inputs, updated, facts)
    has_scalars = _has_scalars_only(copy)
    if has_scalars and not grid.has_tiles:
        _reduce_folds(instance)
        has_scalars = bool(tile) or not walk_ops(copy, scf.ForOp)
    results = _scalars(instance, tile) if has_scalars else _pieces(instance)
    copy.operation.erase()
    kernel.finish(*results)


def _without_tiles(leaf: func.FuncOp, grid: Grid) -> Grid:
    """The grid of a leaf that asks nothing of single tiles: all that they cover is its own."""
    own, queries = grid.levels[0], walk_ops(leaf, Query)

    def is_of_all(query: Query) -> bool:
        return query.position[0] == 0 and isinstance(query, GlobalIdOp | GlobalSizeOp)

    if not own.sizes or not all(is_of_all(x) or x.position[0] > 1 for x in queries):
        return grid
    for query in queries:
        level, dim = query.position
        kind: type[Query] = type(query)
        if level == 0:
            kind = NodeIdOp if isinstance(query, GlobalIdOp) else GridSizeOp
        with ir.InsertionPoint(query), query.location:
            new = kind.build(max(level - 1, 0), dim)
        query.result.replace_all_uses_with(new)
        query.operation.erase()
    return Grid(grid.extents, (Level(own.axes), *grid.levels[2:]))


def with_instances(grid: Grid, facts: Facts) -> Facts:
    """What holds where there is an instance: no extent is 0."""
    extents = [extent for extent in grid.extents if extent.value is None]
    return facts + Facts.parse([f"{extent} >= 1" for extent in extents])


def _has_scalars_only(leaf: func.FuncOp) -> bool:
    """Whether a leaf computes no tensors."""
    return not any(
        isinstance(value.type, ir.RankedTensorType)
        for op in walk_ops(leaf)
        for value in (*op.operation.results, *(op.operands if op.name == "func.return" else ()))
    )


@dataclass
class Instance:
    """A copy of a leaf that becomes the body of a loop nest; `ids` are the indices of the nest."""

    kernel: KernelBuilder
    leaf: func.FuncOp
    grid: Grid
    axes: list[Axes]
    facts: Facts
    inputs: list[tuple[ir.Value, TensorType]]
    updated: Sequence[int] = ()
    given: Facts = field(default_factory=Facts)
    ids: dict[int, ir.Value] = field(default_factory=dict)
    branches: bool = False
    """Whether indices that were read are clamped in a branch of their own."""
    _ends: dict[ir.Value, Expr] = field(default_factory=dict)

    def used_axes(self) -> list[int]:
        """The axes whose index the body needs."""
        used = {self.grid.axis(op) for op in walk_ops(self.leaf, NodeIdOp, GlobalIdOp)}
        for value, own in zip(self.leaf.arguments, self.axes, strict=True):
            if isinstance(value.type, ir.RankedTensorType):
                used |= set(own)
        return sorted(used)

    def extent_of(self, bound: ir.Value) -> Expr | None:
        """The extent that a bound of a loop is for all instances, or None."""

        def of_dim(op: tensor.DimOp) -> Expr | None:
            source, axis = (
                self._source(op.source),
                ir.IntegerAttr(op.index.owner.attributes["value"]),
            )
            return None if source is None else source[2][axis.value]

        return bound_of(bound, of_dim, lambda op: self.grid.extents[self.grid.axis(op)])

    def bound(self, bound: ir.Value) -> ir.Value:
        """Writes such a bound."""
        op = bound.owner.opview
        made = None if op.name == "arith.constant" else self.replacement(op)
        return made or index(ir.IntegerAttr(op.attributes["value"]).value)

    def add(self, value: ir.Value, annotation: TensorType, axes: Axes) -> None:
        """Adds an input for a new parameter of the leaf."""
        self.inputs.append((value, annotation))
        self.axes.append(axes)

    def take_elements(self) -> None:
        """Makes elements at the instance's own indices scalars of it, which need no index."""

        def is_exact(parameter: int, position: int, axis: int) -> bool:
            extent = (self.inputs[parameter][1].dims or ())[len(self.axes[parameter]) + position]
            extents = self.grid.extents
            return extent is not None and equal(extent, extents[axis], self.given).proved

        for parameter, axes in elements_at_ids(self.leaf, self.grid.axis, is_exact):
            self.add(*self.inputs[parameter], (*self.axes[parameter], *axes))
        remove_unused(self.leaf)

    def direct(self) -> list[int]:
        """The parameters that are scalars."""
        return [
            i
            for i, value in enumerate(self.leaf.arguments)
            if not isinstance(value.type, ir.RankedTensorType)
        ]

    def emit(self, direct: Sequence[int], elements: Sequence[ir.Value]) -> list[ir.Value]:
        """Writes the body of a `linalg.generic`; `elements` are those of direct parameters."""
        self.ids |= {axis: linalg.IndexOp(axis).result for axis in self.used_axes()}
        parameters = list(self.leaf.arguments)
        for position, element in zip(direct, elements):
            parameters[position].replace_all_uses_with(element)
        return self.inline()

    def inline(self) -> list[ir.Value]:
        """Writes the body at the insertion point; returns what the instance returns."""
        for op in walk_ops(self.leaf, *_REFERENCES):
            with op.location, ir.InsertionPoint(op):
                new = self.replacement(op)
            if new is not None:
                op.operation.results[0].replace_all_uses_with(new)
                op.operation.erase()
        for position, value in enumerate(self.leaf.arguments):
            if next(iter(value.uses), None) is not None:
                value.replace_all_uses_with(self._piece(position))
        *body, terminator = list(self.leaf.entry_block.operations)
        results = list(terminator.operands)
        terminator.operation.erase()
        for op in body:
            op.operation.detach_from_parent()
            ir.InsertionPoint.current.insert(op)
        return results

    def share(self, position: int, value: ir.Value, annotation: TensorType) -> None:
        """Has a parameter be a tensor of which an instance has all."""
        self.inputs[position], self.axes[position] = (value, annotation), ()

    def replacement(self, op: ir.OpView) -> ir.Value | None:
        """The value of an op that refers to the grid or to a parameter."""
        if isinstance(op, Query):
            return self._answer(op)
        if isinstance(op, tensor.ExtractOp):
            return self._extract(op)
        if isinstance(op, tensor.InsertOp):
            return self._insert(op)
        source = self._source(op.operands[0])
        if source is None:
            return None
        value, own, extents = source
        axis = ir.IntegerAttr(op.operands[1].owner.attributes["value"]).value
        return self._size(value, axis + len(own), extents[axis])

    def _answer(self, op: Query) -> ir.Value:
        """What an instance asks about the grid; of tiles, by the index in all that they cover."""
        axis = self.grid.axis(op)
        level, at = op.position
        own = self.grid.levels[level]
        is_global = isinstance(op, GlobalIdOp | GlobalSizeOp) or not own.sizes
        size = None if is_global else own.sizes[at]
        if isinstance(op, NodeIdOp | GlobalIdOp):
            id_, extent = self.ids[axis], self.grid.extents[axis]
            self._ends[id_] = extent
            if size is None:
                return id_
            if own.is_inside:
                return self._below(arith.RemUIOp(id_, index(size)).result, as_expr(size))
            tiles = (extent + size - 1) // size
            return self._below(arith.DivUIOp(id_, index(size)).result, tiles)
        if size is not None and own.is_inside:
            return index(size)
        whole = self.extent(axis)
        return whole if size is None else arith.CeilDivUIOp(whole, index(size)).result

    def extent(self, axis: int) -> ir.Value:
        """An extent of the grid, of which outputs begin with all dims."""
        return self._size(self.kernel.outs[0], axis, self.grid.extents[axis])

    def _below(self, value: ir.Value, end: Expr) -> ir.Value:
        self._ends[value] = end
        return value

    def _size(self, value: ir.Value, axis: int, extent: Expr) -> ir.Value:
        size = dim(value, axis)
        self._ends[size] = extent + 1
        return size

    def _source(self, value: ir.Value) -> tuple[ir.Value, Axes, list[Expr]] | None:
        """The input of a parameter, the axes that index it first, and the dims after these."""
        if value not in self.leaf.arguments:
            return None
        position = list(self.leaf.arguments).index(value)
        own = self.axes[position]
        if position in self.updated:
            return None  # it has its new value where it is read
        value, annotation = self.inputs[position]
        known = [extent for extent in (annotation.dims or ())[len(own) :] if extent is not None]
        return value, own, known

    def _extract(self, op: tensor.ExtractOp) -> ir.Value:
        """Reads an element at clamped indices."""
        source = self._source(op.tensor)
        if source is None:
            shape = ir.RankedTensorType(op.tensor.type).shape
            source = op.tensor, (), [as_expr(extent) for extent in shape]
        value, own, extents = source
        fixed, picked = [self.ids[axis] for axis in own], list(op.indices)
        sizes = [
            None if self._is_inside(x, extent) else dim(value, axis)
            for axis, (x, extent) in enumerate(zip(picked, extents, strict=True), len(own))
        ]

        def read(at: Sequence[ir.Value]) -> ir.Value:
            return tensor.ExtractOp(value, [*fixed, *at]).result

        def read_clamped() -> ir.Value:
            at, may_be_empty = [], []
            for x, size, extent in zip(picked, sizes, extents, strict=True):
                if size is not None:
                    last = arith.SubIOp(size, index(1)).result
                    if not at_most(1, extent, self.facts).proved:
                        may_be_empty.append(last)
                    x = arith.MaxSIOp(arith.MinSIOp(x, last).result, index(0)).result
                at.append(x)
            if not may_be_empty:
                return read(at)
            return _unless_empty(may_be_empty, lambda: read(at), op.result)

        checks = [(x, size) for x, size in zip(picked, sizes, strict=True) if size is not None]
        if not self.branches or not any(is_read(x) for x, _ in checks):
            return read_clamped()
        return _if_else(_are_below(checks), op.result.type, lambda: read(picked), read_clamped)

    def _insert(self, op: tensor.InsertOp) -> ir.Value | None:
        """Stores an element unless an index is outside: what is there then stays."""
        extents = ir.RankedTensorType(op.dest.type).shape
        checks = [
            (picked, index(extent))
            for picked, extent in zip(op.indices, extents, strict=True)
            if not self._is_inside(picked, as_expr(extent))
        ]
        if not checks:
            return None

        def store() -> ir.Value:
            return tensor.InsertOp(op.scalar, op.dest, list(op.indices)).result

        return _if_else(_are_below(checks), op.dest.type, store, lambda: op.dest)

    def _is_inside(self, picked: ir.Value, extent: Expr) -> bool:
        """Whether an index is proved to be one of a dim."""
        return is_inside(picked, extent, self._ends, self.facts)

    def _piece(self, position: int) -> ir.Value:
        """A parameter as a value: the part of an input at the instance's own indices."""
        value, own = self.inputs[position][0], self.axes[position]
        kind = self.leaf.arguments[position].type
        if not isinstance(kind, ir.RankedTensorType):
            return tensor.ExtractOp(value, [self.ids[axis] for axis in own]).result
        if not own:
            plain = ir.RankedTensorType.get(kind.shape, kind.element_type)
            return value if value.type == plain else tensor.CastOp(plain, value).result
        sizes = [1] * len(own) + list(kind.shape)
        dynamic = ir.ShapedType.get_dynamic_size()
        offsets = [dynamic] * len(own) + [0] * kind.rank
        plain = ir.RankedTensorType.get(kind.shape, kind.element_type)
        return tensor.ExtractSliceOp(
            plain, value, [self.ids[axis] for axis in own], [], [], offsets, sizes, [1] * len(sizes)
        ).result


_REFERENCES = (AtomicOp, Query, tensor.DimOp, tensor.ExtractOp, tensor.InsertOp)
"""Ops that refer to the grid, or to elements by indices that may be outside."""


def _unless_empty(
    lasts: Sequence[ir.Value], read: Callable[[], ir.Value], like: ir.Value
) -> ir.Value:
    """What `read` gives; 0 if a dim has no last index."""
    least = lasts[0]
    for last in lasts[1:]:
        least = arith.MinSIOp(least, last).result
    is_there = arith.CmpIOp(arith.CmpIPredicate.sge, least, index(0)).result

    def zero() -> ir.Value:
        is_float = isinstance(like.type, ir.FloatType)
        value = ir.FloatAttr.get(like.type, 0.0) if is_float else ir.IntegerAttr.get(like.type, 0)
        return arith.ConstantOp(like.type, value).result

    return _if_else(is_there, like.type, read, zero)


def _are_below(checks: Sequence[tuple[ir.Value, ir.Value]]) -> ir.Value:
    """Whether indices are not negative, and below extents."""
    first, *rest = [arith.CmpIOp(arith.CmpIPredicate.ult, *check).result for check in checks]
    return reduce(lambda a, b: arith.AndIOp(a, b).result, rest, first)


def _if_else(
    condition: ir.Value, kind: ir.Type, then: Callable[[], ir.Value], other: Callable[[], ir.Value]
) -> ir.Value:
    branch = scf.IfOp(condition, [kind], has_else=True)
    for block, value in ((branch.then_block, then), (branch.else_block, other)):
        with ir.InsertionPoint(block):
            scf.YieldOp([value()])
    return branch.results[0]


def _scalars(instance: Instance, tile: Sequence[int]) -> list[ir.Value]:
    """All instances of a leaf of scalars, as one op over the grid; a tile of it is a hint."""
    kernel, rank = instance.kernel, len(instance.grid.extents)
    if not instance.grid.has_tiles:
        instance.take_elements()
    direct = instance.direct()
    maps = [affine_map(rank, list(instance.axes[i])) for i in direct]
    maps += [affine_map(rank, list(range(rank)))] * len(kernel.outs)
    ins = [instance.inputs[i][0] for i in direct]
    kinds = [PARALLEL] * rank
    results = generic(ins, kernel.outs, maps, kinds, lambda *xs: instance.emit(direct, xs))
    _take_sizes_out(results[0].owner)
    if tile:
        whole = [
            equal(extent % size, 0, instance.facts).proved
            for extent, size in zip(instance.grid.extents, tile, strict=True)
        ]
        op = results[0].owner
        op.attributes[TILE] = ir.DenseI64ArrayAttr.get(list(tile))
        op.attributes[WHOLE_TILES] = ir.DenseBoolArrayAttr.get(whole)
    return results


def _reduce_folds(instance: Instance) -> None:
    """Makes loops that only combine values reductions, whose results are new parameters."""
    leaf = instance.leaf
    while (fold := fold_of(leaf, instance.extent_of)) is not None:
        extents, loop = instance.grid.extents, fold.loops[0]
        result = _reduction(instance, fold)
        value = leaf.entry_block.add_argument(fold.term.type, loop.location)
        instance.add(result, TensorType(extents, fold.term.type), tuple(range(len(extents))))
        if not fold.starts_at_constant:
            with ir.InsertionPoint(loop), loop.location:
                value = fold.combine(fold.start, value)
        loop.results[0].replace_all_uses_with(value)
        loop.operation.erase()
        remove_unused(leaf)


def _reduction(instance: Instance, fold: Fold) -> ir.Value:
    """The results of a fold for all instances."""
    kernel, rank, element = instance.kernel, len(instance.grid.extents), fold.term.type
    inner = _of_terms(instance, fold)
    direct = inner.direct()
    ins, maps = [inner.inputs[i][0] for i in direct], [list(inner.axes[i]) for i in direct]
    known = {axis for own in maps for axis in own}
    for axis, (loop, extent) in enumerate(zip(fold.loops, fold.extents, strict=True), rank):
        if axis not in known:  # nothing else tells how long the axis is
            ins.append(empty([extent.value or instance.bound(loop.upperBound)], element))
            maps.append([axis])
    first = scalar(element, fold.neutral)
    if fold.starts_at_constant:
        first = fold.start.owner.clone().result
    out = fill(first, empty(_grid_shape(kernel.outs[0], rank), element))
    maps.append(list(range(rank)))

    def body(*elements: ir.Value) -> ir.Value:
        (term,) = inner.emit(direct, elements)
        return fold.combine(elements[-1], term)

    kinds = [*[PARALLEL] * rank, *[REDUCTION] * len(fold.loops)]
    (result,) = generic(ins, [out], [affine_map(len(kinds), own) for own in maps], kinds, body)
    inner.leaf.operation.erase()
    _take_sizes_out(result.owner)
    return result


def _of_terms(instance: Instance, fold: Fold) -> Instance:
    """Instances over the grid and the loops of a fold, each of one term."""
    first, grid, facts = len(instance.grid.levels[0].axes), instance.grid, instance.facts
    for extent in fold.extents:
        grid = grid.with_axis(extent)
        if extent.value is None:
            facts += Facts.parse([f"{extent} >= 1"])
    inner = replace(
        instance, leaf=leaf_of_terms(instance.leaf, fold, first), grid=grid, facts=facts,
        axes=list(instance.axes), inputs=list(instance.inputs), ids={}, _ends={},
    )  # fmt: skip
    inner.take_elements()
    return inner


def _take_sizes_out(op: ir.Operation) -> None:
    """Asks for extents once, in front of the op, not in its body, which becomes vectors."""
    for inner in list(op.regions[0].blocks[0].operations):
        is_index = inner.name == "arith.constant" and isinstance(inner.result.type, ir.IndexType)
        if is_index or inner.name == "tensor.dim":
            inner.operation.move_before(op)


def _grid_shape(out: ir.Value, rank: int) -> list[int | ir.Value]:
    shape = ir.RankedTensorType(out.type).shape[:rank]
    return [dim(out, axis) if extent < 0 else extent for axis, extent in enumerate(shape)]


def _pieces(instance: Instance) -> list[ir.Value]:
    """All instances of a leaf with tensors of its own, as a loop whose rounds are independent."""
    instance.branches = True
    outs, rank = instance.kernel.outs, len(instance.grid.extents)
    if any(0 in ir.RankedTensorType(out.type).shape for out in outs):
        return list(outs)  # a static slice must begin inside of a tensor
    sizes = _grid_shape(outs[0], rank)
    if not sizes:
        parts = [_as_tensor(value) for value in instance.inline()]
        return [
            tensor.InsertSliceOp(part, out, [], [], [], *_slice_of(out, 0)).result
            for part, out in zip(parts, outs, strict=True)
        ]
    loop = scf.ForallOp([0] * rank, sizes, [1] * rank, list(outs))
    with ir.InsertionPoint(loop.body):
        instance.ids |= dict(enumerate(loop.induction_variables))
        for out, position in zip(loop.inner_iter_args, instance.updated):
            instance.inputs[position] = out, instance.inputs[position][1]
        parts = [_as_tensor(value) for value in instance.inline()]
        end = scf.InParallelOp()
    ids = list(loop.induction_variables)
    with ir.InsertionPoint(end.region.blocks[0]):
        for part, out in zip(parts, loop.inner_iter_args, strict=True):
            tensor.ParallelInsertSliceOp(part, out, ids, [], [], *_slice_of(out, rank))
    return list(loop.results)


def _slice_of(out: ir.Value, rank: int) -> tuple[list[int], list[int], list[int]]:
    """Static offsets, sizes and strides of one instance's part of a result."""
    shape = ir.RankedTensorType(out.type).shape
    offsets = [ir.ShapedType.get_dynamic_size()] * rank + [0] * (len(shape) - rank)
    return offsets, [1] * rank + list(shape[rank:]), [1] * len(shape)


def _as_tensor(value: ir.Value) -> ir.Value:
    if isinstance(value.type, ir.RankedTensorType):
        return value
    return tensor.FromElementsOp(ir.RankedTensorType.get([], value.type), [value]).result
