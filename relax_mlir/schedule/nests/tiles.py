"""Loops over the tiles of an op, of which a hint says how many indices a tile has (`tir.tile`).

    linalg.generic {tir.tile = [4, 64]}         scf.forall (%i, %j) in (ceil(n / 4), ceil(m / 64))
      %s = scf.for %k = 0 to %d                   %s = scf.for %k = 0 to %d iter_args(a tile)
        %x = f(%s, %k)                     ->       linalg.generic over a tile: f
      yield g(%s)                                 linalg.generic over a tile: g

No element needs another, so a loop whose bounds are the same for all of them may be around the
elements of a tile as well as inside of each: then the innermost loop is along a row of the tile,
which becomes vectors, and what a tile reads is in the cache when it is read again. Tiles at the end
are shorter, in dims of which it is not known that all are whole (`tir.whole_tiles`).

Source: HPVM, arXiv 1611.00860, section 3.4; loops around work items, Karrenberg and Hack, 2011.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from relax_mlir.bindings import func, ir, linalg, scf, tensor
from relax_mlir.dialects.tir import TILE, WHOLE_TILES
from relax_mlir.legalize.kernel import PARALLEL, affine_map, generic
from relax_mlir.rewriting import captured_values, copy_op, walk_ops
from relax_mlir.schedule.build import loops
from relax_mlir.schedule.build.loops import Index

_CHEAP = ("arith.constant", "linalg.index", "tensor.dim", "tensor.extract")
"""Ops on what is not an index that are computed again, instead of stored to memory of a tile."""


def tile_hinted(function: func.FuncOp) -> None:
    """Makes each hinted op that supports it a loop over tiles."""
    for op in walk_ops(function, linalg.GenericOp):
        if TILE in op.operation.attributes and _supports(op):
            with ir.InsertionPoint(op), op.location:
                results = _over_tiles(op)
            for old, new in zip(op.results, results, strict=True):
                old.replace_all_uses_with(new)
            op.operation.erase()


def _maps(op: linalg.GenericOp) -> list[ir.AffineMap]:
    return [ir.AffineMapAttr(entry).value for entry in op.indexing_maps]


def _supports(op: linalg.GenericOp) -> bool:
    """Whether an op has a value per index, and reads operands at some of the indices."""
    maps, rank = _maps(op), len(op.iterator_types)
    block = op.regions[0].blocks[0]
    outs = list(block.arguments)[len(op.inputs) :]
    return (
        len(ir.DenseI64ArrayAttr(op.attributes[TILE])) == rank > 0
        and all("parallel" in str(kind) for kind in op.iterator_types)
        and all(map_ == ir.AffineMap.get_identity(rank) for map_ in maps[len(op.inputs) :])
        and all(isinstance(x, ir.AffineDimExpr) for map_ in maps for x in map_.results)
        and all(next(iter(out.uses), None) is None for out in outs)
    )


def _over_tiles(op: linalg.GenericOp) -> list[ir.Value]:
    """The loop over tiles; its results."""
    outs = list(op.outputs)
    extents = [_extent(outs[0], axis) for axis in range(len(op.iterator_types))]
    sizes = list(ir.DenseI64ArrayAttr(op.attributes[TILE]))
    whole = list(ir.DenseBoolArrayAttr(op.attributes[WHOLE_TILES]))
    dynamic = ir.ShapedType.get_dynamic_size()
    counts = [loops.ceil_div(*pair) for pair in zip(extents, sizes, strict=True)]
    bounds = [count if isinstance(count, int) else loops.value(count) for count in counts]
    loop = scf.ForallOp([0] * len(sizes), bounds, [1] * len(sizes), outs)
    with ir.InsertionPoint(loop.body):
        offsets = [loops.mul(i, n) for i, n in zip(loop.induction_variables, sizes)]
        lengths: list[Index] = [
            size if is_whole else loops.minimum(size, loops.sub(extent, offset))
            for size, is_whole, extent, offset in zip(sizes, whole, extents, offsets, strict=True)
        ]
        tile = _Tile(op, offsets, lengths, sizes)
        slices = [tile.slice_of(out, range(len(sizes))) for out in loop.inner_iter_args]
        terminator = op.regions[0].blocks[0].operations[-1]
        results = tile.emit(list(terminator.operands), slices)
        end = scf.InParallelOp()
    with ir.InsertionPoint(end.region.blocks[0]):
        for part, out in zip(results, loop.inner_iter_args, strict=True):
            at, static_at = _mixed(offsets, dynamic)
            of, static_of = _mixed(lengths, dynamic)
            ones = [1] * len(sizes)
            tensor.ParallelInsertSliceOp(part, out, at, of, [], static_at, static_of, ones)
    return list(loop.results)


def _extent(value: ir.Value, axis: int) -> Index:
    kind = ir.RankedTensorType(value.type)
    if kind.is_dynamic_dim(axis):
        return tensor.DimOp(value, loops.value(axis)).result
    return int(kind.shape[axis])


def _mixed(values: Sequence[Index], dynamic: int) -> tuple[list[ir.Value], list[int]]:
    """Indices as operands, and as an array of those that are static."""
    operands = [x for x in values if not isinstance(x, int)]
    return operands, [x if isinstance(x, int) else dynamic for x in values]


@dataclass
class _Tile:
    """Computes the elements of a tile; `bound` are tensors, of the tile, of values of the op."""

    op: linalg.GenericOp
    offsets: Sequence[Index]
    lengths: Sequence[Index]
    sizes: Sequence[int]
    bound: dict[ir.Value, tuple[ir.Value, tuple[int, ...]]] = field(default_factory=dict)
    uniform: dict[ir.Value, ir.Value] = field(default_factory=dict)
    """Values of the op that are the same for all elements."""

    def __post_init__(self) -> None:
        block = self.op.regions[0].blocks[0]
        for value, map_, element in zip(self.op.inputs, _maps(self.op), block.arguments):
            axes = tuple(ir.AffineDimExpr(x).position for x in map_.results)
            self.bound[element] = self.slice_of(value, axes), axes

    def slice_of(self, whole: ir.Value, axes: Sequence[int]) -> ir.Value:
        """The tile of a tensor whose dims are those axes."""
        dynamic = ir.ShapedType.get_dynamic_size()
        at, static_at = _mixed([self.offsets[axis] for axis in axes], dynamic)
        of, static_of = _mixed([self.lengths[axis] for axis in axes], dynamic)
        kind = ir.RankedTensorType.get(static_of, ir.RankedTensorType(whole.type).element_type)
        ones = [1] * len(axes)
        return tensor.ExtractSliceOp(kind, whole, at, of, [], static_at, static_of, ones).result

    def memory(self, element: ir.Type) -> ir.Value:
        """A tensor for a value of each element."""
        dynamic = ir.ShapedType.get_dynamic_size()
        made = tensor.EmptyOp(list(self.sizes), element).result
        of, static_of = _mixed(self.lengths, dynamic)
        if not of:
            return made
        kind = ir.RankedTensorType.get(static_of, element)
        zeros, ones = [0] * len(static_of), [1] * len(static_of)
        return tensor.ExtractSliceOp(kind, made, [], of, [], zeros, static_of, ones).result

    def emit(self, wanted: Sequence[ir.Value], into: Sequence[ir.Value]) -> list[ir.Value]:
        """Computes values of all elements into tensors: loops first, then what follows."""
        while True:
            needed = self._needed(wanted)
            loop = next((op for op in needed if self._is_shared(op)), None)
            if loop is None:
                return self._elements(wanted, needed, into)
            self._around(loop)

    def _needed(self, wanted: Iterable[ir.Value]) -> list[ir.OpView]:
        """The ops that compute values of what is bound, in an order that is right."""
        order: dict[ir.OpView, None] = {}

        def visit(value: ir.Value) -> None:
            if value in self.bound or value in self.uniform or isinstance(value.owner, ir.Block):
                return
            op = value.owner.opview
            if op not in order and self._is_inside(op):
                for operand in (*op.operation.operands, *captured_values(op)):
                    visit(operand)
                order[op] = None

        for value in wanted:
            visit(value)
        return list(order)

    def _is_inside(self, op: ir.OpView) -> bool:
        """Whether an op is one of the op's body, and no value from outside of it."""
        parent = op.operation.parent
        while parent is not None and parent.name != "func.func":
            if parent.operation == self.op.operation:
                return True
            parent = parent.operation.parent
        return False

    def _is_shared(self, op: ir.OpView) -> bool:
        """Whether an op is a loop over scalars whose bounds are the same for all elements."""
        if not isinstance(op, scf.ForOp) or any(
            isinstance(value.type, ir.ShapedType) for value in op.results
        ):
            return False
        needed = self._needed((op.lowerBound, op.upperBound, op.step))
        values = [x for one in needed for x in (*one.operation.operands, *captured_values(one))]
        values += [op.lowerBound, op.upperBound, op.step]
        return not any(isinstance(one, linalg.IndexOp) for one in needed) and not any(
            value in self.bound for value in values
        )

    def _around(self, loop: scf.ForOp) -> None:
        """Emits a loop around the elements of the tile, and binds its results."""
        for value in captured_values(loop):
            for op in self._needed([value]):
                self._store(op)
        bounds = []
        for bound in (loop.lowerBound, loop.upperBound, loop.step):
            for op in self._needed([bound]):
                copy_op(op, self.uniform)
            bounds.append(self.uniform.get(bound, bound))
        inits = [self.memory(value.type) for value in loop.initArgs]
        inits = self.emit(list(loop.initArgs), inits)
        made = scf.ForOp(*bounds, inits)
        known = dict(self.bound), dict(self.uniform)
        axes = tuple(range(len(self.sizes)))
        with ir.InsertionPoint(made.body):
            self.uniform[loop.induction_variable] = made.induction_variable
            for old, new in zip(loop.inner_iter_args, made.inner_iter_args, strict=True):
                self.bound[old] = new, axes
            terminator = loop.body.operations[-1]
            scf.YieldOp(self.emit(list(terminator.operands), list(made.inner_iter_args)))
        self.bound, self.uniform = known
        for old, new in zip(loop.results, made.results, strict=True):
            self.bound[old] = new, axes

    def _store(self, op: ir.OpView) -> None:
        """Binds what an op computes to memory, unless it is cheap to compute again."""
        values, axes = list(op.operation.results), tuple(range(len(self.sizes)))
        kinds = [value.type for value in values]
        is_index = isinstance(kinds[0], ir.IndexType) and not op.operation.regions
        if is_index or op.operation.name in _CHEAP or isinstance(kinds[0], ir.ShapedType):
            return
        stored = self.emit(values, [self.memory(kind) for kind in kinds])
        self.bound.update((value, (made, axes)) for value, made in zip(values, stored, strict=True))

    def _elements(
        self, wanted: Sequence[ir.Value], needed: Sequence[ir.OpView], into: Sequence[ir.Value]
    ) -> list[ir.Value]:
        """One op over the elements of the tile."""
        used = {*wanted}
        for op in needed:
            used |= {*op.operation.operands, *captured_values(op)}
        read = [x for x in self.bound if x in used]
        outside = [x for x in read if self.bound[x][0] not in into]
        rank = len(self.sizes)
        maps = [affine_map(rank, list(self.bound[x][1])) for x in outside]
        maps += [affine_map(rank, list(range(rank)))] * len(into)

        def body(*elements: ir.Value) -> list[ir.Value]:
            values = dict(self.uniform)
            values.update(zip(outside, elements))
            for value in read:
                if value not in values:
                    values[value] = elements[len(outside) + list(into).index(self.bound[value][0])]
            for op in needed:
                if isinstance(op, linalg.IndexOp):
                    axis = ir.IntegerAttr(op.attributes["dim"]).value
                    index = linalg.IndexOp(axis).result
                    values[op.result] = loops.value(loops.add(index, self.offsets[axis]))
                else:
                    copy_op(op, values)
            return [values.get(value, value) for value in wanted]

        ins = [self.bound[x][0] for x in outside]
        return generic(ins, list(into), maps, [PARALLEL] * rank, body)
