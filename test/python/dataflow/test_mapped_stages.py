"""Stages mapped freely to the host and a device: results, what the policies choose, failures.

All mappings on Vulkan: pytest test/python/dataflow/test_mapped_stages.py -k vulkan --rotation=all
"""

import ctypes
import gc
import runpy
from functools import cache
from itertools import product
from pathlib import Path
from threading import Barrier
from typing import Any

import numpy as np
import pytest
import vulkan

import relax_mlir
from relax_mlir.dataflow import (
    Instance,
    Port,
    Scalar,
    Scheduler,
    Stream,
    Timeline,
    each,
    graph,
    leaf,
    module,
    stages_of,
    together,
)
from relax_mlir.errors import CompileError, ExecutionError, UsageError

pytestmark = pytest.mark.usefixtures("llvm_turns")
EXAMPLE = Path(__file__).parents[3] / "examples/dataflow_pipeline.py"
SHAPES = ((1, 1), (5, 7), (8, 3), (0, 4), (9, 9))
LAUNCH, COPY = 1, 3


def mapped(*functions: Any, target: str = "gpu") -> Any:
    passes = f"relax-split-streams,relax-map-nodes{{policy=greedy target={target}}}"
    return relax_mlir.compile(module(*functions, passes=passes), target)


@cache
def pipeline(target: str) -> tuple[Any, list[str]]:
    """The example's six stages, each compiled for both devices: twelve functions."""
    edges = runpy.run_path(str(EXAMPLE))["edges"]
    return mapped(edges, target=target), [f"edges_stage_{index}" for index in range(6)]


def frames() -> list[np.ndarray]:
    """Of small integers: sums and products of the first stages are exact, whoever computes them."""
    draw = np.random.default_rng()
    return [draw.integers(0, 16, shape).astype(np.float32) for shape in SHAPES]


def edges_of_rows(image: np.ndarray) -> np.ndarray:
    """What the six stages compute, in float64."""
    if not image.size:
        return np.zeros(len(image))

    def at(x: np.ndarray, down: int, right: int) -> np.ndarray:
        rows, columns = (np.arange(n) for n in x.shape)
        rows, columns = rows + down, columns + right
        return x[np.ix_(np.clip(rows, 0, len(x) - 1), np.clip(columns, 0, x.shape[1] - 1))]

    x = image.astype(np.float64)
    x = 0.25 * at(x, 0, -1) + 0.5 * x + 0.25 * at(x, 0, 1)
    x = 0.25 * at(x, -1, 0) + 0.5 * x + 0.25 * at(x, 1, 0)
    x = np.hypot(at(x, 0, 1) - at(x, 0, -1), at(x, 1, 0) - at(x, -1, 0))
    x = np.where(x >= np.maximum(at(x, 0, -1), at(x, 0, 1)), x, 0)
    return (x > 0.5).sum(1)


def streamed(scheduler: Scheduler, names: list[str], items: list[Any]) -> list[np.ndarray]:
    stages = stages_of(scheduler, "edges")
    assert [stage.name for stage in stages] == names
    with Stream(stages, depth=2) as stream:
        for item in items:
            stream.push(item, timeout=60)
        return [np.asarray(result) for result in stream.wait(timeout=120)]


@pytest.mark.rotate(32)
@pytest.mark.parametrize("target", ["gpu", "vulkan"])
@pytest.mark.parametrize("mapping", [*product(("cpu", "device"), repeat=6)], ids=str)
def test_h16_every_mapping_gives_the_same(target: str, mapping: tuple[str, ...]) -> None:
    if target == "vulkan":
        vulkan.require()
    compiled, names = pipeline(target)
    timeline, items = Timeline(), frames()
    placed = dict(zip(names, mapping, strict=True))
    scheduler = Scheduler(compiled, "static", placed=placed, timeline=timeline)
    results = streamed(scheduler, names, items)
    ran = {f"{name}_on_{side}" for name, side in placed.items()}
    assert {span.name for span in timeline.spans} == ran
    for got, frame in zip(results, items, strict=True):
        np.testing.assert_array_equal(got, edges_of_rows(frame))


def test_h16_policies_choose_at_run_time() -> None:
    compiled, names = pipeline("gpu")
    items, every = frames(), {}
    for side in ("cpu", "device"):
        timeline = Timeline()
        placed = dict.fromkeys(names, side)
        streamed(Scheduler(compiled, "static", placed, timeline=timeline), names, items)
        every.update(timeline.medians())
    assert set(every) == {f"{name}_on_{side}" for name in names for side in ("cpu", "device")}
    for policy, times in (("profiled", every), ("greedy", {})):
        timeline = Timeline()
        scheduler = Scheduler(compiled, policy, times=times, timeline=timeline)
        for got, frame in zip(streamed(scheduler, names, items), items, strict=True):
            np.testing.assert_array_equal(got, edges_of_rows(frame))
        assert len(timeline.spans) == len(names) * len(items)
        if policy == "profiled":
            least = {min((f"{n}_on_{s}" for s in ("cpu", "device")), key=every.get) for n in names}
            assert {span.name for span in timeline.spans} == least


def test_h16_greedy_takes_the_device_that_is_free() -> None:
    """Four calls at once: each waits until all have begun, so two are on each device."""
    begun = Barrier(4)

    def work(item: int) -> int:
        begun.wait(30)
        return item

    class Compiled(dict):
        functions, device = ("f_on_cpu", "f_on_device"), None

    timeline, compiled = Timeline(), Compiled.fromkeys(Compiled.functions, work)
    stage = Scheduler(compiled, timeline=timeline)["f"]
    assert together([lambda i=i: stage(i) for i in range(4)]) == [0, 1, 2, 3]
    assert sorted(span.name for span in timeline.spans) == ["f_on_cpu"] * 2 + ["f_on_device"] * 2
    assert sorted(span.track for span in timeline.spans) == [0, 0, 1, 1]


@leaf("cpu", x="f32")
def tagged(at: Instance, x: Scalar) -> Scalar:
    return x + 1.0


@tagged.version("device")
def tagged_on_device(at: Instance, x: Scalar) -> Scalar:
    return x + 2.0  # only to tell which version runs


@graph(x="f32[n]")
def tag(x: Port) -> Any:
    return tagged.over("n")(each(x))


def test_h16_versions_stand_side_by_side() -> None:
    compiled, x = mapped(tag), np.zeros(3, np.float32)
    for side, what in (("cpu", 1), ("device", 2)):
        stage = Scheduler(compiled, "static", placed={"tag": side})["tag"]
        np.testing.assert_array_equal(np.asarray(stage(x)), np.full(3, what))
    assert mapped(tag, target="native").functions == ("tag_on_cpu",)
    np.testing.assert_array_equal(relax_mlir.compile(module(tag), "gpu")["tag"](x), np.full(3, 1))
    profiled = (
        "relax-map-nodes{policy=profiled target=gpu times=tagged@cpu=2,tagged_on_device@device=1}"
    )
    faster = relax_mlir.compile(module(tag, passes=profiled), "gpu")
    np.testing.assert_array_equal(faster["tag"](x), np.full(3, 2))


def test_h16_what_no_device_has_is_refused() -> None:
    @leaf("vulkan", "cuda", x="f32")
    def elsewhere(at: Instance, x: Scalar) -> Scalar:
        return x + x

    @graph(x="f32[n]")
    def main(x: Port) -> Any:
        return elsewhere.over("n")(each(x))

    for target in ("native", "gpu"):
        with pytest.raises(
            CompileError, match=r"no version for .*: '@elsewhere' is for vulkan or cud"
        ):
            relax_mlir.compile(module(main), target)
    with pytest.raises(CompileError, match=r"no version for one device: .*'@elsewhere' is for vul"):
        mapped(main)
    compiled, names = pipeline("gpu")
    for wrong in ({"policy": "best"}, {"placed": {"count": "cpu"}}, {"times": {"count_on_cpu": 1}}):
        with pytest.raises(UsageError):
            Scheduler(compiled, **wrong)
    with pytest.raises(UsageError, match="versions for cpu and device, not for 'gpu'"):
        Scheduler(compiled, "static", placed={names[0]: "gpu"})
    with pytest.raises(UsageError, match="no function 'missing_on_cpu'"):
        _ = Scheduler(compiled)["missing"]


@pytest.mark.parametrize(("what", "says"), [(LAUNCH, "fails to launch"), (COPY, "it fails")])
def test_h16_a_device_that_fails_midway(what: int, says: str) -> None:
    """The error names the node and the device; what the item had on the device is freed."""
    compiled, names = pipeline("gpu")
    fail = compiled._library.rx_standin_fail
    fail.argtypes = (ctypes.c_int32, ctypes.c_int64)
    scheduler = Scheduler(compiled, "static", placed={names[3]: "cpu"})
    frame = frames()[1]
    streamed(scheduler, names, [frame])
    gc.collect()
    before = compiled.device.bytes
    for after in (1, 2, 3):
        fail(what, after)
        with pytest.raises(ExecutionError, match=rf"stage \d of a stream: node '\w+' on .*{says}"):
            streamed(scheduler, names, [frame])
        fail(what, 0)
        gc.collect()
        assert compiled.device.bytes == before
    (got,) = streamed(scheduler, names, [frame])
    np.testing.assert_array_equal(got, edges_of_rows(frame))
