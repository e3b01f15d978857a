"""A block of 32 along k of panels of quantised weights, multiplied by rows of 8-bit numbers.

    sums of integers = dot products of a row's 32 numbers with those of the block
    totals          += scale of the row * scales * sums
                       + offset of the row * scales * sums of the weights, minima * sum of the row

For many rows a block is decoded, and its weights added up, before any row is multiplied, maybe to
memory in 16 bits. For few rows that may happen number by number on the way: 16 registers do not
hold a block.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, product

from relax_mlir.bindings import arith, ir, vector
from relax_mlir.dialects.graph.quantized import BLOCK, PANEL, Scheme
from relax_mlir.schedule.build.loops import Index, broadcast, load, store, vector_type
from relax_mlir.schedule.cpu.isa.dot import Dot, Sum, WeightSum, even_and_odd

from .quantized_panels import PLACES, CopiedRows, Problem, integers

Numbers = tuple[int, int, list[ir.Value]]
"""Half and group of some of a block's numbers, and a vector of them for each `lanes` columns."""


@dataclass(frozen=True)
class Arithmetic:
    """How a machine's dot products compute a problem."""

    dot: Dot
    problem: Problem

    @property
    def scheme(self) -> Scheme:
        """What the weights are."""
        return self.problem.right.scheme

    @property
    def vectors(self) -> int:
        """Vectors of sums of a panel."""
        return PANEL // self.dot.lanes

    @property
    def moved_by(self) -> int:
        """By how much the weights that are multiplied are above those that are meant."""
        return self.scheme.zero + (128 if self.scheme.bits == 8 and self.dot.is_unsigned else 0)

    @property
    def has_offsets(self) -> bool:
        """Whether rows have offsets, so that weights have to be added up."""
        return self.problem.left.offset is not None

    @property
    def widens(self) -> bool:
        """Whether many rows are multiplied in 16 bits."""
        return self.dot.widens(self.scheme.bits)

    def numbers(self, p: Index, b: Index) -> Iterator[Numbers]:
        """Decodes block b of a panel, as it is asked for them."""
        return self.problem.right.bytes_of(p, b, self.dot.lanes, self.dot.is_unsigned)


@dataclass(frozen=True)
class Weights:
    """A block of some panels: numbers, scales of each part, minima or none.

    All but halves and groups are lists of the vectors of the panels. `sums` gives the sums of the
    weights, minima left out, if rows have offsets: times their scale, unless there is only one. It
    is called behind the last of the numbers.
    """

    arithmetic: Arithmetic
    numbers: Iterable[Numbers]
    scales: list[list[ir.Value]]
    minima: list[ir.Value]
    sums: Callable[[], list[ir.Value]]

    @staticmethod
    def held(arithmetic: Arithmetic, panels: Sequence[Index], b: Index) -> "Weights":
        """Block b of some panels, decoded before anything is multiplied."""
        numbers = list(_side_by_side([list(arithmetic.numbers(p, b)) for p in panels]))
        scales, minima = _factors(arithmetic, panels, b)
        added = _Added(arithmetic, len(panels))
        for x in numbers:
            added.add(x)
        sums = added.totals(scales)
        return Weights(arithmetic, numbers, scales, minima, lambda: sums)

    @staticmethod
    def passing(arithmetic: Arithmetic, panels: Sequence[Index], b: Index) -> "Weights":
        """Block b of some panels for one call of `multiply`, decoded and added up meanwhile."""
        scales, minima = _factors(arithmetic, panels, b)
        added = _Added(arithmetic, len(panels))

        def numbers() -> Iterator[Numbers]:
            for x in _side_by_side([arithmetic.numbers(p, b) for p in panels]):
                yield x
                added.add(x)

        return Weights(arithmetic, numbers(), scales, minima, lambda: added.totals(scales))

    def multiply(self, rows: CopiedRows, totals: Sequence[ir.Value]) -> list[ir.Value]:
        """The totals of some rows, vector by vector, with this block of them added."""
        vectors = len(self.scales[0])
        sums = self._products(rows, len(totals) // vectors, vectors)
        added, result = self.sums(), []
        for n, total in enumerate(totals):
            r, v = divmod(n, vectors)
            result.append(self._scaled(rows, r, v, sums[r][v], added, total))
        return result

    def _products(self, rows: CopiedRows, count: int, vectors: int) -> list[list[list[ir.Value]]]:
        """The integer sums of each row and vector, one for all numbers that share a scale."""
        dot, scheme = self.arithmetic.dot, self.arithmetic.scheme
        starts = [
            [self._start(rows, r, part) for part in range(scheme.scales)] for r in range(count)
        ]
        sums = [
            [[Sum(dot, start, scheme.bits) for start in own] for _ in range(vectors)]
            for own in starts
        ]
        for half, group, numbers in self.numbers:
            for r, own in enumerate(sums):
                values = rows.four(r, 16 * half + 4 * group, dot.lanes)
                for weights, parts in zip(numbers, own, strict=True):
                    parts[half % scheme.scales].add(weights, values)
        return [[[part.total() for part in parts] for parts in own] for own in sums]

    def _scaled(
        self,
        rows: CopiedRows,
        r: int,
        v: int,
        sums: Sequence[ir.Value],
        added: Sequence[ir.Value],
        total: ir.Value,
    ) -> ir.Value:
        """total + scale of row r * scales * sums, and what offsets and minima add."""
        lanes = self.arithmetic.dot.lanes
        wide = [arith.sitofp(vector_type(lanes, ir.F32Type.get()), own) for own in sums]
        scales = [part[v] for part in self.scales]
        factor = broadcast(rows.factor(r), lanes)
        offset = broadcast(rows.offset(r), lanes) if added else None
        if len(wide) == 1:
            # The offset's share has the same scale, so that one multiplication is for both.
            product = arith.mulf(wide[0], factor)
            if offset is not None:
                product = vector.fma(added[v], offset, product)
            total = vector.fma(product, scales[0], total)
        else:
            product = arith.mulf(wide[0], scales[0])
            product = vector.fma(wide[1], scales[1], product)
            total = vector.fma(product, factor, total)
            if offset is not None:
                total = vector.fma(added[v], offset, total)
        if self.minima:
            total = vector.fma(self.minima[v], broadcast(rows.correction(r), lanes), total)
        return total

    def _start(self, rows: CopiedRows, r: int, part: int) -> ir.Value:
        """What the integer sums of row r start with."""
        lanes, i32 = self.arithmetic.dot.lanes, ir.IntegerType.get_signless(32)
        if self.arithmetic.moved_by:
            return broadcast(rows.correction(r, part), lanes)
        return integers(0, vector_type(lanes, i32))


@dataclass(frozen=True)
class WideWeights(Weights):
    """A block of a panel of signed 8-bit numbers, which are in memory in 16 bits, see `STORED`."""

    room: ir.Value

    STORED = PANEL * BLOCK
    """Numbers that `room` has place for: of each four, a vector at even places, and one at odd."""

    @staticmethod
    def stored(held: Weights, room: ir.Value) -> "WideWeights":
        """Those of a panel that are held, widened before anything is multiplied."""
        size = 2 * held.arithmetic.dot.lanes
        steps = [x for _, _, numbers in held.numbers for x in numbers]
        for n, wide in enumerate(chain.from_iterable(map(even_and_odd, steps))):
            store(wide, room, n * size)
        parts = (held.numbers, held.scales, held.minima, held.sums)
        return WideWeights(held.arithmetic, *parts, room)

    def _products(self, rows: CopiedRows, count: int, vectors: int) -> list[list[list[ir.Value]]]:
        dot = self.arithmetic.dot
        sums = [[self._start(rows, r, 0)] * vectors for r in range(count)]
        for n, odd in product(range(BLOCK // PLACES), (False, True)):
            at = [2 * dot.lanes * (2 * (n * vectors + v) + odd) for v in range(vectors)]
            weights = [load(self.room, place, 2 * dot.lanes) for place in at]
            for r, own in enumerate(sums):
                values = rows.two(r, PLACES * n, odd, dot.lanes)
                pairs = zip(own, weights, strict=True)
                sums[r] = [dot.of_words(total, x, values) for total, x in pairs]
        return [[[total] for total in own] for own in sums]


def _side_by_side(panels: Sequence[Iterable[Numbers]]) -> Iterator[Numbers]:
    """The numbers of some panels, with the vectors of all of them together."""
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


class _Added:
    """The sums of a block's weights without minima, f32, vector by vector: see `Weights`.

    There are none if rows have no offsets.
    """

    def __init__(self, arithmetic: Arithmetic, panels: int) -> None:
        """They are above those that are meant by as much as the weights are."""
        dot, scheme = arithmetic.dot, arithmetic.scheme
        i32 = ir.IntegerType.get_signless(32)
        above = -arithmetic.moved_by * BLOCK // scheme.scales
        self._arithmetic = arithmetic
        vectors = panels * arithmetic.vectors if arithmetic.has_offsets else 0
        self._sums = [
            [
                WeightSum(dot, integers(above, vector_type(dot.lanes, i32)), scheme.bits)
                for _ in range(scheme.scales)
            ]
            for _ in range(vectors)
        ]

    def add(self, numbers: Numbers) -> None:
        """Emits the addition of some numbers."""
        half, _, vectors = numbers if self._sums else (0, 0, [])
        for own, x in zip(self._sums, vectors, strict=True):
            own[half % len(own)].add(x)

    def totals(self, scales: Sequence[Sequence[ir.Value]]) -> list[ir.Value]:
        """The sums, times their scale unless there is only one."""
        kind = vector_type(self._arithmetic.dot.lanes, ir.F32Type.get())
        found = []
        for v, own in enumerate(self._sums):
            wide = [arith.sitofp(kind, part.total()) for part in own]
            if len(wide) > 1:
                product = arith.mulf(wide[0], scales[0][v])
                wide = [vector.fma(wide[1], scales[1][v], product)]
            found += wide
        return found
