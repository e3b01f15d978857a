"""Stages and tasks overlap: what waits at the same time, and compiled calls in a trace."""

import json
import time
from collections.abc import Callable
from pathlib import Path
from threading import Barrier
from typing import Any

import numpy as np
import pytest

import relax_mlir
from relax_mlir.dataflow import (
    Instance,
    Port,
    Scalar,
    Stream,
    Tensor,
    Timeline,
    each,
    graph,
    leaf,
    module,
    together,
    whole,
)
from relax_mlir.errors import ExecutionError


@leaf(x="f32", table="f32[k]")
def mixed(at: Instance, x: Scalar, table: Tensor) -> Scalar:
    return at.loop(table.extent(0), 0.0, lambda i, y: y * x + table[i])


@graph(x="f32[n]", table="f32[k]")
def work(x: Port, table: Port) -> Any:
    return mixed.over("n")(each(x), whole(table))


def horner(x: np.ndarray, table: np.ndarray) -> np.ndarray:
    return np.polyval(table.astype(float), x.astype(float))


def test_h10_stages_of_a_stream_overlap() -> None:
    """All four stages are in progress at once: item 3 in the first, item 0 in the last."""
    meeting, timeline = Barrier(4), Timeline()

    def stage(index: int) -> Callable[[int], int]:
        def run(item: int) -> int:
            if index + item == 3:
                meeting.wait(30)  # of a thread that waits alone, this is an error
            return item

        return run

    with Stream([stage(index) for index in range(4)], depth=1, timeline=timeline) as stream:
        for item in range(8):
            stream.push(item, timeout=30)
            if item >= 4:
                assert stream.pop(timeout=30) == item - 4
        assert stream.wait(timeout=30) == [4, 5, 6, 7]
    assert timeline.overlap() > 0
    assert len(timeline.spans) == 32


def test_h11_compiled_tasks_overlap_in_the_trace(tmp_path: Path) -> None:
    """Each of two tasks starts only when the other has, and calls; at least once both compute."""
    compiled = relax_mlir.compile(module(work))
    compiled.threads = 1
    draw = np.random.default_rng()
    x, other = (draw.uniform(-1, 1, 20_011).astype(np.float32) for _ in range(2))
    table = draw.standard_normal(501).astype(np.float32)
    for _ in range(20):
        timeline, start = Timeline(), Barrier(2)

        def task(x: np.ndarray, start: Barrier = start) -> np.ndarray:
            start.wait(30)
            return compiled["work"](x, table)

        results = together([lambda: task(x), lambda: task(other)], timeline=timeline)
        for got, given in zip(results, (x, other), strict=True):
            np.testing.assert_allclose(got, horner(given, table), rtol=1e-3, atol=1e-3)
        if timeline.overlap() > 0:
            break
    assert timeline.overlap() > 0
    timeline.write(tmp_path / "trace.json")
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    (begin, length), (later, _) = sorted((event["ts"], event["dur"]) for event in events)
    assert {event["tid"] for event in events} == {0, 1}
    assert begin <= later < begin + length


def test_h11_tasks_that_fail_or_go_on() -> None:
    assert together([]) == []
    with pytest.raises(ExecutionError, match=r"task 1: .*by zero"):
        together([lambda: 1, lambda: 1 // 0])
    with pytest.raises(ExecutionError, match=r"task 0 has not ended within 0\.05 s"):
        together([lambda: time.sleep(1)], timeout=0.05)
