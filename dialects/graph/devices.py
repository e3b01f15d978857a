"""Operators on where tensors are: the host, or a device of the target."""

from typing import Any

from relax_mlir.bindings import ext, ir
from relax_mlir.target.device import DEVICE, HOST, is_device_name

from .op import InferredOp
from .types import ShapeError, TensorType


class DeviceOp(InferredOp, traits=[ext.Pure]):
    """The operand, whose elements do not change, with regard to a device.

    Devices are "cpu", "device", which is the first of the target, and others by their API, as
    "vulkan", by "api:ordinal", as "cuda:1", or as targets spell them.
    """

    result: ext.Result[Any]
    input: ext.Operand[Any]
    device: ir.StringAttr = ext.attribute(kw_only=True)

    @staticmethod
    def infer_return_type(input: TensorType, device: str) -> TensorType:
        """C1: the device is known."""
        if not isinstance(device, str) or not is_device_name(device):  # C1
            accepted = f"'{HOST}', '{DEVICE}' or a device of a target"
            raise ShapeError(f"expects 'device' to be {accepted}, not '{device}'")
        return input


class ToDeviceOp(DeviceOp, name="to_device"):
    """The tensor in memory of a device: a copy, unless it is there.

    C1  `device` is "cpu", "device", or a name of a device of targets

    Source: TVM Relax `to_vdevice`.
    """


class HintOnDeviceOp(DeviceOp, name="hint_on_device"):
    """The tensor, which is to be computed on a device; what uses it follows it there.

    C1  `device` is "cpu", "device", or a name of a device of targets

    Source: TVM Relax `hint_on_device`.
    """
