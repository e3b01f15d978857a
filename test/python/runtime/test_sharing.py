"""Arrays of devices that other libraries have: DLPack and the CUDA array interface, no copies."""

import gc
from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from cuda_driver import Driver, nothing_left
from perceptron import normal

import relax_mlir
from relax_mlir.errors import ExecutionError
from relax_mlir.runtime.tensors import exported_tensor

NEGATIVE = """
!x = tensor<?xELEMENT, #graph.shape<["n"]>>
func.func @main(%x: !x) -> !x {
  %0 = "graph.negative"(%x) : (!x) -> !x
  return %0 : !x
}
"""
TARGETS = ("gpu", "cuda:sm_90a")


class Foreign:
    """An array of another library, known by DLPack only."""

    def __init__(self, array: Any, device: tuple[int, int] | None = None) -> None:
        self.array, self.device, self.streams = array, device, []

    def __dlpack__(self, *, stream: int | None = None, **_: Any) -> object:
        self.streams.append(stream)
        made = self.array.__dlpack__()
        if self.device is not None:
            tensor = exported_tensor(made)
            tensor.device_type, tensor.device_id = self.device
        return made

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device or self.array.__dlpack_device__()


class Interfaced:
    """An array of another library, known by the CUDA array interface only."""

    def __init__(self, **interface: Any) -> None:
        self.__cuda_array_interface__ = interface


@pytest.fixture(autouse=True)
def cuda() -> Iterator[Driver]:
    with nothing_left() as own:
        yield own


def compiled(target: str, element: str = "f32") -> Any:
    return relax_mlir.compile(NEGATIVE.replace("ELEMENT", element), target)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("count", [0, 1, 77])
def test_what_is_exported_is_an_argument_without_a_copy(target: str, count: int) -> None:
    module, x = compiled(target), normal(count)
    array = module.device.array(x)
    module["main"](array)
    before = module.device.bytes
    foreign = Foreign(array)
    call = module["main"].bind(foreign)
    assert module.device.bytes == before
    result = call.run()
    np.testing.assert_array_equal(result.numpy(), -x)
    assert foreign.streams == [module.device.stream or None]
    capsule = result.__dlpack__()
    assert exported_tensor(capsule).data == result.address


@pytest.mark.parametrize("target", TARGETS)
def test_memory_lives_as_long_as_a_capsule(target: str) -> None:
    module, x = compiled(target), normal(9)
    result = module["main"](module.device.array(x))
    capsule = result.__dlpack__()
    address, before = result.address, module.device.bytes
    del result
    gc.collect()
    assert module.device.bytes == before
    tensor = exported_tensor(capsule)
    assert (tensor.data, tensor.ndim, tensor.shape[0]) == (address, 1, 9)
    assert (tensor.device_type, tensor.device_id) == (module.device.type, 0)
    assert (tensor.code, tensor.bits, tensor.lanes) == (2, 32, 1)
    del tensor, capsule
    gc.collect()
    assert module.device.bytes < before


def test_types_that_numpy_does_not_have() -> None:
    module = compiled("gpu", "bf16")
    x = np.array([0x3F80, 0xC000], np.uint16)
    result = module["main"](module["main"](module.device.array(x.view(ml_dtypes.bfloat16))))
    capsule = result.__dlpack__()
    tensor = exported_tensor(capsule)
    assert (tensor.code, tensor.bits) == (4, 16)
    result = module["main"](Foreign(result))
    np.testing.assert_array_equal(result.numpy().view(np.uint16), x ^ 0x8000)


def test_an_upload_is_done_when_it_is_exported(cuda: Driver) -> None:
    """The driver here copies as late as it may."""
    module = compiled("cuda:sm_90a")
    x = normal(300)
    array = module.device.array(x)
    _ = array.__cuda_array_interface__
    np.testing.assert_array_equal(cuda.bytes_at(array.address, array.nbytes), x.view(np.uint8))
    array = module.device.array(-x)
    capsule = array.__dlpack__()
    address = exported_tensor(capsule).data
    np.testing.assert_array_equal(cuda.bytes_at(address, array.nbytes), (-x).view(np.uint8))


def test_modules_of_one_device_share_arrays() -> None:
    first, second = compiled("cuda:sm_90a"), compiled("cuda:sm_80")
    x = normal(31)
    array = first["main"](first.device.array(x))
    result = second["main"](array)
    del array
    gc.collect()
    np.testing.assert_array_equal(result.numpy(), x)


def test_the_cuda_array_interface_is_read() -> None:
    module, x = compiled("cuda:sm_90a"), normal(12)
    array = module.device.array(x)
    described = array.__cuda_array_interface__
    result = module["main"](Interfaced(**described))
    np.testing.assert_array_equal(result.numpy(), -x)
    for changed, says in (
        ({"strides": (8,), "shape": (6,)}, "stride of dim 0 is 2"),
        ({"stream": 5}, "its stream is still in use"),
        ({"typestr": "<f8", "shape": (6,)}, "dtype is float64, but float32"),
        ({"typestr": ">f4"}, "dtype is >f4"),
        ({"mask": array}, "is masked"),
    ):
        with pytest.raises(ExecutionError, match=f"argument 0 'arg0': .*{says}"):
            module["main"](Interfaced(**{**described, **changed}))


def test_a_copy_on_the_host_is_exported_if_asked_for() -> None:
    array = compiled("gpu").device.array(normal(3))
    with pytest.raises(BufferError, match="is on device"):
        array.__dlpack__(dl_device=(2, 0))
    with pytest.raises(BufferError, match="is on device"):
        array.__dlpack__(dl_device=(1, 0), copy=False)
    tensor = exported_tensor(capsule := array.__dlpack__(dl_device=(1, 0)))
    assert tensor.device_type == 1
    assert tensor.data != array.address
    other = exported_tensor(copy := array.__dlpack__(copy=True))
    assert other.device_type == 12
    assert other.data != array.address
    del capsule, copy


@pytest.mark.parametrize("target", TARGETS)
def test_other_devices_are_refused_by_name(target: str) -> None:
    module = compiled(target)
    own = {"gpu": "a device", "cuda:sm_90a": "a CUDA device"}[target]
    for device, name in (((8, 0), "Metal"), ((10, 0), "ROCm"), ((99, 0), "another device")):
        says = rf"memory is of {name} \(DLPack type {device[0]}\), but of {own} \("
        with pytest.raises(ExecutionError, match=f"argument 0 'arg0': {says}"):
            module["main"](Foreign(normal(3), device))
    says = f"memory is of {own} 1, but of device 0 is expected"
    with pytest.raises(ExecutionError, match=f"argument 0 'arg0': {says}"):
        module["main"](Foreign(module.device.array(normal(3)), (module.device.type, 1)))


def test_an_array_that_fails_to_tell_its_device() -> None:
    class Lost(Foreign):
        def __dlpack_device__(self) -> tuple[int, int]:
            raise RuntimeError("context is gone")

    says = "the Lost does not tell its device: context is gone"
    with pytest.raises(ExecutionError, match=f"argument 0 'arg0': {says}"):
        compiled("gpu")["main"](Lost(normal(3)))


def test_memory_that_the_device_does_not_have() -> None:
    """An address of another stand-in is refused when it is used."""
    first, second = compiled("gpu"), compiled("gpu", "f16")
    array = second.device.array(normal(5).astype(np.float16))
    with pytest.raises(ExecutionError, match="argument 0 'arg0': is an array of gpu, of another"):
        first["main"](array)
    with pytest.raises(ExecutionError, match="dtype is float16"):
        first["main"](Foreign(array))
