"""Selection of boxes, against what the ONNX operator says, written out."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
from decomposed import Decomposed, module_of
from harness import FLOATS, NUMPY, Program, spec, wide

import relax_mlir
from relax_mlir.decompositions import (
    all_class_non_max_suppression,
    get_valid_counts,
    non_max_suppression,
)
from relax_mlir.dialects import graph
from relax_mlir.dialects.graph import ShapeError

pytestmark = pytest.mark.usefixtures("llvm_turns")


def _share(a: np.ndarray, b: np.ndarray, center: bool) -> float:
    """The intersection of two boxes over their union."""
    if center:
        edges = [
            (box[i] - box[i + 2] / 2, box[i] + box[i + 2] / 2) for box in (a, b) for i in (0, 1)
        ]
    else:
        edges = [sorted((box[i], box[i + 2])) for box in (a, b) for i in (0, 1)]
    heights, widths = edges[0::2], edges[1::2]
    sides = [min(first[1], last[1]) - max(first[0], last[0]) for first, last in (heights, widths)]
    if min(sides) <= 0:
        return 0.0
    areas = [(h[1] - h[0]) * (w[1] - w[0]) for h, w in zip(heights, widths)]
    return sides[0] * sides[1] / (areas[0] + areas[1] - sides[0] * sides[1])


def _reference(
    boxes: np.ndarray,
    scores: np.ndarray,
    limit: int,
    overlap: float,
    least: float,
    center: bool = False,
) -> np.ndarray:
    """Rows of batch, class and box: the best one that is left, until none is."""
    rows = []
    for batch, channel in np.ndindex(*scores.shape[:2]):
        line = wide(scores)[batch, channel]
        left = [box for box in range(len(line)) if line[box] > least]
        count = 0
        while left and count < limit:
            best = max(left, key=lambda box: (line[box], -box))
            rows.append((batch, channel, best))
            count += 1
            left = [
                box
                for box in left
                if box != best
                and not _share(wide(boxes)[batch, best], wide(boxes)[batch, box], center) > overlap
            ]
    return np.array(rows, np.int64).reshape(-1, 3)


def _boxes(b: int, c: int, n: int, dtype: str, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Boxes that overlap often, some of no area; scores of which some are equal."""
    generator = np.random.default_rng([b, c, n, seed])
    boxes = generator.integers(0, 9, (b, n, 4)).astype(NUMPY[dtype])
    scores = (generator.integers(0, 20, (b, c, n)) / 16).astype(NUMPY[dtype])
    return boxes, scores


FEW = ((1, 1, 0), (1, 1, 1), (2, 1, 7), (1, 2, 9), (0, 2, 3), (2, 0, 3))
SIZES = (*FEW, (1, 3, 33), (2, 2, 17))


@pytest.mark.parametrize("center", [False, True])
@pytest.mark.parametrize("dtype", FLOATS)
def test_selected_indices(dtype: str, center: bool, route: str) -> None:
    scalars = [spec("i64"), spec(dtype), spec(dtype)]
    operands = [spec(dtype, "b", "n", 4), spec(dtype, "b", "c", "n"), *scalars]
    program = Program(graph.VisionNmsOp, *operands, center=center, route=route)
    for b, c, n in FEW:
        boxes, scores = _boxes(b, c, n, dtype)
        for limit, overlap, least in ((5, 0.25, 0.5), (n, 0.0, -1.0), (2, 1.0, 0.0), (-1, 0, 0)):
            bounds = [np.array(limit), *(np.array(x, NUMPY[dtype]) for x in (overlap, least))]
            found = program(boxes, scores, *bounds)
            wanted = np.full(scores.shape, -1)
            for row in _reference(boxes, scores, limit, overlap, least, center):
                line = wanted[row[0], row[1]]
                line[(line >= 0).sum()] = row[2]
            np.testing.assert_array_equal(found, wanted)


def test_nan_is_above_nothing(route: str) -> None:
    operands = [
        spec("f32", 1, "n", 4),
        spec("f32", 1, 1, "n"),
        spec("i64"),
        spec("f32"),
        spec("f32"),
    ]
    program = Program(graph.VisionNmsOp, *operands, center=False, route=route)
    boxes = np.array([[0, 0, 1, 1], [0, 0, 1, np.nan], [0, 0, 1, 1], [0, 0, 1, 1]], np.float32)
    scores = np.array([0.5, 0.75, np.nan, 0.25], np.float32)
    bounds = [np.array(4), np.array(0.5, np.float32), np.array(0, np.float32)]
    found = program(boxes[None], scores[None, None], *bounds)
    np.testing.assert_array_equal(found, [[[1, 0, -1, -1]]])


Run = Mapping[str, Callable[..., Any]]


COMPILED = [pytest.param(level, marks=pytest.mark.rotate(3, together=True)) for level in (0, 2)]


@pytest.fixture(scope="module", params=["interpreted", *COMPILED])
def run(request: pytest.FixtureRequest) -> Run:
    operands = [spec("f32", "b", "n", 4), spec("f32", "b", "c", "n")]
    bounds = [spec("i64", 1), spec("f32", 1), spec("f32", 1)]
    functions: dict[str, Any] = {
        "bounds": (non_max_suppression, [*operands, *bounds]),
        "constants": (lambda x, y: non_max_suppression(x, y, 3, 0.25), operands),
        "none": (non_max_suppression, operands),
        "all": (lambda x, y: all_class_non_max_suppression(x, y, 4, 0.25, 0.5), operands),
        "valid": (lambda x: get_valid_counts(x, 0.25), [spec("f32", "b", "n", 6)]),
        "scored": (
            lambda x: get_valid_counts(x, 0.25, id_index=-1, score_index=0),
            [spec("f32", "b", "n", 5)],
        ),
    }
    text = module_of(functions)
    if request.param == "interpreted":
        return relax_mlir.interpret(text)
    return relax_mlir.compile(text, opt_level=request.param)


def test_non_max_suppression(run: Run) -> None:
    for b, c, n in SIZES:
        boxes, scores = _boxes(b, c, n, "f32", 1)
        for limit, overlap, least in ((5, 0.25, 0.5), (2**40, 0.0, -1.0), (2, 1.0, 9.0)):
            bounds = [np.array([limit]), *(np.array([x], np.float32) for x in (overlap, least))]
            found = run["bounds"](boxes, scores, *bounds)
            wanted = _reference(boxes, scores, limit, overlap, least)
            np.testing.assert_array_equal(found, wanted)
        wanted = _reference(boxes, scores, 3, 0.25, -np.inf)
        np.testing.assert_array_equal(run["constants"](boxes, scores), wanted)
        assert run["none"](boxes, scores).shape == (0, 3)


def test_all_class_non_max_suppression(run: Run) -> None:
    for b, c, n in SIZES:
        boxes, scores = _boxes(b, c, n, "f32", 2)
        rows, count = run["all"](boxes, scores)
        wanted = _reference(boxes, scores, 4, 0.25, 0.5)
        np.testing.assert_array_equal(count, [len(wanted)])
        np.testing.assert_array_equal(rows[: len(wanted)], wanted)
        assert rows.shape == (b * c * n, 3)
        assert (rows[len(wanted) :] == -1).all()


def test_get_valid_counts(run: Run) -> None:
    for b, n in ((0, 3), (2, 0), (1, 1), (3, 17)):
        generator = np.random.default_rng(n)
        data = generator.integers(-1, 4, (b, n, 6)).astype(np.float32) / 2
        for name, given, at in (("valid", data, 1), ("scored", data[..., 1:], 0)):
            counts, front, order = run[name](np.ascontiguousarray(given))
            assert counts.dtype == order.dtype == np.int32
            for batch in range(b):
                valid = given[batch, :, at] > 0.25
                if at:
                    valid &= given[batch, :, 0] >= 0
                (where,) = np.nonzero(valid)
                assert counts[batch] == len(where)
                np.testing.assert_array_equal(front[batch, : len(where)], given[batch, where])
                np.testing.assert_array_equal(order[batch, : len(where)], where)
                assert (front[batch, len(where) :] == -1).all()
                assert (order[batch, len(where) :] == -1).all()


def test_what_is_refused() -> None:
    operands = [spec("f32", 1, 7, 4), spec("f32", 1, 2, 7)]
    with pytest.raises(ShapeError, match="expects a bound of one element"):
        module_of({"main": (non_max_suppression, [*operands, spec("i64", 2)])})
    with pytest.raises(ShapeError, match=r"expects boxes of dims \[b, n, k\]"):
        Decomposed(get_valid_counts, spec("f32", 7, 6))
    with pytest.raises(ShapeError, match="has id_index 6 in boxes of 6 values"):
        Decomposed(lambda x: get_valid_counts(x, id_index=6), spec("f32", 2, 7, 6))
