"""How each family of CPUs cuts its work: register blocks, cache blocks, tasks and prefetches.

Rows of a table: a family says what was measured for it, and is as `GENERIC` in the rest. What
follows from the size of a cache or a register file is computed from the facts of the target.
Kernels ask for what they need; none of them knows a CPU by name.

Source: Goto and van de Geijn, "Anatomy of High-Performance Matrix Multiplication", 2008; Van Zee
and van de Geijn, "BLIS: A Framework for Rapidly Instantiating BLAS Functionality", 2015.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from relax_mlir.target import Caches, Cpu


@dataclass(frozen=True)
class Prefetch:
    """How many bytes ahead, and into which cache (3: the nearest one, 2: the one behind it).

    `always` is for machines that fetch too little by themselves, whatever they compute meanwhile.
    """

    bytes: int
    locality: int = 3
    always: bool = False


@dataclass(frozen=True)
class Products:
    """How matrix products are multiplied.

    Of the left side, `left_bytes` stay in the L2 cache (None: half of it), in blocks of `k_block`
    steps along k, or of `most_k` where that is all. A task multiplies at least `task_products`
    lanes; there are up to `tasks` if the product has as many, and up to `panels` of the right side
    are one task. Between two waits for all threads there are `region_tasks` tasks or
    `region_products` lanes, and copies of `copied_bytes` at most; `copies` copies of 16 rows are
    worth a thread.

    `panels_pass` are the bytes of a vector from which on L2 caches hold a block of rows and some
    panels, so that all panels pass by each block of rows.

    The step of a block that fills the registers is repeated `unroll` times, and `is_operand` says
    that its multiply-adds read most of the left side from memory by themselves. Bodies of loops
    have `loop_products` multiply-adds at least.

    Panels of packed weights are prefetched `ahead` bytes, by blocks of `prefetch_rows` rows and
    more; lower ones prefetch what they convert `near_ahead` elements. A single row reads
    `row_panels` panels in turn, and with `interleaves` few rows read one at several places.

    Where bf16 elements are faster as f32 elements, they are `widened_from` so many rows.
    """

    k_block: int = 1536
    most_k: int = 3072
    left_bytes: int | None = None
    tasks: int = 16
    task_products: int = 1 << 17
    panels: int = 8
    region_tasks: int = 256
    region_products: int = 1 << 23
    copied_bytes: int = 1 << 24
    copies: int = 4
    panels_pass: int = 64
    unroll: int | None = None
    is_operand: bool = False
    loop_products: int = 24
    ahead: int = 8192
    near_ahead: int = 1024
    prefetch_rows: int = 6
    row_panels: int = 1
    interleaves: bool = False
    widened_from: int | None = None


@dataclass(frozen=True)
class Tiles:
    """How products are multiplied in tile registers, which compute many times as fast.

    From `rows` rows on, or from `unpacked_rows` where weights have to be packed first. Blocks of k
    are of up to `int8_most_k` groups of 8-bit integers, or `int8_k_block`: more, of a panel and a
    tile, leave the L1 cache. A task multiplies `task_products` lanes at least.
    """

    rows: int = 5
    unpacked_rows: int = 7
    task_products: int = 1 << 21
    int8_k_block: int = 160
    int8_most_k: int = 192


@dataclass(frozen=True)
class FewRows:
    """How few rows are multiplied with a right side that is read as it lies.

    Up to `most_along_k` rows of one that is [n, k], `most_along_n` of one that is [k, n], and
    `most_int8` of 8-bit integers that are [n, k]; `task_elements` of it are worth a task.
    `beside` rows of an [n, k] side are read side by side, with `sums` vectors of sums at least.
    Of a [k, n] side, `k_at_once` rows are, for `rows_at_once` rows of the left side, in strips of
    `least_strip` to `most_strip` columns, `strips` of them if there are as many.
    """

    most_along_k: int = 64
    most_along_n: int = 12
    most_int8: int = 4
    task_elements: int = 16384
    beside: int = 4
    sums: int = 8
    k_at_once: int = 8
    rows_at_once: int = 4
    strips: int = 8
    least_strip: int = 256
    most_strip: int = 2048


@dataclass(frozen=True)
class Quantized:
    """How quantised weights are multiplied.

    Up to `few_float_rows` rows of floats decode weights in registers, more to memory, once for all
    rows. Up to `few_rows` rows of integers have a register block for each number of rows. More are
    in blocks of `row_block`, whose totals for a panel stay in the L1 cache, by stretches of
    `stretch` blocks of k, which stay in the L2 cache; in tile registers, blocks have `tile_rows`
    rows at most. From `halved_rows` rows on, threads share rows rather than panels.

    Tasks have `task_bytes` of weights at least for up to `task_rows` rows, fewer for more rows;
    there are `tasks` if that is possible, of up to `most_panels` panels and `totals` vectors of
    totals. Copies of the left side are tasks of `copied_rows` rows, and `copied_blocks` blocks of
    k are worth a thread.

    Of many rows, `rows` are multiplied together with `panels` panels; `rows_narrow` where a panel
    is several vectors wide. `own_addresses` says that each part of the
    rows is read behind an address of its own.

    Few rows prefetch weights of 8 bits as `few_8` says, narrower ones as `few`; many rows, decoding
    a block for all of them, as `many_8` and `many`. A single row reads `row_8` panels of 8 bits in
    turn, `row` panels of narrower weights, and prefetches with `row_prefetches`; None where it is
    multiplied as a few rows are.
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
    most_panels: int = 32
    own_addresses: bool = False
    few_8: Prefetch = Prefetch(4096)
    few: Prefetch = Prefetch(4096)
    many_8: Prefetch = Prefetch(4096)
    many: Prefetch = Prefetch(4096)
    row_8: int | None = None
    row: int | None = None
    row_prefetches: bool = False

    def ahead(self, bits: int, is_few: bool) -> Prefetch:
        """The prefetch of weights of so many bits, for few rows or for many."""
        if is_few:
            return self.few_8 if bits == 8 else self.few
        return self.many_8 if bits == 8 else self.many


@dataclass(frozen=True)
class Convolutions:
    """How convolutions are computed.

    A task keeps `patch_bytes` of the image in the L2 cache, which is worth a copy from `least_rows`
    rows of the result on; there are `tasks` tasks, or `row_tasks` of kernels whose lanes run along
    rows. Images are copied row by row, or channel by channel and prefetch the one `channels_ahead`.
    Blocks of `prefetch_rows` pixels and more prefetch filters.

    Transposing the sums of one pixel takes as long as `transpose` steps of a register block: lanes
    run along rows where pixels have up to `row_products` products.
    """

    patch_bytes: int = 1 << 18
    least_rows: int = 7
    tasks: int = 8
    row_tasks: int = 16
    channels_ahead: int = 0
    prefetch_rows: int = 6
    transpose: int = 15
    row_products: int = 256


@dataclass(frozen=True)
class Winograd:
    """When Winograd's transforms pay, in products that take as long, and how they are shared.

    Within an image, `tile` products of each channel and filter take as long as those of a tile;
    `image` as what small images cost besides, `filter` as transforming the filter. Transforms pay
    from `least` channels and filters on. A task keeps `tile_bytes` of transformed tiles in the L2
    cache; there are `tasks` blocks of tiles, and `group_tasks` groups of panels that transform them
    again.
    """

    least: int = 16
    tile: int = 17
    image: int = 32
    filter: int = 128
    tile_bytes: int = 393216
    tasks: int = 8
    group_tasks: int = 4


@dataclass(frozen=True)
class Attention:
    """How few queries read keys and values; None where prefetching them gains nothing.

    Some machines read ahead by themselves as long as little is done with what they read: they
    prefetch from `work` products of a key on, of two heads at least. With `pairs`, pairs of bf16
    elements are faster than f32 elements.
    """

    keys: Prefetch | None = None
    work: int = 0
    pairs: bool = True

    def ahead(self, group: int, width: int) -> Prefetch | None:
        """The prefetch of keys, and of values, of `width` elements with `group` heads for each."""
        return self.keys if max(group, 2) * width >= self.work else None


@dataclass(frozen=True)
class Family:
    """A row of the table; `measured` says on what and when, and what each choice gained there."""

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
        fast; few rows at several places 1.21 to 1.29. Three quantised panels in turn: steps of Q8_0
        1.20, Q4_1 1.09; few rows that prefetch 8 bits 1.40. Keys behind 2000 tokens 1.1 to 1.4.""",
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
        """2026-11-24, Zen 4. Weights ahead: of 0.5 to 8 KiB the best; low blocks that prefetch are
        slower. Four rows of quantised weights at once: slower than two. Keys from 448 products
        on.""",
        quantized=Quantized(few_float_rows=8),
        attention=Attention(keys=Prefetch(8192, 2), work=448),
    ),
    "zen5": Family(
        """2026-11-25, Zen 5. Two panels in turn: one row of f32 1.0 to 1.06, of Q8_0 1.09 to 1.16;
        narrow ones 6 KiB ahead 1.06 to 1.12, few rows 1.02 to 1.10, many rows four blocks ahead
        1.10 to 1.16. Two panels by four rows 1.05 to 1.09; their own addresses 1.02 to 1.05. Keys
        one page ahead, since it reads ahead up to the end of a page, 1.2 to 1.3. Images channel by
        channel 1.04 to 1.06.""",
        products=Products(row_panels=2),
        quantized=Quantized(
            few_float_rows=8,
            rows=(4, 1),
            panels=2,
            most_panels=16,
            own_addresses=True,
            few_8=Prefetch(6144, always=True),
            few=Prefetch(6144, always=True),
            many_8=Prefetch(2048),
            many=Prefetch(1024),
            row_8=2,
            row=1,
            row_prefetches=True,
        ),
        convolutions=Convolutions(channels_ahead=2),
        attention=Attention(keys=Prefetch(4096)),
    ),
    "xeon": Family(
        """2026-11-23, Sapphire Rapids, and Emerald Rapids without AMX. The step twice, operands in
        memory: f32 1.01 to 1.16, int8 1.04 to 1.19 times as fast. bf16 as f32 from nine rows on
        1.55: it begins a product of pairs every second cycle. Weights 8 and 16 KiB ahead: steps of
        Q8_0 1.5 to 2, Q4_1 1.3; its cores fetch little by themselves. Eight rows of quantised
        weights behind own addresses 1.43. Tiles of bf16 12 times as fast, of int8 2.8 to 3.2, in
        blocks of a megabyte of rows 1.2; tasks 16 times as long: 5 rows of int8 2.4.""",
        products=Products(unroll=2, is_operand=True, prefetch_rows=1, widened_from=9),
        quantized=Quantized(
            few_float_rows=8,
            rows=(8, 4, 1),
            own_addresses=True,
            few_8=Prefetch(16384, 2, always=True),
            few=Prefetch(8192, 2, always=True),
            many_8=Prefetch(16384, 2, always=True),
            many=Prefetch(8192, 2, always=True),
        ),
        attention=Attention(keys=Prefetch(8192, 2, always=True), pairs=False),
    ),
}
"""The rows, by a trait of CPUs, or by the width of their vectors."""


def family_of(cpu: Cpu) -> Family:
    """The row of a target."""
    named = (trait for trait in FAMILIES if trait in cpu.traits)
    return FAMILIES[next(named, "avx512" if cpu.vector_bytes == 64 else "generic")]


@dataclass(frozen=True)
class Blocking:
    """How products with sums of some element type are cut on a target.

    A register block is `rows` by `vectors * lanes` sums. There is no code for blocks of less than
    `least_rows` rows. With `in_tiles`, sums are in tile registers and not in vectors.
    """

    family: Family
    caches: Caches
    vector_bytes: int
    registers: int
    lanes: int
    rows: int
    products: Products
    vectors: int = 2
    least_rows: int = 1
    in_tiles: bool = False

    @staticmethod
    def of(cpu: Cpu, bits: int = 32) -> "Blocking":
        """The largest register block that leaves registers for the right side and one broadcast.

        Sums have so many bits.
        """
        family, registers = family_of(cpu), cpu.registers
        lanes = max(1, 8 * cpu.vector_bytes // bits)
        rows = 14 if registers == 32 else 6
        shared = (family, cpu.caches, cpu.vector_bytes, registers)
        return Blocking(*shared, lanes, rows, family.products)

    def tiled(self, rows: int, is_int8: bool) -> "Blocking":
        """The same in tile registers, whose blocks have so many rows."""
        tiles, products = self.family.tiles, self.products
        products = replace(
            products, left_bytes=self.caches.l2 // 2, task_products=tiles.task_products
        )
        if is_int8:
            products = replace(products, k_block=tiles.int8_k_block, most_k=tiles.int8_most_k)
        return replace(self, rows=rows, in_tiles=True, products=products)

    @property
    def columns(self) -> int:
        """Width of a register block and of a panel of packed weights."""
        return self.vectors * self.lanes

    @property
    def narrow(self) -> "Blocking":
        """The same for panels of which one vector is used.

        Six sums would wait for their own last addition; twelve leave no registers to read ahead.
        """
        return replace(self, rows=8) if self.registers == 16 else self

    @property
    def heights(self) -> tuple[int, ...]:
        """Heights of register blocks that there is code for: a row too many costs most of few."""
        return (*range(self.least_rows, min(self.rows, 5) + 1), *range(6, self.rows + 1, 2))

    @property
    def channels_together(self) -> int:
        """How many channels of an image a convolution keeps side by side.

        A block of few pixels reads little of each line that holds pixels of one channel.
        """
        return self.lanes if self.registers == 16 else 1

    @property
    def left_bytes(self) -> int:
        """Bytes of the left side that one task keeps in the L2 cache."""
        return self.products.left_bytes or self.caches.l2 // 2

    @property
    def has_masks(self) -> bool:
        """Whether masked loads and stores cost no more than others."""
        return self.vector_bytes == 64

    @property
    def vectors_per_line(self) -> int:
        """Vectors that begin in a cache line."""
        return self.caches.line // self.vector_bytes

    def unroll_of(self, sums: int) -> int | None:
        """How often the step of a block of so many sums is repeated, if it fills the registers."""
        return self.products.unroll if sums >= self.registers // 2 else None

    def repeats(self, sums: int, streams: int) -> int:
        """How often a step along k, of so many sums in so many streams, is in a loop's body."""
        return self.unroll_of(sums) or -(-self.products.loop_products // (streams * sums))

    def streams_of(self, height: int, converts: bool) -> int:
        """At how many places along k a block of so many rows reads a panel in turn.

        More rows take so long that memory keeps up, and registers that have other uses. What it
        `converts` is half as long, and places are near each other.
        """
        if not self.products.interleaves or converts or height == self.rows:
            return 1
        return 4 if height < 4 else 2

    def prefetches(self, height: int, converts: bool) -> bool:
        """Whether a block of so many rows prefetches a panel, whose elements it may convert."""
        return height >= self.products.prefetch_rows or (self.products.interleaves and converts)

    def is_operand(self, row: int, sums: int) -> bool:
        """Whether each vector of a block of so many sums reads an element of a row for itself.

        That is one instruction in place of two, if vectors of 64 bytes are multiplied. Loads are
        limited as well, so that every fourth row is loaded once.
        """
        is_full = self.vector_bytes == 64 and self.unroll_of(sums) is not None
        return self.products.is_operand and is_full and row % 4 != 3

    def fits_l1_sets(self, lines: Sequence[int]) -> bool:
        """Whether the L1 cache holds lines of these numbers and one more at the same time."""
        sets = [line % self.caches.l1_sets for line in lines]
        return max(map(sets.count, sets)) < self.caches.l1_ways
