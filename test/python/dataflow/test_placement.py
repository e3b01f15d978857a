"""Nodes on the host and on a device: what is copied, counted in the IR and while it runs."""

import ctypes
import gc
from functools import cache
from typing import Any

import numpy as np
import pytest

import relax_mlir
from relax_mlir.dataflow import Instance, Port, Scalar, Tensor, each, graph, leaf, module, whole
from relax_mlir.errors import CompileError

pytestmark = pytest.mark.usefixtures("llvm_turns")


@leaf("device", line="f32[n]")
def smooth(at: Instance, line: Tensor) -> Scalar:
    i = at.id()
    return 0.25 * line[i - 1] + 0.5 * line[i] + 0.25 * line[i + 1]


@leaf("cpu", line="f32[n]")
def smooth_on_host(at: Instance, line: Tensor) -> Scalar:
    i = at.id()
    return 0.25 * line[i - 1] + 0.5 * line[i] + 0.25 * line[i + 1]


@leaf("device", row="inout f32[2]", x="f32")
def second(at: Instance, row: Tensor, x: Scalar) -> Tensor:
    return row.set(1, row[0] * x)


@graph(x="f32[n]")
def chain(x: Port) -> Any:
    for _ in range(5):
        x = smooth.over("n")(whole(x))
    return x


@graph(x="f32[n]")
def with_host(x: Port) -> Any:
    for node in (smooth, smooth, smooth_on_host, smooth, smooth):
        x = node.over("n")(whole(x))
    return x


@graph(x="f32[n]")
def with_read(x: Port) -> Any:
    """What the host reads is a result beside that of the chain."""
    for _ in range(3):
        x = smooth.over("n")(whole(x))
    return smooth.over("n")(whole(smooth.over("n")(whole(x)))), smooth_on_host.over("n")(whole(x))


@graph(rows="f32[n, 2]", x="f32[n]")
def updated(rows: Port, x: Port) -> Any:
    return second.over("n")(each(second.over("n")(each(rows), each(x))), each(x))


def smoothed(x: np.ndarray, times: int) -> np.ndarray:
    wide = x.astype(np.float64)
    for _ in range(times):
        edges = np.pad(wide, 1, mode="edge")
        wide = 0.25 * edges[:-2] + 0.5 * wide + 0.25 * edges[2:]
    return wide


@cache
def compiled(level: int, target: str = "gpu") -> Any:
    return relax_mlir.compile(module(chain, with_host, with_read, updated), target, level)


def copies(executable: Any) -> np.ndarray:
    """To the device, from it, and on it."""
    count = executable._library.rx_standin_copies
    count.restype, count.argtypes = ctypes.c_int64, (ctypes.c_int32,)
    return np.array([count(which) for which in range(3)])


@pytest.mark.parametrize("level", [0, 2])
@pytest.mark.parametrize(("name", "expected"), [("chain", (1, 1)), ("with_host", (2, 2))])
def test_h14_only_what_crosses_is_copied(level: int, name: str, expected: tuple) -> None:
    """A chain of five: one copy in, one out; a node on the host in between adds one of each."""
    executable = compiled(level)
    for n in (1, 2, 31, 33):
        x = np.random.default_rng().standard_normal(n).astype(np.float32)
        before = copies(executable)
        got = executable[name](x)
        assert tuple(copies(executable) - before) == (*expected, 0)
        np.testing.assert_allclose(got, smoothed(x, 5), rtol=1e-5, atol=1e-6)
    assert executable[name](np.zeros(0, np.float32)).shape == (0,)


@pytest.mark.parametrize("level", [0, 2])
def test_h14_a_read_by_the_host_adds_one_copy(level: int) -> None:
    executable, x = compiled(level), np.arange(9, dtype=np.float32)
    on_device = executable.device.array(x)
    before = copies(executable)
    result, read = executable["with_read"](on_device)
    # What the host reads comes down; its result goes up, as results of functions are on the device.
    assert tuple(copies(executable) - before) == (1, 1, 0)
    np.testing.assert_allclose(result.numpy(), smoothed(x, 5), rtol=1e-5)
    np.testing.assert_allclose(read.numpy(), smoothed(x, 4), rtol=1e-5)
    before = copies(executable)
    executable["chain"](on_device)
    assert tuple(copies(executable) - before) == (0, 0, 0)


def test_h14_copies_of_the_ir() -> None:
    passes = "relax-map-nodes{target=gpu},relax-lower-dataflow,relax-place-devices{target=gpu},"
    passes += "relax-legalize-ops,relax-copy-between-devices"
    lowered = (str(module(f, passes=passes)) for f in (chain, with_host, with_read, updated))
    assert [text.count('"graph.to_device"') for text in lowered] == [0, 2, 2, 0]


@pytest.mark.parametrize("level", [0, 2])
def test_h14_what_is_updated_stays_on_the_device(level: int) -> None:
    executable, draw = compiled(level), np.random.default_rng()
    for n in (1, 7, 33):
        rows, x = (draw.standard_normal(s).astype(np.float32) for s in ((n, 2), (n,)))
        before = copies(executable)
        got = executable["updated"](rows, x)
        assert tuple((copies(executable) - before)[:2]) == (2, 1)
        np.testing.assert_array_equal(got, np.stack([rows[:, 0], rows[:, 0] * x], 1))


def test_h14_without_a_device_nothing_is_copied() -> None:
    """What is for any device is refused there; what is for the host runs."""
    with pytest.raises(CompileError, match="has no version for cpu: '@smooth' is"):
        compiled(2, "native")

    @graph(x="f32[n]")
    def on_host(x: Port) -> Any:
        return smooth_on_host.over("n")(whole(x))

    x = np.arange(5, dtype=np.float32)
    got = relax_mlir.compile(module(on_host))["on_host"](x)
    np.testing.assert_allclose(got, smoothed(x, 1))


def test_h14_memory_is_freed() -> None:
    executable = compiled(2)
    x = executable.device.array(np.arange(9, dtype=np.float32))
    executable["with_host"](x)
    gc.collect()
    before = executable.device.bytes
    for _ in range(3):
        executable["with_host"](x)
    gc.collect()
    assert executable.device.bytes == before
