"""Bits of elements as elements of other types, against views of NumPy."""

import numpy as np
import pytest
from decomposed import Decomposed, module_of
from harness import NUMPY, Program, numbers, spec

from relax_mlir import decompositions as d
from relax_mlir.bindings import ir
from relax_mlir.dialects import graph
from relax_mlir.dialects.graph import ShapeError

PAIRS = [("f32", "i32"), ("i32", "f32"), ("f64", "i64"), ("i64", "f64"), ("f16", "bf16"),
         ("bf16", "i16"), ("i16", "f16"), ("i8", "i8")]  # fmt: skip


@pytest.mark.parametrize(("before", "after"), PAIRS)
def test_bitcast(before: str, after: str, route: str) -> None:
    program = Program(graph.BitcastOp, spec(before, "n", "m"), dtype=after, route=route)
    for shape in ((0, 3), (1, 1), (7, 5), (33, 16)):
        x = numbers(shape, before)
        assert program(x).tobytes() == x.tobytes()
    specials = {"f32": [np.nan, np.inf, -0.0, 1e-45], "f16": [np.nan, -np.inf, -0.0, 6e-8]}
    if before in specials:
        x = np.array([specials[before]], NUMPY[before])
        assert program(x).tobytes() == x.tobytes()


def test_philox(route: str) -> None:
    program = Program(graph.PhiloxOp, spec("i64", 2), blocks=["n"], route=route)
    first = program(np.array([0, 0]), n=1)
    wanted = [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]  # Random123, kat_vectors
    assert [int(word[0]) % 2**32 for word in first] == wanted
    one = np.stack(program(np.array([-5, 2**32 - 3]), n=9))
    for n in (0, 1, 6):
        rest = np.stack(program(np.array([-5, 2**32 - 3 + 9 - n]), n=n))
        np.testing.assert_array_equal(rest, one[:, 9 - n :])
    around = np.stack(program(np.array([7, -1]), n=2))
    np.testing.assert_array_equal(around[:, 1:], np.stack(program(np.array([7, 0]), n=1)))


@pytest.mark.parametrize(
    ("before", "after"),
    [("f32", "i8"), ("f64", "i16"), ("i64", "f32"), ("i16", "i8"), ("f64", "bf16")],
)
def test_widths(before: str, after: str) -> None:
    count = NUMPY[before].itemsize // NUMPY[after].itemsize
    kind, back = (lambda name=name: ir.Type.parse(name) for name in (after, before))
    narrow = Decomposed(lambda x: d.bitcast(x, kind()), spec(before, "n", "m"))
    widened = Decomposed(lambda x: d.bitcast(x, back()), spec(after, "n", "m", count))
    for shape in ((0, 3), (1, 1), (3, 5)):
        x = numbers(shape, before)
        parts = narrow(x)
        assert parts.dtype == NUMPY[after]
        assert parts.shape == (*shape, count)
        assert parts.tobytes() == x.tobytes()
        assert widened(parts).tobytes() == x.tobytes()


@pytest.mark.parametrize(
    ("dtype", "after", "message"),
    [("i1", "i8", "expects integers or floats"), ("i8", "i1", "expects integers or floats"),
     ("i8", "i32", "makes one element of 4")],
)  # fmt: skip
def test_what_is_refused(dtype: str, after: str, message: str) -> None:
    def build(x):
        return d.bitcast(x, ir.Type.parse(after))

    with pytest.raises(ShapeError, match=message):
        module_of({"main": (build, [spec(dtype, "n", 3)])})
