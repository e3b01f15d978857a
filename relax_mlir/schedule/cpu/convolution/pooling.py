"""The rule for the greatest or least element of windows: rows first, then along the row.

    %p = tensor.insert_slice %x into %lowest          for each (image, channel) in parallel
    %m = linalg.generic (windows) %p           ->       for each row of the result
    return %m                                             best of the window's rows -> one line
                                                          best of the window's columns of the line

    result[.., y, x] = max over u, v of image[.., y * s + u * d, x * t + v * e]

A row of the image is read once for each row of the window, by whole vectors; columns that lie
apart are taken from the line by shuffles.

Needs: named linalg ops generalised. Leaves: a scheduled kernel, or the function as it was.
"""

from dataclasses import dataclass

from relax_mlir.bindings import ir
from relax_mlir.dialects.graph import element_bits
from relax_mlir.dialects.tir import PrimFunc
from relax_mlir.program.contraction import loop_of, loops_of
from relax_mlir.program.program import Argument, Computed, Operand, Program, Splat, Stage, all_known
from relax_mlir.schedule.build.body import emit_body
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
from relax_mlir.schedule.build.refusal import Refusal
from relax_mlir.schedule.build.strided import load_strided
from relax_mlir.schedule.cpu.isa.instructions import vectors_of
from relax_mlir.schedule.cpu.product.sides import prepare_program
from relax_mlir.schedule.nests.emit import rewrite
from relax_mlir.target import Cpu

from .convolution import grows_with, window_of

_BEST = ("arith.maximumf", "arith.minimumf", "arith.maxsi", "arith.minsi")
_GRAIN = 4
_AT_ONCE = 4
"""Vectors of a row that are compared before the next row is read."""


@dataclass(frozen=True)
class Pooling:
    """A stage that finds the best element of windows; pairs are for rows and columns.

    `leading` are the loops in front of the rows, `fill` is what surrounds the image.
    """

    stage: Stage
    leading: tuple[int, ...]
    places: tuple[int, int]
    window: tuple[int, int]
    strides: tuple[int, int]
    dilation: tuple[int, int]
    padding: tuple[int, int]


def schedule(prim_func: PrimFunc, cpu: Cpu, fuse: bool) -> bool:
    """Rewrites a tensor program that pools an image into loops over memrefs.

    Returns False, and leaves the function alone, if it is of another kind. `fuse` is not read.
    """
    return rewrite(
        prim_func, vectors_of(cpu), match, lambda k, pooling: _Emitter.of(k, pooling).emit()
    )


def match(program: Program) -> Pooling | None:
    """The pooling that a program consists of, or None. The padding is taken out of the program."""
    stages = [stage for stage in program.stages if stage.window is None]
    if len(stages) != 1 or len(stages[0].reads) != 2 or len(stages[0].inits) != 1:
        return None
    stage = stages[0]
    names = [op.operation.name for op in stage.block.operations] if stage.block else []
    places = loops_of(stage.inits[0].indices)
    within = loops_of(stage.reads[1].indices)
    if len(names) != 2 or names[0] not in _BEST or places is None or within is None:
        return None
    used = set(stage.body.operations[0].operands)
    if (
        used != {stage.body.arguments[0], stage.body.arguments[2]}
        or len(within) != 2
        or len(places) < 2
    ):
        return None
    *leading, y, x = places
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
    (down, rows_apart), (right, columns_apart) = windows
    return Pooling(
        stage, tuple(leading), (y, x), (extents[0], extents[1]), (down, right),
        (rows_apart, columns_apart), padding,
    )  # fmt: skip


def _fill_of(stage: Stage) -> ir.Attribute | None:
    """The number that the result starts with, as an attribute, or None."""
    start = stage.inits[0].tensor
    scalar = start.scalar if isinstance(start, Splat) else None
    if isinstance(scalar, ir.Value):
        known = not isinstance(scalar.owner, ir.Block) and scalar.owner.name == "arith.constant"
        return scalar.owner.attributes["value"] if known else None
    return scalar


def _start_of(kernel: Kernel, stage: Stage) -> Uniform:
    """The number that the result of a pooling starts with."""
    start = stage.inits[0].tensor
    assert isinstance(start, Splat)
    return kernel.splat(start)


def _take_padding(stage: Stage) -> tuple[int, int] | None:
    """Lets the stage read the image itself; returns the rows above and the columns to the left.

    None if what surrounds the image is not what the result starts with.
    """
    operand = stage.reads[0]
    if not isinstance(operand.tensor, Computed):
        return 0, 0
    insertion = operand.tensor.stage
    if insertion.window is None or insertion.window.dropped:
        return None
    offsets = insertion.window.offsets
    same = _fill_of(insertion) == _fill_of(stage)
    above, left = offsets[-2:]
    if not isinstance(above, int) or not isinstance(left, int) or any(offsets[:-2]):
        return None
    if not same or any(x != 1 for x in insertion.window.strides):
        return None
    stage.reads[0] = Operand(insertion.reads[0].tensor, operand.indices)
    return above, left


@dataclass(frozen=True)
class _Emitter:
    """Emits the loops over images, rows and columns."""

    kernel: Kernel
    pooling: Pooling
    image: View
    result: View
    lanes: int
    start: ir.Value  # a vector of what the result starts with

    @staticmethod
    def of(kernel: Kernel, pooling: Pooling) -> "_Emitter":
        """Emits what all loops use. Raises Refusal for memory that has gaps."""
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
        # Whole vectors are loaded behind the last place too.
        line = add(maximum(add(width, left), add(mul(columns, step), reach)), 2 * step * self.lanes)

        def plane(number: ir.Value) -> None:
            source = add(image.offset, mul(number, height, width))
            cpu = add(result.offset, mul(number, rows, columns))
            with scratch(line, image.element) as best:
                self._fill(best, line)

                def row(y: ir.Value) -> None:
                    self._best_rows(source, y, best)
                    self._best_columns(best, add(cpu, mul(y, columns)), columns)

                for_range(0, rows, 1, row)

        parallel_range(count, _GRAIN, plane)

    def _fill(self, best: ir.Value, count: Index) -> None:
        full = sub(count, mod(count, self.lanes))
        for_range(0, full, self.lanes, lambda i: store(self.start, best, i))

        def rest() -> None:
            store(self.start, best, full, mask(sub(count, full), self.lanes))

        if_else(less(full, count), rest)

    def _better(self, x: ir.Value, best: ir.Value) -> ir.Value:
        """The better of two vectors, as the body has it."""
        block = self.pooling.stage.body
        unused = _start_of(self.kernel, self.pooling.stage)
        found = emit_body(
            block, [Varying(x), unused, Varying(best)], self.lanes, captured=self.kernel.scalars
        )
        return to_vector(found[0], self.lanes)

    def _best_rows(self, source: Index, y: Index, best: ir.Value) -> None:
        """Writes the best of the window's rows, column by column of the image, to the line."""
        pooling, lanes = self.pooling, self.lanes
        height, width = self.image.sizes[-2:]
        (top, left), (high, _), (step, _) = pooling.padding, pooling.window, pooling.dilation
        first = mul(y, pooling.strides[0])
        begin = minimum(ceil_div(_above(top, first), step), high)
        end = minimum(ceil_div(_above(add(height, top), first), step), high)

        def block(j: Index, count: int, keep: ir.Value | None) -> None:
            def row(u: ir.Value, *held: ir.Value) -> list[ir.Value]:
                at = add(source, mul(sub(add(first, mul(u, step)), top), width), j)
                loaded = [
                    load(self.image.base, add(at, i * lanes), lanes, keep) for i in range(count)
                ]
                return [self._better(x, b) for x, b in zip(loaded, held, strict=True)]

            found = for_range(begin, maximum(begin, end), 1, row, [self.start] * count)
            for i, x in enumerate(found):
                store(x, best, add(left, j, i * lanes), keep)

        wide = _AT_ONCE * lanes
        most = sub(width, mod(width, wide))
        full = sub(width, mod(width, lanes))
        for_range(0, most, wide, lambda j: block(j, _AT_ONCE, None))
        for_range(most, full, lanes, lambda j: block(j, 1, None))
        if_else(less(full, width), lambda: block(full, 1, mask(sub(width, full), lanes)))

    def _best_columns(self, best: ir.Value, cpu: Index, columns: Index) -> None:
        """Stores the best of the window's columns of the line."""
        pooling, lanes = self.pooling, self.lanes

        def block(x: Index, keep: ir.Value | None) -> None:
            first = mul(x, pooling.strides[1])
            found = self.start
            for v in range(pooling.window[1]):
                at = add(first, v * pooling.dilation[1])
                found = self._better(load_strided(best, at, pooling.strides[1], lanes), found)
            store(found, self.result.base, add(cpu, x), keep)

        full = sub(columns, mod(columns, lanes))
        for_range(0, full, lanes, lambda x: block(x, None))
        if_else(less(full, columns), lambda: block(full, mask(sub(columns, full), lanes)))


def _above(a: Index, b: Index) -> Index:
    """a - b, or 0 if that is negative."""
    return sub(maximum(a, b), b)
