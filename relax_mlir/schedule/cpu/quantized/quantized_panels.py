"""Both sides of a product with a quantised matrix, and how they are read into vectors."""

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

HALVES, GROUPS, PLACES = 2, 4, 4


@dataclass(frozen=True)
class Left:
    """Rows of f32 (`scale` is None), or of 8-bit numbers: value * scale of the block + offset.

    Row r is at `r * 32 * blocks` of `values`, its factors at `r * blocks`. `offset` is None where
    values are only scaled.
    """

    values: View
    scale: View | None = None
    offset: View | None = None

    def number(self, block: Index, place: int) -> ir.Value:
        """Element `place` of a block, counted through all rows, as f32."""
        x = memref.load(self.values.base, [value(self.at(block, place))])
        if self.scale is None:
            return x
        product = arith.mulf(arith.sitofp(_f32(), x), self.factor(block))
        return arith.addf(product, self.offset_of(block)) if self.offset else product

    def factor(self, block: Index) -> ir.Value:
        """The scale of a block."""
        assert self.scale is not None, "f32 has no factors"
        return memref.load(self.scale.base, [value(add(self.scale.offset, block))])

    def offset_of(self, block: Index) -> ir.Value:
        """The offset of a block, where there is one."""
        assert self.offset is not None
        return memref.load(self.offset.base, [value(add(self.offset.offset, block))])

    def at(self, block: Index, place: int) -> Index:
        """Where an element is."""
        return add(self.values.offset, mul(block, BLOCK), place)


@dataclass(frozen=True)
class Panels:
    """The right side: `blocks` of 32 along k, and the flat buffer of each part of the matrix."""

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
        """Elements of a part that a block of a panel has, or that blocks have together."""
        return prod(self.scheme.parts(1, NEST)[part][1]) * self._sharing(part) // NEST

    def _sharing(self, part: str) -> int:
        """How many blocks have a part together."""
        if part.startswith("outer"):
            return NEST
        return self.scheme.shared if part in ("scale", "minimum") else 1

    def _at(self, part: str, p: Index, b: Index) -> Index:
        """Where a part of a block begins."""
        sharing = self._sharing(part)
        return mul(add(mul(p, self.blocks // sharing), floor_div(b, sharing)), self.size(part))

    @property
    def blocking(self) -> Quantized:
        """How the target multiplies them."""
        return family_of(self.cpu).quantized

    def ahead(self, is_few: bool) -> Prefetch:
        """How far ahead few rows, or many, prefetch them."""
        return self.blocking.ahead(self.scheme.bits, is_few)

    def prefetch(self, p: Index, b: Index, panels: Index, is_few: bool) -> None:
        """Asks for the block that comes so many bytes of numbers later."""
        last = add(mul(panels, self.blocks), -1)
        ahead = self.ahead(is_few)
        distance = -(-ahead.bytes // self.size("data"))
        block = minimum(add(mul(p, self.blocks), b, distance), last)
        for part, buffer in self.parts.items():
            size = self.size(part)
            if not part.startswith("outer"):
                first = mul(floor_div(block, self._sharing(part)), size)
                for line in range(0, size, self.cpu.caches.line):
                    place = [value(add(first, line))]
                    memref.prefetch(buffer, place, False, ahead.locality, True)

    def bytes_of(
        self, p: Index, b: Index, lanes: int, unsigned: bool
    ) -> Iterator[tuple[int, int, list[ir.Value]]]:
        """Yields half, group and a vector of numbers in 8 bits for each `lanes` rows of a panel.

        With `unsigned`, signed numbers are moved up by 128.
        """
        width = PLACES * lanes
        starts = range(0, PANEL * PLACES, width)
        if self.scheme.bits == 8:
            for g in range(HALVES * GROUPS):
                raw = [self._load("data", p, b, PANEL * PLACES * g + v, width) for v in starts]
                if unsigned:
                    raw = [arith.xori(x, integers(-128, x.type)) for x in raw]
                yield g // GROUPS, g % GROUPS, raw
            return
        high = self._high_bytes(p, b, width)
        for group in range(GROUPS):
            raw = [self._load("data", p, b, PANEL * PLACES * group + v, width) for v in starts]
            for half in range(HALVES):
                if half == 0:
                    low = [arith.andi(x, integers(15, x.type)) for x in raw]
                else:
                    low = [arith.shrui(x, integers(4, x.type)) for x in raw]
                above = high(half, group)
                pairs = zip(low, above, strict=True) if above else ()
                yield half, group, [arith.ori(*pair) for pair in pairs] or low

    def _high_bytes(self, p: Index, b: Index, width: int):
        """A function of half and group that gives the bits above four, in their place."""
        bits = self.scheme.bits
        if bits == 4:
            return lambda half, group: []
        planes = 1 if bits == 5 else HALVES
        size = PANEL * PLACES
        starts = range(0, planes * size, width)
        loaded = [self._load("high", p, b, v, width) for v in starts]

        def above(half: int, group: int) -> list[ir.Value]:
            count = size // width
            own = loaded if bits == 5 else loaded[half * count : (half + 1) * count]
            first, mask = (4 * half + group, 16) if bits == 5 else (2 * group, 48)
            return [arith.andi(_moved(x, 4 - first), integers(mask, x.type)) for x in own]

        return above

    def words_of(
        self, p: Index, b: Index, lanes: int
    ) -> Iterator[tuple[int, int, list[list[ir.Value]]]]:
        """Yields half, group and for each vector of rows the numbers of four places, in 32 bits."""
        kind = vector_type(lanes, _integer(32))
        for half, group, packed in self.bytes_of(p, b, lanes, unsigned=False):
            words = [vector.bitcast(kind, x) for x in packed]
            yield half, group, [[self._byte(word, 8 * j) for j in range(PLACES)] for word in words]

    def floats_of(self, p: Index, b: Index, lanes: int) -> Iterator[tuple[int, list[ir.Value]]]:
        """Yields each k of a block, and a vector of f32 weights for each `lanes` columns."""
        kind = vector_type(lanes, _f32())
        scales, minima = self.scales(p, b, lanes), self.minima(p, b, lanes)
        for half, group, words in self.words_of(p, b, lanes):
            for place in range(PLACES):
                numbers = [arith.sitofp(kind, own[place]) for own in words]
                if minima:
                    found = list(map(vector.fma, numbers, scales[half], minima))
                else:
                    found = list(map(arith.mulf, numbers, scales[half]))
                yield 16 * half + PLACES * group + place, found

    def _byte(self, words: ir.Value, first: int) -> ir.Value:
        """The number in a byte of each word, less the scheme's zero."""
        kind = words.type
        if self.scheme.bits == 8:
            moved = arith.shli(words, integers(24 - first, kind)) if first < 24 else words
            return arith.shrsi(moved, integers(24, kind))
        moved = arith.shrui(words, integers(first, kind)) if first else words
        number = arith.andi(moved, integers(255, kind))
        zero = self.scheme.zero
        return arith.subi(number, integers(zero, kind)) if zero else number

    def scales(self, p: Index, b: Index, lanes: int) -> list[list[ir.Value]]:
        """The scales of each half of a block, a vector for each `lanes` rows."""
        if self.scheme.scales == 1:
            return [self._factors("scale", p, b, 0, lanes)] * HALVES
        return [self._factors("scale", p, b, PANEL * half, lanes) for half in range(HALVES)]

    def minima(self, p: Index, b: Index, lanes: int) -> list[ir.Value]:
        """The minima of a block; none where the scheme has none."""
        return self._factors("minimum", p, b, 0, lanes) if self.scheme.has_minimum else []

    def _factors(self, part: str, p: Index, b: Index, first: int, lanes: int) -> list[ir.Value]:
        kind = vector_type(lanes, _f32())
        found = []
        for v in range(0, PANEL, lanes):
            loaded = self._load(part, p, b, first + v, lanes)
            if self.scheme.is_nested:
                outer = arith.extf(kind, self._load(f"outer_{part}", p, b, v, lanes))
                wide = arith.extsi(vector_type(lanes, _integer(32)), loaded)
                found.append(arith.mulf(outer, arith.sitofp(kind, wide)))
            else:
                found.append(arith.extf(kind, loaded))
        return found

    def _load(self, part: str, p: Index, b: Index, first: int, width: int) -> ir.Value:
        return load(self.parts[part], add(self._at(part, p, b), first), width)


@dataclass(frozen=True)
class Copy:
    """A batch of the left side: [block of rows][block of k][pitch] of each part.

    `corrections` are what integer sums start with, or factors of the minimum, for each scale of a
    block; None where neither is needed. `offsets` are None where values are only scaled. `wide` has
    the values in 16 bits, those of a block at even places first; None where nothing reads them.
    """

    values: ir.Value
    factors: ir.Value
    corrections: ir.Value | None
    offsets: ir.Value | None
    wide: ir.Value | None = None

    def factor(self, place: Index) -> ir.Value:
        """The scale of a block."""
        return memref.load(self.factors, [value(place)])

    def correction(self, place: Index) -> ir.Value:
        """What follows from the sum of a block, or of one part of it."""
        return memref.load(self.corrections, [value(place)])

    def offset(self, place: Index) -> ir.Value:
        """The offset of a block."""
        return memref.load(self.offsets, [value(place)])


@dataclass(frozen=True)
class CopiedRows:
    """A block of rows that follow one another in a copy, from the one at `place` on.

    What is read lies behind `addresses`, one for each part of the copy, if they are given.
    """

    copy: Copy
    place: Index
    scales: int
    addresses: Mapping[str, ir.Value] | None = None

    def addressed(self) -> "CopiedRows":
        """The same, read behind addresses, see `opaque_address`."""
        copy, scaled = self.copy, mul(self.place, self.scales)
        parts = {
            "values": (copy.values, mul(self.place, BLOCK)),
            "factors": (copy.factors, self.place),
            "corrections": (copy.corrections, scaled),
            "offsets": (copy.offsets, self.place),
        }
        addresses = {
            name: opaque_address(buffer, at)
            for name, (buffer, at) in parts.items()
            if buffer is not None
        }
        return replace(self, addresses=addresses)

    def four(self, row: int, first: int, lanes: int) -> ir.Value:
        """Four numbers of a row, from one on, in every lane of 32 bits."""
        at = row * BLOCK + first
        if self.addresses is None:
            return self._everywhere(self.copy.values, at, lanes)
        word = load_at_address(self.addresses["values"], at, _integer(32))
        return vector.bitcast(vector_type(PLACES * lanes, _integer(8)), broadcast(word, lanes))

    def two(self, row: int, first: int, odd: bool, lanes: int) -> ir.Value:
        """Two of four numbers of a row, from one on, in 16 bits, in every lane of 32 bits."""
        assert self.copy.wide is not None
        return self._everywhere(self.copy.wide, row * BLOCK + (BLOCK * odd + first) // 2, lanes)

    def _everywhere(self, buffer: ir.Value, at: int, lanes: int) -> ir.Value:
        """The 32 bits from an element of the rows on, in every lane."""
        element = ir.MemRefType(buffer.type).element_type
        count = 32 // element.width
        numbers = load(buffer, add(mul(self.place, BLOCK), at), count)
        word = vector.extract(vector.bitcast(vector_type(1, _integer(32)), numbers), [], [0])
        return vector.bitcast(vector_type(count * lanes, element), broadcast(word, lanes))

    def factor(self, row: int) -> ir.Value:
        """The scale of a row."""
        return self._behind("factors", row) or self.copy.factor(add(self.place, row))

    def correction(self, row: int, part: int = 0) -> ir.Value:
        """What follows from the sum of a row's block, or of one part of it."""
        number = row * self.scales + part
        at = add(mul(self.place, self.scales), number)
        return self._behind("corrections", number) or self.copy.correction(at)

    def offset(self, row: int) -> ir.Value:
        """The offset of a row."""
        return self._behind("offsets", row) or self.copy.offset(add(self.place, row))

    def _behind(self, part: str, number: int) -> ir.Value | None:
        """A number of 32 bits behind an address; None if there are no addresses."""
        if self.addresses is None:
            return None
        element = ir.MemRefType(getattr(self.copy, part).type).element_type
        return load_at_address(self.addresses[part], 4 * number, element)


@dataclass(frozen=True)
class Problem:
    """left[rows, 32 * blocks] times the transpose of right[columns, 32 * blocks].

    `columns` are what the epilogue stores of 16 a panel, to `outputs` among others.
    """

    rows: Index
    columns: Index
    left: Left
    right: Panels
    epilogue: Epilogue
    outputs: Sequence[View] = ()

    @property
    def panels(self) -> Index:
        """Panels that hold the columns."""
        return ceil_div(self.columns, PANEL)


def _moved(x: ir.Value, up: int) -> ir.Value:
    """Bits moved up by so many places, or down where that is negative."""
    if up == 0:
        return x
    move = arith.shli if up > 0 else arith.shrui
    return move(x, integers(abs(up), x.type))


def integers(number: int, kind: ir.VectorType) -> ir.Value:
    """A whole number in every lane."""
    one = ir.IntegerAttr.get(ir.VectorType(kind).element_type, number)
    return arith.constant(kind, ir.DenseElementsAttr.get_splat(kind, one))


def _f32() -> ir.Type:
    return ir.F32Type.get()


def _integer(bits: int) -> ir.Type:
    return ir.IntegerType.get_signless(bits)
