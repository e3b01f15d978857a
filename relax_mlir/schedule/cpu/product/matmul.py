"""The rule for matrix multiplications: recognises them, with what is computed from the product.

    %z = linalg.fill                                  few rows     gemv_kernel: stream the weights
    %c = linalg.generic (contraction) -> %z     ->    else         gemm_kernel: tiles in registers
    %o = linalg.generic (elementwise) %c, %bias       both then:   epilogue on a block of sums
    return %o

Needs: named linalg ops generalised. Leaves: a scheduled kernel, or the function as it was.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from relax_mlir.analysis.affine import dims_of
from relax_mlir.bindings import arith, ir
from relax_mlir.dialects.graph import element_bits
from relax_mlir.dialects.tir import ZERO_PADDED, PrimFunc
from relax_mlir.program.access import root_of
from relax_mlir.program.contraction import Contraction, Factor, find_contractions
from relax_mlir.program.program import (
    Argument,
    Computed,
    Empty,
    Program,
    Reshape,
    Slice,
    Stage,
    Tensor,
)
from relax_mlir.schedule.build.affine import evaluate, resolve
from relax_mlir.schedule.build.body import emit_body, emit_op
from relax_mlir.schedule.build.epilogue import Epilogue
from relax_mlir.schedule.build.kernel import Kernel
from relax_mlir.schedule.build.lanes import Lane, Uniform, Varying, to_vector, value_of, vector_type
from relax_mlir.schedule.build.loops import (
    Index,
    add,
    both,
    ceil_div,
    if_else,
    less,
    mul,
    zero_attr,
)
from relax_mlir.schedule.build.refusal import Refusal
from relax_mlir.schedule.cpu.isa import amx
from relax_mlir.schedule.cpu.isa.multiply_add import has_pairs, round_to_bf16
from relax_mlir.schedule.nests.emit import rewrite
from relax_mlir.target import Target

from .amx_block import BLOCK_ROWS
from .gemm_kernel import L1_SETS, emit_gemm
from .gemm_problem import Problem, Widening
from .gemm_tile import LINE_BYTES, Tiling
from .gemv_kernel import MOST_ROWS, emit_gemv, reads_along_k
from .packed_row import emit_packed_row
from .packing import Matrix

FEWEST_IN_TILES = 5
"""Rows from which on tile registers are faster than vectors."""
FEWEST_WIDENED = 9
"""Rows from which on bf16 numbers are multiplied as f32 numbers, where that is faster."""
HALF_PAGE = 2048
"""Bytes from which on rows of a result may displace one another."""
MOST_BESIDE = 12
"""Lines of a set of the first-level cache, at most, that rows of a result have there at once."""
MOST_BESIDE_TILES = 6
"""Rows up to which weights that are not packed are read as they lie, not packed for tiles."""


def schedule_matmul(kernel: PrimFunc, target: Target) -> bool:
    """Rewrites a tensor program that multiplies float matrices into loops over memrefs.

    Returns False, and leaves the function alone, if it is of another kind.
    """
    tiling, means = Tiling.of(target), _Means.of(target)

    def match(program: Program) -> Sequence[Contraction] | None:
        found = find_contractions(program, tiling.columns)
        if found and found[0].pairs and not found[0].counts_pairs:
            # Zeros of the left side meet what a last pair has behind the last number.
            return found if means.pairs and ZERO_PADDED in kernel.op.attributes else None
        return found

    return rewrite(kernel, target, match, lambda k, found: _emit(k, tiling, found, means))


@dataclass(frozen=True)
class _Means:
    """How a target multiplies bf16 numbers: in `pairs`, and many rows in `tiles`.

    A target without tiles that `widens` multiplies many rows as f32 numbers.
    """

    pairs: bool
    tiles: bool
    widens: bool

    @staticmethod
    def of(target: Target) -> "_Means":
        """Those of a target."""
        tiles = amx.has_tiles(target, "bf16")
        return _Means(has_pairs(target), tiles, target.is_xeon and not tiles)


def _emit(
    kernel: Kernel, tiling: Tiling, contractions: Sequence[Contraction], means: _Means
) -> None:
    """Emits the body of the scheduled function."""
    prepare_program(kernel)
    first = contractions[0]
    shape = [kernel.extent(first.stage, loop) for loop in range(len(first.stage.extents))]
    if first.packed:
        _emit_packed(kernel, tiling, contractions, shape, means)
        return
    paired = plain = _problem(kernel, tiling, contractions, shape, False)
    if means.pairs and first.bf16 and all(_is_stored_bf16(c) for c in contractions):
        paired = _problem(kernel, tiling, contractions, shape, True)
    along_k = reads_along_k(plain)
    most = MOST_ROWS[along_k]
    if means.tiles and paired.pairs:
        most = min(most, MOST_BESIDE_TILES)
    if_else(
        less(plain.rows, most + 1),
        lambda: emit_gemv(tiling, paired if along_k else plain),
        lambda: _emit_many(tiling, plain if means.widens else paired, means),
    )


def _emit_packed(
    kernel: Kernel,
    tiling: Tiling,
    contractions: Sequence[Contraction],
    shape: Sequence[Index],
    means: _Means,
) -> None:
    """Emits a product with packed weights, and one of a single row where that may come."""
    first = contractions[0]

    def problem(shape: Sequence[Index]) -> Problem:
        if first.pairs and not means.pairs:
            return _widened(kernel, tiling, contractions, shape, Widening.IN_REGISTERS)
        return _problem(kernel, tiling, contractions, shape, first.pairs)

    any_rows, widened = problem(shape), None
    if means.widens and first.counts_pairs and not _converts(any_rows):
        widened = _widened(kernel, tiling, contractions, shape, Widening.ONCE)
    emit_row = emit_packed_row if tiling.row_places > 1 else emit_gemm
    if any_rows.rows == 1:
        emit_row(tiling, any_rows)
        return
    if isinstance(any_rows.rows, int):
        _emit_many(tiling, any_rows, means, widened)
        return
    single = [1 if loop in first.rows else extent for loop, extent in enumerate(shape)]
    one_row = problem(single)
    # What follows from the number of rows takes longer to compute than a small product.
    if_else(
        both(less(0, any_rows.rows), less(any_rows.rows, 2)),
        lambda: emit_row(tiling, one_row),
        lambda: _emit_many(replace(tiling, least_rows=2), any_rows, means, widened),
    )


def _emit_many(
    tiling: Tiling, problem: Problem, means: _Means, widened: Problem | None = None
) -> None:
    """Emits a product; from some rows on `widened`, if given, or in tile registers."""
    if widened is not None:
        if_else(
            less(problem.rows, FEWEST_WIDENED),
            lambda: emit_gemm(replace(tiling, rows=FEWEST_WIDENED - 1), problem),
            lambda: emit_gemm(tiling, widened),
        )
    elif means.tiles and problem.pairs and not problem.initial and not _converts(problem):
        if_else(
            less(problem.rows, FEWEST_IN_TILES),
            lambda: emit_gemm(replace(tiling, rows=FEWEST_IN_TILES - 1), problem),
            lambda: emit_gemm(replace(tiling, rows=BLOCK_ROWS, in_tiles=True), problem),
        )
    else:
        emit_gemm(tiling, problem)


def _converts(problem: Problem) -> bool:
    """Whether packed weights are not what is multiplied."""
    sides = (side([0] * len(problem.batch)) for side in problem.rhs)
    return problem.packed and any(side.convert for side in sides)


def _problem(
    kernel: Kernel,
    tiling: Tiling,
    contractions: Sequence[Contraction],
    shape: Sequence[Index],
    pairs: bool,
) -> Problem:
    """What to compute, `pairs` of bf16 numbers at a time or number by number."""
    first = contractions[0]
    convert = _convert_pairs if pairs else convert_of

    def side(c: Contraction, factor: Factor, rows: Sequence[int]) -> Callable[..., Matrix]:
        own = convert(kernel, c.stage, factor)
        return matrix_of(kernel, tiling, c, factor, rows, shape, own)

    depth, epilogue = shape[first.depth], epilogue_of(kernel, tiling, contractions, shape)
    columns = kept_columns(kernel, contractions, shape)
    return Problem(
        batch=tuple(shape[loop] for loop in first.batch),
        rows=mul(1, *(shape[loop] for loop in first.rows)),
        columns=columns,
        depth=ceil_div(depth, 2) if pairs and not first.counts_pairs else depth,
        lhs=side(first, first.lhs, first.rows),
        rhs=tuple(side(c, c.rhs, c.columns) for c in contractions),
        packed=first.packed,
        initial=first.initial,
        epilogue=epilogue,
        pairs=pairs,
        collides=rows_collide(columns, epilogue.outputs),
    )


def _widened(
    kernel: Kernel,
    tiling: Tiling,
    contractions: Sequence[Contraction],
    shape: Sequence[Index],
    widening: Widening,
) -> Problem:
    """What to compute with panels of pairs, as numbers of f32."""
    numbers, paired = (_problem(kernel, tiling, contractions, shape, p) for p in (False, True))
    depth = mul(paired.depth, 2)
    return replace(numbers, rhs=paired.rhs, depth=depth, widening=widening)


def _is_stored_bf16(contraction: Contraction) -> bool:
    """Whether the right side lies in memory as the bf16 numbers that are multiplied."""
    factor = contraction.rhs
    half = factor.value.owner.operands[0]
    return not factor.casts and half == contraction.stage.body.arguments[factor.number]


def prepare_program(kernel: Kernel) -> None:
    """Emits scalars, extents and views, which all loops use, in front of them."""
    program = kernel.placement.program
    for item in program.items:
        if not isinstance(item, Stage):
            if item.operation.name == "tensor.extract":
                raise Refusal("an index is read from a tensor")
            kernel.run_scalar(item)
            continue
        for operand in [*item.reads, *item.inits]:
            kernel.prepare(operand.tensor)
            _prepare_sizes(kernel, operand.tensor)
        for result in item.results:
            kernel.sizes(result)
            kernel.prepare(result)


def _prepare_sizes(kernel: Kernel, tensor: Tensor) -> None:
    """Emits the extents of a tensor and of those that it is a view of."""
    if not (isinstance(tensor, Empty) and len(tensor.sizes) != len(tensor.shape)):
        kernel.sizes(tensor)
    if isinstance(tensor, Slice | Reshape):
        _prepare_sizes(kernel, tensor.source)


def epilogue_of(
    kernel: Kernel, tiling: Tiling, contractions: Sequence[Contraction], shape: Sequence[Index]
) -> Epilogue:
    """The stages behind the contractions."""
    program = kernel.placement.program
    done = {c.stage for c in contractions}
    done |= {stage for c in contractions for stage in (*c.lhs.casts, *c.rhs.casts)}
    outputs = [result for stage in program.stages for result in stage.results]
    outputs = [result for result in outputs if _is_output(kernel, result)]
    return Epilogue(
        kernel=kernel,
        contractions=contractions,
        stages=[stage for stage in program.stages if stage not in done],
        outputs=outputs,
        shape=shape,
        lanes=tiling.lanes,
        always_mask=tiling.has_masks,
    )


def rows_collide(columns: Index, outputs: Sequence[Computed]) -> bool:
    """Whether lines of an output's rows, known distances apart, are in few sets of a cache."""
    sizes = [element_bits(output.element) // 8 for output in outputs]
    return isinstance(columns, int) and any(_collide(columns * size) for size in sizes)


def _collide(pitch: int) -> bool:
    """Whether rows so many bytes apart displace lines of one another in the first-level cache.

    Of shorter ones, a block fits the second level.
    """
    if pitch <= HALF_PAGE - LINE_BYTES:
        return False
    sets = [row * pitch // LINE_BYTES % L1_SETS for row in range(2 * L1_SETS)]
    return max(map(sets.count, sets)) > MOST_BESIDE


def kept_columns(
    kernel: Kernel, contractions: Sequence[Contraction], shape: Sequence[Index]
) -> Index:
    """The number of columns: those of packed weights that a slice keeps, else all."""
    return kept_extent(kernel, contractions, contractions[0].columns, shape, -1)


def kept_extent(
    kernel: Kernel,
    contractions: Sequence[Contraction],
    loops: Sequence[int],
    shape: Sequence[Index],
    axis: int,
) -> Index:
    """The extent of `loops`: where weights are packed, what a slice of the result keeps of `axis`.

    Raises Refusal if slices keep different extents, or a part of another axis.
    """
    everything = mul(1, *(shape[loop] for loop in loops))
    packed = contractions[0].packed
    _check_slices(kernel, axis if packed else None)
    if not packed:
        return everything
    results = {c.stage.results[0] for c in contractions}
    kept = []
    for stage in kernel.placement.program.stages:
        for operand in stage.reads:
            tensor, size = operand.tensor, everything
            while isinstance(tensor, Slice | Reshape):
                if isinstance(tensor, Slice):
                    size = kernel.sizes(tensor)[axis]
                tensor = tensor.source
            if tensor in results:
                kept.append(size)
    if any(size != kept[0] for size in kept):
        raise Refusal("slices of the product have different extents")
    return kept[0] if kept else everything


def _check_slices(kernel: Kernel, axis: int | None) -> None:
    """Refuses slices of what is computed that keep a part of an axis other than `axis`.

    The epilogue stores all of a block of sums.
    """
    placement = kernel.placement
    for stage in placement.program.stages:
        for operand in stage.reads:
            tensor = operand.tensor
            while isinstance(tensor, Slice | Reshape):
                if isinstance(tensor, Slice) and isinstance(root_of(tensor), Computed):
                    rank, source = len(tensor.shape), tensor.source
                    whole = (placement.extents.is_whole(tensor, i) for i in range(rank))
                    kept = all(x or i - rank == axis for i, x in enumerate(whole))
                    if not kept or any(source.shape[i] != 1 for i in tensor.window.dropped):
                        raise Refusal("a slice keeps a part of what is computed")
                tensor = tensor.source


def matrix_of(
    kernel: Kernel,
    tiling: Tiling,
    contraction: Contraction,
    factor: Factor,
    rows: Sequence[int],
    shape: Sequence[Index],
    convert: Callable[[ir.Value], ir.Value] | None,
) -> Callable[[Sequence[Index]], Matrix]:
    """One side of the product, as a function of the index of the batch.

    `convert` turns loaded elements into numbers to multiply; None where they are that.
    """
    view = kernel.view(factor.tensor)
    if view is None:
        raise Refusal("a side has gaps in memory")
    row: Index = 0
    if rows:
        position = factor.position(rows[-1])
        assert position is not None, "a loop of rows is an index itself"
        row = view.strides[position]
    along_k = [i for i, e in enumerate(factor.indices) if contraction.depth in dims_of(e)]
    depth = view.strides[along_k[0]]
    if contraction.packed and factor is contraction.rhs:
        row, depth = view.strides[0], view.strides[1]
    elif not any(isinstance(stride, int) and stride == 1 for stride in (row, depth)):
        raise Refusal("neither rows nor depth of a side are side by side in memory")
    extent = mul(1, *(shape[loop] for loop in rows))
    length = mul(shape[contraction.depth], 2 if contraction.counts_pairs else 1)

    def matrix(batch: Sequence[Index]) -> Matrix:
        lanes: list[Lane] = [Uniform(0)] * len(shape)
        for loop, index in zip(contraction.batch, batch, strict=True):
            lanes[loop] = Uniform(index)
        offset = view.offset
        for expression, stride in zip(factor.indices, view.strides, strict=True):
            place = resolve(evaluate(expression, lanes, tiling.lanes), tiling.lanes)
            offset = add(offset, mul(value_of(place), stride))
        return Matrix(view.base, offset, row, depth, extent, length, convert)

    return matrix


def _is_output(kernel: Kernel, result: Computed) -> bool:
    """Whether a tensor is returned, or is the copy of one that is."""
    program = kernel.placement.program
    spot = kernel.placement.spot(result)
    if spot is None or not isinstance(spot.owner, Argument):
        return False
    for tensor in program.returned:
        while isinstance(tensor, Reshape):
            tensor = tensor.source
        if tensor is result:
            return True
    return result not in program.tensors.values()


def convert_of(
    kernel: Kernel, stage: Stage, factor: Factor
) -> Callable[[ir.Value], ir.Value] | None:
    """What turns loaded elements of a factor into f32 numbers to multiply; None if nothing."""
    f32 = ir.F32Type.get()
    argument = stage.body.arguments[factor.number]
    if not factor.casts and factor.value == argument and factor.tensor.element == f32:
        return None

    def convert(x: ir.Value) -> ir.Value:
        result = _computed(kernel, stage, factor, factor.value, x)
        if factor.value.type == f32:
            return result
        return arith.extf(vector_type(ir.VectorType(x.type).shape[0], f32), result)

    return convert


def _convert_pairs(
    kernel: Kernel, stage: Stage, factor: Factor
) -> Callable[[ir.Value], ir.Value] | None:
    """What turns loaded elements of a factor into bf16 numbers; None if they are."""
    f32 = ir.F32Type.get()
    argument = stage.body.arguments[factor.number]
    half = factor.value.owner.operands[0]
    if not factor.casts and half == argument:
        return None
    narrowing = not isinstance(half.owner, ir.Block) and half.owner.name == "arith.truncf"
    rounded = half.owner.operands[0] if narrowing else half

    def convert(x: ir.Value) -> ir.Value:
        result = _computed(kernel, stage, factor, rounded, x)
        return round_to_bf16(result) if rounded.type == f32 else result

    return convert


def _computed(
    kernel: Kernel, stage: Stage, factor: Factor, wanted: ir.Value, x: ir.Value
) -> ir.Value:
    """The vector of what is computed from a factor's loaded elements `x`, up to `wanted`."""
    lanes = ir.VectorType(x.type).shape[0]
    lane: Lane = Varying(x)
    for cast in factor.casts:
        if cast.block is not None:
            element = cast.inits[0].tensor.element
            unused = Uniform(arith.constant(element, zero_attr(element)))
            lane = emit_body(cast.block, [lane, unused], lanes, captured=kernel.scalars)[0]
    argument = stage.body.arguments[factor.number]
    return to_vector(_follow(wanted, {argument: lane}, lanes, kernel), lanes)


def _follow(value: ir.Value, known: dict[ir.Value, Lane], lanes: int, kernel: Kernel) -> Lane:
    """Emits what a scalar of a body is computed from."""
    if value not in known:
        if isinstance(value.owner, ir.Block) or value.owner.name == "arith.constant":
            return Uniform(kernel.scalars.get(value, value))
        op = value.owner.opview
        known[value] = emit_op(op, [_follow(x, known, lanes, kernel) for x in op.operands], lanes)
    return known[value]
