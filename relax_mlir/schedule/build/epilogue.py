"""What a tensor program computes from a matrix product, for one block of sums at a time.

    sums (scratch)  ->  vector of sums  ->  stages, elementwise  ->  outputs

Every stage that depends on a sum uses the sum of the same element; programs that use sums in other
ways (transposed, gathered, reduced) are refused.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from relax_mlir.bindings import arith, ir
from relax_mlir.program.contraction import Summed, loop_of
from relax_mlir.program.program import (
    Computed,
    Empty,
    Operand,
    Reshape,
    Slice,
    Splat,
    Stage,
    Tensor,
)

from . import loops
from .affine import IndexLane, Part, evaluate, plus, resolve, times
from .block import Block
from .body import as_lane, emit_body
from .kernel import Kernel
from .lanes import Lane, Uniform, lanes_from, vector_type
from .loops import Index
from .memory import load, prefetch, row_major, store
from .refusal import Refusal

MAX_COPIED = 8
"""An epilogue of at most so many ops is emitted for each vector of a tile."""


@dataclass(frozen=True)
class Epilogue:
    """Emits the stages after the contractions, and the stores to the outputs.

    `outputs` are the tensors that live in outputs, `shape` the extents of the contraction's loops.
    """

    kernel: Kernel
    contractions: Sequence[Summed]
    stages: Sequence[Stage]
    outputs: Sequence[Computed]
    shape: Sequence[Index]
    lanes: int
    always_mask: bool

    def __call__(self, block: Block) -> None:
        """Emits the loops over a block."""
        full = loops.sub(block.columns, loops.mod(block.columns, self.lanes))

        def row(i: ir.Value) -> None:
            def vector(j: Index, keep: ir.Value | None) -> None:
                _Point(self, block, i, j, keep).emit()

            def masked(j: ir.Value) -> None:
                vector(j, loops.mask(loops.sub(block.columns, j), self.lanes))

            if self.always_mask:
                loops.for_range(0, block.columns, self.lanes, masked)
            else:
                loops.for_range(0, full, self.lanes, lambda j: vector(j, None))
                loops.if_else(loops.less(full, block.columns), lambda: masked(loops.value(full)))

        loops.for_range(0, block.rows, 1, row)

    def of_whole_rows(self, block: Block, vectors: int) -> None:
        """Emits the loops over a block of `vectors` whole vectors of columns."""

        def vector(i: ir.Value, j: Index) -> None:
            _Point(self, block, i, j, None).emit()

        def row(i: ir.Value) -> None:
            if self.is_short:
                for v in range(vectors):
                    vector(i, v * self.lanes)
            else:
                loops.for_range(0, vectors * self.lanes, self.lanes, lambda j: vector(i, j))

        loops.for_range(0, block.rows, 1, row)

    @property
    def is_short(self) -> bool:
        """Whether it is emitted for each vector of a tile."""
        bodies = [stage.block for stage in self.stages if stage.block is not None]
        names = [op.operation.name for block in bodies for op in block.operations]
        plain = all(name.startswith(("arith.", "linalg.yield")) for name in names)
        return plain and len(names) <= MAX_COPIED

    def in_registers(
        self, block: Block, sums: Sequence[ir.Value], rows: int, columns: int | None = None
    ) -> None:
        """Emits it for `rows` rows of a block; `sums` are the last product's vectors.

        Rows have `columns` columns, or whole vectors.
        """
        per_row = len(sums) // rows
        for index, x in enumerate(sums):
            i, j = index // per_row, index % per_row * self.lanes
            remaining = self.lanes if columns is None else columns - j
            keep = None if remaining >= self.lanes else loops.mask(remaining, self.lanes)
            _Point(self, block, i, j, keep, x).emit()

    def of_element(self, block: Block, sums: Sequence[ir.Value]) -> None:
        """Emits it for the first element of a block; `sums` are scalars, one for each product."""
        _Point(self, block, 0, 0, None, sums=sums).emit()

    def prefetch(self, block: Block, rows: Index, vectors: int) -> None:
        """Prefetches `rows` whole rows of the outputs, and of operands at the same indices."""

        def row(i: Index) -> None:
            for j in range(vectors):
                _Point(self, block, i, j * self.lanes, None, only_prefetches=True).emit()

        if isinstance(rows, int):
            for i in range(rows):
                row(i)
        else:
            loops.for_range(0, rows, 1, row)


@dataclass
class _Point:
    """One vector of sums: row i, columns from j on; `last` is that of the last product.

    Other sums are in memory, if `sums` does not have them all. With `only_prefetches`, nothing is
    computed: outputs, and operands at the same indices, are prefetched.
    """

    epilogue: Epilogue
    block: Block
    i: Index
    j: Index
    mask: ir.Value | None
    last: ir.Value | None = None
    sums: Sequence[ir.Value] = ()
    only_prefetches: bool = False
    indices: dict[Tensor, tuple[IndexLane, ...]] = field(default_factory=dict)
    values: dict[Tensor, Lane] = field(default_factory=dict)

    def emit(self) -> None:
        """Computes all stages and stores outputs."""
        epilogue = self.epilogue
        loop_lanes = self._loop_lanes()
        for index, contraction in enumerate(epilogue.contractions):
            result = contraction.stage.results[0]
            self.values[result] = self._sum(index, result.element)
            written = contraction.stage.inits[0].indices
            self.indices[result] = tuple(loop_lanes[ir.AffineDimExpr(e).position] for e in written)
        self._store([c.stage.results[0] for c in epilogue.contractions])
        for stage in epilogue.stages:
            own = self._bind(stage)
            if own is None:
                continue  # does not depend on a sum: computed where it is read
            for init, result in zip(stage.inits, stage.results, strict=True):
                self.indices[result] = tuple(evaluate(e, own, epilogue.lanes) for e in init.indices)
            self.values.update(zip(stage.results, self._compute(stage, own), strict=True))
            self._store(stage.results)

    def _store(self, results: Sequence[Computed]) -> None:
        for result in results:
            if result in self.epilogue.outputs:
                view, at = self.epilogue.kernel.memory(result), self.indices[result]
                if self.only_prefetches:
                    prefetch(view, at, self.epilogue.lanes, True)
                    continue
                store(view, at, self.values[result], self.epilogue.lanes, self.mask)

    def _sum(self, index: int, element: ir.Type) -> Lane:
        if self.only_prefetches:
            return Uniform(0)
        x = self.last if index == len(self.block.buffers) - 1 else None
        x = self.sums[index] if self.sums else x
        if x is None:
            at = loops.add(self.block.start, loops.mul(self.i, self.block.stride), self.j)
            x = loops.load(self.block.buffers[index], at, self.epilogue.lanes)
        is_vector = isinstance(x.type, ir.VectorType)
        kind = vector_type(self.epilogue.lanes, element) if is_vector else element
        if x.type != kind:
            narrow = arith.truncf if isinstance(element, ir.FloatType) else arith.trunci
            x = narrow(kind, x)
        return as_lane(x)

    def _loop_lanes(self) -> list[IndexLane]:
        """The index of each loop of the contraction."""
        contraction, shape = self.epilogue.contractions[0], self.epilogue.shape
        lanes: list[IndexLane] = [Uniform(0)] * len(shape)
        for loop, index in zip(contraction.batch, self.block.batch, strict=True):
            lanes[loop] = Uniform(index)
        row = Uniform(loops.add(self.block.row, self.i))
        column = loops.value(loops.add(self.block.column, self.j))
        flat = lanes_from(column, self.epilogue.lanes)
        for group, lane in ((contraction.rows, row), (contraction.columns, flat)):
            extents = tuple(shape[loop] for loop in group)
            for position, loop in enumerate(group):
                lanes[loop] = lane if len(group) == 1 else Part(lane, extents, position)
        return lanes

    def _bind(self, stage: Stage) -> list[IndexLane] | None:
        """The loop indices of a stage, from its reads of sums; None if it reads none."""
        bound: dict[int, IndexLane] = {}
        reads = [
            (operand, at)
            for operand in stage.reads
            if (at := self._index_of(operand.tensor)) is not None
        ]
        if not reads:
            return None
        for operand, at in reads:
            for expression, index in zip(operand.indices, at, strict=True):
                loop = loop_of(expression)
                if loop is None:
                    if not isinstance(expression, ir.AffineConstantExpr):
                        raise Refusal("a sum is read at another index")
                    if index != Uniform(expression.value):
                        raise Refusal("a sum is read at another index")
                elif bound.setdefault(loop, index) != index:
                    raise Refusal("sums are read at two indices")
        for loop, extent in enumerate(stage.extents):
            if loop not in bound and extent != 1:
                raise Refusal("a loop of the epilogue is not a loop of the product")
        return [bound.get(loop, Uniform(0)) for loop in range(len(stage.extents))]

    def _index_of(self, tensor: Tensor) -> tuple[IndexLane, ...] | None:
        """The index of this point's element in a tensor; None if it does not depend on a sum."""
        if tensor not in self.indices and isinstance(tensor, Slice | Reshape):
            source = self._index_of(tensor.source)
            if source is None:
                return None
            if isinstance(tensor, Slice):
                self.indices[tensor] = self._slice(tensor, source)
            else:
                self.indices[tensor] = self._reshape(tensor, source)
            self.values[tensor] = self.values[tensor.source]
        return self.indices.get(tensor)

    def _slice(self, tensor: Slice, source: Sequence[IndexLane]) -> tuple[IndexLane, ...]:
        window = tensor.window
        if any(x != 0 for x in window.offsets) or any(x != 1 for x in window.strides):
            raise Refusal("a slice of the product does not begin at its first element")
        return tuple(lane for i, lane in enumerate(source) if i not in window.dropped)

    def _reshape(self, tensor: Reshape, source: Sequence[IndexLane]) -> tuple[IndexLane, ...]:
        kernel, lanes = self.epilogue.kernel, self.epilogue.lanes
        big = kernel.sizes(tensor if tensor.expands else tensor.source)
        result: list[IndexLane] = [Uniform(0)] * len(tensor.shape)
        for group_index, group in enumerate(tensor.groups):
            sizes = tuple(big[position] for position in group)
            non_unit = [i for i, size in enumerate(sizes) if size != 1]
            if tensor.expands:
                for at, i in enumerate(non_unit):
                    extents = tuple(sizes[k] for k in non_unit)
                    flat = resolve(source[group_index], lanes)
                    result[group[i]] = flat if len(non_unit) == 1 else Part(flat, extents, at)
            elif non_unit:
                result[group_index] = self._collapsed(
                    [source[group[i]] for i in non_unit], sizes, non_unit
                )
        return tuple(result)

    def _collapsed(
        self, parts: Sequence[IndexLane], sizes: Sequence[Index], non_unit: Sequence[int]
    ) -> IndexLane:
        """The index of collapsed dims, from those of the dims."""
        first = parts[0]
        if len(parts) == 1:
            return first
        if isinstance(first, Part) and len(first.extents) == len(parts):
            if list(parts) == [Part(first.flat, first.extents, i) for i in range(len(parts))]:
                return first.flat
        lanes = self.epilogue.lanes
        total: Lane = Uniform(0)
        for part, stride in zip(parts, row_major([sizes[i] for i in non_unit]), strict=True):
            total = plus(total, times(resolve(part, lanes), Uniform(stride), lanes), lanes)
        return total

    def _compute(self, stage: Stage, own: Sequence[IndexLane]) -> list[Lane]:
        """The results of a stage at one index of its loops."""
        lanes, kernel = self.epilogue.lanes, self.epilogue.kernel
        reads = [self._read(operand, own) for operand in stage.reads]
        if self.only_prefetches:
            return [Uniform(0)] * len(stage.results)
        if stage.block is None:
            return reads
        for k, init in enumerate(stage.inits):
            if stage.uses_init(k):
                reads.append(self._read(init, own))
            else:
                element = init.tensor.element
                reads.append(Uniform(arith.constant(element, loops.zero_attr(element))))
        return emit_body(
            stage.block,
            reads,
            lanes,
            indices=[resolve(index, lanes) for index in own] if stage.uses_index else (),
            captured=kernel.scalars,
            mask=self.mask,
        )

    def _read(self, operand: Operand, own: Sequence[IndexLane]) -> Lane:
        at = tuple(evaluate(e, list(own), self.epilogue.lanes) for e in operand.indices)
        return self._element(operand.tensor, at)

    def _element(self, tensor: Tensor, at: tuple[IndexLane, ...]) -> Lane:
        """One element a lane of a tensor."""
        if self._index_of(tensor) is not None:
            if self.indices[tensor] != at:
                raise Refusal("a sum is read at another index than it is computed for")
            return self.values[tensor]
        kernel, lanes = self.epilogue.kernel, self.epilogue.lanes
        if isinstance(tensor, Splat):
            return kernel.splat(tensor)
        if isinstance(tensor, Empty):
            return Uniform(arith.constant(tensor.element, loops.zero_attr(tensor.element)))
        if isinstance(tensor, Computed):
            stage = tensor.stage
            loop_of_dim = [loop_of(e) for e in stage.inits[tensor.index].indices]
            if sorted(loop_of_dim, key=str) != sorted(range(len(stage.extents)), key=str):
                raise Refusal("the epilogue permutes a tensor that it computes")
            own = [at[loop_of_dim.index(loop)] for loop in range(len(stage.extents))]
            return self._compute(stage, own)[tensor.index]
        view = kernel.view(tensor)
        if view is None:
            raise Refusal("an operand of the epilogue has gaps in memory")
        if self.only_prefetches:
            if at in self.indices.values():
                prefetch(view, at, lanes, False)
            return Uniform(0)
        return load(view, at, lanes, self.mask)
