"""The rule for convolutions: recognises them and their epilogues.

    %p = tensor.insert_slice %x into %zeros           the padding is written while a block of the
    %c = linalg.generic (windows) %p, %w       ->     image is copied; convolution_kernel or, chosen
    %o = linalg.generic (elementwise) %c, %bias       when it runs, pointwise_kernel or row_kernel:
    return %o                                         sums in registers; epilogue on a block of sums

If fast-math flags allow it, 3x3 windows may be computed by `winograd_kernel`.

    result[n, (g), f, y, x] = sum over c, u, v of
        image[n, (g), c, y * s + u * d, x * t + v * e] * filter[(g), f, c, u, v]

Needs: named linalg ops generalised. Leaves: a scheduled kernel, or the function unchanged.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import prod

from relax_mlir.bindings import arith, ir
from relax_mlir.dialects.tir import PrimFunc
from relax_mlir.program.contraction import (
    Contraction,
    Factor,
    constant_of,
    factor_of,
    factors_of,
    loop_of,
    loops_of,
)
from relax_mlir.program.padding import take_padding
from relax_mlir.program.program import Program, Stage, all_known
from relax_mlir.schedule.build.block import Epilogue
from relax_mlir.schedule.build.kernel import Kernel
from relax_mlir.schedule.build.loops import Index, add, ceil_div, if_else, mul, scratch
from relax_mlir.schedule.build.product_parts import epilogue_of, prepare_program, sliced_extent
from relax_mlir.schedule.build.refusal import Refusal
from relax_mlir.schedule.cpu.blocking import Blocking
from relax_mlir.schedule.cpu.isa.instructions import vectors_of
from relax_mlir.schedule.cpu.product.packing import Matrix
from relax_mlir.schedule.cpu.product.sides import convert_of
from relax_mlir.schedule.nests.emit import rewrite
from relax_mlir.target import Cpu

from .convolution_kernel import emit_convolution
from .convolution_problem import Filters, Image, Problem, pack_filters
from .pixel_tile import fills_vectors
from .pointwise_kernel import emit_pointwise
from .row_kernel import can_emit_rows, emit_rows, fits_rows
from .winograd_kernel import can_emit_winograd, emit_winograd, pays_winograd

ALGEBRAIC = ("reassoc", "nnan", "ninf")
"""Fast-math flags that allow Winograd's transforms."""
_SUMS = (ir.F32Type, ir.F16Type, ir.BF16Type)
"""Element types whose sums are computed in f32."""
MIN_FILTERS = 8
"""Lanes run along filters if each group has at least so many."""
MAX_TAPS, MAX_STRIDE = 1024, 64
"""Larger windows and strides are for general loops, since code grows with them here."""


@dataclass(frozen=True)
class Convolution:
    """A stage that sums products of windows, and the roles of its loops.

    `contraction` has the image as its left side, (n, (g), y) as batch, filters as rows and x as
    columns. Pairs are for rows and columns of the image; `pixels` are the loops (y, x). If
    `packed`, rows are (panel, filter of the panel), and panels are [v, u, c, filter]. If
    `algebraic`, reassociation is allowed.
    """

    contraction: Contraction
    image: Factor
    filters: Factor
    grouped: bool
    channel: int
    pixels: tuple[int, int]
    window: tuple[int, int]
    strides: tuple[int, int]
    dilation: tuple[int, int]
    padding: tuple[int, int]
    padded: bool
    packed: bool
    algebraic: bool

    @property
    def is_pointwise(self) -> bool:
        """Whether each pixel of the result depends on one pixel of the image."""
        return self.window == (1, 1) and not self.padded


def grows_with(window: Sequence[int], steps: Iterable[tuple[int, int]]) -> bool:
    """Whether code for a window would be too long; `steps` are strides and dilations."""
    return prod(window) > MAX_TAPS or max(stride for stride, _ in steps) > MAX_STRIDE


def schedule(prim_func: PrimFunc, cpu: Cpu, fuse: bool) -> bool:
    """Rewrites a tensor program that convolves float images into loops over memrefs.

    Returns False, and leaves the function unchanged, if the program is another one. `fuse` is
    ignored.
    """
    blocking = Blocking.of(cpu)
    return rewrite(
        prim_func,
        vectors_of(cpu),
        lambda program: match(program, blocking.columns),
        lambda kernel, convolution: _emit(kernel, blocking, convolution),
    )


def match(program: Program, panel: int) -> Convolution | None:
    """The convolution of a program that works elementwise on its result, or None.

    The padding is removed from the program. `panel` is the number of filters of a packed panel.
    """
    reducing = [stage for stage in program.stages if stage.has_reduction]
    if len(reducing) != 1 or len(reducing[0].reads) != 2 or len(reducing[0].inits) != 1:
        return None
    stage = reducing[0]
    if not isinstance(stage.results[0].element, _SUMS):
        return None
    initial = constant_of(stage.inits[0].tensor)
    values = factors_of(stage) if stage.block is not None else None
    if initial is None or values is None:
        return None
    for image in range(2):
        convolution = _match_sides(program, stage, image, values, initial, panel)
        if convolution is not None:
            return convolution
    return None


def _match_sides(
    program: Program,
    stage: Stage,
    image: int,
    values: dict[int, ir.Value],
    initial: float,
    panel: int,
) -> Convolution | None:
    """The stage as a convolution whose image is read `image`."""
    pixels = loops_of(stage.inits[0].indices)
    weights = loops_of(stage.reads[1 - image].indices)
    if pixels is None or weights is None or len(set(pixels)) != len(pixels):
        return None
    if len(pixels) < 4 or len(weights) < 4:
        return None
    *leading, y, x = pixels
    packed = len(weights) == 5 and weights[-1] == leading[-1] and weights[0] == leading[-2]
    channel, u, v = reversed(weights[1:4]) if packed else weights[-3:]
    if packed and stage.extents[weights[-1]] != panel:
        return None
    rows = (weights[0], weights[4]) if packed else (weights[-4],)
    group = () if packed else tuple(weights[:-4])
    if leading != [leading[0], *group, *rows] or len(group) > 1:
        return None
    if not all(stage.reduces[loop] for loop in (channel, u, v)):
        return None
    windows = all_known(window_of(e, *loops) for e, loops in _spatial(stage, image, (y, u), (x, v)))
    plain = [loop_of(e) for e in stage.reads[image].indices[:-2]]
    if windows is None or plain != [leading[0], *group, channel]:
        return None
    extents = all_known(stage.extents[loop] for loop in (u, v))
    few = group and (stage.extents[rows[-1]] or 0) < MIN_FILTERS
    if extents is None or few or grows_with(extents, windows):
        return None
    padding = take_padding(program, stage, image, values[image])
    if padding is None or any(front is not None for front in padding[:-2]):
        return None
    sides = all_known(factor_of(stage, read, values[read]) for read in (image, 1 - image))
    if sides is None or sides[1].casts:
        return None
    left, right = sides
    if left.indices != stage.reads[image].indices:
        return None  # a producer of the image permutes it
    batch = (leading[0], *group, y)
    contraction = Contraction(stage, left, right, batch, rows, (x,), channel, packed, initial)
    (row_stride, row_dilation), (column_stride, column_dilation) = windows
    top, before = padding[-2:] or (0, 0)
    return Convolution(
        contraction, left, right, bool(group), channel, (y, x), (extents[0], extents[1]),
        (row_stride, column_stride), (row_dilation, column_dilation),
        (top or 0, before or 0), bool(padding), packed, _is_algebraic(stage),
    )  # fmt: skip


def _is_algebraic(stage: Stage) -> bool:
    """Whether the flags of the body allow reassociation, and assume finite values."""
    steps = [op for op in stage.body.operations if isinstance(op, arith.AddFOp | arith.MulFOp)]
    flags = [str(op.attributes["fastmath"]).strip("#>").split("<")[1].split(",") for op in steps]
    return bool(flags) and all("fast" in some or {*ALGEBRAIC} <= {*some} for some in flags)


def _spatial(
    stage: Stage, image: int, rows: tuple[int, int], columns: tuple[int, int]
) -> list[tuple[ir.AffineExpr, tuple[int, int]]]:
    """The last two indices of the image, each with the loops that it has to depend on."""
    indices = stage.reads[image].indices
    return list(zip(indices[-2:], (rows, columns), strict=True))


def window_of(expression: ir.AffineExpr, position: int, within: int) -> tuple[int, int] | None:
    """Stride and dilation of an index that is a sum of two loops times factors, or None."""
    terms = _terms(expression)
    if terms is None or set(terms) != {position, within}:
        return None
    factors = terms[position], terms[within]
    return factors if min(factors) > 0 else None


def _terms(expression: ir.AffineExpr) -> dict[int, int] | None:
    """Loop to factor, for a sum of loops times constants."""
    if isinstance(expression, ir.AffineDimExpr):
        return {expression.position: 1}
    if isinstance(expression, ir.AffineAddExpr):
        a, b = _terms(expression.lhs), _terms(expression.rhs)
        return None if a is None or b is None or set(a) & set(b) else a | b
    if isinstance(expression, ir.AffineMulExpr):
        terms = _terms(expression.lhs)
        if terms is None or not isinstance(expression.rhs, ir.AffineConstantExpr):
            return None
        return {loop: factor * expression.rhs.value for loop, factor in terms.items()}
    return None


def _emit(kernel: Kernel, blocking: Blocking, convolution: Convolution) -> None:
    """Emits the body of the scheduled function."""
    prepare_program(kernel)
    contraction = convolution.contraction
    stage = contraction.stage
    shape = [kernel.extent(stage, loop) for loop in range(len(stage.extents))]
    problem = _problem(kernel, blocking, convolution, shape)
    view = kernel.view(convolution.filters.tensor)
    if view is None or not view.whole:
        raise Refusal("the filters have gaps in memory")
    convert = convert_of(kernel, stage, convolution.filters, ir.F32Type.get())
    flat = None
    if convolution.is_pointwise and kernel.memory(convolution.image.tensor).whole:
        joined = replace(contraction, batch=contraction.batch[:-1], columns=convolution.pixels)
        flat = epilogue_of(kernel, blocking, [joined], shape)
    groups = problem.batch[-1] if convolution.grouped else 1
    if convolution.packed:
        stride = mul(problem.depth, blocking.columns)
        filters = Filters(view.base, view.offset, shape[contraction.rows[0]], stride, convert)
        _emit_kernel(blocking, problem, filters, flat)
        return

    def matrix(group: Index) -> Matrix:
        size = mul(problem.filters, problem.depth)
        at = add(view.offset, mul(group, size) if convolution.grouped else 0)
        return Matrix(view.base, at, problem.depth, 1, problem.filters, problem.depth, convert)

    count = mul(
        groups, ceil_div(problem.filters, blocking.columns), problem.depth, blocking.columns
    )
    with scratch(count, ir.F32Type.get()) as panels:
        filters = pack_filters(blocking, groups, matrix, panels, problem)
        _emit_kernel(blocking, problem, filters, flat)


def _emit_kernel(
    blocking: Blocking, problem: Problem, filters: Filters, flat: Epilogue | None
) -> None:
    """Emits the kernel with lanes along pixels where that pays, else that with lanes along filters.

    `flat` is the epilogue over pixels as one dim, for 1x1 windows.
    """
    if flat is not None and filters.convert is None:
        pays = fills_vectors(blocking, mul(*problem.pixels), problem.depth)
        dense = replace(problem, epilogue=flat)
        joined = problem
        if problem.strides == (1, 1):  # rows are contiguous
            row = 1, mul(*problem.pixels)
            joined = replace(dense, sizes=row, pixels=row, flat=True)
        if_else(
            pays,
            lambda: emit_pointwise(blocking, dense, filters),
            lambda: emit_convolution(blocking, joined, filters),
        )
    elif can_emit_winograd(blocking, problem):
        if_else(
            pays_winograd(blocking, problem),
            lambda: emit_winograd(blocking, problem, filters),
            lambda: emit_convolution(blocking, problem, filters),
        )
    elif can_emit_rows(blocking, problem, filters):
        if_else(
            fits_rows(blocking, problem),
            lambda: emit_rows(blocking, problem, filters),
            lambda: emit_convolution(blocking, problem, filters),
        )
    else:
        emit_convolution(blocking, problem, filters)


def _problem(
    kernel: Kernel, blocking: Blocking, convolution: Convolution, shape: Sequence[Index]
) -> Problem:
    """The problem, with extents and memory."""
    contraction = convolution.contraction
    view = kernel.view(convolution.image.tensor)
    if view is None or not isinstance(view.strides[-1], int) or view.strides[-1] != 1:
        raise Refusal("channels of the image are not contiguous in memory")
    convert = convert_of(kernel, contraction.stage, convolution.image, ir.F32Type.get())

    def image(batch: Sequence[Index]) -> Image:
        offset = view.offset
        for index, stride in zip(batch, view.strides[: len(batch)], strict=True):
            offset = add(offset, mul(index, stride))
        return Image(view.base, offset, view.strides[-3], view.strides[-2], convert)

    return Problem(
        batch=tuple(shape[loop] for loop in contraction.batch[:-1]),
        grouped=convolution.grouped,
        channels=shape[convolution.channel],
        sizes=(view.sizes[-2], view.sizes[-1]),
        pixels=(shape[convolution.pixels[0]], shape[convolution.pixels[1]]),
        window=convolution.window,
        strides=convolution.strides,
        dilation=convolution.dilation,
        padding=convolution.padding,
        padded=convolution.padded,
        algebraic=convolution.algebraic,
        filters=sliced_extent(kernel, [contraction], contraction.rows, shape, -3),
        image=image,
        initial=contraction.initial,
        epilogue=epilogue_of(kernel, blocking, [contraction], shape),
    )
