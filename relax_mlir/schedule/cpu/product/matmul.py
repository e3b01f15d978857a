"""The rule for matrix multiplications with an elementwise epilogue.

    %z = linalg.fill                                  few rows     few_rows: stream the weights
    %c = linalg.generic (contraction) -> %z     ->    else         nest: tiles in registers
    %o = linalg.generic (elementwise) %c, %bias       then:        epilogue on a block of sums
    return %o

Elements are floats or integers of any width. f16 and bf16 are summed in f32, 8-bit and 16-bit
integers in 32 bits, which is exact modulo any smaller power of two.

Needs: named linalg ops generalised. Leaves: a scheduled kernel, or the function as it was.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from relax_mlir.bindings import ir
from relax_mlir.dialects.graph import element_bits
from relax_mlir.dialects.tir import ZERO_PADDED, PrimFunc
from relax_mlir.program.contraction import FLOATS, Contraction, Factor, find_contractions
from relax_mlir.program.program import Computed, Program
from relax_mlir.schedule.build.kernel import Kernel
from relax_mlir.schedule.build.loops import Index, and_, ceil_div, if_else, less, mul
from relax_mlir.schedule.build.product_parts import epilogue_of, prepare_program, sliced_columns
from relax_mlir.schedule.cpu.blocking import Blocking, family_of
from relax_mlir.schedule.cpu.isa import amx
from relax_mlir.schedule.cpu.isa.instructions import vectors_of
from relax_mlir.schedule.cpu.isa.multiply_add import Bf16Pairs, MultiplyAdd, pair_product
from relax_mlir.schedule.cpu.isa.step import Step
from relax_mlir.schedule.nests.emit import rewrite
from relax_mlir.target import Caches, Cpu

from .amx_block import BLOCK_ROWS
from .few_rows import emit_few_rows, reads_along_k
from .int8_forms import Int8Product, find_int8, flip_top_bits
from .nest import emit_product
from .operands import Operand, Packed, Pairs, Unpacked
from .packed_row import emit_packed_row
from .product import Product
from .sides import Convert, convert_of, convert_pairs, matrix_of

MAX_LINES_PER_SET = 12
"""Lines of the result's rows that a set of the L1 cache may be asked for at a time."""


def schedule(kernel: PrimFunc, cpu: Cpu, fuse: bool) -> bool:
    """Rewrites a tensor program that multiplies matrices into loops over memrefs.

    Returns False, and leaves the function alone, if it is of another kind.
    """
    arithmetic = _Arithmetic.of(cpu)
    is_padded = ZERO_PADDED in kernel.op.attributes
    return rewrite(
        kernel,
        vectors_of(cpu),
        lambda program: _match(program, cpu, arithmetic, is_padded),
        lambda k, products: _Rule(k, products, arithmetic, _blocking(cpu, products.sums)).emit(),
    )


@dataclass(frozen=True)
class _Arithmetic:
    """What a target multiplies: pairs of bf16 elements by `pairs`, and element types in `tiles`.

    A target that `widens`, which has no bf16 tiles, multiplies many rows of bf16 elements as f32.
    """

    pairs: str
    tiles: frozenset[str]
    widens: bool

    @staticmethod
    def of(cpu: Cpu) -> "_Arithmetic":
        """The arithmetic of a target."""
        tiles = frozenset(unit for unit in ("bf16", "int8") if amx.has_tiles(cpu, unit))
        widens = family_of(cpu).products.widened_from is not None
        return _Arithmetic(pair_product(cpu), tiles, widens and "bf16" not in tiles)


@dataclass(frozen=True)
class _Products:
    """The products of a program; `int8` says how those of 8-bit integers are multiplied."""

    contractions: Sequence[Contraction]
    int8: Int8Product | None

    @property
    def first(self) -> Contraction:
        """The first product, whose loops all of them have."""
        return self.contractions[0]

    @property
    def sums(self) -> ir.Type:
        """The element type of the sums, in the program."""
        return self.first.stage.results[0].element


def _kind(sums: ir.Type) -> str:
    """The element type in which sums are computed."""
    if isinstance(sums, FLOATS):
        return "f64" if isinstance(sums, ir.F64Type) else "f32"
    return "i64" if ir.IntegerType(sums).width > 32 else "i32"


def _blocking(cpu: Cpu, sums: ir.Type) -> Blocking:
    return Blocking.of(cpu, int(_kind(sums)[1:]))


def _match(
    program: Program, cpu: Cpu, arithmetic: _Arithmetic, is_padded: bool
) -> _Products | None:
    """The products of a program whose other stages are elementwise on them, or None."""
    contractions = find_contractions(program, lambda sums: _blocking(cpu, sums).columns)
    if contractions is None:
        return None
    first = contractions[0]
    products = _Products(contractions, None)
    if isinstance(products.sums, FLOATS):
        # The right element of an incomplete last pair is arbitrary: it needs zeros on the left.
        known = not first.pairs or first.counts_pairs or (arithmetic.pairs != "" and is_padded)
        return products if known else None
    if _kind(products.sums) == "i32":
        products = replace(products, int8=find_int8(contractions, cpu))
    is_grouped = first.packed and len(first.rhs.tensor.shape) == 4
    return None if is_grouped and products.int8 is None else products


@dataclass(frozen=True)
class _Rule:
    """Emits the body of the scheduled function."""

    kernel: Kernel
    products: _Products
    arithmetic: _Arithmetic
    blocking: Blocking

    def emit(self) -> None:
        """Emits the kernels of few rows and of many, and the branch between them."""
        prepare_program(self.kernel)
        if self.products.int8 is not None:
            self._emit_int8(self.products.int8)
        elif self.products.first.packed:
            self._emit_packed()
        else:
            self._emit_plain()

    @property
    def _shape(self) -> list[Index]:
        """The extents of the loops."""
        stage = self.products.first.stage
        return [self.kernel.extent(stage, loop) for loop in range(len(stage.extents))]

    @property
    def _plain(self) -> Step:
        """The step of single elements."""
        return MultiplyAdd(self.blocking.lanes, _kind(self.products.sums))

    @property
    def _pairs(self) -> Bf16Pairs:
        """The step of pairs of bf16 elements."""
        return Bf16Pairs(self.blocking.lanes, self.arithmetic.pairs)

    def _emit_plain(self) -> None:
        """Emits a product of unpacked matrices."""
        first, blocking, arithmetic = self.products.first, self.blocking, self.arithmetic
        paired = plain = self._problem(self._shape, self._plain)
        if (
            arithmetic.pairs
            and first.bf16
            and all(map(_is_stored_bf16, self.products.contractions))
        ):
            paired = self._problem(self._shape, self._pairs)
        along_k = reads_along_k(plain)
        few = blocking.family.few_rows
        max_rows = few.max_along_k if along_k else few.max_along_n
        if "bf16" in arithmetic.tiles and paired is not plain:
            max_rows = min(max_rows, blocking.family.tiles.unpacked_rows - 1)
        if_else(
            less(plain.rows, max_rows + 1),
            lambda: emit_few_rows(blocking, paired if along_k else plain),
            lambda: self._emit_many(blocking, plain if arithmetic.widens else paired),
        )

    def _emit_packed(self) -> None:
        """Emits a product with packed weights, and one of a single row where that is possible."""
        first, blocking, arithmetic = self.products.first, self.blocking, self.arithmetic
        shape = self._shape
        any_rows, widened = self._packed_problem(shape), None
        if arithmetic.widens and first.counts_pairs and not any_rows.converts:
            widened = self._widened(shape, once=True)
        emit_row = emit_packed_row if blocking.products.row_panels > 1 else emit_product
        if any_rows.rows == 1:
            emit_row(blocking, any_rows)
            return
        if isinstance(any_rows.rows, int):
            self._emit_many(blocking, any_rows, widened)
            return
        one_row = self._packed_problem([1 if i in first.rows else x for i, x in enumerate(shape)])
        # Block sizes that depend on the number of rows take longer to compute than a small product.
        if_else(
            and_(less(0, any_rows.rows), less(any_rows.rows, 2)),
            lambda: emit_row(blocking, one_row),
            lambda: self._emit_many(replace(blocking, min_rows=2), any_rows, widened),
        )

    def _emit_int8(self, int8: Int8Product) -> None:
        """Emits a product of 8-bit integers."""
        product = many = self._problem(self._shape, int8.many, int8)
        blocking = self.blocking
        is_plain = not self.products.first.packed
        if is_plain and int8.matrices is not None:
            product = self._problem(self._shape, int8.step, int8)
        is_plain = is_plain and reads_along_k(product)
        if_else(
            is_plain and less(product.rows, blocking.family.few_rows.max_int8 + 1),
            lambda: emit_few_rows(blocking, product),
            lambda: self._emit_tiles(blocking, many),
        )

    def _emit_many(
        self, blocking: Blocking, product: Product, widened: Product | None = None
    ) -> None:
        """Emits a product; `widened`, if given, from some number of rows on."""
        min_rows = blocking.products.widened_from
        if widened is None or min_rows is None:
            self._emit_tiles(blocking, product)
            return
        if_else(
            less(product.rows, min_rows),
            lambda: emit_product(replace(blocking, rows=min_rows - 1), product),
            lambda: emit_product(blocking, widened),
        )

    def _emit_tiles(self, blocking: Blocking, product: Product) -> None:
        """Emits a product, in tile registers if they multiply its elements and rows are many."""
        unit = {2: "bf16", amx.LANE_BYTES: "int8"}.get(product.step.group)
        if unit not in self.arithmetic.tiles or product.converts:
            emit_product(blocking, product)
            return
        min_rows = blocking.family.tiles.rows
        if_else(
            less(product.rows, min_rows),
            lambda: emit_product(replace(blocking, rows=min_rows - 1), product),
            lambda: emit_product(blocking.tiled(BLOCK_ROWS, unit == "int8"), product),
        )

    def _packed_problem(self, shape: Sequence[Index]) -> Product:
        """The product with packed weights."""
        if not self.products.first.pairs:
            return self._problem(shape, self._plain)
        if self.arithmetic.pairs:
            return self._problem(shape, self._pairs)
        return self._widened(shape, once=False)

    def _widened(self, shape: Sequence[Index], once: bool) -> Product:
        """The product with panels of pairs that are widened to f32 elements."""
        elements, paired = (self._problem(shape, step) for step in (self._plain, self._pairs))
        lanes, vectors = self.blocking.lanes, self.blocking.vectors
        sides = [side for side in paired.rhs if isinstance(side, Packed)]
        rhs = tuple(Pairs(side.side, lanes, vectors, once) for side in sides)
        return replace(elements, rhs=rhs, depth=mul(paired.depth, 2))

    def _problem(
        self, shape: Sequence[Index], step: Step, int8: Int8Product | None = None
    ) -> Product:
        """The product, computed by a step."""
        kernel, blocking, contractions = self.kernel, self.blocking, self.products.contractions
        first = contractions[0]

        def convert(c: Contraction, factor: Factor) -> Convert | None:
            if int8 is not None:
                return flip_top_bits if int8.is_biased and factor is c.rhs else None
            if isinstance(step, Bf16Pairs):
                return convert_pairs(kernel, c.stage, factor, step)
            return convert_of(kernel, c.stage, factor, step.total)

        def right(c: Contraction) -> Operand:
            own = convert(c, c.rhs)
            side = matrix_of(kernel, blocking, c, c.rhs, c.columns, shape, own)
            if c.packed:
                return Packed(side, own is not None)
            return Unpacked(step, blocking.vectors, side)

        depth, epilogue = shape[first.depth], epilogue_of(kernel, blocking, contractions, shape)
        columns = sliced_columns(kernel, contractions, shape)
        return Product(
            batch=tuple(shape[loop] for loop in first.batch),
            rows=mul(1, *(shape[loop] for loop in first.rows)),
            columns=columns,
            depth=depth if first.counts_pairs else ceil_div(depth, step.group),
            lhs=matrix_of(
                kernel, blocking, first, first.lhs, first.rows, shape, convert(first, first.lhs)
            ),
            rhs=tuple(map(right, contractions)),
            initial=first.initial,
            epilogue=epilogue,
            step=step,
            factor=int8.factor if int8 else 0,
            set_conflicts=has_set_conflicts(blocking.caches, columns, epilogue.outputs),
        )


def _is_stored_bf16(contraction: Contraction) -> bool:
    """Whether the right side is stored as the bf16 elements that are multiplied."""
    factor = contraction.rhs
    half = factor.value.owner.operands[0]
    return not factor.casts and half == contraction.stage.body.arguments[factor.read]


def has_set_conflicts(caches: Caches, columns: Index, outputs: Sequence[Computed]) -> bool:
    """Whether rows of an output, of a known distance, map to few sets of the L1 cache."""
    sizes = [element_bits(output.element) // 8 for output in outputs]
    return isinstance(columns, int) and any(_conflicts(caches, columns * size) for size in sizes)


def _conflicts(caches: Caches, pitch: int) -> bool:
    """Whether rows `pitch` bytes apart evict lines of each other from the L1 cache.

    A block of rows shorter than half a page fits the L2 cache.
    """
    if pitch <= caches.page // 2 - caches.line:
        return False
    sets = [row * pitch // caches.line % caches.l1_sets for row in range(2 * caches.l1_sets)]
    return max(map(sets.count, sets)) > MAX_LINES_PER_SET
