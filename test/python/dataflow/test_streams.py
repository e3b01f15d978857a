"""Streams of compiled stages: order, bounded queues, ends and failures; each call has a limit."""

import gc
import subprocess
import sys
import time
import weakref
from threading import Event, Thread, active_count
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
from relax_mlir.errors import ExecutionError, OutOfMemoryError, UsageError


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


def threads_after(expected: int) -> int:
    """How many threads there are, as soon as there are no more than expected, or after a while."""
    end = time.monotonic() + 20
    while active_count() > expected and time.monotonic() < end:
        time.sleep(0.01)
    return active_count()


def test_h09_a_limit_that_has_passed_loses_no_results() -> None:
    go_on = Event()

    def late(x: int) -> int:
        assert x < 2 or go_on.wait(30)
        return x

    stream = Stream([late], depth=3)
    for item in range(4):
        stream.push(item, timeout=30)
    with pytest.raises(ExecutionError, match="has not ended within"):
        stream.wait(timeout=1)
    assert stream.pop(timeout=30) == 0
    go_on.set()
    assert stream.wait(timeout=30) == [1, 2, 3]
    assert stream.wait(timeout=30) == []


def test_h09_whatever_a_stage_raises_ends_no_thread() -> None:
    def leave(x: int) -> int:
        raise SystemExit if x else KeyboardInterrupt

    with Stream([leave, leave]) as stream:
        for item in range(2):
            stream.push(item, timeout=30)
        for name in ("KeyboardInterrupt", "SystemExit"):
            with pytest.raises(ExecutionError, match=f"stage 0 of a stream: {name}"):
                stream.pop(timeout=30)


def test_h09_streams_that_nobody_has_end_and_keep_nothing() -> None:
    """Items in queues, results that are not popped, and a body that fails."""
    before, kept = active_count(), []

    def item() -> np.ndarray:
        array = np.zeros(100)
        kept.append(weakref.ref(array))
        return array

    for _ in range(5):
        stream = Stream([np.negative, abs, np.sqrt], depth=2)
        for _ in range(6):
            stream.push(item(), timeout=30)
    start = time.monotonic()

    def fail() -> None:
        with Stream([lambda x: x, time.sleep], depth=1) as stream:
            stream.push(0.2)
            stream.push(60.0)  # is dropped, or slept for by a thread that nobody waits for
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert time.monotonic() - start < 30
    del stream
    gc.collect()
    assert threads_after(before + 1) <= before + 1
    assert [each for each in kept if each() is not None] == []


def test_h09_any_threads_push_and_pop() -> None:
    """Each item comes out once, and those of one thread in their order if one thread pops."""
    stream, results = Stream([abs, abs], depth=2), []

    def push(first: int) -> None:
        for item in range(first, 2000, 4):
            stream.push(item, timeout=30)

    threads = [Thread(target=push, args=(first,)) for first in range(4)]
    for thread in threads:
        thread.start()
    results = [stream.pop(timeout=30) for _ in range(2000)]
    for thread in threads:
        thread.join(30)
    for first in range(4):
        assert [item for item in results if item % 4 == first] == list(range(first, 2000, 4))
    assert stream.wait(timeout=30) == []


def test_h09_a_push_that_blocks_is_refused_after_wait() -> None:
    go_on, errors = Event(), []
    stream = Stream([lambda x: go_on.wait(30) and x], depth=1)
    stream.push(0, timeout=30)
    stream.push(1, timeout=30)

    def push() -> None:
        with pytest.raises(UsageError, match="after wait") as error:
            stream.push(2, timeout=30)
        errors.append(error)

    thread = Thread(target=push)
    thread.start()
    with pytest.raises(ExecutionError, match="not ended"):
        stream.wait(timeout=0.3)
    thread.join(30)
    assert len(errors) == 1
    go_on.set()
    assert stream.wait(timeout=30) == [0, 1]


@pytest.mark.parametrize("depth", [-1, 2.5, "4", True, 1 << 64])
def test_h09_depths_that_no_queue_has(depth: Any) -> None:
    with pytest.raises((UsageError, OutOfMemoryError), match=r"depth|queues of -1|queue of 1844"):
        Stream([abs], depth=depth)


INTERRUPTED = """
import os, signal, time
from relax_mlir.dataflow import Stream
from relax_mlir.errors import UsageError

stream = Stream([abs])
signal.setitimer(signal.ITIMER_REAL, 0.3)
def handler(*_): raise KeyboardInterrupt
signal.signal(signal.SIGALRM, handler)
begin = time.monotonic()
try:
    stream.pop(timeout=50)
except KeyboardInterrupt:
    print("interrupted", time.monotonic() - begin < 20)
stream.push(-1)
print(stream.pop(timeout=30))
child = os.fork()
if not child:
    try:
        stream.push(1)
    except UsageError as error:
        print(error, flush=True)
    with Stream([abs]) as own:
        own.push(-2)
        print(own.wait(timeout=30), flush=True)
    os._exit(0)
os.waitpid(child, 0)
stream.push(-3)
print(stream.wait(timeout=30))
"""


def test_h09_interrupts_and_forks() -> None:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", INTERRUPTED],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    said = ["interrupted True", "1", "a stream belongs to the process that launched it", "[2]"]
    assert (done.stdout.splitlines(), done.stderr) == ([*said, "[3]"], "")
