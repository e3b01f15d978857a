"""Sorts on devices, by groups for each line and by parts of lines, against Python's own sorting."""

from functools import cache
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from device_modules import built

import relax_mlir
from relax_mlir.bindings import ir
from relax_mlir.dialects import make_context
from relax_mlir.errors import ExecutionError
from relax_mlir.schedule.gpu.sorts import sort
from relax_mlir.target import Device
from relax_mlir.testing.outlined import outlined
from relax_mlir.testing.ptx import on_ptx

LENGTHS = (0, 1, 2, 31, 127, 128, 129, 1021)
NUMPY = {
    "f32": np.float32,
    "f64": np.float64,
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "i64": np.int64,
    "i8": np.int8,
    "ui8": np.uint8,
    "ui32": np.uint32,
}


def program(
    element: str, dims: str, axis: int, descending: bool, k: str = "", returned: str = "%y, %i"
) -> str:
    """A function `main` that sorts, or returns the first `k`, of elements and their positions."""
    result = dims.replace('"m"', k) if k else dims
    x, y, i = (
        f"tensor<{'?x' * (shape.count(',') + 1)}{kind}, #graph.shape<[{shape}]>>"
        for shape, kind in ((dims, element), (result, element), (result, "i64"))
    )
    flag = f"{'largest' if k else 'descending'} = {str(descending).lower()}"
    first = f", k = #graph.shape<[{k}]>" if k else ""
    types = returned.replace("%y", y).replace("%i", i)
    return f"""
    func.func @main(%x: {x}) -> ({types}) {{
      %y, %i = "graph.{"topk" if k else "sort"}"(%x)
          {{axis = {axis} : i64, {flag}{first}}} : ({x}) -> ({y}, {i})
      return {returned} : {types}
    }}
    """


def hard(element: str, *shape: int) -> np.ndarray:
    """Elements of all magnitudes, many of them equal, with all special ones."""
    random, count, kind = np.random.default_rng(), int(np.prod(shape)), np.dtype(NUMPY[element])
    if kind.kind in "iu":
        limits = np.iinfo(kind)
        x = random.integers(limits.min, limits.max, count, kind, endpoint=True)
        special = [limits.min, limits.max, 0, 1]
    else:
        x = random.standard_normal(count) * 2.0 ** random.integers(-9, 9, count)
        special = [np.nan, 0, -0.0, np.inf, -np.nan, -np.inf]
    x = x.astype(kind)
    x[::5] = np.resize(np.array(special, kind), len(x[::5]))
    return x.reshape(shape)


def ordered(x: np.ndarray, axis: int, descending: bool) -> np.ndarray:
    """Where the elements in order are; a NaN comes after all else, or before it."""
    exact = x.astype(np.float64) if x.dtype.kind in "fV" else x
    keys = np.where(np.isnan(exact), 0, exact), np.isnan(exact)
    if not descending:
        return np.lexsort(keys, axis)
    backwards = np.lexsort([np.flip(key, axis) for key in keys], axis)
    return x.shape[axis] - 1 - np.flip(backwards, axis)


def check(main: Any, x: np.ndarray, axis: int, descending: bool, k: int | None = None) -> None:
    """Bit by bit, signs of zeros and NaN included."""
    wanted = np.take(ordered(x, axis, descending), np.arange(x.shape[axis])[:k], axis)
    values, positions = main(x)
    np.testing.assert_array_equal(positions, wanted)
    bits = np.dtype(f"u{x.itemsize}")
    exact = np.take_along_axis(x, wanted, axis)
    np.testing.assert_array_equal(values.view(bits), exact.view(bits))


@pytest.mark.rotate(8)
@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("element", NUMPY)
def test_a_line(element: str, descending: bool) -> None:
    module, kernels, rules = built(program(element, '"m"', 0, descending), "gpu", 2)
    assert (rules, kernels[0].block[0]) == (["sorts"], 128)
    for n in LENGTHS:
        check(module["main"], hard(element, n), 0, descending)


def test_axes() -> None:
    """Elements of a line that are next to each other, or not."""
    for axis, (rows, columns) in ((0, (1, 3)), (1, (2, 3)), (2, (2, 1))):
        dims = ['"a"', '"b"']
        dims.insert(axis, '"m"')
        main = built(program("f32", ", ".join(dims), axis, True), "gpu", 2)[0]["main"]
        for length in (0, 7, 130):
            shape = [rows, columns]
            shape.insert(axis, length)
            check(main, hard("f32", *shape), axis, True)
    check(main, hard("f32", 0, 3, 5), 2, True)


def test_values_alone() -> None:
    """Zeros and NaN stay in the order that they had."""
    main = built(program("f32", '"m"', 0, False, "", "%y"), "gpu", 2)[0]["main"]
    for n in (3, 200):
        x = hard("f32", n)
        wanted = x[ordered(x, 0, False)]
        np.testing.assert_array_equal(main(x).view(np.uint32), wanted.view(np.uint32))


def test_first_elements() -> None:
    main = built(program("i64", '"n", "m"', 1, True, '"m floordiv 3"'), "gpu", 2)[0]["main"]
    for n, m in ((3, 0), (2, 2), (3, 5), (2, 301)):
        check(main, hard("i64", n, m), 1, True, m // 3)


@cache
def in_parts(element: str, dims: str, axis: int, target: str = "gpu") -> Any:
    """A function that sorts lines of more than 100 elements in parts of so many, or 5 in all."""
    with pytest.MonkeyPatch.context() as patch, make_context(), ir.Location.unknown():
        patch.setattr(sort, "LEAST_PART", 100)
        patch.setattr(sort, "MOST_PARTS", 5)
        module = outlined(program(element, dims, axis, False), target)
        if target == "gpu":
            return relax_mlir.interpret(module)["main"]
        return on_ptx(module, Device.parse(target))


def test_parts() -> None:
    """Lines of one part, of a few, and of the most."""
    main = in_parts("f32", '"m", "n"', 0)
    for n, m in ((1, 100), (2, 101), (2, 200), (1, 499), (3, 501), (1, 1021)):
        check(main, hard("f32", m, n), 0, False)


def test_as_ptx() -> None:
    """With positions of 64 bits."""
    main = in_parts("f64", '"m"', 0, "cuda:sm_80")
    for n in (0, 1, 99, 333):
        check(main, hard("f64", n), 0, False)


def test_known_lengths() -> None:
    """Short lines have a thread each; others positions of 32 bits, and one way to sort."""
    for length, rules, count in ((63, ["serial"], 1), (64, ["sorts"], 1), (4096, ["sorts"], 1)):
        dims = f'"n", {length}'
        text = program("i8", dims, 1, False).replace("<?x?x", f"<?x{length}x")
        module, kernels, result = built(text, "gpu", 2)
        assert (result, len(kernels)) == (rules, count)
        x = hard("i8", 2, length) if length < 4096 else hard("i8", 0, length)
        check(module["main"], x, 1, False)


@pytest.mark.rotate(4, together=True)
def test_barriers_are_needed() -> None:
    """Each of them: those of a launch for whole lines, and those of launches for parts."""
    x = np.random.default_rng().integers(-99, 99, 150, np.int8)
    missed: set[int] = set()
    for least in (150, 50):
        with pytest.MonkeyPatch.context() as patch, make_context(), ir.Location.unknown():
            patch.setattr(sort, "LEAST_PART", least)
            module = outlined(program("i8", '"m"', 0, False), "gpu")
            parts = str(module).split("gpu.barrier")
        for i in range(1, len(parts)):
            changed = "gpu.barrier".join(parts[:i]) + "gpu.barrier".join(parts[i:])
            try:
                relax_mlir.interpret(changed)["main"](x)
            except ExecutionError:
                missed.add(i)
    assert missed == set(range(1, len(parts)))
