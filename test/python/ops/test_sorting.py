"""Orders along an axis, against Python's own sorting."""

import numpy as np
import pytest
from harness import FLOATS, INTEGERS, NUMPY, UNSIGNED, Program, integers, numbers, spec, wide

import relax_mlir
from relax_mlir.bindings import ir
from relax_mlir.dialects import graph, make_context
from relax_mlir.legalize.sorts import parallel
from relax_mlir.passes import Pipeline

DTYPES = (*FLOATS, *INTEGERS)
LENGTHS = (0, 1, 2, 3, 17, 64, 129, 256, 257, 1000, 40961)


def _order(line: np.ndarray, descending: bool) -> list[int]:
    """Stable; a NaN is greater than all numbers."""
    keys = [(bool(np.isnan(x)), 0.0 if np.isnan(x) else float(x)) for x in wide(line)]
    if descending:  # a reversed sort of Python keeps the order of equal ones
        return sorted(range(len(keys)), key=keys.__getitem__, reverse=True)
    return sorted(range(len(keys)), key=keys.__getitem__)


def _check(found, x: np.ndarray, axis: int, descending: bool, k: int | None = None) -> None:
    values, places = found
    lines = np.moveaxis(x, axis, -1)
    shape = [*lines.shape[:-1], lines.shape[-1] if k is None else k]
    wanted = np.empty(shape, np.int64)
    for at in np.ndindex(*shape[:-1]):
        wanted[at] = _order(lines[at], descending)[: shape[-1]]
    wanted = np.moveaxis(wanted, -1, axis)
    np.testing.assert_array_equal(places, wanted)
    np.testing.assert_array_equal(wide(values), wide(np.take_along_axis(x, wanted, axis)))
    assert (values.dtype, places.dtype) == (x.dtype, np.int64)


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_sort_axes(axis: int, descending: bool, route: str) -> None:
    settings = {"axis": axis, "descending": descending}
    program = Program(graph.SortOp, spec("f32", "n", 3, "m"), route=route, **settings)
    for n, m in ((1, 1), (2, 7), (0, 2), (2, 0), (1, 17)):
        x = numbers((n, 3, m), "f32")
        _check(program(x), x, **settings)


@pytest.mark.parametrize("dtype", DTYPES)
def test_sort_dtypes(dtype: str, route: str) -> None:
    for descending in (False, True):
        settings = {"axis": 0, "descending": descending}
        program = Program(graph.SortOp, spec(dtype, "n"), route=route, **settings)
        for n in (0, 1, 2, 3, 4, 5, 17):
            x = np.round(numbers((n,), dtype)) if dtype in FLOATS else integers((n,), dtype)
            _check(program(x.astype(NUMPY[dtype])), x.astype(NUMPY[dtype]), **settings)


@pytest.mark.parametrize("dtype", FLOATS)
def test_sort_of_special_floats(dtype: str, route: str) -> None:
    x = np.array([np.nan, 0.0, np.inf, -0.0, np.nan, -np.inf, 1, -0.0, 0.0], NUMPY[dtype])
    for descending in (False, True):
        settings = {"axis": 0, "descending": descending}
        program = Program(graph.SortOp, spec(dtype, "n"), route=route, **settings)
        _check(program(x), x, **settings)


def _hard_line(dtype: str, n: int) -> np.ndarray:
    """Elements of all magnitudes, many of them equal, with all special ones."""
    generator = np.random.default_rng(n)
    if dtype in FLOATS:
        x = generator.standard_normal(n) * 2.0 ** generator.integers(-9, 9, n)
        special = [np.nan, 0, -0.0, np.inf, -np.nan, -np.inf]
    else:
        limits = np.iinfo(NUMPY[dtype])
        x = generator.integers(limits.min, limits.max, n, NUMPY[dtype], endpoint=True)
        special = [limits.min, limits.max, 0, 1]
    with np.errstate(over="ignore"):
        x = x.astype(NUMPY[dtype])
    x[::5] = np.resize(np.array(special, NUMPY[dtype]), len(x[::5]))
    return x


def _function(
    name: str, op: str, dims: str, found: str, dtype: str, returned: str = "%y, %i"
) -> str:
    """A function of one operator that returns elements and their positions, or some of these."""
    count = dims.count(",") + 1
    x, y, i = (
        f"tensor<{'?x' * count}{element}, #graph.shape<[{shape}]>>"
        for element, shape in ((dtype, dims), (dtype, found), ("i64", found))
    )
    types = returned.replace("%y", y).replace("%i", i)
    return f"""
func.func @{name}(%x: {x}) -> ({types}) {{
  %y, %i = "graph.{op}}} : ({x}) -> ({y}, {i})
  return {returned} : {types}
}}"""


@pytest.mark.parametrize("dtype", [*DTYPES, *UNSIGNED])
def test_compiled_sort_of_long_lines(dtype: str) -> None:
    """Around the lengths at which lines are sorted in another way, from all memory layouts."""
    one, two = '"n"', '"m", "n"'
    executable = relax_mlir.compile(
        _function("line", 'sort"(%x) {axis = 0 : i64, descending = false', one, one, dtype)
        + _function("reverse", 'sort"(%x) {axis = 0 : i64, descending = true', one, one, dtype)
        + _function("rows", 'sort"(%x) {axis = 1 : i64, descending = true', two, two, dtype)
        + _function("columns", 'sort"(%x) {axis = 0 : i64, descending = false', two, two, dtype)
        + _function(
            "first",
            'topk"(%x) {k = #graph.shape<["n floordiv 3"]>, axis = 1 : i64, largest = true',
            two,
            '"m", "n floordiv 3"',
            dtype,
        )
    )
    x = _hard_line(dtype, 35 * 33)  # more lines than a task has
    _check(executable["rows"](x.reshape(35, 33)), x.reshape(35, 33), 1, True)
    _check(executable["columns"](x.reshape(33, 35)), x.reshape(33, 35), 0, False)
    for n in LENGTHS:
        x = _hard_line(dtype, n)
        _check(executable["line"](x), x, 0, False)
        _check(executable["reverse"](x), x, 0, True)
        if n < 5000:
            x = _hard_line(dtype, 3 * n)
            _check(executable["rows"](x.reshape(3, n)), x.reshape(3, n), 1, True)
            _check(executable["columns"](x.reshape(n, 3)), x.reshape(n, 3), 0, False)
            _check(executable["first"](x.reshape(3, n)), x.reshape(3, n), 1, True, n // 3)


def _alone(name: str, dims: str, dtype: str, axis: int, descending: bool) -> str:
    """A function that returns the elements in order, and no positions."""
    settings = f"axis = {axis} : i64, descending = {str(descending).lower()}"
    return _function(name, f'sort"(%x) {{{settings}', dims, dims, dtype, "%y")


@pytest.mark.rotate(3)
@pytest.mark.parametrize("dtype", [*DTYPES, *UNSIGNED])
def test_sort_of_values_alone(dtype: str) -> None:
    """Bit by bit, zeros of both signs and NaN included: what a stable sort gives."""
    one, two = '"n"', '"m", "n"'
    text = (
        _alone("line", one, dtype, 0, False)
        + _alone("reverse", one, dtype, 0, True)
        + _alone("rows", two, dtype, 1, True)
        + _alone("columns", two, dtype, 0, False)
    )
    executable, kinds = relax_mlir.compile(text), {2: np.uint16, 4: np.uint32, 8: np.uint64}
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        Pipeline.parse("relax-legalize-ops").run(module, verify=True)
        assert str(module).count("tir.num_outs = 1") == 4
        programs = relax_mlir.interpret(module)

    def check(found: np.ndarray, x: np.ndarray, axis: int, descending: bool) -> None:
        lines = np.moveaxis(x, axis, -1)
        wanted = np.empty_like(lines)
        for at in np.ndindex(*lines.shape[:-1]):
            wanted[at] = lines[at][_order(lines[at], descending)]
        wanted = np.moveaxis(wanted, -1, axis)
        kind = kinds.get(x.itemsize, x.dtype)
        np.testing.assert_array_equal(found.copy().view(kind), wanted.copy().view(kind))

    for n in LENGTHS:
        x = _hard_line(dtype, n)
        for functions in (executable, programs) if n < 20 else (executable,):
            check(functions["line"](x), x, 0, False)
            check(functions["reverse"](x), x, 0, True)
        for m in (0, 3, 35) if n < 1000 else (2,) if n < 5000 else ():
            x = _hard_line(dtype, m * n).reshape(m, n)
            for functions in (executable, programs) if n < 4 else (executable,):
                check(functions["rows"](x), x, 1, True)
                check(functions["columns"](x.T.copy()), x.T, 0, False)


def test_compiled_sort_of_one_line_on_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """One chunk, two and eight, on any number of threads; of one row too."""
    monkeypatch.setattr(parallel, "_TWO_CHUNKS", 1 << 16)
    settings, row = 'sort"(%x) {axis = 1 : i64, descending = false', '1, "n"'
    text = _function("main", settings, row, row, "f32")
    text += _function("alone", settings, row, row, "f32", "%y")
    executable = relax_mlir.compile(text.replace("?x?x", "1x?x"))
    for n in (8192, 8193, 20001, 1 << 16, (1 << 16) + 1, 300007):
        x = _hard_line("f32", n)
        keys = np.where(np.isnan(x), np.inf, x) + np.float32(0)
        wanted = np.lexsort([keys, np.isnan(x)])
        for threads in (1, 2, 3):
            executable.threads = threads
            values, places = executable["main"](x[None])
            np.testing.assert_array_equal(places[0], wanted)
            np.testing.assert_array_equal(values[0].view(np.int32), x[wanted].view(np.int32))
            alone = executable["alone"](x[None])
            np.testing.assert_array_equal(alone[0].view(np.int32), x[wanted].view(np.int32))


@pytest.mark.parametrize("largest", [False, True])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_topk_axes(axis: int, largest: bool, route: str) -> None:
    for k in (2, "k"):  # few, and a number that only a call knows
        program = Program(
            graph.TopkOp,
            spec("f32", "n", 3, "m"),
            k=(k,),
            axis=axis,
            largest=largest,
            route=route,
        )
        for n, m in ((2, 2), (3, 7)):
            x = numbers((n, 3, m), "f32")
            free = {"k": min(2, n)} if k == "k" else {}
            _check(program(x, **free), x, axis, largest, 2)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("k", [0, 1, 5, "n", 65])
def test_topk_dtypes(dtype: str, k: int | str, route: str) -> None:
    settings = {"axis": 0, "largest": True}
    program = Program(graph.TopkOp, spec(dtype, "n"), k=(k,), route=route, **settings)
    for n in (5, 9, 67):
        if k == 65 and n < 65:
            continue
        x = np.round(numbers((n,), dtype)) if dtype in FLOATS else integers((n,), dtype)
        x = x.astype(NUMPY[dtype])
        _check(program(x), x, 0, True, n if k == "n" else k)


def test_topk_of_special_floats(route: str) -> None:
    x = np.array([0.0, np.nan, -0.0, np.inf, -np.inf, np.nan, 0.0], np.float32)
    for largest in (False, True):
        program = Program(
            graph.TopkOp, spec("f32", "n"), k=(6,), axis=0, largest=largest, route=route
        )
        _check(program(x), x, 0, largest, 6)


@pytest.mark.parametrize("dtype", ["i64", "ui64", "f64"])
def test_known_lengths(dtype: str) -> None:
    """Memory of keys and positions is not shared, though it is of one type and size."""
    program = Program(graph.SortOp, spec(dtype, 3, 32), axis=1, descending=False, route="O2")
    x = numbers((3, 32), dtype)
    values, order = program(x)
    np.testing.assert_array_equal(values, np.sort(x, 1))
    np.testing.assert_array_equal(order, np.argsort(x, 1, kind="stable"))
