"""The rule for convolutions: recognises them, with what is computed from the sums.

    %p = tensor.insert_slice %x into %zeros           the padding is written while a block of the
    %c = linalg.generic (windows) %p, %w       ->     image is copied; convolution_kernel or, chosen
    %o = linalg.generic (elementwise) %c, %bias       when it runs, pointwise_kernel or row_kernel:
    return %o                                         sums in registers; epilogue on a block of sums

Where fast-math flags allow it, windows of three by three may be computed by `winograd_kernel`.

    result[n, (g), f, y, x] = sum over c, u, v of
        image[n, (g), c, y * s + u * d, x * t + v * e] * filter[(g), f, c, u, v]

Needs: named linalg ops generalised. Leaves: a scheduled kernel, or the function as it was.
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
from relax_mlir.program.program import Computed, Operand, Program, Stage, all_known
from relax_mlir.schedule.build.block import Epilogue
from relax_mlir.schedule.build.kernel import Kernel
from relax_mlir.schedule.build.loops import Index, add, ceil_div, if_else, mul, scratch
from relax_mlir.schedule.build.refusal import Refusal
from relax_mlir.schedule.cpu.blocking import Blocking
from relax_mlir.schedule.cpu.isa.instructions import vectors_of
from relax_mlir.schedule.cpu.product.packing import Matrix
from relax_mlir.schedule.cpu.product.sides import (
    convert_of,
    epilogue_of,
    prepare_program,
    sliced_extent,
)
from relax_mlir.schedule.nests.emit import rewrite
from relax_mlir.target import Cpu

from .convolution_kernel import emit_convolution
from .convolution_problem import Filters, Image, Problem, pack_filters
from .place_tile import fills_vectors
from .pointwise_kernel import emit_pointwise
from .row_kernel import can_emit_rows, emit_rows, fits_rows
from .winograd_kernel import can_emit_winograd, emit_winograd, pays_winograd

ALGEBRAIC = ("reassoc", "nnan", "ninf")
"""Fast-math flags that let products be taken of sums of numbers, in place of sums of products."""
_SUMS = (ir.F32Type, ir.F16Type, ir.BF16Type)
"""Element types whose sums are computed in f32."""
LEAST_FILTERS = 8
MAX_TAPS, MAX_STRIDE = 1024, 64
"""Larger windows and strides are for general loops: code grows with them here."""
"""Filters of a group that are worth lanes of their own."""


@dataclass(frozen=True)
class Convolution:
    """A stage that adds up windows, and the roles of its loops.

    `contraction` has the image as its left side, (n, (g), y) as batch, filters as rows and x as
    columns. Pairs are for rows and columns of the image. Where `packed`, the rows are the number of
    a panel and the filter in it; panels are [v, u, c, filter]. Equal expressions will do where it
    is `algebraic`.
    """

    contraction: Contraction
    image: Factor
    filters: Factor
    grouped: bool
    channel: int
    places: tuple[int, int]
    window: tuple[int, int]
    strides: tuple[int, int]
    dilation: tuple[int, int]
    padding: tuple[int, int]
    padded: bool
    packed: bool
    algebraic: bool

    @property
    def is_pointwise(self) -> bool:
        """Whether each place of the result is made of one place of the image."""
        return self.window == (1, 1) and not self.padded


def grows_with(window: Sequence[int], steps: Iterable[tuple[int, int]]) -> bool:
    """Whether code for a window would be too long; `steps` are strides and dilations."""
    return prod(window) > MAX_TAPS or max(stride for stride, _ in steps) > MAX_STRIDE


def schedule(prim_func: PrimFunc, cpu: Cpu, fuse: bool) -> bool:
    """Rewrites a tensor program that convolves float images into loops over memrefs.

    Returns False, and leaves the function alone, if it is of another kind. `fuse` is not read.
    """
    blocking = Blocking.of(cpu)
    return rewrite(
        prim_func,
        vectors_of(cpu),
        lambda program: match(program, blocking.columns),
        lambda kernel, found: _emit(kernel, blocking, found),
    )


def match(program: Program, panel: int) -> Convolution | None:
    """The convolution of a program that works elementwise on its result, or None.

    The padding is taken out of the program. `panel` is the width of packed filters.
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
        found = _match_sides(stage, image, values, initial, panel)
        if found is not None:
            return found
    return None


def _match_sides(
    stage: Stage, image: int, values: dict[int, ir.Value], initial: float, panel: int
) -> Convolution | None:
    """The stage as a convolution whose image is that read."""
    places = loops_of(stage.inits[0].indices)
    weights = loops_of(stage.reads[1 - image].indices)
    if places is None or weights is None or len(set(places)) != len(places):
        return None
    if len(places) < 4 or len(weights) < 4:
        return None
    *leading, y, x = places
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
    few = group and (stage.extents[rows[-1]] or 0) < LEAST_FILTERS
    if extents is None or few or grows_with(extents, windows):
        return None
    padding = _take_padding(stage, image, values[image])
    if padding is None:
        return None
    sides = all_known(factor_of(stage, number, values[number]) for number in (image, 1 - image))
    if sides is None or sides[1].casts:
        return None
    left, right = sides
    if left.indices != stage.reads[image].indices:
        return None  # what the image goes through permutes it
    batch = (leading[0], *group, y)
    contraction = Contraction(stage, left, right, batch, rows, (x,), channel, packed, initial)
    (down, rows_apart), (across, columns_apart) = windows
    return Convolution(
        contraction, left, right, bool(group), channel, (y, x), (extents[0], extents[1]),
        (down, across), (rows_apart, columns_apart), padding[:2], padding[2], packed,
        _is_algebraic(stage),
    )  # fmt: skip


def _is_algebraic(stage: Stage) -> bool:
    """Whether the body says that finite sums of products may become equal expressions."""
    steps = [op for op in stage.body.operations if isinstance(op, arith.AddFOp | arith.MulFOp)]
    flags = [str(op.attributes["fastmath"]).strip("#>").split("<")[1].split(",") for op in steps]
    return bool(flags) and all("fast" in some or {*ALGEBRAIC} <= {*some} for some in flags)


def _spatial(
    stage: Stage, image: int, rows: tuple[int, int], columns: tuple[int, int]
) -> list[tuple[ir.AffineExpr, tuple[int, int]]]:
    """The last two indices of the image, each with the loops that it is to be made of."""
    indices = stage.reads[image].indices
    return list(zip(indices[-2:], (rows, columns), strict=True))


def window_of(expression: ir.AffineExpr, position: int, within: int) -> tuple[int, int] | None:
    """The positive factors of the two loops that an index adds up; None if it is no window."""
    terms = _terms(expression)
    if terms is None or set(terms) != {position, within}:
        return None
    found = terms[position], terms[within]
    return found if min(found) > 0 else None


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


def _take_padding(stage: Stage, number: int, value: ir.Value) -> tuple[int, int, bool] | None:
    """Lets the stage read the image itself; returns rows above, columns to the left, and whether.

    None if what surrounds the image is more than zeros around its last two dims.
    """
    operand = stage.reads[number]
    tensor = operand.tensor
    if not isinstance(tensor, Computed) or tensor.stage.window is None:
        return 0, 0, False
    insertion, window = tensor.stage, tensor.stage.window
    offsets = window.offsets
    above, left = offsets[-2:]
    if not isinstance(above, int) or not isinstance(left, int) or window.dropped:
        return None
    if any(offsets[:-2]) or any(x != 1 for x in window.strides):
        return None
    if constant_of(insertion.inits[0].tensor) != 0 or not _keeps_zero(stage, number, value):
        return None
    stage.reads[number] = Operand(insertion.reads[0].tensor, operand.indices)
    return above, left, True


def _keeps_zero(stage: Stage, number: int, value: ir.Value) -> bool:
    """Whether the body multiplies with the number that it reads, widened at most."""
    argument = stage.body.arguments[number]
    if value == argument:
        return True
    wide = not isinstance(value.owner, ir.Block) and isinstance(value.owner.opview, arith.ExtFOp)
    return wide and value.owner.operands[0] == argument


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
        joined = replace(contraction, batch=contraction.batch[:-1], columns=convolution.places)
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
    """Emits the kernel whose lanes run along places where that pays, else that along filters.

    `flat` is the epilogue over places as one dim, for windows of one place.
    """
    if flat is not None and filters.convert is None:
        pays = fills_vectors(blocking, mul(*problem.places), problem.depth)
        dense = replace(problem, epilogue=flat)
        joined = problem
        if problem.strides == (1, 1):  # where a row ends the next one begins
            row = 1, mul(*problem.places)
            joined = replace(dense, sizes=row, places=row, flat=True)
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
    """What the kernel computes, with extents and memory."""
    contraction = convolution.contraction
    view = kernel.view(convolution.image.tensor)
    if view is None or not isinstance(view.strides[-1], int) or view.strides[-1] != 1:
        raise Refusal("channels of the image are not side by side in memory")
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
        places=(shape[convolution.places[0]], shape[convolution.places[1]]),
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
