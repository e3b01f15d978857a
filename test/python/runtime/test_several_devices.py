"""Modules with several devices: what runs where, copies between them, and what fails in each."""

import ctypes
import gc
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
import pytest
import vulkan
from call_segments import segments
from cuda_driver import driver
from perceptron import normal

import relax_mlir
from relax_mlir.errors import CompileError, ExecutionError, OutOfMemoryError, UsageError
from relax_mlir.interpreter import interpret

X = '!x = tensor<?x?xf32, #graph.shape<["n", "m"]>>\n'
TURNS = f"""{X}
func.func @main(%x: !x, %y: !x) -> (!x, !x) {{
  %c = arith.constant dense<1.5> : tensor<f32>
  %0 = "graph.add"(%x, %y) : (!x, !x) -> !x
  %1 = "graph.multiply"(%0, %c) {{graph.device = "OTHER"}} : (!x, tensor<f32>) -> !x
  %2 = "graph.subtract"(%1, %y) : (!x, !x) -> !x
  %3 = "graph.nn_softmax"(%2) {{axis = -1 : i64, graph.device = "cpu"}} : (!x) -> !x
  %4 = "graph.to_device"(%3) {{device = "OTHER"}} : (!x) -> !x
  %5 = "graph.square"(%4) : (!x) -> !x
  %6 = "graph.multiply"(%5, %c) : (!x, tensor<f32>) -> !x
  %7 = "graph.to_device"(%6) {{device = "device"}} : (!x) -> !x
  %8 = "graph.multiply"(%7, %c) : (!x, tensor<f32>) -> !x
  %9 = "graph.to_device"(%6) {{device = "cpu"}} : (!x) -> !x
  return %8, %9 : !x, !x
}}
"""
TWINS = "cuda:sm_90a@cuda:sm_90a"
PAIRS = ("cuda:sm_90a@vulkan", "gpu@cuda:sm_90a", TWINS)
OTHERS = ("vulkan@cuda:sm_90a", "gpu@vulkan", "gpu@gpu", "cuda:sm_90a@gpu")


def expected(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    x, y = x.astype(np.float64), y.astype(np.float64)
    before = (x + y) * 1.5 - y
    raised = np.exp(before - before.max(-1, keepdims=True, initial=-np.inf))
    squares = (raised / raised.sum(-1, keepdims=True)) ** 2 * 1.5
    return squares * 1.5, squares


@pytest.fixture(autouse=True)
def _cuda() -> Iterator[None]:
    driver().library.standin_reset()
    driver().library.standin_architecture(2, 90)
    yield
    driver().library.standin_reset()


def text_for(target: str) -> str:
    first, second = (each.partition(":")[0] for each in target.split("@"))
    return TURNS.replace("OTHER", f"{second}:1" if first == second else second)


@cache
def built(target: str, level: int = 2) -> Any:
    if "vulkan" in target:
        vulkan.require()
    return relax_mlir.compile(text_for(target), target, opt_level=level)


@pytest.mark.parametrize("target", PAIRS)
def test_devices_take_turns(target: str) -> None:
    for dims in ((0, 3), (1, 1), (5, 257)):
        x, y = normal(*dims), normal(*dims)
        for run in (built(target), interpret(text_for(target))):
            for actual, wanted in zip(run["main"](x, y), expected(x, y)):
                np.testing.assert_allclose(actual, wanted, rtol=1e-5)


@pytest.mark.rotate(len(OTHERS))
@pytest.mark.parametrize("target", OTHERS)
def test_other_pairs(target: str) -> None:
    test_devices_take_turns(target)


@pytest.mark.rotate(3)
@pytest.mark.parametrize("level", [0, 1, 3])
def test_levels(level: int) -> None:
    x, y = normal(7, 33), normal(7, 33)
    module = built("gpu@cuda:sm_90a", level)
    on_device, on_host = module["main"](module.device.array(x), module.device.array(y))
    for actual, wanted in zip((on_device.numpy(), on_host), expected(x, y)):
        np.testing.assert_allclose(actual, wanted, rtol=1e-5)


def test_memory_is_counted_for_each_device_and_freed() -> None:
    gc.collect()
    before = driver().library.standin_live()
    module = relax_mlir.compile(text_for("gpu@cuda:sm_90a"), "gpu@cuda:sm_90a", use_cache=False)
    x = module.device.array(normal(40, 50))
    assert module.device.names == ("gpu", "cuda:sm_90a")
    constants = module.device.bytes_by_device[1]
    driver().fail("cuMemAlloc_v2", 1, 2)
    with pytest.raises(OutOfMemoryError, match=r"bytes for temporaries on cuda:sm_90a"):
        module["main"](x, x)
    for _ in range(3):
        module["main"](x, x)
    first, second = module.device.bytes_by_device
    assert second >= constants + 40 * 50 * 4
    assert module.device.bytes == first + second
    del module, x
    gc.collect()
    assert driver().library.standin_live() == before


@pytest.mark.parametrize(
    ("function", "says"),
    [
        ("cuMemcpyHtoDAsync_v2", "cuda:sm_90a: a copy to the device: a copy to the device fails"),
        ("cuMemcpyDtoHAsync_v2", "cuda:sm_90a: a copy to the host: a copy from the device"),
        ("cuLaunchKernel", r"cuda:sm_90a: .*_kernel: cannot launch"),
        ("cuStreamSynchronize", "cuda:sm_90a: "),
    ],
)
def test_failures_name_the_device(function: str, says: str) -> None:
    module = built("gpu@cuda:sm_90a")
    for status in (1, 2):
        driver().fail(function, 1, status)
        with pytest.raises((ExecutionError, OutOfMemoryError), match=says):
            module["main"](normal(3, 5), normal(3, 5))
    x, y = normal(4, 6), normal(4, 6)
    np.testing.assert_allclose(module["main"](x, y)[1], expected(x, y)[1], rtol=1e-5)


@pytest.mark.parametrize("which", range(4))
def test_failures_of_the_first_device(which: int) -> None:
    module = built("gpu@cuda:sm_90a")
    module._library.rx_standin_fail(ctypes.c_int32(which), ctypes.c_int64(1))
    with pytest.raises((ExecutionError, OutOfMemoryError), match=r"^gpu: |out of memory"):
        module["main"](normal(3, 5), normal(3, 5))
    x, y = normal(4, 6), normal(4, 6)
    np.testing.assert_allclose(module["main"](x, y)[1], expected(x, y)[1], rtol=1e-5)


@pytest.mark.rotate(2)
@pytest.mark.parametrize("target", ["gpu@cuda:sm_90a", "cuda:sm_90a@gpu"])
def test_a_device_that_cannot_be_opened(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The other one is closed again."""
    monkeypatch.setenv("RELAX_CUDA_DRIVER", "/nowhere/libcuda.so.1")
    gc.collect()
    before = driver().library.standin_live()
    with pytest.raises(ExecutionError, match=r"cuda:sm_90a: no NVIDIA driver: .*/nowhere/"):
        relax_mlir.compile(text_for(target), target, use_cache=False)
    gc.collect()
    assert driver().library.standin_live() == before


def test_devices_of_one_api_have_memory_and_streams_of_their_own() -> None:
    """The stand-in refuses memory, kernels and streams of another device than the current one."""
    gc.collect()
    before = driver().library.standin_live()
    module = relax_mlir.compile(text_for(TWINS), TWINS, use_cache=False)
    assert module.device.names == ("cuda:sm_90a", "cuda:1 of cuda:sm_90a")
    x = module.device.array(normal(40, 50))
    for _ in range(3):
        for actual, wanted in zip(module["main"](x, x), expected(x.numpy(), x.numpy())):
            np.testing.assert_allclose(getattr(actual, "numpy", lambda a=actual: a)(), wanted, 1e-5)
    first, second = module.device.bytes_by_device
    assert min(first, second) >= 40 * 50 * 4
    assert module.device.bytes == first + second
    for function in ("cuLaunchKernel", "cuStreamSynchronize", "cuMemcpyDtoHAsync_v2"):
        for device, name in enumerate(module.device.names):
            driver().fail(f"{function}:{device}", 1, 2)
            with pytest.raises((ExecutionError, OutOfMemoryError), match=f"^{name}: "):
                module["main"](normal(7, 9), normal(7, 9))
            driver().library.standin_reset()
            driver().library.standin_architecture(2, 90)
    driver().fail("cuMemAlloc_v2:1", 1, 2)
    with pytest.raises(OutOfMemoryError, match=r"bytes for temporaries on cuda:1"):
        module["main"](normal(300, 300), normal(300, 300))
    del module, x
    gc.collect()
    assert driver().library.standin_live() == before


@pytest.mark.parametrize(
    ("devices", "says"),
    [
        (0, r": cuda:sm_90a: the NVIDIA driver has no device"),
        (
            1,
            r": cuda:1 of .*: the NVIDIA driver has 1 of the devices .* needs 2; CUDA_VIS",
        ),
    ],
)
def test_there_are_fewer_devices_than_the_module_is_for(devices: int, says: str) -> None:
    gc.collect()
    before = driver().library.standin_live()
    driver().library.standin_architecture(devices, 90)
    with pytest.raises(ExecutionError, match=says):
        relax_mlir.compile(text_for(TWINS), TWINS, use_cache=False)
    gc.collect()
    assert driver().library.standin_live() == before


def test_there_are_fewer_devices_of_vulkan() -> None:
    vulkan.require()
    target = "@".join(["vulkan"] * 8)
    says = r": vulkan(:\d)?: Vulkan finds \d of the devices that the module is for, which needs \d"
    with pytest.raises(ExecutionError, match=says):
        relax_mlir.compile(TURNS.replace("OTHER", "vulkan:7"), target)


INSIDE = f"""{X}
func.func private @inner(%x: !x, %times: index) -> (!x, f32)
    attributes {{graph.device = "cuda", graph.noinline}} {{
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %r = scf.for %i = %zero to %times step %one iter_args(%a = %x) -> (!x) {{
    %2 = "graph.add"(%a, %x) : (!x, !x) -> !x
    scf.yield %2 : !x
  }}
  %first = tensor.extract %r[%zero, %zero] : !x
  return %r, %first : !x, f32
}}
func.func @main(%x: !x, %times: index, %flag: i1) -> (!x, f32) {{
  %0:2 = "graph.call"(%x, %times) {{callee = @inner, {segments(2, 2)}}} : (!x, index) -> (!x, f32)
  %1 = scf.if %flag -> (!x) {{
    %2 = "graph.negative"(%0#0) {{graph.device = "cuda"}} : (!x) -> !x
    scf.yield %2 : !x
  }} else {{
    scf.yield %0#0 : !x
  }}
  return %1, %0#1 : !x, f32
}}
"""


@pytest.mark.rotate(2)
@pytest.mark.parametrize("level", [0, 2])
def test_functions_and_branches_on_the_second_device(level: int) -> None:
    module, x = relax_mlir.compile(INSIDE, "gpu@cuda:sm_90a", opt_level=level), normal(3, 4)
    for times, flag in ((0, True), (5, False), (2, True)):
        result, first = module["main"](x, times, flag)
        after = x.astype(np.float64) * (times + 1)
        np.testing.assert_allclose(result, -after if flag else after, rtol=1e-6)
        assert first == pytest.approx(after[0, 0], rel=1e-6)


def test_programs_that_several_run() -> None:
    text = """
    !a = tensor<?x?xf32, #graph.shape<["n", "n"]>>
    func.func @main(%a: !a) -> !a {
      %0 = "graph.matmul"(%a, %a) : (!a, !a) -> !a
      %1 = "graph.matmul"(%0, %0) {graph.device = "cpu"} : (!a, !a) -> !a
      %2 = "graph.matmul"(%1, %a) {graph.device = "cuda:0"} : (!a, !a) -> !a
      %3 = "graph.matmul"(%2, %a) {graph.device = "cuda:sm_90a"} : (!a, !a) -> !a
      return %3 : !a
    }"""
    module = relax_mlir.compile(text, "gpu@cuda:sm_90a")
    for count in (0, 1, 17, 33):
        a = normal(count, count) / max(count, 1) ** 0.5
        wide = np.linalg.matrix_power(a.astype(np.float64), 6)
        np.testing.assert_allclose(module["main"](a), wide, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize(
    ("target", "says"),
    [
        ("gpu@cuda:sm_90a", r"'vulkan', but the target has the devices 'gpu' and 'cuda:sm_90a'; "
         "accepted are 'cpu', 'device' and 'cuda'"),
        ("cuda:sm_90a@cuda:sm_80", "accepted are 'cpu', 'device' and 'cuda:1'"),
        ("wasm32@webgpu@webgpu", "code for a page has one device"),
        ("webgpu@vulkan", "cannot be launched by code for 'wasm32'"),
        ("native@gpu@webgpu", "cannot be launched by code for 'native'"),
    ],
)  # fmt: skip
def test_devices_that_are_not_there(target: str, says: str) -> None:
    with pytest.raises((CompileError, UsageError), match=says):
        relax_mlir.compile(TURNS.replace("OTHER", "vulkan"), target)
