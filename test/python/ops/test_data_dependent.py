"""Operators whose data decide how large results are, against NumPy's.

One module has all of them; it is interpreted, interpreted as tensor programs, and compiled.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import pytest
from decomposed import module_of
from harness import FLOATS, INTEGERS, NUMPY, Program, floats, integers, numbers, spec, wide

import relax_mlir
from relax_mlir.bindings import ir
from relax_mlir.dialects import graph, make_context
from relax_mlir.errors import ExecutionError
from relax_mlir.passes import Pipeline

DTYPES = (*FLOATS, *INTEGERS, "ui8", "ui64", "i1")
RANGES = ("f32", "f64", "bf16", "i8", "i32", "i64", "ui8", "ui64")
AXES = {"all": (), "first": (0,), "last": (-1,)}
LEGALISED = (
    "relax-name-dims,relax-expand-data-dependent,relax-infer-shapes,relax-state-assumptions,"
    "relax-legalize-ops"
)


def _functions() -> Iterator[tuple[str, Callable[..., Any], list]]:
    def nonzero(x):
        return graph.NonzeroOp.build(x).result

    def repeat(x, counts):
        return graph.RepeatInterleaveOp.build(x, counts, axis=-1).result

    def numbers_of(start, stop, step):
        return graph.RangeOfOp.build(start, stop, step).result

    def unique(axes, is_sorted):
        def build(x):
            built = graph.UniqueOp.build(x, axes=axes, sorted=is_sorted)
            return list(built.operation.results)

        return build

    for dtype in DTYPES:
        yield f"nonzero_{dtype}", nonzero, [spec(dtype, "n", 3)]
    for name, dims in {
        "scalar": (),
        "vector": ("n",),
        "cube": ("n", 2, "m"),
        "fixed": (7,),
    }.items():
        yield f"nonzero_{name}", nonzero, [spec("f32", *dims)]
    for dtype in ("f32", "bf16", "i8", "i1"):
        for name, axes in AXES.items():
            yield f"unique_{name}_{dtype}", unique(axes, True), [spec(dtype, "n", "m")]
    for name, axes in AXES.items():
        yield f"unsorted_{name}", unique(axes, False), [spec("f32", "n", "m")]
    yield "unique_middle", unique((1,), True), [spec("i64", 2, "n", 3)]
    for dtype in ("i8", "i32", "i64"):
        yield f"repeat_{dtype}", repeat, [spec("f32", 2, "n"), spec(dtype, "n")]
    for dtype in RANGES:
        yield f"range_{dtype}", numbers_of, [spec(dtype)] * 3


COMPILED = pytest.param("O2", marks=pytest.mark.rotate(4, together=True))


@pytest.fixture(scope="module", params=["operator", "program", COMPILED])
def run(request: pytest.FixtureRequest) -> Mapping[str, Callable[..., Any]]:
    text = module_of({name: (build, specs) for name, build, specs in _functions()})
    if request.param == "operator":
        return relax_mlir.interpret(text)
    if request.param == "program":
        with make_context(), ir.Location.unknown():
            module = ir.Module.parse(text)
            Pipeline.parse(LEGALISED).run(module)
            return relax_mlir.interpret(module)
    return relax_mlir.compile(text, opt_level=2)


def _sparse(shape: tuple[int, ...], dtype: str, seed: int = 0) -> np.ndarray:
    """Elements of which many are 0, and some, if they are floats, NaN or -0."""
    values = np.random.default_rng([seed, *shape]).integers(-1, 2, shape)
    if dtype in FLOATS:
        values = np.array([0.0, 1.5, -0.0, np.nan, 0.0, -3.0])[
            values + np.arange(values.size).reshape(shape) % 4 + 1
        ]
    return values.astype(NUMPY[dtype])


@pytest.mark.parametrize("dtype", DTYPES)
def test_nonzero_of_each_type(dtype: str, run: Mapping[str, Callable[..., Any]]) -> None:
    for n in (0, 1, 2, 7, 33):
        x = _sparse((n, 3), dtype)
        for given in (x, np.zeros_like(x), np.ones_like(x)):
            found = run[f"nonzero_{dtype}"](given)
            np.testing.assert_array_equal(found, np.stack(np.nonzero(wide(given))))
            assert found.dtype == np.int64


def test_nonzero_of_each_rank(run: Mapping[str, Callable[..., Any]]) -> None:
    for value, wanted in ((0.0, []), (2.0, [0]), (np.nan, [0])):
        found = run["nonzero_scalar"](np.array(value, np.float32))
        np.testing.assert_array_equal(found, np.array([wanted], np.int64))
    for n, m in ((0, 3), (3, 0), (1, 1), (5, 17)):
        for name, shape in (("vector", (n,)), ("cube", (n, 2, m)), ("fixed", (7,))):
            x = _sparse(shape, "f32")
            np.testing.assert_array_equal(run[f"nonzero_{name}"](x), np.stack(np.nonzero(x)))


def _codes(x: np.ndarray) -> np.ndarray:
    """The rank of each element, the same for NaN: integers have no special cases."""
    return np.unique(wide(x), return_inverse=True)[1].reshape(x.shape)


def _unique(x: np.ndarray, axis: int | None, is_sorted: bool) -> list[np.ndarray]:
    """NumPy's, of ranks, in the order of the first occurrences if it is not sorted."""
    codes = _codes(x) if axis is not None else _codes(x).reshape(-1)
    along = axis or 0
    if codes.shape[along] == 0 or codes.size == 0:
        count = min(codes.shape[along], 1)
        kept = np.take(x if axis is not None else x.reshape(-1), np.arange(count), along)
        inverse = np.zeros(codes.shape[along], np.int64)
        return [kept, np.arange(count), inverse, np.array([len(inverse)] * count, np.int64)]
    options = {"return_index": True, "return_inverse": True, "return_counts": True}
    _, index, inverse, counts = np.unique(codes, axis=axis, **options)
    inverse = inverse.reshape(-1)
    if not is_sorted:
        order = np.argsort(index)
        index, counts, inverse = index[order], counts[order], np.argsort(order)[inverse]
    values = np.take(x if axis is not None else x.reshape(-1), index, along)
    return [values, index, inverse, counts]


def _same(found: Any, wanted: Any) -> None:
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(wide(one), wide(other))
        np.testing.assert_array_equal(np.signbit(wide(one)), np.signbit(wide(other)))


def _sizes() -> Iterator[tuple[int, int]]:
    yield from ((0, 2), (2, 0), (1, 1), (3, 2), (17, 1), (9, 2), (2, 9))


@pytest.mark.parametrize("along", AXES)
@pytest.mark.parametrize("dtype", ["f32", "bf16", "i8", "i1"])
def test_unique(dtype: str, along: str, run: Mapping[str, Callable[..., Any]]) -> None:
    axis = AXES[along][0] if AXES[along] else None
    for n, m in _sizes():
        for seed in range(2):
            x = _sparse((n, m), dtype, seed)
            found = run[f"unique_{along}_{dtype}"](x)
            _same(found, _unique(x, axis, True))
            assert [part.dtype for part in found] == [x.dtype, *[np.int64] * 3]


@pytest.mark.parametrize("along", AXES)
def test_unique_by_occurrence(along: str, run: Mapping[str, Callable[..., Any]]) -> None:
    axis = AXES[along][0] if AXES[along] else None
    for n, m in _sizes():
        x = _sparse((n, m), "f32")
        _same(run[f"unsorted_{along}"](x), _unique(x, axis, False))


def test_unique_of_a_middle_axis(run: Mapping[str, Callable[..., Any]]) -> None:
    for n in (0, 1, 2, 33):
        x = np.random.default_rng(n).integers(0, 2, (2, n, 3))
        _same(run["unique_middle"](x), _unique(x, 1, True))


def test_unique_is_that_of_numpy(run: Mapping[str, Callable[..., Any]]) -> None:
    x = np.array([[np.nan, 2, -np.inf], [2, np.nan, np.inf], [0, -0.0, 2]], np.float32)
    values, index, inverse, counts = run["unique_all_f32"](x)
    np.testing.assert_array_equal(values, np.unique(x))  # one NaN, the last one
    np.testing.assert_array_equal(index, [2, 6, 1, 5, 0])
    np.testing.assert_array_equal(values[inverse].reshape(x.shape), x)
    np.testing.assert_array_equal(counts, [1, 2, 3, 1, 2])


@pytest.mark.parametrize("dtype", ["i8", "i32", "i64"])
def test_repeat_interleave(dtype: str, run: Mapping[str, Callable[..., Any]]) -> None:
    for n in (0, 1, 3, 17):
        x, counts = floats((2, n), "f32"), integers((n,), dtype, 0, 4)
        for given in (counts, np.zeros_like(counts), np.ones_like(counts)):
            found = run[f"repeat_{dtype}"](x, given)
            np.testing.assert_array_equal(found, np.repeat(x, given, 1))


def test_repeats_that_cannot_be(run: Mapping[str, Callable[..., Any]]) -> None:
    big = 2**62
    for counts in ([-1, 2, 3], [5, -3, 1], [big, big, big], [big, big, 2 * big - 1], [big, 1, 0]):
        with pytest.raises(ExecutionError, match="negative dim"):
            run["repeat_i64"](np.ones((2, 3), np.float32), np.array(counts, np.int64))


@pytest.mark.parametrize("dtype", RANGES)
def test_range_of(dtype: str, run: Mapping[str, Callable[..., Any]]) -> None:
    kind = NUMPY[dtype]
    bounds = [(0, 10, 3), (0, 9, 3), (10, 0, -3), (9, 0, -3), (0, -1, 1), (5, 5, 2), (-7, 20, 5)]
    if dtype in FLOATS:
        bounds += [(0.5, 2.25, 0.25), (1, -np.inf, 2), (0, 3, np.inf)]
    else:
        low, high = np.iinfo(kind).min // 2, np.iinfo(kind).max // 2
        more = [(low, high - 1, high // 3), (high, low, low // 5 or 1)]
        bounds += more if not dtype.endswith("i64") else []
    if dtype[0] == "u":
        last, step = (2**64 - 4096, 2048) if dtype == "ui64" else (255, 100)
        bounds = [(last - 2 * step, last, step), *(b for b in bounds if min(b) >= 0)]
    for start, stop, step in bounds:
        given = [np.array(value, kind) for value in (start, stop, step)]
        count = int(np.ceil(max(0.0, (float(stop) - float(start)) / float(step))))
        wanted = [float(start) + i * float(step) if count else 0 for i in range(count)]
        found = run[f"range_{dtype}"](*given)
        np.testing.assert_array_equal(wide(found), wide(np.array(wanted, np.float64).astype(kind)))
        assert found.dtype == kind


def test_ranges_that_cannot_be(run: Mapping[str, Callable[..., Any]]) -> None:
    most = 2**63 - 1
    for bounds in ((0, 1, 0), (-most, most, 1), (-most, most, most), (most, -most, -1)):
        with pytest.raises(ExecutionError, match="negative dim"):
            run["range_i64"](*(np.array(value) for value in bounds))
    for bounds in ((0, 1, 0), (0, np.inf, 1), (np.nan, 1, 1), (0, 1e30, 1e-3), (0, 1, np.nan)):
        with pytest.raises(ExecutionError, match="negative dim"):
            run["range_f32"](*(np.array(value, np.float32) for value in bounds))


@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS, "i1"])
def test_first_nonzero(dtype: str, route: str) -> None:
    program = Program(graph.FirstNonzeroOp, spec(dtype, "n", 3), count=("k",), route=route)
    for n in (0, 1, 7):
        x = _sparse((n, 3), dtype)
        indices = np.stack(np.nonzero(wide(x)))
        for k in (0, 1, indices.shape[1], 3 * n + 2):
            wanted = np.full((2, k), -1)
            wanted[:, : indices.shape[1]] = indices[:, :k]
            np.testing.assert_array_equal(program(x, k=k), wanted)


@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS])
def test_argsort_rows(dtype: str, route: str) -> None:
    program = Program(graph.ArgsortRowsOp, spec(dtype, "n", "m"), route=route)
    for n, m in ((0, 2), (2, 0), (1, 1), (5, 1), (8, 2), (17, 3)):
        x = np.round(wide(numbers((n, m), dtype))).astype(NUMPY[dtype])
        if dtype in FLOATS and x.size:
            x.flat[::3] = np.nan
        codes = _codes(x)
        wanted = sorted(range(n), key=lambda row: tuple(codes[row]))
        np.testing.assert_array_equal(program(x), wanted)
