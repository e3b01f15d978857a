"""Selection of boxes of classes one by one, and boxes relative to anchors, written out."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
import pytest
from decomposed import module_of
from harness import spec

import relax_mlir
from relax_mlir.decompositions import box_nms, multibox_transform_loc
from relax_mlir.dialects.graph import ShapeError

Run = Mapping[str, Callable[..., Any]]
BOXES = [spec("f32", "b", "n", 7), spec("i32", "b"), spec("i64", "b", "n")]
SETTINGS: dict[str, dict[str, Any]] = {
    "defaults": {},
    "best": {"top_k": 5, "max_output": 2, "iou_threshold": 0.25},
    "any class": {"force_suppress": True, "iou_threshold": 0.125, "compact": False},
    "no class": {"id_index": -1, "coord_start": 3, "score_index": 2},
    "one of a class": {"iou_threshold": 0.0},
    "soft": {"soft_nms_sigma": 0.5, "score_threshold": 0.25},
    "soft of any": {"soft_nms_sigma": 2.0, "force_suppress": True, "max_output": 4},
}
ANCHORS = [spec("f32", "b", 3, "n"), spec("f32", "b", "4*n"), spec("f32", 1, "n", 4)]
DECODED: dict[str, dict[str, Any]] = {
    "anchors": {},
    "clipped": {"clip": True, "threshold": 0.25, "variances": (0.1, 0.5, 0.25, 0.2)},
    "plain": {"apply_softmax": False, "threshold": -1.0, "keep_background": False},
}


def _share(a: np.ndarray, b: np.ndarray) -> float:
    """The intersection of two boxes over their union."""
    low = np.maximum(np.minimum(a[:2], a[2:]), np.minimum(b[:2], b[2:]))
    high = np.minimum(np.maximum(a[:2], a[2:]), np.maximum(b[:2], b[2:]))
    common = np.prod(np.maximum(high - low, 0))
    union = abs(np.prod(a[2:] - a[:2])) + abs(np.prod(b[2:] - b[:2])) - common
    return common / union if union > 0 else 0.0


def _selected(rows: np.ndarray, count: int, settings: Mapping[str, Any]) -> list[tuple[int, float]]:
    """The selected rows of a batch, in order, with the scores that they have then."""
    s = {"top_k": -1, "max_output": -1, "iou_threshold": 0.5, "id_index": 0} | settings
    start, score = s.get("coord_start", 2), s.get("score_index", 1)
    sigma = s.get("soft_nms_sigma", 0.0)
    least = s.get("score_threshold", 0.0) if sigma else 0.0
    order = sorted(range(count), key=lambda i: -rows[i, score])
    left = {i: float(rows[i, score]) for i in order[: s["top_k"] if s["top_k"] > 0 else count]}
    selected: list[tuple[int, float]] = []
    while left and (s["max_output"] <= 0 or len(selected) < s["max_output"]):
        best = max(left, key=lambda i: left[i])
        value = left.pop(best)
        if not value > least:
            break
        selected.append((best, value))
        for i in list(left):
            apart = s["id_index"] >= 0 and not s.get("force_suppress")
            if apart and rows[i, s["id_index"]] != rows[best, s["id_index"]]:
                continue
            share = _share(rows[best, start : start + 4], rows[i, start : start + 4])
            if share >= s["iou_threshold"]:
                del left[i]
            elif sigma:
                left[i] *= np.exp(-share * share / (2 * sigma))
    return selected


@pytest.fixture(
    scope="module",
    params=["interpreted", pytest.param("compiled", marks=pytest.mark.rotate(3, together=True))],
)
def run(request: pytest.FixtureRequest) -> Run:
    functions = {name: (partial(box_nms, **each), BOXES) for name, each in SETTINGS.items()}
    functions["none"] = (box_nms, [spec("f32", 2, 0, 6), spec("i32", 2), spec("i32", 2, 0)])
    for name, each in DECODED.items():
        functions[name] = (partial(multibox_transform_loc, **each), ANCHORS)
    text = module_of({name.replace(" ", "_"): each for name, each in functions.items()})
    return (relax_mlir.interpret if request.param == "interpreted" else relax_mlir.compile)(text)


@pytest.mark.parametrize("name", SETTINGS)
def test_selected_boxes(name: str, run: Run) -> None:
    settings = SETTINGS[name]
    for b, n in ((0, 3), (2, 0), (1, 1), (2, 7), (3, 33)):
        generator = np.random.default_rng([b, n])
        data = generator.integers(0, 9, (b, n, 7)).astype(np.float32)
        data[..., 0] = generator.integers(-1, 3, (b, n))
        score = settings.get("score_index", 1)
        # Soft scores of equal boxes would be told apart by rounding alone.
        data[..., score] = (np.argsort(generator.random((b, n)), 1) - 3) / 16
        counts = generator.integers(n // 2, n + 1, b).astype(np.int32)
        indices = generator.integers(0, 100, (b, n))
        boxes, found, totals = run[name.replace(" ", "_")](data, counts, indices)
        assert found.dtype == totals.dtype == np.int32
        for i in range(b):
            selected = _selected(data[i].astype(np.float64), counts[i], settings)
            places, kept = [p for p, _ in selected], [s for _, s in selected]
            assert totals[i] == len(places)
            np.testing.assert_array_equal(found[i, : len(places)], indices[i, places])
            assert (found[i, len(places) :] == -1).all()
            rows = data[i, places]
            rows[:, score] = kept
            wanted = np.full((n, 7), -1.0)
            to = range(len(places))
            if settings.get("compact") is False:
                ranks = sorted(range(counts[i]), key=lambda j: -data[i, j, score])
                to = [ranks.index(place) for place in places]
            wanted[list(to)] = rows
            np.testing.assert_allclose(boxes[i], wanted, rtol=1e-5)


def test_no_number_is_not_selected(run: Run) -> None:
    nan, inf = np.nan, np.inf
    boxes = [[0, nan, 0, 0, 2, 2, 7], [0, 0.5, 0, 0, nan, 2, 7], [0, 0.25, -inf, 0, inf, 2, 7]]
    data = np.array([[*boxes, [0, 0.125, 0, 0, 2, 2, 7]]], np.float32)
    given = data, np.array([9], np.int32), np.array([[5, 6, 7, 8]])
    for name, wanted in (("defaults", [6, 7, 8]), ("soft", [6])):
        _, found, totals = run[name](*given)
        np.testing.assert_array_equal(found[0], wanted + [-1] * (4 - len(wanted)))
        assert totals.tolist() == [[len(wanted)]]


def test_no_boxes(run: Run) -> None:
    counts, none = np.zeros(2, np.int32), np.zeros((2, 0), np.int32)
    boxes, indices, totals = run["none"](np.zeros((2, 0, 6), np.float32), counts, none)
    assert (boxes.shape, indices.shape, totals.tolist()) == ((2, 0, 6), (2, 0), [[0], [0]])


@pytest.mark.parametrize("name", DECODED)
def test_boxes_of_anchors(name: str, run: Run) -> None:
    s = {"variances": (1, 1, 1, 1), "threshold": 0.0} | DECODED[name]
    for b, n in ((0, 2), (1, 1), (2, 5), (1, 33)):
        generator = np.random.default_rng(n)
        classes, moves = (generator.standard_normal(x) for x in ((b, 3, n), (b, 4 * n)))
        given = classes, moves, generator.random((1, n, 4))
        classes, moves, anchors = given = [x.astype(np.float32) for x in given]
        boxes, scores = run[name](*given)
        dx, dy, dw, dh = np.moveaxis(moves.reshape(b, n, 4).astype(np.float64), -1, 0)
        left, top, right, bottom = anchors[0].T.astype(np.float64)
        x = dx * s["variances"][0] * (right - left) + (left + right) / 2
        y = dy * s["variances"][1] * (bottom - top) + (top + bottom) / 2
        w = np.exp(dw * s["variances"][2]) * (right - left) / 2
        h = np.exp(dh * s["variances"][3]) * (bottom - top) / 2
        wanted = np.stack([y - h, x - w, y + h, x + w], -1)
        wanted = np.clip(wanted, 0, 1) if s.get("clip") else wanted
        np.testing.assert_allclose(boxes, wanted, rtol=1e-4, atol=1e-5)
        wanted = classes.astype(np.float64)
        if s.get("apply_softmax", True):
            wanted = np.exp(wanted) / np.exp(wanted).sum(1, keepdims=True)
        wanted = np.where(wanted >= s["threshold"], wanted, 0)
        wanted[:, 0] *= s.get("keep_background", True)
        np.testing.assert_allclose(scores, wanted, rtol=1e-5, atol=1e-7)


REST = [spec("i32", 2), spec("i32", 2, 9)]
F32 = spec("f32", 2, 9, 6)
REFUSED = [
    (box_nms, [spec("f32", 9, 6), *BOXES[1:]], r"expects dims \[b, n, k\], \[b\] and \[b, n\]"),
    (box_nms, [F32, spec("i32", 3), spec("i32", 2, 9)], "counts or indices of other dims"),
    (box_nms, [F32, spec("f32", 2), spec("i32", 2, 9)], "counts and indices of integers"),
    (box_nms, [spec("f32", 2, 9, 5), *REST], "end of coordinates 5"),
    (box_nms, [spec("f32", 2, 9, "k"), *REST], "score_index 1 in boxes of k values"),
    (multibox_transform_loc, [F32, F32, F32], r"expects dims \[b, c, n\], \[b, 4 \* n\]"),
    (
        multibox_transform_loc,
        [F32, spec("f32", 2, 23), spec("f32", 1, 6, 4)],
        r"has locations \[2, 23\] of 6 anchors in 2 batches",
    ),
    (multibox_transform_loc, [spec("f64", 2, 3, "n"), *ANCHORS[1:]], "of one float type"),
    (partial(multibox_transform_loc, variances=[1]), ANCHORS, "expects 4 variances, but got 1"),
]


@pytest.mark.parametrize(("build", "specs", "message"), REFUSED, ids=range(len(REFUSED)))
def test_what_is_refused(build, specs, message: str) -> None:
    with pytest.raises(ShapeError, match=message):
        module_of({"main": (build, specs)})
