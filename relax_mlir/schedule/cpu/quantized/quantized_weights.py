"""A block of 32 along k of panels of quantised weights, multiplied by rows of 8-bit elements.

    sums of integers = dot products of a row's 32 elements with those of the block
    totals          += scale of the row * scales * sums
                       + offset of the row * scales * sums of the weights, minima * sum of the row

For many rows, a block is decoded and summed before any row is multiplied, to registers, or to
memory in 16 bits. For few rows that happens while they are multiplied, if the registers do not hold
a block.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, product

from relax_mlir.bindings import arith, ir, vector
from relax_mlir.dialects.graph.quantized import BLOCK, PANEL, Scheme
from relax_mlir.schedule.build.loops import Index, broadcast, load, store, vector_type
from relax_mlir.schedule.cpu.isa.dot import Dot, Sum, WeightSum, even_and_odd

from .quantized_panels import POSITIONS, PackedRows, Problem, constant_vector

Elements = tuple[int, int, list[ir.Value]]
"""Half and group of elements of a block, and a vector of them for each `lanes` columns."""


@dataclass(frozen=True)
class Arithmetic:
    """How a machine's dot products compute a problem."""

    dot: Dot
    problem: Problem

    @property
    def scheme(self) -> Scheme:
        """The scheme of the weights."""
        return self.problem.right.scheme

    @property
    def vectors(self) -> int:
        """Vectors of sums for a panel."""
        return PANEL // self.dot.lanes

    @property
    def bias(self) -> int:
        """How much is added to weights that are multiplied: the zero point, and 128 if unsigned."""
        return self.scheme.zero + (128 if self.scheme.bits == 8 and self.dot.is_unsigned else 0)

    @property
    def has_offsets(self) -> bool:
        """Whether rows have offsets, which need sums of the weights."""
        return self.problem.left.offset is not None

    @property
    def widens(self) -> bool:
        """Whether many rows are multiplied in 16 bits."""
        return self.dot.widens(self.scheme.bits)

    def elements(self, p: Index, b: Index) -> Iterator[Elements]:
        """Decodes block b of a panel lazily."""
        return self.problem.right.bytes_of(p, b, self.dot.lanes, self.dot.is_unsigned)


@dataclass(frozen=True)
class Weights:
    """A block of some panels: elements, scales of each part, minima or an empty list.

    Lists have the vectors of all panels. `sums` returns the sums of the weights without minima if
    rows have offsets, times their scale unless there is only one. It is called after the last of
    `elements` was used.
    """

    arithmetic: Arithmetic
    elements: Iterable[Elements]
    scales: list[list[ir.Value]]
    minima: list[ir.Value]
    sums: Callable[[], list[ir.Value]]

    @staticmethod
    def decoded(arithmetic: Arithmetic, panels: Sequence[Index], b: Index) -> "Weights":
        """Block b of some panels, decoded before rows are multiplied."""
        elements = list(_concatenated([list(arithmetic.elements(p, b)) for p in panels]))
        scales, minima = _factors(arithmetic, panels, b)
        weight_sums = _WeightSums(arithmetic, len(panels))
        for x in elements:
            weight_sums.add(x)
        sums = weight_sums.totals(scales)
        return Weights(arithmetic, elements, scales, minima, lambda: sums)

    @staticmethod
    def on_the_fly(arithmetic: Arithmetic, panels: Sequence[Index], b: Index) -> "Weights":
        """Block b of some panels for one call of `multiply`, which decodes and sums it."""
        scales, minima = _factors(arithmetic, panels, b)
        weight_sums = _WeightSums(arithmetic, len(panels))

        def elements() -> Iterator[Elements]:
            for x in _concatenated([arithmetic.elements(p, b) for p in panels]):
                yield x
                weight_sums.add(x)

        return Weights(arithmetic, elements(), scales, minima, lambda: weight_sums.totals(scales))

    def multiply(self, rows: PackedRows, totals: Sequence[ir.Value]) -> list[ir.Value]:
        """The totals of some rows plus the products with this block, vector by vector."""
        vectors = len(self.scales[0])
        sums = self._products(rows, len(totals) // vectors, vectors)
        weight_sums, result = self.sums(), []
        for n, total in enumerate(totals):
            r, v = divmod(n, vectors)
            result.append(self._scaled(rows, r, v, sums[r][v], weight_sums, total))
        return result

    def _products(self, rows: PackedRows, count: int, vectors: int) -> list[list[list[ir.Value]]]:
        """The integer sums of each row and vector, one for all elements that share a scale."""
        dot, scheme = self.arithmetic.dot, self.arithmetic.scheme
        starts = [
            [self._start(rows, r, part) for part in range(scheme.scales)] for r in range(count)
        ]
        sums = [
            [[Sum(dot, start, scheme.bits) for start in own] for _ in range(vectors)]
            for own in starts
        ]
        for half, group, elements in self.elements:
            for r, own in enumerate(sums):
                values = rows.broadcast_four(r, 16 * half + 4 * group, dot.lanes)
                for weights, parts in zip(elements, own, strict=True):
                    parts[half % scheme.scales].add(weights, values)
        return [[[part.total() for part in parts] for parts in own] for own in sums]

    def _scaled(
        self,
        rows: PackedRows,
        r: int,
        v: int,
        sums: Sequence[ir.Value],
        weight_sums: Sequence[ir.Value],
        total: ir.Value,
    ) -> ir.Value:
        """total + scale of row r * scales * sums + the terms of offsets and minima."""
        lanes = self.arithmetic.dot.lanes
        floats = [arith.sitofp(vector_type(lanes, ir.F32Type.get()), own) for own in sums]
        scales = [part[v] for part in self.scales]
        factor = broadcast(rows.factor(r), lanes)
        offset = broadcast(rows.offset(r), lanes) if weight_sums else None
        if len(floats) == 1:
            # The term of the offset has the same scale: one multiplication for both.
            product = arith.mulf(floats[0], factor)
            if offset is not None:
                product = vector.fma(weight_sums[v], offset, product)
            total = vector.fma(product, scales[0], total)
        else:
            product = arith.mulf(floats[0], scales[0])
            product = vector.fma(floats[1], scales[1], product)
            total = vector.fma(product, factor, total)
            if offset is not None:
                total = vector.fma(weight_sums[v], offset, total)
        if self.minima:
            total = vector.fma(self.minima[v], broadcast(rows.correction(r), lanes), total)
        return total

    def _start(self, rows: PackedRows, r: int, part: int) -> ir.Value:
        """The initial value of the integer sums of row r."""
        lanes, i32 = self.arithmetic.dot.lanes, ir.IntegerType.get_signless(32)
        if self.arithmetic.bias:
            return broadcast(rows.correction(r, part), lanes)
        return constant_vector(0, vector_type(lanes, i32))


@dataclass(frozen=True)
class WidenedWeights(Weights):
    """A block of a panel of signed 8-bit elements, widened to 16 bits in memory."""

    buffer: ir.Value

    SIZE = PANEL * BLOCK
    """Elements of `buffer`: of each four, a vector of the even ones, then one of the odd ones."""

    @staticmethod
    def stored(decoded: Weights, buffer: ir.Value) -> "WidenedWeights":
        """The decoded weights of a panel, widened before rows are multiplied."""
        size = 2 * decoded.arithmetic.dot.lanes
        steps = [x for _, _, elements in decoded.elements for x in elements]
        for n, widened in enumerate(chain.from_iterable(map(even_and_odd, steps))):
            store(widened, buffer, n * size)
        parts = (decoded.elements, decoded.scales, decoded.minima, decoded.sums)
        return WidenedWeights(decoded.arithmetic, *parts, buffer)

    def _products(self, rows: PackedRows, count: int, vectors: int) -> list[list[list[ir.Value]]]:
        dot = self.arithmetic.dot
        sums = [[self._start(rows, r, 0)] * vectors for r in range(count)]
        for n, odd in product(range(BLOCK // POSITIONS), (False, True)):
            at = [2 * dot.lanes * (2 * (n * vectors + v) + odd) for v in range(vectors)]
            weights = [load(self.buffer, offset, 2 * dot.lanes) for offset in at]
            for r, own in enumerate(sums):
                values = rows.broadcast_two(r, POSITIONS * n, odd, dot.lanes)
                pairs = zip(own, weights, strict=True)
                sums[r] = [dot.of_words(total, x, values) for total, x in pairs]
        return [[[total] for total in own] for own in sums]


def _concatenated(panels: Sequence[Iterable[Elements]]) -> Iterator[Elements]:
    """The elements of some panels, with their vectors concatenated."""
    for steps in zip(*panels, strict=True):
        half, group, _ = steps[0]
        yield half, group, [x for _, _, vectors in steps for x in vectors]


def _factors(
    arithmetic: Arithmetic, panels: Sequence[Index], b: Index
) -> tuple[list[list[ir.Value]], list[ir.Value]]:
    """The scales of each part of block b of some panels, and their minima, vector by vector."""
    right, lanes = arithmetic.problem.right, arithmetic.dot.lanes
    own = [right.scales(p, b, lanes) for p in panels]
    scales = [[x for parts in own for x in parts[n]] for n in range(arithmetic.scheme.scales)]
    return scales, [x for p in panels for x in right.minima(p, b, lanes)]


class _WeightSums:
    """Accumulates a block's weights without minima, f32, vector by vector; see `Weights`.

    It does nothing if rows have no offsets.
    """

    def __init__(self, arithmetic: Arithmetic, panels: int) -> None:
        """Sums start below zero by the bias of the weights."""
        dot, scheme = arithmetic.dot, arithmetic.scheme
        i32 = ir.IntegerType.get_signless(32)
        initial = -arithmetic.bias * BLOCK // scheme.scales
        self._arithmetic = arithmetic
        vectors = panels * arithmetic.vectors if arithmetic.has_offsets else 0
        self._sums = [
            [
                WeightSum(dot, constant_vector(initial, vector_type(dot.lanes, i32)), scheme.bits)
                for _ in range(scheme.scales)
            ]
            for _ in range(vectors)
        ]

    def add(self, elements: Elements) -> None:
        """Adds the elements of a group."""
        half, _, vectors = elements if self._sums else (0, 0, [])
        for own, x in zip(self._sums, vectors, strict=True):
            own[half % len(own)].add(x)

    def totals(self, scales: Sequence[Sequence[ir.Value]]) -> list[ir.Value]:
        """The sums, times their scale unless there is only one."""
        kind = vector_type(self._arithmetic.dot.lanes, ir.F32Type.get())
        result = []
        for v, own in enumerate(self._sums):
            floats = [arith.sitofp(kind, part.total()) for part in own]
            if len(floats) > 1:
                product = arith.mulf(floats[0], scales[0][v])
                floats = [vector.fma(floats[1], scales[1][v], product)]
            result += floats
        return result
