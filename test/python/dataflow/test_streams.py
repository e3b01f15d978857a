"""Streams of compiled stages: order, bounded queues, ends and failures; each call has a limit."""

import time
from threading import Event
from typing import Any

import numpy as np
import pytest

import relax_mlir
from relax_mlir.dataflow import Instance, Port, Scalar, Stream, each, graph, leaf, module
from relax_mlir.errors import ExecutionError, UsageError


@leaf(x="f32")
def next_one(at: Instance, x: Scalar) -> Scalar:
    return 2.0 * x + 1.0


@graph(x="f32[n]")
def stage(x: Port) -> Any:
    return next_one.over("n")(each(x))


def test_h09_six_stages_keep_the_order_of_500_items() -> None:
    compiled = relax_mlir.compile(module(stage))["stage"]
    with Stream([compiled] * 6, depth=3) as stream:
        results = []
        for item in range(500):
            stream.push(np.full(item % 5, item, np.float32), timeout=30)
            if item >= 10:
                results.append(stream.pop(timeout=30))
        results += stream.wait(timeout=30)
    assert len(results) == 500
    for item, result in enumerate(results):
        np.testing.assert_array_equal(result, np.full(item % 5, 64 * item + 63, np.float32))
    with pytest.raises(UsageError, match="after wait"):
        stream.push(np.zeros(1, np.float32))
    with pytest.raises(UsageError, match="after its end"):
        stream.pop()


def test_h09_queues_are_bounded() -> None:
    """Two stages that never finish an item hold one each, and as many wait as fit."""
    go_on = Event()

    def slow(x: int) -> int:
        go_on.wait(30)
        return x

    stream = Stream([slow, slow], depth=2)
    for item in range(3):  # one in the first stage, two in front of it
        stream.push(item, timeout=30)
    with pytest.raises(ExecutionError, match="no stage took an item within"):
        stream.push(3, timeout=0.5)
    with pytest.raises(ExecutionError, match="no result within"):
        stream.pop(timeout=0.05)
    start = time.monotonic()
    with pytest.raises(ExecutionError, match="has not ended within"):
        stream.wait(timeout=0.1)
    assert time.monotonic() - start < 20
    go_on.set()
    assert stream.wait(timeout=30) == [0, 1, 2]


def test_h09_a_failed_item_is_an_error_of_its_own() -> None:
    def reciprocal(x: int) -> float:
        return 1 / x

    stream = Stream([float, reciprocal, abs])
    for item in (1, 0, -2):
        stream.push(item)
    assert stream.pop(timeout=30) == 1
    with pytest.raises(ExecutionError, match=r"stage 1 of a stream: .*division by zero"):
        stream.pop(timeout=30)
    assert stream.wait(timeout=30) == [0.5]
    with pytest.raises(UsageError, match="runs nothing"):
        Stream([])
