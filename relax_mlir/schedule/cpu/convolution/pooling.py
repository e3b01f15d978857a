"""The rule for pooling, by maxima, minima or sums: first rows of a window, then columns.

    %p = tensor.insert_slice %x into %lowest          for each (image, channel) in parallel
    %m = linalg.generic (windows) %p           ->       for each row of the result
    return %m                                             best of the window's rows -> one line
                                                          best of the window's columns of the line

    result[.., y, x] = max over u, v of image[.., y * s + u * d, x * t + v * e]

A row of the image is loaded once for each row of the window, in whole vectors; strided columns are
deinterleaved from the line by shuffles.

Needs: named linalg ops generalised. Leaves: a scheduled kernel, or the function unchanged.
"""

from dataclasses import dataclass

from relax_mlir.bindings import ir
from relax_mlir.dialects.graph import element_bits
from relax_mlir.dialects.tir import PrimFunc
from relax_mlir.program.contraction import loop_of, loops_of
from relax_mlir.program.program import Argument, Computed, Operand, Program, Splat, Stage, all_known
from relax_mlir.schedule.build.body import emit_body
from relax_mlir.schedule.build.deinterleave import load_strided
from relax_mlir.schedule.build.kernel import Kernel
from relax_mlir.schedule.build.lanes import Uniform, Varying, to_vector
from relax_mlir.schedule.build.loops import (
    Index,
    add,
    ceil_div,
    for_range,
    if_else,
    less,
    load,
    mask,
    maximum,
    minimum,
    mod,
    mul,
    parallel_range,
    scratch,
    store,
    sub,
)
from relax_mlir.schedule.build.memory import View, storage_type
from relax_mlir.schedule.build.product_parts import prepare_program
from relax_mlir.schedule.build.refusal import Refusal
from relax_mlir.schedule.cpu.isa.instructions import vectors_of
from relax_mlir.schedule.nests.emit import rewrite
from relax_mlir.target import Cpu

from .convolution import grows_with, window_of
from .convolution_problem import saturating_sub

_COMBINERS = (
    *("arith.maximumf", "arith.minimumf", "arith.maxsi", "arith.minsi"),
    *("arith.maxui", "arith.minui"),
    *("arith.addf", "arith.addi"),
)
_GRAIN = 4
_AT_ONCE = 4
"""Vectors of a row that are compared before the next row is read."""


@dataclass(frozen=True)
class Pooling:
    """A stage that computes the best element of windows; pairs are for rows and columns.

    `leading` are the loops outside of the rows.
    """

    stage: Stage
    leading: tuple[int, ...]
    pixels: tuple[int, int]
    window: tuple[int, int]
    strides: tuple[int, int]
    dilation: tuple[int, int]
    padding: tuple[int, int]


def schedule(prim_func: PrimFunc, cpu: Cpu, fuse: bool) -> bool:
    """Rewrites a tensor program that pools an image into loops over memrefs.

    Returns False, and leaves the function unchanged, if the program is another one. `fuse` is
    ignored.
    """
    return rewrite(
        prim_func, vectors_of(cpu), match, lambda k, pooling: _Emitter.of(k, pooling).emit()
    )


def match(program: Program) -> Pooling | None:
    """The pooling that a program consists of, or None. The padding is removed from the program."""
    stages = [stage for stage in program.stages if stage.window is None]
    if len(stages) != 1 or len(stages[0].reads) != 2 or len(stages[0].inits) != 1:
        return None
    stage = stages[0]
    names = [op.operation.name for op in stage.block.operations] if stage.block else []
    pixels = loops_of(stage.inits[0].indices)
    within = loops_of(stage.reads[1].indices)
    if len(names) != 2 or names[0] not in _COMBINERS or pixels is None or within is None:
        return None
    used = set(stage.body.operations[0].operands)
    if (
        used != {stage.body.arguments[0], stage.body.arguments[2]}
        or len(within) != 2
        or len(pixels) < 2
    ):
        return None
    *leading, y, x = pixels
    image = stage.reads[0]
    if [loop_of(e) for e in image.indices[:-2]] != leading or _fill_of(stage) is None:
        return None
    pairs = (y, within[0]), (x, within[1])
    windows = all_known(
        window_of(e, *pair) for e, pair in zip(image.indices[-2:], pairs, strict=True)
    )
    extents = all_known(stage.extents[loop] for loop in within)
    if windows is None or extents is None or grows_with(extents, windows):
        return None
    padding = _take_padding(stage)
    if padding is None:
        return None
    if not isinstance(stage.reads[0].tensor, Argument):
        return None
    (row_stride, row_dilation), (column_stride, column_dilation) = windows
    return Pooling(
        stage, tuple(leading), (y, x), (extents[0], extents[1]), (row_stride, column_stride),
        (row_dilation, column_dilation), padding,
    )  # fmt: skip


def _fill_of(stage: Stage) -> ir.Attribute | None:
    """The initial value of the result as an attribute, or None."""
    start = stage.inits[0].tensor
    scalar = start.scalar if isinstance(start, Splat) else None
    if isinstance(scalar, ir.Value):
        known = not isinstance(scalar.owner, ir.Block) and scalar.owner.name == "arith.constant"
        return scalar.owner.attributes["value"] if known else None
    return scalar


def _start_of(kernel: Kernel, stage: Stage) -> Uniform:
    """The initial value of the result of a pooling."""
    start = stage.inits[0].tensor
    assert isinstance(start, Splat)
    return kernel.splat(start)


def _take_padding(stage: Stage) -> tuple[int, int] | None:
    """Lets the stage read the unpadded image; returns the rows on top and the columns to the left.

    None if the padding is not the initial value of the result.
    """
    operand = stage.reads[0]
    if not isinstance(operand.tensor, Computed):
        return 0, 0
    insertion = operand.tensor.stage
    if insertion.window is None or insertion.window.dropped:
        return None
    offsets = insertion.window.offsets
    same = _fill_of(insertion) == _fill_of(stage)
    top, left = offsets[-2:]
    if not isinstance(top, int) or not isinstance(left, int) or any(offsets[:-2]):
        return None
    if not same or any(x != 1 for x in insertion.window.strides):
        return None
    stage.reads[0] = Operand(insertion.reads[0].tensor, operand.indices)
    return top, left


@dataclass(frozen=True)
class _Emitter:
    """Emits the loops over images, rows and columns."""

    kernel: Kernel
    pooling: Pooling
    image: View
    result: View
    lanes: int
    start: ir.Value  # a vector of the initial value

    @staticmethod
    def of(kernel: Kernel, pooling: Pooling) -> "_Emitter":
        """Emits the values that all loops use. Raises Refusal for memory that has gaps."""
        prepare_program(kernel)
        stage = pooling.stage
        image, result = kernel.view(stage.reads[0].tensor), kernel.view(stage.results[0])
        if image is None or result is None or not (image.whole and result.whole):
            raise Refusal("the image or the result has gaps in memory")
        element = stage.results[0].element
        if storage_type(element) != element:
            raise Refusal("the result is of predicates")
        lanes = kernel.vectors.lanes(max(32, element_bits(element)))
        start = to_vector(_start_of(kernel, stage), lanes)
        return _Emitter(kernel, pooling, image, result, lanes, start)

    def emit(self) -> None:
        """Emits the whole kernel."""
        pooling, image, result = self.pooling, self.image, self.result
        count = mul(1, *result.sizes[:-2])
        (height, width), (rows, columns) = image.sizes[-2:], result.sizes[-2:]
        left = pooling.padding[1]
        reach = (pooling.window[1] - 1) * pooling.dilation[1] + 1
        step = pooling.strides[1]
        # Whole vectors are loaded after the last pixel too.
        line = add(maximum(add(width, left), add(mul(columns, step), reach)), 2 * step * self.lanes)

        def plane(index: ir.Value) -> None:
            source = add(image.offset, mul(index, height, width))
            target = add(result.offset, mul(index, rows, columns))
            with scratch(line, image.element) as best:
                self._fill(best, line)

                def row(y: ir.Value) -> None:
                    self._best_rows(source, y, best)
                    self._best_columns(best, add(target, mul(y, columns)), columns)

                for_range(0, rows, 1, row)

        parallel_range(count, _GRAIN, plane)

    def _fill(self, best: ir.Value, count: Index) -> None:
        full = sub(count, mod(count, self.lanes))
        for_range(0, full, self.lanes, lambda i: store(self.start, best, i))

        def rest() -> None:
            store(self.start, best, full, mask(sub(count, full), self.lanes))

        if_else(less(full, count), rest)

    def _better(self, x: ir.Value, best: ir.Value) -> ir.Value:
        """The better of two vectors, computed by the body."""
        block = self.pooling.stage.body
        unused = _start_of(self.kernel, self.pooling.stage)
        result = emit_body(
            block, [Varying(x), unused, Varying(best)], self.lanes, captured=self.kernel.scalars
        )
        return to_vector(result[0], self.lanes)

    def _best_rows(self, source: Index, y: Index, best: ir.Value) -> None:
        """Writes the best of the window's rows, column by column of the image, to the line."""
        pooling, lanes = self.pooling, self.lanes
        height, width = self.image.sizes[-2:]
        (top, left), (window_rows, _), (step, _) = pooling.padding, pooling.window, pooling.dilation
        first = mul(y, pooling.strides[0])
        begin = minimum(ceil_div(saturating_sub(top, first), step), window_rows)
        end = minimum(ceil_div(saturating_sub(add(height, top), first), step), window_rows)

        def block(j: Index, count: int, keep: ir.Value | None) -> None:
            def row(u: ir.Value, *running: ir.Value) -> list[ir.Value]:
                at = add(source, mul(sub(add(first, mul(u, step)), top), width), j)
                loaded = [
                    load(self.image.base, add(at, i * lanes), lanes, keep) for i in range(count)
                ]
                return [self._better(x, b) for x, b in zip(loaded, running, strict=True)]

            result = for_range(begin, maximum(begin, end), 1, row, [self.start] * count)
            for i, x in enumerate(result):
                store(x, best, add(left, j, i * lanes), keep)

        step_width = _AT_ONCE * lanes
        aligned = sub(width, mod(width, step_width))
        full = sub(width, mod(width, lanes))
        for_range(0, aligned, step_width, lambda j: block(j, _AT_ONCE, None))
        for_range(aligned, full, lanes, lambda j: block(j, 1, None))
        if_else(less(full, width), lambda: block(full, 1, mask(sub(width, full), lanes)))

    def _best_columns(self, best: ir.Value, target: Index, columns: Index) -> None:
        """Stores the best of the window's columns of the line."""
        pooling, lanes = self.pooling, self.lanes

        def block(x: Index, keep: ir.Value | None) -> None:
            first = mul(x, pooling.strides[1])
            result = self.start
            for v in range(pooling.window[1]):
                at = add(first, v * pooling.dilation[1])
                result = self._better(load_strided(best, at, pooling.strides[1], lanes), result)
            store(result, self.result.base, add(target, x), keep)

        full = sub(columns, mod(columns, lanes))
        for_range(0, full, lanes, lambda x: block(x, None))
        if_else(less(full, columns), lambda: block(full, mask(sub(columns, full), lanes)))
