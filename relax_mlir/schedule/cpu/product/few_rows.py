"""The matrix multiplication kernels for few rows, which stream the right side once from memory.

For weights [n, k], a few of their rows times a few rows of the left side at a time, with vectors of
partial sums along k in registers and a horizontal reduction at the end. For weights [k, n], a few
rows at a time, with the sums in the L1 cache. Weights are not packed, and are used for all rows of
the left side once they are in the cache.
"""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace

from relax_mlir.bindings import ir, memref, vector
from relax_mlir.schedule.build.block import Block
from relax_mlir.schedule.build.loops import (
    Index,
    add,
    broadcast,
    ceil_div,
    floor_div,
    for_range,
    if_else,
    least_fitting,
    less,
    load,
    mask,
    maximum,
    minimum,
    mod,
    mul,
    parallel_range,
    round_up,
    scratch,
    select,
    store,
    sub,
    value,
)
from relax_mlir.schedule.cpu.blocking import Blocking, FewRows

from .operands import Operand, Unpacked
from .packing import NO_SUMS, Matrix, RowCopy
from .product import Product
from .row_starts import RowStarts


def reads_along_k(product: Product) -> bool:
    """Whether the right side is [n, k]; only then are steps of groups supported here."""
    return _first(product).k_is_innermost


def _first(product: Product) -> Matrix:
    """The first right side at the first index of the batch."""
    return _matrix(product.rhs[0], [0] * len(product.batch))


def _matrix(operand: Operand, batch: Sequence[Index]) -> Matrix:
    """A right side at an index of the batch."""
    assert isinstance(operand, Unpacked)
    return operand.side(batch)


def emit_few_rows(blocking: Blocking, product: Product) -> None:
    """Emits the loop over strips of columns, each one task, at the insertion point.

    Needs right sides that are not packed, and few rows at run time: see `blocking.FewRows`.
    """
    along_k = reads_along_k(product)
    width, stride = (blocking.columns, blocking.columns) if along_k else _strip(blocking, product)
    strips = ceil_div(product.columns, width)
    depth = _first(product).depth
    depth = depth if isinstance(depth, int) else 512
    grain = (
        max(1, blocking.family.few_rows.task_elements // max(1, depth * blocking.columns))
        if along_k
        else 1
    )
    with ExitStack() as outer:
        left = left_rows(blocking, product, outer)

        def emit_task(task: ir.Value) -> None:
            index = floor_div(task, strips)
            batch = product.batch_index(index)
            column = mul(mod(task, strips), width)
            columns = minimum(sub(product.columns, column), width)
            with ExitStack() as stack:
                size = mul(product.rows, stride)
                total = product.step.total
                buffers = [stack.enter_context(scratch(size, total)) for _ in product.rhs]
                for buffer, rhs in zip(buffers, product.rhs, strict=True):
                    rows, starts = left(index, batch)
                    strip = _Strip(
                        blocking,
                        product,
                        rows,
                        starts,
                        _matrix(rhs, batch),
                        column,
                        columns,
                        buffer,
                        stride,
                    )
                    strip.sum_along_k() if along_k else strip.sum_along_n()
                block = Block(batch, 0, product.rows, column, columns, tuple(buffers), stride)
                product.epilogue(block)

        parallel_range(mul(product.batch_size, strips), grain, emit_task)


def _strip(blocking: Blocking, product: Product) -> tuple[Index, int]:
    """Width of a strip of a [k, n] right side, and its upper bound.

    It is wide enough for long streams from memory, and narrow enough to occupy several threads.
    """
    few = blocking.family.few_rows
    even = round_up(ceil_div(product.columns, few.strips), blocking.lanes)
    return minimum(maximum(even, few.min_strip), few.max_strip), few.max_strip


def left_rows(
    blocking: Blocking, product: Product, stack: ExitStack
) -> Callable[[Index, Sequence[Index]], tuple[Matrix, RowStarts]]:
    """The left side, contiguous along k and converted, and the initial values of its rows' sums.

    It is packed unless it is so already. The result takes the linear index of a matrix in the
    batch, and its index.
    """
    first, step = product.lhs([0] * len(product.batch)), product.step
    plain = RowStarts(step, product.initial, product.factor, None)
    if not first.convert and first.k_is_innermost and step.group == 1:
        return lambda _, batch: (product.lhs(batch), plain)
    rows, stride = round_up(product.rows, blocking.lanes), round_up(product.depth, blocking.lanes)
    size, count = mul(rows, stride), product.batch_size
    buffer = stack.enter_context(scratch(mul(count, size), step.storage))
    if product.factor:
        room = scratch(mul(count, rows, blocking.lanes), step.total)
        plain = replace(plain, buffer=stack.enter_context(room))

    def starts(index: Index) -> RowStarts:
        return replace(plain, first=mul(index, rows))

    def copy(index: ir.Value) -> None:
        source, start = product.lhs(product.batch_index(index)), mul(index, size)
        sums = starts(index) if product.factor else NO_SUMS
        RowCopy(step, buffer, start, stride, product.depth, sums=sums).copy(source, 0, product.rows)

    def left(index: Index, _: Sequence[Index]) -> tuple[Matrix, RowStarts]:
        at = mul(index, size)
        return Matrix(buffer, at, stride, 1, product.rows, product.depth), starts(index)

    parallel_range(count, 1, copy)
    return left


@dataclass(frozen=True)
class _Strip:
    """sums[i, j] = initial + lhs[i, :] . rhs[column + j, :] for all rows i and `columns` j."""

    blocking: Blocking
    product: Product
    lhs: Matrix
    row_starts: RowStarts
    rhs: Matrix
    column: Index
    columns: Index
    sums: ir.Value
    stride: int

    @property
    def _few(self) -> FewRows:
        """The limits and sizes of this kernel."""
        return self.blocking.family.few_rows

    def sum_along_k(self) -> None:
        """For weights that are contiguous along k; stores whole groups of columns."""
        columns_at_once = min(self._few.columns_at_once, self.blocking.lanes)
        max_rows = (self.blocking.registers - columns_at_once - 1) // columns_at_once - 1
        rows = self.lhs.rows
        groups = ceil_div(rows, max_rows)
        least, longer = floor_div(rows, maximum(groups, 1)), mod(rows, maximum(groups, 1))

        def columns(j: ir.Value) -> None:
            last = sub(self.rhs.rows, 1)
            wanted = [minimum(add(self.column, j, c), last) for c in range(columns_at_once)]
            starts = [self.rhs.at(row, 0) for row in wanted]

            # The first `longer` groups have one row more.
            def group(g: ir.Value) -> None:
                row = add(mul(g, least), minimum(g, longer))
                count = add(least, select(less(g, longer), value(1), value(0)))
                least_fitting(
                    count, range(1, max_rows + 1), lambda rows: self._dots(starts, row, rows, j)
                )

            for_range(0, groups, 1, group)

        for_range(0, self.columns, columns_at_once, columns)

    def sum_along_n(self) -> None:
        """For weights that are contiguous along n."""
        lanes, depth = self.blocking.lanes, self.lhs.depth
        initial = self.product.step.splat(self.product.initial)

        def fill(i: ir.Value) -> None:
            start = mul(i, self.stride)
            for_range(0, self.columns, lanes, lambda j: store(initial, self.sums, add(start, j)))

        def several(k: ir.Value, count: int) -> None:
            starts = [self.rhs.at(self.column, add(k, u)) for u in range(count)]
            self._row_groups(lambda row, rows: self._accumulate(starts, k, row, rows))

        for_range(0, self.lhs.rows, 1, fill)
        together = self._few.k_at_once
        main = sub(depth, mod(depth, together))
        for_range(0, main, together, lambda k: several(k, together))
        for_range(main, depth, 1, lambda k: several(k, 1))

    def _row_groups(self, emit: Callable[[Index, int], None]) -> None:
        """Emits `emit(first row, count of rows)` for all rows, a few at a time."""
        together = self._few.rows_at_once
        rest = mod(self.lhs.rows, together)
        full = sub(self.lhs.rows, rest)
        for_range(0, full, together, lambda row: emit(row, together))

        def some() -> None:
            least_fitting(rest, range(1, together), lambda count: emit(full, count))

        if_else(less(0, rest), some)

    def _dots(self, starts: Sequence[Index], row: Index, rows: int, j: ir.Value) -> None:
        """sums[row + i, j + c] for `rows` rows and the weights at each of `starts`."""
        lanes, depth = self.blocking.lanes, self.lhs.depth
        step = self.product.step
        count = rows * len(starts)
        unroll = -(-self._few.sums // count)
        next_columns = add(starts[0], mul(self.rhs.row_stride, len(starts)))
        whole = floor_div(self.rhs.depth, step.group)
        main = sub(whole, mod(whole, unroll * lanes))

        def one(k: Index, sums: Sequence[ir.Value], keep: bool) -> list[ir.Value]:
            width, at = lanes * step.group, mul(k, step.group)
            some = mask(sub(self.rhs.depth, at), width) if keep else None
            loaded = [self.rhs.load(add(start, at), width, some) for start in starts]
            right = [step.right_of(x) for x in loaded]
            self.rhs.prefetch(add(next_columns, mul(at, len(starts))), len(starts) * width)
            some = mask(sub(depth, k), lanes) if keep else None
            result = []
            for i in range(rows):
                left = step.unpack(self.lhs.load(self.lhs.at(add(row, i), k), lanes, some))
                own = sums[i * len(starts) : (i + 1) * len(starts)]
                result += [step(left, r, total) for r, total in zip(right, own, strict=True)]
            return result

        def several(k: ir.Value, *sums: ir.Value) -> list[ir.Value]:
            result = []
            for u in range(unroll):
                result += one(add(k, u * lanes), sums[u * count : (u + 1) * count], False)
            return result

        zero = step.splat(0)
        parts = for_range(0, main, unroll * lanes, several, [zero] * (count * unroll))
        total = parts[:count]
        for u in range(1, unroll):
            part = parts[u * count : (u + 1) * count]
            total = [step.add(a, b) for a, b in zip(total, part, strict=True)]
        total = for_range(main, depth, lanes, lambda k, *sums: one(k, sums, True), total)
        for i in range(rows):
            initial = self.row_starts.load(add(row, i), len(starts))
            across = add_across(total[i * len(starts) : (i + 1) * len(starts)], step.add)
            at = add(mul(add(row, i), self.stride), j)
            store(step.add(initial, across), self.sums, at)

    def _accumulate(self, starts: Sequence[Index], k: ir.Value, row: Index, rows: int) -> None:
        """Adds lhs[row + i, k + u] * (weights at starts[u]) to the sums of `rows` rows."""
        lanes, lhs, sums = self.blocking.lanes, self.lhs, self.sums

        def left(i: int, u: int) -> ir.Value:
            at = lhs.at(add(row, i), add(k, u))
            return broadcast(memref.load(lhs.buffer, [value(at)]), lanes)

        factors = [[left(i, u) for u in range(len(starts))] for i in range(rows)]
        offsets = [mul(add(row, i), self.stride) for i in range(rows)]

        def along(j: Index, keep: ir.Value | None = None) -> None:
            right = [self.rhs.load(add(start, j), lanes, keep) for start in starts]
            for offset, own in zip(offsets, factors, strict=True):
                total = load(sums, add(offset, j), lanes)
                for x, y in zip(own, right, strict=True):
                    total = self.product.step(x, y, total)
                store(total, sums, add(offset, j))

        # Masks only at the end: without instructions for them, each lane is a branch.
        rest = mod(self.columns, lanes)
        whole = sub(self.columns, rest)
        for_range(0, whole, lanes, along)
        if_else(less(0, rest), lambda: along(whole, mask(rest, lanes)))


Add = Callable[[ir.Value, ir.Value], ir.Value]


def add_across(vectors: Sequence[ir.Value], plus: Add) -> ir.Value:
    """The horizontal sum of each of 2^n vectors, next to each other in one vector.

    Each round turns two vectors into one that holds half as many partial sums of each.
    """
    lanes = ir.VectorType(vectors[0].type).shape[0]
    partial = list(vectors)
    runs = 1  # runs of partial sums in each vector, one for each original vector
    while len(partial) > 1:
        partial = [
            _halved(partial[i], partial[i + len(partial) // 2], lanes, runs, plus)
            for i in range(len(partial) // 2)
        ]
        runs *= 2
    (total,) = partial
    while lanes > runs:
        size = lanes // runs
        low = [r * size + i for r in range(runs) for i in range(size // 2)]
        high = [r * size + i for r in range(runs) for i in range(size // 2, size)]
        total = plus(vector.shuffle(total, total, low), vector.shuffle(total, total, high))
        lanes //= 2
    return total


def _halved(a: ir.Value, b: ir.Value, lanes: int, runs: int, plus: Add) -> ir.Value:
    """The runs of a and b, interleaved, each reduced to half its length."""
    size = lanes // runs
    low, high = [], []
    for r in range(runs):
        for start in (0, lanes):
            low += [start + r * size + i for i in range(size // 2)]
            high += [start + r * size + i for i in range(size // 2, size)]
    return plus(vector.shuffle(a, b, low), vector.shuffle(a, b, high))
