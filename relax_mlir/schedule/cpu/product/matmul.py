"""The rule for matrix multiplications: recognises them, with what is computed from the product.

    %z = linalg.fill                                  few rows     few_rows: stream the weights
    %c = linalg.generic (contraction) -> %z     ->    else         nest: tiles in registers
    %o = linalg.generic (elementwise) %c, %bias       both then:   epilogue on a block of sums
    return %o

Elements are floats or integers of any width. Sums of f16 and bf16 are f32, those of 8-bit and
16-bit integers have 32 bits, which is exact modulo any lesser power of two.

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
from relax_mlir.schedule.build.loops import Index, both, ceil_div, if_else, less, mul
from relax_mlir.schedule.cpu.blocking import Blocking, family_of
from relax_mlir.schedule.cpu.isa import amx
from relax_mlir.schedule.cpu.isa.instructions import vectors_of
from relax_mlir.schedule.cpu.isa.multiply_add import Bf16Pairs, MultiplyAdd, has_pairs
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
from .sides import (
    Convert,
    convert_of,
    convert_pairs,
    epilogue_of,
    kept_columns,
    matrix_of,
    prepare_program,
)

MOST_IN_SET = 12
"""Lines of rows of a result that a set of the first-level cache may get, as rows pass by."""


def schedule(kernel: PrimFunc, cpu: Cpu, fuse: bool) -> bool:
    """Rewrites a tensor program that multiplies matrices into loops over memrefs.

    Returns False, and leaves the function alone, if it is of another kind.
    """
    means = _Means.of(cpu)
    is_padded = ZERO_PADDED in kernel.op.attributes
    return rewrite(
        kernel,
        vectors_of(cpu),
        lambda program: _find(program, cpu, means, is_padded),
        lambda k, found: _Rule(k, found, means, _blocking(cpu, found.sums)).emit(),
    )


@dataclass(frozen=True)
class _Means:
    """How a target multiplies: bf16 elements in `pairs`, and many rows in `tiles` of a type.

    A target without tiles that `widens` multiplies many rows of bf16 elements as f32 elements.
    """

    pairs: bool
    tiles: frozenset[str]
    widens: bool

    @staticmethod
    def of(cpu: Cpu) -> "_Means":
        """Those of a target."""
        tiles = frozenset(unit for unit in ("bf16", "int8") if amx.has_tiles(cpu, unit))
        widens = family_of(cpu).products.widened_from is not None
        return _Means(has_pairs(cpu), tiles, widens and "bf16" not in tiles)


@dataclass(frozen=True)
class _Found:
    """The products of a program; `int8` says how those of 8-bit integers are multiplied."""

    contractions: Sequence[Contraction]
    int8: Int8Product | None

    @property
    def first(self) -> Contraction:
        """The first one: all of them have its loops."""
        return self.contractions[0]

    @property
    def sums(self) -> ir.Type:
        """The element type of the sums, in the program."""
        return self.first.stage.results[0].element


def _kind(sums: ir.Type) -> str:
    """The element type that sums of one are computed in."""
    if isinstance(sums, FLOATS):
        return "f64" if isinstance(sums, ir.F64Type) else "f32"
    return "i64" if ir.IntegerType(sums).width > 32 else "i32"


def _blocking(cpu: Cpu, sums: ir.Type) -> Blocking:
    return Blocking.of(cpu, int(_kind(sums)[1:]))


def _find(program: Program, cpu: Cpu, means: _Means, is_padded: bool) -> _Found | None:
    """The products of a program that works elementwise on them, or None."""
    contractions = find_contractions(program, lambda sums: _blocking(cpu, sums).columns)
    if contractions is None:
        return None
    first = contractions[0]
    found = _Found(contractions, None)
    if isinstance(found.sums, FLOATS):
        # Zeros of the left side meet what a last pair has behind the last element.
        known = not first.pairs or first.counts_pairs or (means.pairs and is_padded)
        return found if known else None
    if _kind(found.sums) == "i32":
        found = replace(found, int8=find_int8(contractions, cpu))
    is_grouped = first.packed and len(first.rhs.tensor.shape) == 4
    return None if is_grouped and found.int8 is None else found


@dataclass(frozen=True)
class _Rule:
    """Emits the body of the scheduled function."""

    kernel: Kernel
    found: _Found
    means: _Means
    blocking: Blocking

    def emit(self) -> None:
        """Emits the kernels of few rows and of many, and what decides between them."""
        prepare_program(self.kernel)
        if self.found.int8 is not None:
            self._emit_int8(self.found.int8)
        elif self.found.first.packed:
            self._emit_packed()
        else:
            self._emit_plain()

    @property
    def _shape(self) -> list[Index]:
        """The extents of the loops."""
        stage = self.found.first.stage
        return [self.kernel.extent(stage, loop) for loop in range(len(stage.extents))]

    @property
    def _plain(self) -> Step:
        """The step of single elements."""
        return MultiplyAdd(self.blocking.lanes, _kind(self.found.sums))

    @property
    def _pairs(self) -> Step:
        """The step of pairs of bf16 elements."""
        return Bf16Pairs(self.blocking.lanes)

    def _emit_plain(self) -> None:
        """Emits a product whose sides lie as they are."""
        first, blocking, means = self.found.first, self.blocking, self.means
        paired = plain = self._problem(self._shape, self._plain)
        if means.pairs and first.bf16 and all(map(_is_stored_bf16, self.found.contractions)):
            paired = self._problem(self._shape, self._pairs)
        along_k = reads_along_k(plain)
        few = blocking.family.few_rows
        most = few.most_along_k if along_k else few.most_along_n
        if "bf16" in means.tiles and paired is not plain:
            most = min(most, blocking.family.tiles.unpacked_rows - 1)
        if_else(
            less(plain.rows, most + 1),
            lambda: emit_few_rows(blocking, paired if along_k else plain),
            lambda: self._emit_many(blocking, plain if means.widens else paired),
        )

    def _emit_packed(self) -> None:
        """Emits a product with packed weights, and one of a single row where that may come."""
        first, blocking, means = self.found.first, self.blocking, self.means
        shape = self._shape
        any_rows, widened = self._packed_problem(shape), None
        if means.widens and first.counts_pairs and not any_rows.converts:
            widened = self._widened(shape, once=True)
        emit_row = emit_packed_row if blocking.products.row_panels > 1 else emit_product
        if any_rows.rows == 1:
            emit_row(blocking, any_rows)
            return
        if isinstance(any_rows.rows, int):
            self._emit_many(blocking, any_rows, widened)
            return
        one_row = self._packed_problem([1 if i in first.rows else x for i, x in enumerate(shape)])
        # What follows from the number of rows takes longer to compute than a small product.
        if_else(
            both(less(0, any_rows.rows), less(any_rows.rows, 2)),
            lambda: emit_row(blocking, one_row),
            lambda: self._emit_many(replace(blocking, least_rows=2), any_rows, widened),
        )

    def _emit_int8(self, int8: Int8Product) -> None:
        """Emits a product of 8-bit integers."""
        product = self._problem(self._shape, int8.step, int8)
        is_plain = not self.found.first.packed and reads_along_k(product)
        if_else(
            is_plain and less(product.rows, self.blocking.family.few_rows.most_int8 + 1),
            lambda: emit_few_rows(self.blocking, product),
            lambda: self._emit_tiles(self.blocking, product),
        )

    def _emit_many(
        self, blocking: Blocking, product: Product, widened: Product | None = None
    ) -> None:
        """Emits a product; from some rows on `widened`, if given, or in tile registers."""
        fewest = blocking.products.widened_from
        if widened is None or fewest is None:
            self._emit_tiles(blocking, product)
            return
        if_else(
            less(product.rows, fewest),
            lambda: emit_product(replace(blocking, rows=fewest - 1), product),
            lambda: emit_product(blocking, widened),
        )

    def _emit_tiles(self, blocking: Blocking, product: Product) -> None:
        """Emits a product, from some rows on in tile registers, if they multiply it."""
        unit = {2: "bf16", amx.LANE_BYTES: "int8"}.get(product.step.group)
        if unit not in self.means.tiles or product.converts:
            emit_product(blocking, product)
            return
        fewest = blocking.family.tiles.rows
        if_else(
            less(product.rows, fewest),
            lambda: emit_product(replace(blocking, rows=fewest - 1), product),
            lambda: emit_product(blocking.tiled(BLOCK_ROWS, unit == "int8"), product),
        )

    def _packed_problem(self, shape: Sequence[Index]) -> Product:
        """What to compute with packed weights."""
        if not self.found.first.pairs:
            return self._problem(shape, self._plain)
        if self.means.pairs:
            return self._problem(shape, self._pairs)
        return self._widened(shape, once=False)

    def _widened(self, shape: Sequence[Index], once: bool) -> Product:
        """What to compute with panels of pairs, as f32 elements."""
        elements, paired = (self._problem(shape, step) for step in (self._plain, self._pairs))
        lanes, vectors = self.blocking.lanes, self.blocking.vectors
        sides = [side for side in paired.rhs if isinstance(side, Packed)]
        rhs = tuple(Pairs(side.side, lanes, vectors, once) for side in sides)
        return replace(elements, rhs=rhs, depth=mul(paired.depth, 2))

    def _problem(
        self, shape: Sequence[Index], step: Step, int8: Int8Product | None = None
    ) -> Product:
        """What to compute, by a step."""
        kernel, blocking, contractions = self.kernel, self.blocking, self.found.contractions
        first = contractions[0]

        def convert(c: Contraction, factor: Factor) -> Convert | None:
            if int8 is not None:
                return flip_top_bits if int8.is_biased and factor is c.rhs else None
            if isinstance(step, Bf16Pairs):
                return convert_pairs(kernel, c.stage, factor)
            return convert_of(kernel, c.stage, factor, step.total)

        def right(c: Contraction) -> Operand:
            own = convert(c, c.rhs)
            side = matrix_of(kernel, blocking, c, c.rhs, c.columns, shape, own)
            if c.packed:
                return Packed(side, own is not None)
            return Unpacked(step, blocking.vectors, side)

        depth, epilogue = shape[first.depth], epilogue_of(kernel, blocking, contractions, shape)
        columns = kept_columns(kernel, contractions, shape)
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
            collides=rows_collide(blocking.caches, columns, epilogue.outputs),
        )


def _is_stored_bf16(contraction: Contraction) -> bool:
    """Whether the right side lies in memory as the bf16 elements that are multiplied."""
    factor = contraction.rhs
    half = factor.value.owner.operands[0]
    return not factor.casts and half == contraction.stage.body.arguments[factor.number]


def rows_collide(caches: Caches, columns: Index, outputs: Sequence[Computed]) -> bool:
    """Whether lines of an output's rows, known distances apart, are in few sets of a cache."""
    sizes = [element_bits(output.element) // 8 for output in outputs]
    return isinstance(columns, int) and any(_collide(caches, columns * size) for size in sizes)


def _collide(caches: Caches, pitch: int) -> bool:
    """Whether rows so many bytes apart displace lines of one another in the first-level cache.

    Of rows shorter than half a page, a block fits the second level.
    """
    if pitch <= caches.page // 2 - caches.line:
        return False
    sets = [row * pitch // caches.line % caches.l1_sets for row in range(2 * caches.l1_sets)]
    return max(map(sets.count, sets)) > MOST_IN_SET
