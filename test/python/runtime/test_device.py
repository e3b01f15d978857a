"""Modules whose kernels run on a device, by the stand-in for one, whose memory the host cannot use.

Each operator runs on it in `test_compiled.py`.
"""

import ctypes
import gc
from functools import cache
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pytest
from call_segments import segments
from perceptron import MLP, check_perceptron, normal, perceptron

import relax_mlir
from relax_mlir.child_process import run_in_child
from relax_mlir.errors import ExecutionError, OutOfMemoryError
from relax_mlir.interpreter import simulate

ALLOC, LAUNCH, SYNC, COPY, OPEN, LOST = range(6)

HOST = f"""
!x = tensor<?xf32, #graph.shape<["n"]>>
func.func private @scaled(%x: !x, %by: f32) -> (!x, f32) {{
  %0 = "graph.multiply"(%x, %x) : (!x, !x) -> !x
  %at = arith.constant 1 : index
  %1 = tensor.extract %0[%at] : !x
  %2 = arith.mulf %1, %by : f32
  return %0, %2 : !x, f32
}}
func.func @main(%x: !x, %by: f32, %s: !graph.shape_value<["m"]>)
    -> (!x, f32, !graph.shape_value<["m + n"]>) {{
  %0, %1 = "graph.call"(%x, %by) {{callee = @scaled, {segments(2, 2)}}} : (!x, f32) -> (!x, f32)
  %2 = "graph.make_shape"() {{dims = #graph.shape<["m + n"]>}} : () -> !graph.shape_value<["m + n"]>
  return %0, %1, %2 : !x, f32, !graph.shape_value<["m + n"]>
}}
"""
LOOP = """
!x = tensor<?xf32, #graph.shape<["n"]>>
func.func @main(%x: !x, %limit: f32) -> !x {
  %y = scf.while (%a = %x) : (!x) -> !x {
    %zero = arith.constant 0 : index
    %first = tensor.extract %a[%zero] : !x
    %more = arith.cmpf olt, %first, %limit : f32
    scf.condition(%more) %a : !x
  } do {
  ^bb0(%a: !x):
    %twice = "graph.add"(%a, %a) : (!x, !x) -> !x
    scf.yield %twice : !x
  }
  return %y : !x
}
"""
COUNT = """
!x = tensor<?xf32, #graph.shape<["n"]>>
!found = tensor<1x?xi64, #graph.shape<[1, "k"]>>
func.func @main(%x: !x) -> !found {
  %0 = "graph.nonzero"(%x) : (!x) -> tensor<1x?xi64, #graph.shape<[1, "?"]>>
  %1 = "graph.match_cast"(%0) : (tensor<1x?xi64, #graph.shape<[1, "?"]>>) -> !found
  return %1 : !found
}
"""


@cache
def built(text: str, level: int = 2) -> Any:
    return relax_mlir.compile(text, "gpu", opt_level=level)


@pytest.fixture
def failing(request: pytest.FixtureRequest) -> Any:
    """Makes something fail the next time, or later."""
    library = built(MLP)._library
    library.rx_standin_fail.argtypes = (ctypes.c_int32, ctypes.c_int64)

    def fail(which: int, after: int = 1) -> None:
        library.rx_standin_fail(which, after)

    yield fail
    for which in range(LOST + 1):
        library.rx_standin_fail(which, 0)


def test_arrays_are_freed_whenever_python_collects() -> None:
    """But not while the device is in use, which would wait for itself."""
    module = built(MLP)
    garbage = [module.device.zeros((1,), np.float32) for _ in range(2000)]

    def free_one(phase: str, _: object) -> None:
        if not gc.get_freeze_count():
            garbage.pop()

    thresholds = gc.get_threshold()
    gc.callbacks.append(free_one)
    gc.set_threshold(20)
    try:
        check_perceptron(module)
    finally:
        gc.set_threshold(*thresholds)
        gc.callbacks.remove(free_one)
    assert 0 < len(garbage) < 2000


@pytest.mark.parametrize("level", [0, 1, 2, 3])
def test_a_perceptron(level: int) -> None:
    check_perceptron(built(MLP, level))


def test_arrays_that_are_on_the_device_stay_there() -> None:
    module = built(MLP)
    x, w, v = normal(7, 40), normal(40, 72), normal(72, 10)
    on_device = [module.device.array(each) for each in (x, w, v)]
    module["main"](*on_device)  # the first call takes memory that stays
    gc.collect()
    before = module.device.bytes
    y = module["main"](*on_device)
    assert y.shape == (7, 10)
    assert y.dtype == np.float32
    np.testing.assert_allclose(y.numpy(), perceptron(x, w, v), rtol=1e-3)
    buffer = module.device.zeros((7, 10), np.float32)
    call = module["main"].bind(*on_device, results=[buffer])
    assert call.run() is buffer
    np.testing.assert_array_equal(np.asarray(buffer), np.asarray(y))
    call.set(0, -x)
    np.testing.assert_allclose(call.run().numpy(), perceptron(-x, w, v), rtol=1e-3)
    del y, buffer, call
    gc.collect()
    assert module.device.bytes == before


def test_buffers_of_the_host_are_filled() -> None:
    module = built(MLP)
    x, w, v, y = normal(3, 40), normal(40, 72), normal(72, 10), np.zeros((3, 10), np.float32)
    call = module["main"].bind(x, w, v, results=[y])
    assert call.run() is y
    np.testing.assert_allclose(y, perceptron(x, w, v), rtol=1e-3)
    x *= 2
    call.run()
    np.testing.assert_allclose(y, perceptron(x, w, v), rtol=1e-3)


@pytest.mark.parametrize("level", [0, 2])
def test_scalars_and_shapes_are_on_the_host(level: int) -> None:
    x = normal(5)
    y, scalar, dims = built(HOST, level)["main"](x, 3.0, [4])
    np.testing.assert_array_equal(y, x * x)
    assert scalar == np.float32(x[1] * x[1]) * np.float32(3)
    assert dims == (9,)


def test_loops_read_from_the_device() -> None:
    x = np.abs(normal(9)) + 1
    y = built(LOOP)["main"](x, 1000.0)
    factor = y[0] / x[0]
    assert y[0] >= 1000 > y[0] / 2
    np.testing.assert_array_equal(y, x * factor)


def test_counts_are_read_from_the_device() -> None:
    x = np.where(normal(70) > 0, normal(70), 0).astype(np.float32)
    np.testing.assert_array_equal(built(COUNT)["main"](x), np.nonzero(x))


def test_text_has_elements_of_the_device(capfd: pytest.CaptureFixture) -> None:
    text = """
    !x = tensor<?xf32, #graph.shape<["n"]>>
    func.func @main(%x: !x, %f: f32) -> !x {
      %0 = "graph.add"(%x, %x) : (!x, !x) -> !x
      "graph.print"(%0, %f) {format = "{} and {}", SEGMENTS} : (!x, f32) -> ()
      return %0 : !x
    }"""
    built(text.replace("SEGMENTS", segments(2, 0)))["main"](np.arange(3, dtype=np.float32), 5.0)
    assert capfd.readouterr().out == "[0, 2, 4] and 5\n"


@pytest.mark.parametrize(
    ("what", "count", "says"),
    [
        (ALLOC, 4, "out of memory"),
        (LAUNCH, 3, "gpu: .*_kernel[_0-9]*: it fails to launch"),
        (SYNC, 1, "gpu: running kernels: it fails"),
        (COPY, 4, "gpu: it fails"),
    ],
)
def test_failures_are_errors_of_the_call(failing: Any, what: int, count: int, says: str) -> None:
    module = built(MLP)
    x, w, v = normal(200, 40), normal(40, 72), normal(72, 10)
    module["main"](x, w, v)
    before = module.device.bytes, module._library.rx_standin_blocks()
    for after in range(1, count + 1):
        failing(what, after)
        with pytest.raises((ExecutionError, OutOfMemoryError), match=says):
            module["main"](x, w, v)
        failing(what, 0)
    np.testing.assert_allclose(module["main"](x, w, v), perceptron(x, w, v), rtol=1e-3)
    gc.collect()
    assert (module.device.bytes, module._library.rx_standin_blocks()) == before


def test_a_device_that_is_lost() -> None:
    module = relax_mlir.compile(MLP, "gpu", use_cache=False)
    module._library.rx_standin_fail(ctypes.c_int32(LOST), ctypes.c_int64(1))
    arguments = normal(2, 40), normal(40, 72), normal(72, 10)
    for _ in range(2):
        with pytest.raises(ExecutionError, match="gpu: the device is lost"):
            module["main"](*arguments)


def test_a_forked_process() -> None:
    module = built(MLP)
    arguments = normal(2, 40), normal(40, 72), normal(72, 10)
    module["main"](*arguments)

    call = module["main"].bind(*arguments)

    def run(file: BinaryIO) -> int:
        for function in (call.run, lambda: module["main"](*arguments)):
            with pytest.raises(ExecutionError, match="gpu: a forked process cannot use the device"):
                function()
        return 0

    assert run_in_child(run, 30).status == 0
    np.testing.assert_allclose(call.run(), perceptron(*arguments), rtol=1e-3)


def test_nothing_is_left_when_a_module_is_gone() -> None:
    module = relax_mlir.compile(MLP, "gpu", use_cache=False)
    result = module["main"](module.device.array(normal(2, 40)), normal(40, 72), normal(72, 10))
    library, memory = module._library, module.device
    del module
    gc.collect()
    assert library.rx_standin_blocks() > 0  # constants, since the result is still there
    assert result.numpy().shape == (2, 10)
    del result
    gc.collect()
    assert library.rx_standin_blocks() == 0 == memory.bytes


def test_a_file_that_is_loaded(tmp_path: Path) -> None:
    path, x = tmp_path / "m.so", (normal(2, 40), normal(40, 72), normal(72, 10))
    built(MLP).save(path)
    loaded = relax_mlir.load(path)
    with pytest.raises(ExecutionError, match=r"nothing interprets its kernels: see relax_mlir\.i"):
        loaded["main"](*x)
    np.testing.assert_allclose(simulate(loaded)["main"](*x), perceptron(*x), rtol=1e-3)


def test_arrays_of_other_devices_are_refused() -> None:
    other = relax_mlir.compile(HOST, "gpu", use_cache=False)
    array = other.device.array(normal(2, 40))
    says = "is an array of gpu, of another module"
    with pytest.raises(ExecutionError, match=f"argument 0 '.*': {says}"):
        built(MLP)["main"](array, normal(40, 72), normal(72, 10))
    with pytest.raises(ExecutionError, match=r"argument 1 '.*': is on the host, as scalars"):
        other["main"](array, array, [1])


def test_libraries_of_the_host_leave_what_the_device_computes() -> None:
    text = """
    !x = tensor<4x4xf32>
    func.func @main(%x: !x) -> !x {
      %0 = "graph.matmul"(%x, %x) : (!x, !x) -> !x
      return %0 : !x
    }"""
    x = normal(4, 4)
    module = relax_mlir.compile(text, "gpu", libraries=["openblas"])
    assert "libraries" not in module._metadata or not module._metadata["libraries"]
    np.testing.assert_allclose(module["main"](x), x.astype("f8") @ x, rtol=1e-5, atol=1e-6)


def test_kernels_that_take_scalars() -> None:
    """The host passes the factor of a square, and the sizes of a sort."""
    text = """
    !x = tensor<?xf32, #graph.shape<["n"]>>
    func.func @main(%x: !x) -> tensor<f32> {
      %0 = "graph.std"(%x) {axes = array<i64: 0>, keepdims = false, correction = 0 : i64}
          : (!x) -> tensor<f32>
      return %0 : tensor<f32>
    }"""
    x = normal(47)
    np.testing.assert_allclose(built(text)["main"](x), x.std(dtype=np.float64), rtol=1e-5)
