"""Operators whose data decide how large results are: a count first, then what is of that size.

Each function takes `name_size`, which makes a symbol of a count, an i64 of rank 0, that is known
when the program runs, with a name and a bound that it never exceeds.
"""

from collections.abc import Callable, Sequence

from relax_mlir.bindings import ir
from relax_mlir.dialects import graph
from relax_mlir.symbolic import Expr, product

from .emit import (
    add,
    arange,
    astype,
    dims_of,
    divide,
    element_of,
    emit,
    floor_divide,
    is_integer,
    less,
    maximum,
    multiply,
    permute,
    rank_of,
    reduce,
    reshape,
    scalar,
    subtract,
    symbol,
    where,
)

NameSize = Callable[[ir.Value, str, Expr | None], Expr]
_MOST = 2.0**62
"""Counts from here on are refused, before sums of them could wrap."""


def _i64() -> ir.Type:
    return ir.IntegerType.get_signless(64)


def nonzero(x: ir.Value, name_size: NameSize, name: str = "nonzero") -> ir.Value:
    """The indices of the elements that are not 0, a column for each."""
    x = x if rank_of(x) else reshape(x, [1])
    is_there = emit(graph.NotEqualOp, x, scalar(0, element_of(x)))
    count = reduce(graph.SumOp, astype(is_there, _i64()), range(rank_of(x)))
    size = name_size(count, name, product(dims_of(x)))
    return emit(graph.FirstNonzeroOp, x, count=[size])


def unique(
    x: ir.Value, axis: int | None, is_sorted: bool, wanted: Sequence[bool], name_size: NameSize
) -> list[ir.Value | None]:
    """Distinct elements or slices, their first indices, which each is, and their counts.

    Those of the four that are not `wanted` are None. Elements are sorted; where neighbours differ,
    another one begins.
    """
    source = reshape(x, [product(dims_of(x))]) if axis is None else x
    axis = axis or 0
    order, is_new = _sorted(source, axis)
    begins = _flat(nonzero(is_new, name_size, "unique"))
    indices = _take(order, begins)
    ranks = counts = None
    if wanted[2]:
        run = subtract(emit(graph.CumsumOp, astype(is_new, _i64()), **_FORWARD), 1)
        ranks = _put(run, order, run)
    if wanted[3]:
        counts = _lengths(begins, dims_of(order)[0])
    if not is_sorted:
        indices, by_index = _sort(indices)
        if ranks is not None:
            positions = arange(0, dims_of(by_index)[0], 1, _i64())
            ranks = _take(_put(by_index, by_index, positions), ranks)
        counts = None if counts is None else _take(counts, by_index)
    values = emit(graph.TakeOp, source, indices, axis=axis) if wanted[0] else None
    return [values, indices, ranks, counts]


_FORWARD = {"axis": 0, "exclusive": False, "reverse": False}


def _sorted(source: ir.Value, axis: int) -> tuple[ir.Value, ir.Value]:
    """The order of slices, and whether each of them in order differs from the one before."""
    rank, count = rank_of(source), dims_of(source)[axis]
    if str(element_of(source)) == "i1":
        source = astype(source, ir.IntegerType.get_signless(8))
    if rank == 1:
        lines, order = _sort(source)
    else:
        others = [i for i in range(rank) if i != axis]
        rows = permute(source, [axis, *others])
        rows = reshape(rows, [count, product([dims_of(source)[i] for i in others])])
        order = emit(graph.ArgsortRowsOp, rows)
        lines = _take(rows, order)
    before = emit(graph.RollOp, lines, shifts=[1], axes=[0])
    differ = emit(graph.NotEqualOp, lines, before)
    if not is_integer(element_of(lines)):
        are_nan = [emit(graph.IsnanOp, x) for x in (lines, before)]
        both = emit(graph.LogicalAndOp, *are_nan)
        differ = emit(graph.LogicalAndOp, differ, emit(graph.LogicalNotOp, both))
    differ = reduce(graph.AnyOp, differ, range(1, rank_of(lines)))
    is_first = emit(graph.EqualOp, arange(0, count, 1, _i64()), scalar(0, _i64()))
    return order, emit(graph.LogicalOrOp, differ, is_first)


def _sort(x: ir.Value) -> tuple[ir.Value, ir.Value]:
    """Elements in order, and where they were."""
    values, indices = graph.SortOp.build(x, axis=0, descending=False).operation.results
    return values, indices


def _flat(indices: ir.Value) -> ir.Value:
    """The only row of a matrix."""
    return reshape(indices, dims_of(indices)[1:])


def _take(x: ir.Value, indices: ir.Value) -> ir.Value:
    return emit(graph.TakeOp, x, indices, axis=0)


def _put(x: ir.Value, indices: ir.Value, values: ir.Value) -> ir.Value:
    """A vector with all its elements replaced, in an order."""
    return emit(graph.ScatterElementsOp, x, indices, values, axis=0, reduction="none")


def _lengths(begins: ir.Value, end: Expr) -> ir.Value:
    """How long the runs are that begin there; the first one begins at 0."""
    following = emit(graph.RollOp, begins, shifts=[-1], axes=[0])
    is_last = emit(graph.EqualOp, following, scalar(0, _i64()))
    return subtract(where(is_last, symbol(end, _i64()), following), begins)


def repeat_interleave(x: ir.Value, repeats: ir.Value, axis: int, name_size: NameSize) -> ir.Value:
    """Each position of the result looks for the slice that it is in."""
    counts = astype(repeats, _i64())
    total = reduce(graph.SumOp, counts, [0])
    rough = reduce(graph.SumOp, astype(counts, ir.F64Type.get()), [0])
    is_negative = reduce(graph.AnyOp, less(counts, 0), [0])
    is_wrong = emit(graph.LogicalOrOp, is_negative, _is_too_many(rough))
    size = name_size(where(is_wrong, -1, total), "repeats", None)
    ends = emit(graph.CumsumOp, counts, **_FORWARD)
    positions = arange(0, size, 1, _i64())
    indices = emit(graph.SearchsortedOp, ends, positions, right=True)
    return emit(graph.TakeOp, x, indices, axis=axis)


def _is_too_many(count: ir.Value) -> ir.Value:
    """Whether a count in f64 is none, or so large that an integer may have wrapped."""
    return emit(graph.LogicalNotOp, less(count, _MOST))


def range_of(start: ir.Value, stop: ir.Value, step: ir.Value, name_size: NameSize) -> ir.Value:
    """A count of steps, then their multiples: in f64 or i64, and rounded once."""
    element, f64 = element_of(start), ir.F64Type.get()
    first, last, by = (astype(x, f64) for x in (start, stop, step))
    span = subtract(last, first)
    if is_integer(element):
        is_wrong = _is_too_many(emit(graph.AbsOp, span))
        first, last, by = (astype(x, _i64()) for x in (start, stop, step))
        span = subtract(last, first)
        rest = emit(graph.NotEqualOp, emit(graph.RemainderOp, span, by), scalar(0, _i64()))
        count = add(floor_divide(span, by), astype(rest, _i64()))
    else:
        is_wrong = _is_too_many(divide(span, by))
        count = astype(emit(graph.CeilOp, divide(span, by)), _i64())
    is_still = emit(graph.EqualOp, by, scalar(0, element_of(by)))
    is_wrong = emit(graph.LogicalOrOp, is_wrong, is_still)
    size = name_size(where(is_wrong, -1, maximum(count, 0)), "range", None)
    steps = arange(0, size, 1, element_of(by))
    return astype(add(first, multiply(steps, by)), element)
