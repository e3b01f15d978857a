"""How each family of CPUs blocks its kernels: registers, caches, tasks and prefetches.

A table with a row for each family: it says what was measured, and inherits the rest from `generic`.
What follows from the size of a cache or register file is computed from the facts of the target.
Kernels ask for what they need; none of them knows a CPU by name.

Source: Goto and van de Geijn, "Anatomy of High-Performance Matrix Multiplication", 2008; Van Zee
and van de Geijn, "BLIS: A Framework for Rapidly Instantiating BLAS Functionality", 2015.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from relax_mlir.target import Caches, Cpu


@dataclass(frozen=True)
class Prefetch:
    """A prefetch distance in bytes, and the cache to fetch into (3: L1, 2: L2).

    `always` is for machines whose hardware prefetchers do too little, whatever the kernel computes.
    """

    bytes: int
    locality: int = 3
    always: bool = False


@dataclass(frozen=True)
class Products:
    """Blocking of matrix products.

    `left_bytes` of the left side stay in the L2 cache (None: half of it), in blocks of `k_block`
    steps along k, or of up to `max_k` if that is the whole sum. A task has at least `task_products`
    lanes of multiply-adds and at most `panels` panels; there are up to `tasks` tasks. A parallel
    region has `region_tasks` tasks, or `region_products` lanes, and packs up to `copied_bytes`;
    `copies` copies of 16 rows are worth a thread.

    From vectors of `inner_panels_from` bytes on, L2 caches hold a block of rows and some panels, so
    that the loop over panels is inside the one over blocks of rows.

    The step of a block that fills the registers is unrolled `unroll` times, and `is_operand` says
    that most elements of the left side are memory operands. Loop bodies have at least
    `loop_products` multiply-adds.

    Packed panels are prefetched `prefetch_bytes` ahead, by blocks of `prefetch_rows` rows or more;
    smaller blocks that convert elements prefetch `near_prefetch_distance` elements ahead. A single
    row reads `row_panels` panels in turn; with `interleaves`, few rows read one in several streams.

    bf16 elements are multiplied as f32 elements from `widened_from` rows on, if that is faster.
    """

    k_block: int = 1536
    max_k: int = 3072
    left_bytes: int | None = None
    tasks: int = 16
    task_products: int = 1 << 17
    panels: int = 8
    region_tasks: int = 256
    region_products: int = 1 << 23
    copied_bytes: int = 1 << 24
    copies: int = 4
    inner_panels_from: int = 64
    unroll: int | None = None
    is_operand: bool = False
    loop_products: int = 24
    prefetch_bytes: int = 8192
    near_prefetch_distance: int = 1024
    prefetch_rows: int = 6
    row_panels: int = 1
    interleaves: bool = False
    widened_from: int | None = None


@dataclass(frozen=True)
class Tiles:
    """Blocking of products in tile registers, which multiply many times as fast as vectors.

    They are used from `rows` rows on, or from `unpacked_rows` where weights have to be packed
    first. Blocks of k have up to `int8_max_k` groups of 8-bit integers, or `int8_k_block`: more do
    not fit the L1 cache. A task has at least `task_products` lanes of multiply-adds.
    """

    rows: int = 5
    unpacked_rows: int = 7
    task_products: int = 1 << 21
    int8_k_block: int = 160
    int8_max_k: int = 192


@dataclass(frozen=True)
class FewRows:
    """Products of few rows, whose right side is read in place.

    They have up to `max_along_k` rows if the right side is [n, k], `max_along_n` if it is [k, n],
    and `max_int8` for 8-bit integers [n, k]; `task_elements` of the right side are worth a task.
    `columns_at_once` rows of an [n, k] side are read together, with at least `sums` vectors of
    sums. `k_at_once` rows of a [k, n] side are multiplied by `rows_at_once` rows of the left side,
    in `strips` strips of `min_strip` to `max_strip` columns.
    """

    max_along_k: int = 64
    max_along_n: int = 12
    max_int8: int = 4
    task_elements: int = 16384
    columns_at_once: int = 4
    sums: int = 8
    k_at_once: int = 8
    rows_at_once: int = 4
    strips: int = 8
    min_strip: int = 256
    max_strip: int = 2048


@dataclass(frozen=True)
class Quantized:
    """Blocking of products with quantised weights.

    Up to `few_float_rows` rows of floats decode weights in registers, more rows once to memory. Up
    to `few_rows` rows of integers have a register block for each count of rows. More are in blocks
    of `row_block`, whose totals for a panel stay in the L1 cache, along `stretch` blocks of k at a
    time, which stay in the L2 cache; in tile registers, blocks have up to `tile_rows` rows. From
    `halved_rows` rows on, threads share rows rather than panels.

    Tasks have at least `task_bytes` of weights for up to `task_rows` rows, and less for more rows;
    there are `tasks` if possible, of up to `max_panels` panels and `totals` vectors of totals. The
    left side is packed in tasks of `copied_rows` rows; `copied_blocks` blocks of k are worth a
    thread.

    Many rows are multiplied `rows` at a time by `panels` panels, or up to `rows_narrow` at a time
    where a panel has several vectors. With `separate_addresses`, parts of the rows have a base
    address each.

    Few rows prefetch 8-bit weights as `few_8`, narrower ones as `few`; many rows, for which a block
    is decoded once, as `many_8` and `many`. A single row reads `row_8` panels of 8 bits in turn, or
    `row` panels of fewer bits, and prefetches with `row_prefetches`; None where it is treated as
    few rows.
    """

    few_float_rows: int = 2
    few_rows: int = 8
    row_block: int = 128
    stretch: int = 128
    tile_rows: int = 256
    halved_rows: int = 64
    task_bytes: int = 24576
    task_rows: int = 16
    tasks: int = 24
    totals: int = 1024
    copied_rows: int = 16
    copied_blocks: int = 32
    rows: tuple[int, ...] = (2, 1)
    rows_narrow: tuple[int, ...] = (4, 1)
    panels: int = 1
    max_panels: int = 32
    separate_addresses: bool = False
    few_8: Prefetch = Prefetch(4096)
    few: Prefetch = Prefetch(4096)
    many_8: Prefetch = Prefetch(4096)
    many: Prefetch = Prefetch(4096)
    row_8: int | None = None
    row: int | None = None
    row_prefetches: bool = False

    def prefetch_for(self, bits: int, is_few: bool) -> Prefetch:
        """The prefetch of weights of `bits` bits, for few rows or for many."""
        if is_few:
            return self.few_8 if bits == 8 else self.few
        return self.many_8 if bits == 8 else self.many


@dataclass(frozen=True)
class Convolutions:
    """Blocking of convolutions.

    A task keeps `patch_bytes` of the image in the L2 cache, and copies them from `min_rows` rows of
    the result on; there are `tasks` tasks, or `row_tasks` of kernels whose lanes run along rows.
    Images are copied row by row, or channel by channel with a prefetch `prefetched_channels` ahead.
    Blocks of `prefetch_rows` pixels or more prefetch filters.

    Transposing the sums of one pixel takes as long as `transpose` steps of a register block: lanes
    run along rows if pixels have up to `row_products` products.
    """

    patch_bytes: int = 1 << 18
    min_rows: int = 7
    tasks: int = 8
    row_tasks: int = 16
    prefetched_channels: int = 0
    prefetch_rows: int = 6
    transpose: int = 15
    row_products: int = 256


@dataclass(frozen=True)
class Winograd:
    """When Winograd's transforms pay, measured in products that take as long, and their tasks.

    For each channel and filter, `tile` products cost as much as a tile within an image, `image` is
    the overhead of small images, and `filter` the cost of transforming the filter. Transforms need
    at least `min_size` channels and filters. A task keeps `tile_bytes` of transformed tiles in the
    L2 cache; there are `tasks` blocks of tiles, and `group_tasks` groups of panels, each of which
    transforms them.
    """

    min_size: int = 16
    tile: int = 17
    image: int = 32
    filter: int = 128
    tile_bytes: int = 393216
    tasks: int = 8
    group_tasks: int = 4


@dataclass(frozen=True)
class Attention:
    """How few queries read keys and values; `keys` is None where prefetches gain nothing.

    Where hardware prefetchers do well on kernels that compute little, keys are prefetched from
    `work` products of a key on, counted for at least two heads. With `pairs`, products of bf16
    pairs are faster than those of f32 elements. Hardware prefetchers do not know the next one of
    the `pages` of many sequences.
    """

    keys: Prefetch | None = None
    pages: Prefetch = Prefetch(2048, 2)
    work: int = 0
    pairs: bool = True

    def prefetch_for(self, group: int, width: int) -> Prefetch | None:
        """The prefetch of keys and values of `width` elements that `group` heads share."""
        return self.keys if max(group, 2) * width >= self.work else None


@dataclass(frozen=True)
class Family:
    """A row of the table; `measured` says where and when, and what each choice gained there."""

    measured: str
    products: Products = Products()
    tiles: Tiles = Tiles()
    few_rows: FewRows = FewRows()
    quantized: Quantized = Quantized()
    convolutions: Convolutions = Convolutions()
    winograd: Winograd = Winograd()
    attention: Attention = Attention()


FAMILIES = {
    "generic": Family("""2026-11-25: what no other row says. Measured on Zen 3 and Zen 4."""),
    "zen": Family(
        """2026-11-25, Zen 3. Four panels in turn: one row of f32 1.18, of bf16 1.3 to 1.5 times as
        fast; few rows in several streams 1.21 to 1.29. Three quantised panels in turn: steps of
        Q8_0 1.20, Q4_1 1.09; few rows that prefetch 8 bits 1.40. Keys after 2000 tokens 1.1 to
        1.4.""",
        products=Products(left_bytes=1 << 19, row_panels=4, interleaves=True),
        quantized=Quantized(
            few_8=Prefetch(4096, always=True),
            few=Prefetch(4096, always=True),
            many_8=Prefetch(4096, always=True),
            many=Prefetch(4096, always=True),
            row_8=3,
            row=3,
        ),
        attention=Attention(keys=Prefetch(8192)),
    ),
    "avx512": Family(
        """2026-11-24, Zen 4. Prefetch distance of weights: 0.5 to 8 KiB are best; small blocks that
        prefetch are slower. Four rows of quantised weights at a time are slower than two. Keys from
        448 products on; keys in pages of 2 KiB 1.6 to 2.""",
        quantized=Quantized(few_float_rows=8),
        attention=Attention(keys=Prefetch(8192, 2), work=448),
    ),
    "zen5": Family(
        """2026-11-25, Zen 5. Two panels in turn: one row of f32 1.0 to 1.06, of Q8_0 1.09 to 1.16;
        prefetches of narrow ones at 6 KiB 1.06 to 1.12, few rows 1.02 to 1.10, many rows at four
        blocks 1.10 to 1.16. Two panels by four rows 1.05 to 1.09; separate addresses 1.02 to 1.05.
        Keys at one page, since hardware prefetchers stop at pages, 1.2 to 1.3. Images channel by
        channel 1.04 to 1.06.""",
        products=Products(row_panels=2),
        quantized=Quantized(
            few_float_rows=8,
            rows=(4, 1),
            panels=2,
            max_panels=16,
            separate_addresses=True,
            few_8=Prefetch(6144, always=True),
            few=Prefetch(6144, always=True),
            many_8=Prefetch(2048),
            many=Prefetch(1024),
            row_8=2,
            row=1,
            row_prefetches=True,
        ),
        convolutions=Convolutions(prefetched_channels=2),
        attention=Attention(keys=Prefetch(4096)),
    ),
    "xeon": Family(
        """2026-11-23, Sapphire Rapids, and Emerald Rapids without AMX. Unrolled steps and memory
        operands: f32 1.01 to 1.16, int8 1.04 to 1.19 times as fast. bf16 as f32 from nine rows on
        1.55: it issues a product of pairs every second cycle. Weights at 8 and 16 KiB: steps of
        Q8_0 1.5 to 2, Q4_1 1.3; its hardware prefetchers do little. Eight rows of quantised weights
        with separate addresses 1.43. Tiles of bf16 12 times as fast, of int8 2.8 to 3.2, in blocks
        of a megabyte of rows 1.2; tasks 16 times as long: 5 rows of int8 2.4.""",
        products=Products(unroll=2, is_operand=True, prefetch_rows=1, widened_from=9),
        quantized=Quantized(
            few_float_rows=8,
            rows=(8, 4, 1),
            separate_addresses=True,
            few_8=Prefetch(16384, 2, always=True),
            few=Prefetch(8192, 2, always=True),
            many_8=Prefetch(16384, 2, always=True),
            many=Prefetch(8192, 2, always=True),
        ),
        attention=Attention(
            keys=Prefetch(8192, 2, always=True), pages=Prefetch(8192, 2, always=True), pairs=False
        ),
    ),
}
"""The rows, by a trait of CPUs, or by their vectors."""


def family_of(cpu: Cpu) -> Family:
    """The row of a target."""
    named = (trait for trait in FAMILIES if trait in cpu.traits)
    return FAMILIES[
        next(named, "avx512" if cpu.has("avx512f") and cpu.vector_bytes == 64 else "generic")
    ]


@dataclass(frozen=True)
class Blocking:
    """Blocking of products on a target, for sums of some element type.

    A register block has `rows` by `vectors * lanes` sums. No code is emitted for blocks of fewer
    than `min_rows` rows. With `in_tiles`, sums are in tile registers instead of vectors.
    """

    family: Family
    caches: Caches
    vector_bytes: int
    registers: int
    lanes: int
    rows: int
    products: Products
    vectors: int = 2
    min_rows: int = 1
    in_tiles: bool = False

    @staticmethod
    def of(cpu: Cpu, bits: int = 32) -> "Blocking":
        """The largest register block that leaves registers for the right side and one broadcast.

        Sums have `bits` bits.
        """
        family, registers = family_of(cpu), cpu.registers
        lanes = max(1, 8 * cpu.vector_bytes // bits)
        rows = 14 if registers == 32 else 6
        shared = (family, cpu.caches, cpu.vector_bytes, registers)
        return Blocking(*shared, lanes, rows, family.products)

    def tiled(self, rows: int, is_int8: bool) -> "Blocking":
        """The blocking in tile registers, whose blocks have `rows` rows."""
        tiles, products = self.family.tiles, self.products
        products = replace(
            products, left_bytes=self.caches.l2 // 2, task_products=tiles.task_products
        )
        if is_int8:
            products = replace(products, k_block=tiles.int8_k_block, max_k=tiles.int8_max_k)
        return replace(self, rows=rows, in_tiles=True, products=products)

    @property
    def columns(self) -> int:
        """Width of a register block and of a panel of packed weights."""
        return self.vectors * self.lanes

    @property
    def narrow(self) -> "Blocking":
        """The blocking of panels of which one vector is used.

        Six sums would not hide the latency of additions; twelve leave no registers for loads.
        """
        return replace(self, rows=8) if self.registers == 16 else self

    @property
    def heights(self) -> tuple[int, ...]:
        """Heights of register blocks with code of their own: small blocks waste no row."""
        return (*range(self.min_rows, min(self.rows, 5) + 1), *range(6, self.rows + 1, 2))

    @property
    def channel_block(self) -> int:
        """Channels of an image that a convolution stores next to each other.

        A block of few pixels would use little of each line that holds pixels of one channel.
        """
        return self.lanes if self.registers == 16 else 1

    @property
    def left_bytes(self) -> int:
        """Bytes of the left side that one task keeps in the L2 cache."""
        return self.products.left_bytes or self.caches.l2 // 2

    @property
    def has_masks(self) -> bool:
        """Whether masked loads and stores cost no more than unmasked ones."""
        return self.vector_bytes == 64

    @property
    def vectors_per_line(self) -> int:
        """Vectors that begin in a cache line."""
        return self.caches.line // self.vector_bytes

    def unroll_of(self, sums: int) -> int | None:
        """The unroll factor of the step of a block of `sums` vectors, if it fills the registers."""
        return self.products.unroll if sums >= self.registers // 2 else None

    def repeats(self, sums: int, streams: int) -> int:
        """The unroll factor of the loop over k, for `sums` vectors of sums in `streams` streams."""
        return self.unroll_of(sums) or -(-self.products.loop_products // (streams * sums))

    def streams_of(self, height: int, converts: bool) -> int:
        """In how many streams along k a block of `height` rows reads a panel.

        More rows take so long that memory keeps up, and need the registers. Panels that are
        converted are half as long, and their streams too close to each other.
        """
        if not self.products.interleaves or converts or height == self.rows:
            return 1
        return 4 if height < 4 else 2

    def prefetches(self, height: int, converts: bool) -> bool:
        """Whether a block of `height` rows prefetches a panel, whose elements it may convert."""
        return height >= self.products.prefetch_rows or (self.products.interleaves and converts)

    def is_operand(self, row: int, sums: int) -> bool:
        """Whether elements of a row are memory operands, in a block of `sums` vectors of sums.

        That takes one instruction instead of two, with vectors of 64 bytes. Load ports are limited
        too, so every fourth row is loaded once.
        """
        is_full = self.vector_bytes == 64 and self.unroll_of(sums) is not None
        return self.products.is_operand and is_full and row % 4 != 3

    def fits_l1_sets(self, lines: Sequence[int]) -> bool:
        """Whether the L1 cache holds lines of these indices and one more at the same time."""
        sets = [line % self.caches.l1_sets for line in lines]
        return max(map(sets.count, sets)) < self.caches.l1_ways
