"""Streams of compiled stages: order, bounded queues, ends and failures; each call has a limit."""

import time
from threading import Event
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
    each,
    graph,
    leaf,
    module,
    stages_of,
    streamed,
    whole,
)  # fmt: skip
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


@leaf(x="f32[n]")
def total(at: Instance, x: Tensor) -> Scalar:
    return at.loop(x.extent(0), 0.0, lambda i, t: t + x[i])


@leaf(x="f32", y="f32")
def difference(at: Instance, x: Scalar, y: Scalar) -> Scalar:
    return x - y


@graph(x="f32[]", y="f32[]")
def without_streams(x: Port, y: Port) -> Any:
    return difference.over()(each(x), each(y))


def test_h09_streams_are_edges_of_a_graph() -> None:
    """What stages compute for items of any size is what a call computes."""

    @graph(x="f32[n]", y="f32[n]")
    def chain(x: Port, y: Port) -> Any:
        both = difference.over("n")(each(x), each(y))
        more = next_one.over("n")(streamed(each(both)))
        return difference.over("n")(streamed(each(more)), each(x)), total.over()(whole(more))

    compiled = relax_mlir.compile(module(chain, without_streams))
    stages = stages_of(compiled, "chain")
    assert [stage.name for stage in stages] == [f"chain_stage_{index}" for index in range(3)]
    draw, items = np.random.default_rng(), []
    with Stream(stages, depth=2) as stream:
        for n in (0, 1, 17, 64, 1031):
            items.append(tuple(draw.standard_normal((2, n)).astype(np.float32)))
            stream.push(items[-1], timeout=30)
        results = stream.wait(timeout=30)
    for (x, y), (less, sum_) in zip(items, results, strict=True):
        more = 2 * (x.astype(float) - y) + 1
        np.testing.assert_allclose(less, more - x, rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(sum_, more.sum(), rtol=1e-4, atol=1e-3)
        called = compiled["chain"](x, y)
        np.testing.assert_allclose(called[0], less, rtol=1e-6, atol=1e-6)
        np.testing.assert_allclose(called[1], sum_, rtol=1e-4, atol=1e-3)
    with pytest.raises(UsageError, match="'without_streams' has no stages"):
        stages_of(compiled, "without_streams")


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
