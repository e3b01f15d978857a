"""Both sides of a product with a quantised matrix, and how they are loaded into vectors."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

from relax_mlir.bindings import arith, ir, memref, vector
from relax_mlir.dialects.graph.quantized import BLOCK, NEST, PANEL, Scheme
from relax_mlir.schedule.build.block import Epilogue
from relax_mlir.schedule.build.loops import (
    Index,
    add,
    broadcast,
    ceil_div,
    floor_div,
    load,
    minimum,
    mul,
    value,
    vector_type,
)
from relax_mlir.schedule.build.memory import View
from relax_mlir.schedule.cpu.blocking import Prefetch, Quantized, family_of
from relax_mlir.schedule.cpu.isa.pointers import load_at_address, opaque_address
from relax_mlir.target import Cpu

HALVES, GROUPS, POSITIONS = 2, 4, 4


@dataclass(frozen=True)
class Left:
    """Rows of f32 (`scale` is None), or of 8-bit elements: value * scale of the block + offset.

    Row r is at `r * 32 * blocks` of `values`, its factors at `r * blocks`. `offset` is None if
    values are only scaled.
    """

    values: View
    scale: View | None = None
    offset: View | None = None

    def element(self, block: Index, position: int) -> ir.Value:
        """The f32 value of an element; blocks are counted through all rows."""
        x = memref.load(self.values.base, [value(self.at(block, position))])
        if self.scale is None:
            return x
        product = arith.mulf(arith.sitofp(_f32(), x), self.factor(block))
        return arith.addf(product, self.offset_of(block)) if self.offset else product

    def factor(self, block: Index) -> ir.Value:
        """The scale of a block."""
        assert self.scale is not None, "f32 has no factors"
        return memref.load(self.scale.base, [value(add(self.scale.offset, block))])

    def offset_of(self, block: Index) -> ir.Value:
        """The offset of a block."""
        assert self.offset is not None
        return memref.load(self.offset.base, [value(add(self.offset.offset, block))])

    def at(self, block: Index, position: int) -> Index:
        """The offset of an element in `values`."""
        return add(self.values.offset, mul(block, BLOCK), position)


@dataclass(frozen=True)
class Panels:
    """The right side: `blocks` blocks of 32 along k, and a flat buffer for each part."""

    scheme: Scheme
    blocks: int
    parts: Mapping[str, ir.Value]
    cpu: Cpu

    @property
    def bytes(self) -> int:
        """Bytes of a panel."""
        widths = {"i8": 1, "f16": 2}
        parts = self.scheme.parts(1, self.blocks).values()
        return sum(widths[element] * prod(dims) for element, dims in parts)

    def size(self, part: str) -> int:
        """Elements of a part for a block of a panel, or for the blocks that share them."""
        return prod(self.scheme.parts(1, NEST)[part][1]) * self._blocks_sharing(part) // NEST

    def _blocks_sharing(self, part: str) -> int:
        """How many blocks share a part."""
        if part.startswith("outer"):
            return NEST
        return self.scheme.shared if part in ("scale", "minimum") else 1

    def _at(self, part: str, p: Index, b: Index) -> Index:
        """The offset of a part of a block."""
        sharing = self._blocks_sharing(part)
        return mul(add(mul(p, self.blocks // sharing), floor_div(b, sharing)), self.size(part))

    @property
    def blocking(self) -> Quantized:
        """How the target blocks products with them."""
        return family_of(self.cpu).quantized

    def prefetch_for(self, is_few: bool) -> Prefetch:
        """How few rows, or many, prefetch them."""
        return self.blocking.prefetch_for(self.scheme.bits, is_few)

    def prefetch(self, p: Index, b: Index, panels: Index, is_few: bool) -> None:
        """Prefetches the block at the prefetch distance from block b, in bytes of elements."""
        last = add(mul(panels, self.blocks), -1)
        tuning = self.prefetch_for(is_few)
        distance = -(-tuning.bytes // self.size("data"))
        block = minimum(add(mul(p, self.blocks), b, distance), last)
        for part, buffer in self.parts.items():
            size = self.size(part)
            if not part.startswith("outer"):
                first = mul(floor_div(block, self._blocks_sharing(part)), size)
                for line in range(0, size, self.cpu.caches.line):
                    at = [value(add(first, line))]
                    memref.prefetch(buffer, at, False, tuning.locality, True)

    def bytes_of(
        self, p: Index, b: Index, lanes: int, unsigned: bool
    ) -> Iterator[tuple[int, int, list[ir.Value]]]:
        """Yields half, group, and a vector of 8-bit elements for each `lanes` rows of a panel.

        With `unsigned`, signed elements are biased by 128.
        """
        width = POSITIONS * lanes
        starts = range(0, PANEL * POSITIONS, width)
        if self.scheme.bits == 8:
            for g in range(HALVES * GROUPS):
                raw = [self._load("data", p, b, PANEL * POSITIONS * g + v, width) for v in starts]
                if unsigned:
                    raw = [arith.xori(x, constant_vector(-128, x.type)) for x in raw]
                yield g // GROUPS, g % GROUPS, raw
            return
        high = self._high_bytes(p, b, width)
        for group in range(GROUPS):
            raw = [self._load("data", p, b, PANEL * POSITIONS * group + v, width) for v in starts]
            for half in range(HALVES):
                if half == 0:
                    low = [arith.andi(x, constant_vector(15, x.type)) for x in raw]
                else:
                    low = [arith.shrui(x, constant_vector(4, x.type)) for x in raw]
                upper = high(half, group)
                pairs = zip(low, upper, strict=True) if upper else ()
                yield half, group, [arith.ori(*pair) for pair in pairs] or low

    def _high_bytes(self, p: Index, b: Index, width: int):
        """A function of half and group that returns the bits from bit 4 on, at their positions."""
        bits = self.scheme.bits
        if bits == 4:
            return lambda half, group: []
        planes = 1 if bits == 5 else HALVES
        size = PANEL * POSITIONS
        starts = range(0, planes * size, width)
        loaded = [self._load("high", p, b, v, width) for v in starts]

        def high_bits(half: int, group: int) -> list[ir.Value]:
            count = size // width
            own = loaded if bits == 5 else loaded[half * count : (half + 1) * count]
            first, mask = (4 * half + group, 16) if bits == 5 else (2 * group, 48)
            return [arith.andi(_shifted(x, 4 - first), constant_vector(mask, x.type)) for x in own]

        return high_bits

    def words_of(
        self, p: Index, b: Index, lanes: int
    ) -> Iterator[tuple[int, int, list[list[ir.Value]]]]:
        """Yields half, group, and for each vector of rows the four elements, in 32 bits."""
        kind = vector_type(lanes, _integer(32))
        for half, group, packed in self.bytes_of(p, b, lanes, unsigned=False):
            words = [vector.bitcast(kind, x) for x in packed]
            yield (
                half,
                group,
                [[self._byte(word, 8 * j) for j in range(POSITIONS)] for word in words],
            )

    def floats_of(self, p: Index, b: Index, lanes: int) -> Iterator[tuple[int, list[ir.Value]]]:
        """Yields k in the block, and a vector of f32 weights for each `lanes` columns."""
        kind = vector_type(lanes, _f32())
        scales, minima = self.scales(p, b, lanes), self.minima(p, b, lanes)
        for half, group, words in self.words_of(p, b, lanes):
            for position in range(POSITIONS):
                elements = [arith.sitofp(kind, own[position]) for own in words]
                if minima:
                    weights = list(map(vector.fma, elements, scales[half], minima))
                else:
                    weights = list(map(arith.mulf, elements, scales[half]))
                yield 16 * half + POSITIONS * group + position, weights

    def _byte(self, words: ir.Value, first: int) -> ir.Value:
        """The element in a byte of each word, minus the scheme's zero."""
        kind = words.type
        if self.scheme.bits == 8:
            shifted = arith.shli(words, constant_vector(24 - first, kind)) if first < 24 else words
            return arith.shrsi(shifted, constant_vector(24, kind))
        shifted = arith.shrui(words, constant_vector(first, kind)) if first else words
        element = arith.andi(shifted, constant_vector(255, kind))
        zero = self.scheme.zero
        return arith.subi(element, constant_vector(zero, kind)) if zero else element

    def scales(self, p: Index, b: Index, lanes: int) -> list[list[ir.Value]]:
        """The scales of each half of a block, a vector for each `lanes` rows."""
        if self.scheme.scales == 1:
            return [self._factors("scale", p, b, 0, lanes)] * HALVES
        return [self._factors("scale", p, b, PANEL * half, lanes) for half in range(HALVES)]

    def minima(self, p: Index, b: Index, lanes: int) -> list[ir.Value]:
        """The minima of a block; empty if the scheme has none."""
        return self._factors("minimum", p, b, 0, lanes) if self.scheme.has_minimum else []

    def _factors(self, part: str, p: Index, b: Index, first: int, lanes: int) -> list[ir.Value]:
        kind = vector_type(lanes, _f32())
        result = []
        for v in range(0, PANEL, lanes):
            loaded = self._load(part, p, b, first + v, lanes)
            if self.scheme.is_nested:
                outer = arith.extf(kind, self._load(f"outer_{part}", p, b, v, lanes))
                widened = arith.extsi(vector_type(lanes, _integer(32)), loaded)
                result.append(arith.mulf(outer, arith.sitofp(kind, widened)))
            else:
                result.append(arith.extf(kind, loaded))
        return result

    def _load(self, part: str, p: Index, b: Index, first: int, width: int) -> ir.Value:
        return load(self.parts[part], add(self._at(part, p, b), first), width)


@dataclass(frozen=True)
class PackedLeft:
    """A packed batch of the left side: [block of rows][block of k][pitch] of each part.

    `corrections` are initial values of integer sums, or factors of the minimum, for each scale of a
    block; None if neither is needed. `offsets` is None if values are only scaled. `widened` has the
    values in 16 bits, those at even indices of a block first; None if they are not used.
    """

    values: ir.Value
    factors: ir.Value
    corrections: ir.Value | None
    offsets: ir.Value | None
    widened: ir.Value | None = None

    def factor(self, index: Index) -> ir.Value:
        """The scale of a block."""
        return memref.load(self.factors, [value(index)])

    def correction(self, index: Index) -> ir.Value:
        """The correction for a block, or for one part of it."""
        return memref.load(self.corrections, [value(index)])

    def offset(self, index: Index) -> ir.Value:
        """The offset of a block."""
        return memref.load(self.offsets, [value(index)])


@dataclass(frozen=True)
class PackedRows:
    """Consecutive rows of a packed left side, from `index` on.

    They are read from `addresses`, one for each part of the copy, if these are given.
    """

    copy: PackedLeft
    index: Index
    scales: int
    addresses: Mapping[str, ir.Value] | None = None

    def with_addresses(self) -> "PackedRows":
        """The same, read from addresses, see `opaque_address`."""
        copy, scaled = self.copy, mul(self.index, self.scales)
        parts = {
            "values": (copy.values, mul(self.index, BLOCK)),
            "factors": (copy.factors, self.index),
            "corrections": (copy.corrections, scaled),
            "offsets": (copy.offsets, self.index),
        }
        addresses = {
            name: opaque_address(buffer, at)
            for name, (buffer, at) in parts.items()
            if buffer is not None
        }
        return replace(self, addresses=addresses)

    def broadcast_four(self, row: int, first: int, lanes: int) -> ir.Value:
        """Four elements of a row from `first` on, in every lane of 32 bits."""
        at = row * BLOCK + first
        if self.addresses is None:
            return self._broadcast_word(self.copy.values, at, lanes)
        word = load_at_address(self.addresses["values"], at, _integer(32))
        return vector.bitcast(vector_type(POSITIONS * lanes, _integer(8)), broadcast(word, lanes))

    def broadcast_two(self, row: int, first: int, odd: bool, lanes: int) -> ir.Value:
        """Two of four elements of a row from `first` on, in 16 bits, in every lane of 32 bits."""
        assert self.copy.widened is not None
        return self._broadcast_word(
            self.copy.widened, row * BLOCK + (BLOCK * odd + first) // 2, lanes
        )

    def _broadcast_word(self, buffer: ir.Value, at: int, lanes: int) -> ir.Value:
        """The 32 bits from element `at` of the rows on, in every lane."""
        element = ir.MemRefType(buffer.type).element_type
        count = 32 // element.width
        loaded = load(buffer, add(mul(self.index, BLOCK), at), count)
        word = vector.extract(vector.bitcast(vector_type(1, _integer(32)), loaded), [], [0])
        return vector.bitcast(vector_type(count * lanes, element), broadcast(word, lanes))

    def factor(self, row: int) -> ir.Value:
        """The scale of a row."""
        return self._at_address("factors", row) or self.copy.factor(add(self.index, row))

    def correction(self, row: int, part: int = 0) -> ir.Value:
        """The correction for a row, or for one part of its block."""
        index = row * self.scales + part
        at = add(mul(self.index, self.scales), index)
        return self._at_address("corrections", index) or self.copy.correction(at)

    def offset(self, row: int) -> ir.Value:
        """The offset of a row."""
        return self._at_address("offsets", row) or self.copy.offset(add(self.index, row))

    def _at_address(self, part: str, index: int) -> ir.Value | None:
        """A 32-bit element from an address; None if there are no addresses."""
        if self.addresses is None:
            return None
        element = ir.MemRefType(getattr(self.copy, part).type).element_type
        return load_at_address(self.addresses[part], 4 * index, element)


@dataclass(frozen=True)
class Problem:
    """left[rows, 32 * blocks] times the transpose of right[columns, 32 * blocks].

    The epilogue stores `columns` columns, to `outputs` among others; panels have 16 each.
    """

    rows: Index
    columns: Index
    left: Left
    right: Panels
    epilogue: Epilogue
    outputs: Sequence[View] = ()

    @property
    def panels(self) -> Index:
        """Panels with stored columns."""
        return ceil_div(self.columns, PANEL)


def _shifted(x: ir.Value, left: int) -> ir.Value:
    """Elements shifted to the left, or to the right if `left` is negative."""
    if left == 0:
        return x
    shift = arith.shli if left > 0 else arith.shrui
    return shift(x, constant_vector(abs(left), x.type))


def constant_vector(x: int, kind: ir.VectorType) -> ir.Value:
    """An integer in every lane."""
    one = ir.IntegerAttr.get(ir.VectorType(kind).element_type, x)
    return arith.constant(kind, ir.DenseElementsAttr.get_splat(kind, one))


def _f32() -> ir.Type:
    return ir.F32Type.get()


def _integer(bits: int) -> ir.Type:
    return ir.IntegerType.get_signless(bits)
