"""Modules for NVIDIA's devices on a stand-in for the driver, which interprets their PTX."""

import contextlib
import gc
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from cuda_driver import Driver, built, nothing_left
from perceptron import MLP, check_perceptron, normal

import relax_mlir
from relax_mlir.errors import ExecutionError, OutOfMemoryError

INVALID, MEMORY, NO_DEVICE, BAD_PTX, ILLEGAL = 1, 2, 100, 218, 700
COPY = """
!x = tensor<?xf32, #graph.shape<["n"]>>
func.func @main(%x: !x) -> !x {
  %0 = "graph.negative"(%x) : (!x) -> !x
  return %0 : !x
}
"""


@pytest.fixture
def cuda() -> Iterator[Driver]:
    with nothing_left() as own:
        yield own


def compiled(text: str = COPY, arch: str = "sm_90a", level: int = 2) -> Any:
    return relax_mlir.compile(text, f"cuda:{arch}", opt_level=level)


@pytest.mark.parametrize("level", [0, 1, 2, 3])
def test_a_perceptron(cuda: Driver, level: int) -> None:
    check_perceptron(compiled(MLP, level=level))


PRODUCT = """
!x = tensor<?x?xf16, #graph.shape<["m", "k"]>>
!w = tensor<?x?xf16, #graph.shape<["k", "n"]>>
!y = tensor<?x?xf16, #graph.shape<["m", "n"]>>
func.func @main(%x: !x, %w: !w) -> !y {
  %0 = "graph.matmul"(%x, %w) : (!x, !w) -> !y
  return %0 : !y
}
"""


def test_products_ask_whether_arrays_are_aligned(cuda: Driver) -> None:
    """Copies of 16 bytes fail elsewhere: a part of an array may begin anywhere."""
    module = compiled(PRODUCT)
    for k, n in ((72, 24), (72, 23), (69, 24)):
        x, w = (np.round(2 * normal(*shape)).astype(np.float16) for shape in ((50, k), (k, n)))
        exact = x.astype(np.float64) @ w.astype(np.float64)
        np.testing.assert_array_equal(module["main"](x, w), exact)  # integers below 2^11
        memory = module.device.array(np.concatenate([np.zeros(3, np.float16), x.ravel()]))
        shifted = Part(memory.address + 6, x.shape)
        np.testing.assert_array_equal(
            module["main"](shifted, module.device.array(w)).numpy(), exact
        )


TWO_PRODUCTS = """
!x = tensor<?x?xf16, #graph.shape<["m", "k"]>>
!w = tensor<?x?xf16, #graph.shape<["k", "k"]>>
func.func @main(%x: !x, %w: !w) -> !x {
  %0 = "graph.matmul"(%x, %w) : (!x, !w) -> !x
  %1 = "graph.matmul"(%0, %w) : (!x, !w) -> !x
  return %1 : !x
}
"""


def test_launches_ask_for_much_memory_of_a_group(cuda: Driver) -> None:
    """One by one, and in graphs."""
    module = compiled(TWO_PRODUCTS)
    before = cuda.library.standin_graph_launches()
    for m in (70, 70, 130):
        x, w = (np.round(normal(*shape)).astype(np.float16) for shape in ((m, 72), (72, 72)))
        exact = x.astype(np.float64) @ w.astype(np.float64) @ w.astype(np.float64)
        np.testing.assert_array_equal(module["main"](x, w), exact)
    assert cuda.library.standin_graph_launches() > before


def test_tensors_that_a_driver_cannot_describe(cuda: Driver) -> None:
    """A launch fails; a graph is no longer used, and its kernels are launched one by one."""
    module = compiled(TWO_PRODUCTS)
    x, w = (np.round(normal(*shape)).astype(np.float16) for shape in ((70, 72), (72, 72)))
    exact = x.astype(np.float64) @ w.astype(np.float64) @ w.astype(np.float64)
    cuda.fail("cuTensorMapEncodeTiled", 2, INVALID)
    with pytest.raises(ExecutionError, match="cannot describe a tensor to the device"):
        module["main"](x, w)
    cuda.fail("cuTensorMapEncodeTiled", 1, INVALID)
    for _ in range(2):
        np.testing.assert_array_equal(module["main"](x, w), exact)


def test_drivers_without_tensor_maps(cuda: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RELAX_CUDA_DRIVER", str(built("-DWITHOUT_TENSOR_MAPS")))
    module = relax_mlir.compile(PRODUCT, "cuda:sm_90a", use_cache=False)
    x = np.zeros((80, 72), np.float16)
    with pytest.raises(ExecutionError, match="too old: it has no cuTensorMapEncodeTiled"):
        module["main"](x, x[:72])


def test_a_device_with_less_memory_of_a_group(cuda: Driver) -> None:
    cuda.fail("cuFuncSetAttribute", 1, INVALID)
    says = r"groups of kernel 'matmul.*' cannot have their \d+ bytes of memory: .* driver says 1"
    with pytest.raises(ExecutionError, match=says):
        relax_mlir.compile(TWO_PRODUCTS, "cuda:sm_90a", use_cache=False)


class Part:
    """Elements of f16 from an address on."""

    def __init__(self, address: int, shape: tuple[int, ...]) -> None:
        self.__cuda_array_interface__ = {
            **{"version": 3, "shape": shape, "typestr": "<f2", "data": (address, False)},
            **{"strides": None, "stream": None},
        }


@pytest.mark.parametrize("arch", ["sm_75", "sm_80", "sm_90"])
def test_code_for_older_devices_runs_on_newer_ones(cuda: Driver, arch: str) -> None:
    x = normal(300)
    np.testing.assert_array_equal(compiled(arch=arch)["main"](x), -x)


def test_copies_of_more_than_the_pinned_memory(cuda: Driver) -> None:
    """Halves of the memory take turns; the driver here copies as late as it may."""
    module = compiled()
    for count in (1, 1 << 18, (1 << 19) + 1, 3 * (1 << 18) - 1, (1 << 20) + 12345):
        x = np.random.default_rng(count).standard_normal(count).astype(np.float32)
        on_device = module.device.array(x)
        x_before = x.copy()
        x[:] = 7
        np.testing.assert_array_equal(on_device.numpy(), x_before)


def test_arrays_of_the_device_are_passed_as_they_are(cuda: Driver) -> None:
    module = compiled()
    x = normal(77)
    on_device = module.device.array(x)
    assert module.device.type == 2
    result = module["main"](module["main"](on_device))
    np.testing.assert_array_equal(result.numpy(), x)


def test_other_libraries_read_arrays_of_the_device(cuda: Driver) -> None:
    module = compiled()
    result = module["main"](module.device.array(normal(7)))
    interface = result.__cuda_array_interface__
    assert interface["shape"] == (7,)
    assert interface["typestr"] == "<f4"
    assert interface["data"] == (result.address, False)
    assert interface["version"] == 3
    assert module.device.array(normal(0)).__cuda_array_interface__["data"] == (0, False)


def test_the_driver_is_missing(cuda: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RELAX_CUDA_DRIVER", "/nowhere/libcuda.so.1")
    with pytest.raises(ExecutionError) as error:
        compiled(COPY.replace("negative", "abs"))
    for part in ("cuda:sm_90a: no NVIDIA driver", "it looked for '/nowhere/libcuda.so.1'"):
        assert part in str(error.value)


def test_a_library_that_is_no_driver(cuda: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RELAX_CUDA_DRIVER", "libm.so.6")
    with pytest.raises(ExecutionError, match=r"'libm.so.6' is too old: it has no cuInit"):
        compiled(COPY.replace("negative", "exp"))


@pytest.mark.parametrize(
    ("devices", "has", "arch", "message"),
    [
        (0, 90, "sm_80", "has no device; CUDA_VISIBLE_DEVICES may hide some"),
        (1, 75, "sm_80", r"'a stand-in', of sm_75, .* compile for 'cuda:sm_75'"),
        (1, 100, "sm_90a", r"of sm_100, on which code for sm_90a does not run"),
        (1, 80, "sm_120", r"of sm_80, on which code for sm_120 does not run"),
    ],
)
def test_the_device_does_not_fit(
    cuda: Driver, devices: int, has: int, arch: str, message: str
) -> None:
    cuda.library.standin_architecture(devices, has)
    with pytest.raises(ExecutionError, match=message):
        compiled(arch=arch)


@pytest.mark.parametrize(
    ("function", "after", "status", "message"),
    [
        ("cuInit", 1, 999, "cannot start: the NVIDIA driver says 999, an unknown error"),
        ("cuInit", 1, NO_DEVICE, "has no device"),
        ("cuDeviceGet", 1, INVALID, "cannot find a device"),
        ("cuDeviceGetAttribute", 2, INVALID, "cannot ask the device"),
        ("cuDevicePrimaryCtxRetain", 1, MEMORY, "cannot open the device: .* out of memory"),
        ("cuStreamCreate", 1, MEMORY, "cannot open the device"),
        ("cuMemHostAlloc", 2, MEMORY, "cannot open the device"),
        ("cuEventCreate", 2, MEMORY, "cannot open the device"),
        ("cuCtxPushCurrent_v2", 1, ILLEGAL, "cannot use the device"),
        ("cuModuleLoadDataEx", 1, BAD_PTX,
         "cannot load kernel 'negative_kernel': .* JIT compilation failed: ptxas fatal: line 7"),
        ("cuModuleGetFunction", 1, 500, "cannot load kernel 'negative_kernel'"),
    ],
)  # fmt: skip
def test_what_fails_while_the_device_is_opened(
    cuda: Driver, function: str, after: int, status: int, message: str
) -> None:
    cuda.fail(function, after, status)
    with pytest.raises(ExecutionError, match=message):
        compiled(arch="sm_89")


@pytest.mark.parametrize(
    ("function", "status", "message"),
    [
        ("cuLaunchKernel", INVALID, "negative_kernel: cannot launch"),
        ("cuMemcpyHtoDAsync_v2", ILLEGAL, "a copy to the device fails: .* illegal memory access"),
        ("cuMemcpyDtoHAsync_v2", INVALID, "a copy from the device, or a kernel before it, fails"),
        ("cuStreamSynchronize", ILLEGAL, "running kernels: a kernel fails: .* illegal memory"),
    ],
)
def test_what_fails_in_a_call(cuda: Driver, function: str, status: int, message: str) -> None:
    module, x = compiled(), normal(50)
    np.testing.assert_array_equal(module["main"](x), -x)
    cuda.fail(function, 1, status)
    with pytest.raises(ExecutionError, match=message):
        module["main"](x)
    np.testing.assert_array_equal(module["main"](x), -x)


def test_out_of_memory(cuda: Driver) -> None:
    module, x = compiled(), normal(50)
    for after in (1, 2):
        cuda.fail("cuMemAlloc_v2", after, MEMORY)
        with pytest.raises(OutOfMemoryError, match="out of memory"):
            module["main"](x)
    np.testing.assert_array_equal(module["main"](x), -x)


CONSTANTS = """
func.func @main(%x: tensor<3xf32>) -> tensor<3xf32> {
  %c = arith.constant dense<[1.0, 2.0, 4.0]> : tensor<3xf32>
  %0 = "graph.add"(%x, %c) : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  return %0 : tensor<3xf32>
}
"""


@pytest.mark.parametrize(
    ("function", "says"),
    [
        ("cuMemAlloc_v2", "out of memory: a constant of 12 bytes"),
        (
            "cuMemcpyHtoDAsync_v2",
            "a copy to the device fails: the NVIDIA driver says 2, out of mem",
        ),
    ],
)
def test_there_is_no_memory_for_constants(cuda: Driver, function: str, says: str) -> None:
    """The device is closed again, with the constants that it has."""
    live = cuda.library.standin_live()
    cuda.fail(function, 1, MEMORY)
    with pytest.raises(ExecutionError, match=f"cannot load .*: cuda:sm_90a: {says}"):
        compiled(CONSTANTS)
    gc.collect()
    assert cuda.library.standin_live() == live
    np.testing.assert_array_equal(compiled(CONSTANTS)["main"](np.ones(3, np.float32)), [2, 3, 5])


def test_failures_of_kernels_stay(cuda: Driver) -> None:
    """A context in which a kernel failed is of no use any more, as the driver has it."""
    module = compiled()
    x = module.device.array(normal(50))
    y = module.device.array(normal(50))
    call = module["main"].bind(x, results=[y])
    call.run()
    cuda.interpret(False)
    with pytest.raises(ExecutionError, match="illegal memory access was encountered"):
        call.run()
    cuda.interpret(True)
    with pytest.raises(ExecutionError, match="illegal memory access was encountered"):
        call.run()
    with pytest.raises(ExecutionError, match="illegal memory access was encountered"):
        module["main"](normal(50))
    with pytest.raises(ExecutionError, match="illegal memory access was encountered"):
        module.device.array(normal(50))


def test_nothing_is_collected_while_a_kernel_is_interpreted(cuda: Driver) -> None:
    """Freeing an array then would have the device do the rest before what it is at."""
    module, x = compiled(MLP), [normal(3, 40), normal(40, 72), normal(72, 10)]
    interprets: list[bool] = []

    def note(phase: str, _: object) -> None:
        interprets.append(bool(cuda.library.standin_interprets()) and not gc.get_freeze_count())

    thresholds = gc.get_threshold()
    gc.callbacks.append(note)
    gc.set_threshold(1)
    try:
        module["main"](*x)
    finally:
        gc.set_threshold(*thresholds)
        gc.callbacks.remove(note)
    assert interprets
    assert not any(interprets)


def test_memory_is_freed(cuda: Driver) -> None:
    before = cuda.library.standin_live()
    module = compiled(MLP)
    module["main"](normal(3, 40), normal(40, 72), normal(72, 10))
    assert module.device.bytes > 0
    assert cuda.library.standin_live() > before
    del module
    gc.collect()
    assert cuda.library.standin_live() == before


@pytest.mark.parametrize("after", range(1, 12))
def test_memory_is_freed_after_the_context_could_not_be_used(cuda: Driver, after: int) -> None:
    """Wherever it fails: in front of allocations, copies, launches, frees, or the end."""
    before = cuda.library.standin_live()
    module = compiled()
    cuda.fail("cuCtxPushCurrent_v2", after, INVALID)
    x = normal(50)
    with contextlib.suppress(ExecutionError, OutOfMemoryError):
        np.testing.assert_array_equal(module["main"](x), -x)
    gc.collect()
    del module
    gc.collect()
    assert cuda.library.standin_live() == before
