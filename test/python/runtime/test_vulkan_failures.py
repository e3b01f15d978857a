"""What may fail with Vulkan, and devices that are unlike lavapipe, by a loader between."""

import gc
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import vulkan
from perceptron import MLP, check_perceptron, normal
from vulkan_loader import Loader, nothing_left

import relax_mlir
from relax_mlir.errors import ExecutionError, OutOfMemoryError

MEMORY, LOST, UNKNOWN = -2, -4, -13
NEGATIVE = """
!x = tensor<?xf32, #graph.shape<["n"]>>
func.func @main(%x: !x) -> !x {
  %0 = "graph.negative"(%x) : (!x) -> !x
  return %0 : !x
}
"""
PAIR = """
!x = tensor<?x?xf32, #graph.shape<["n", "m"]>>
func.func @main(%x: !x) -> !x {
  %0 = "graph.exp"(%x) : (!x) -> !x
  %1 = "graph.add"(%0, %x) {graph.device = "vulkan:1"} : (!x, !x) -> !x
  %2 = "graph.nn_softmax"(%1) {axis = -1 : i64} : (!x) -> !x
  return %2 : !x
}
"""


@pytest.fixture
def loader() -> Iterator[Loader]:
    vulkan.require()
    with nothing_left() as own:
        yield own


def compiled(text: str = NEGATIVE, target: str = "vulkan") -> Any:
    return relax_mlir.compile(text, target)


def check(module: Any, count: int = 50) -> None:
    x = normal(count)
    np.testing.assert_array_equal(module["main"](x), -x)


@pytest.mark.parametrize("count", [0, 1, 50, (5 << 20) + 3])
def test_memory_that_the_host_has_no_access_to(loader: Loader, count: int) -> None:
    """As of most graphics cards: copies go by other memory, 8 MiB at a time."""
    loader.devices(is_apart=True)
    check(compiled(), count)


def test_a_perceptron_there(loader: Loader) -> None:
    loader.devices(is_apart=True)
    check_perceptron(compiled(MLP))


def test_there_is_no_memory_for_copies(loader: Loader) -> None:
    loader.devices(is_apart=True)
    for function, after in (("vkAllocateMemory", 2), ("vkMapMemory", 1), ("vkCreateBuffer", 2)):
        loader.fail(function, after, MEMORY)
        with pytest.raises(ExecutionError, match="out of memory in an allocation for copies"):
            compiled()
    check(compiled())


@pytest.mark.parametrize(
    "function",
    [
        *("vkCreateInstance", "vkCreateDevice", "vkCreateCommandPool", "vkCreateDescriptorPool"),
        *("vkCreateFence", "vkCreateDescriptorSetLayout", "vkCreatePipelineLayout"),
        *("vkCreateShaderModule", "vkCreateComputePipelines", "vkAllocateDescriptorSets"),
        *("vkQueueSubmit", "vkWaitForFences", "vkEndCommandBuffer"),
    ],
)
def test_what_fails_while_the_device_is_opened(loader: Loader, function: str) -> None:
    """Nothing is left of it, and the next time it is opened."""
    for result, says in ((UNKNOWN, rf"{function} failed \(VkResult -13\)"), (MEMORY, "out of mem")):
        loader.fail(function, 1, result)
        with pytest.raises(ExecutionError, match=f"cannot load .*: vulkan: {says}"):
            compiled()
    check(compiled())


@pytest.mark.parametrize("function", ["vkQueueSubmit", "vkWaitForFences"])
def test_a_lost_device(loader: Loader, function: str) -> None:
    """Calls fail from then on, and do not wait; a module that is loaded anew has a device."""
    module, x = compiled(), normal(50)
    check(module)
    loader.fail(function, 1, LOST)
    with pytest.raises(ExecutionError, match=r"the device is lost \(VK_ERROR_DEVICE_LOST\)"):
        module["main"](x)
    for _ in range(2):
        with pytest.raises(ExecutionError, match=r"vulkan: .*the device is lost: modules that use"):
            module["main"](x)
        with pytest.raises(ExecutionError, match="vulkan: the device is lost: modules that use it"):
            module.device.array(x)
    del module
    gc.collect()
    check(compiled())


@pytest.mark.parametrize("function", ["vkQueueSubmit", "vkResetFences", "vkEndCommandBuffer"])
def test_work_that_may_not_have_been_done(loader: Loader, function: str) -> None:
    """Whoever waits for it: no call takes what it should have made."""
    x = normal(3, 40), normal(40, 72), normal(72, 10)
    for after in range(1, 4):
        module = compiled(MLP)
        loader.fail(function, after, MEMORY)
        for _ in range(4):
            try:
                check_perceptron(module)
            except (ExecutionError, OutOfMemoryError):
                break
        else:
            pytest.fail("nothing failed")
        with pytest.raises(ExecutionError, match="the device is lost"):
            module["main"](*x)
        del module
        gc.collect()


def test_memory_runs_out_in_a_call(loader: Loader) -> None:
    module, x = compiled(), normal(5000)
    for function in ("vkAllocateMemory", "vkCreateBuffer"):
        loader.fail(function, 1, MEMORY)
        with pytest.raises(OutOfMemoryError, match="out of memory"):
            module["main"](x)
    loader.fail("vkAllocateDescriptorSets", 1, MEMORY)
    with pytest.raises(ExecutionError, match="negative_kernel: out of memory in vkAllocateDesc"):
        module["main"](x)
    check(module)


@pytest.mark.parametrize(
    ("limits", "says"),
    [
        ({"threads": 16}, r"have \d+ threads, but those of '.*' 16 at most"),
        ({"workgroup": 64}, r"have \d+ bytes of memory, but those of '.*' 64"),
    ],
)
def test_groups_that_the_device_does_not_take(loader: Loader, limits: Any, says: str) -> None:
    loader.devices(**limits)
    with pytest.raises(ExecutionError, match=f"vulkan: the groups of the kernel '.*' {says}"):
        compiled(MLP)


def test_two_devices(loader: Loader) -> None:
    loader.devices(2)
    module, x = compiled(PAIR, "vulkan@vulkan"), normal(17, 33)
    wide = x.astype(np.float64)
    raised = np.exp(np.exp(wide) + wide)
    wanted = raised / raised.sum(-1, keepdims=True)
    for _ in range(2):
        np.testing.assert_allclose(module["main"](x), wanted, rtol=1e-5)
    assert module.device.names == ("vulkan", "vulkan:1")
    assert min(module.device.bytes_by_device) >= 17 * 33 * 4
    loader.fail("vkQueueSubmit", 2, LOST)  # the first one is that of the first device
    with pytest.raises(ExecutionError, match=r"^vulkan:1: .* is lost"):
        module["main"](x)
    module = None
    gc.collect()
    loader.devices(1)
    with pytest.raises(ExecutionError, match=r"vulkan:1: Vulkan finds 1 of the devices"):
        compiled(PAIR, "vulkan@vulkan")
