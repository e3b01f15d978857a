"""Attributes that hold elements, as NumPy has them."""

import re
from typing import Any

import numpy as np

from relax_mlir.bindings import ir

from .elements import round_to, stored_dtype

_FLOAT = re.compile(r"0x[0-9A-Fa-f]+|-?[\d.]+(?:[eE][-+]?\d+)?")
_HEX_STRING = re.compile(r'dense<"0x([0-9A-Fa-f]*)">')


def constant_value(attribute: ir.Attribute) -> Any:
    """The stored elements of a tensor, a stored element, or an index as an integer."""
    if isinstance(attribute, ir.DenseElementsAttr):
        return _dense(attribute)
    if isinstance(attribute, ir.BoolAttr):
        return np.bool_(attribute.value)
    assert isinstance(attribute, ir.IntegerAttr | ir.FloatAttr), attribute
    if isinstance(attribute.type, ir.IndexType):
        return attribute.value
    return round_to(np.array(attribute.value), attribute.type)[()]


def _dense(attribute: ir.DenseElementsAttr) -> np.ndarray:
    type_ = ir.ShapedType(attribute.type)
    element = type_.element_type
    dtype = stored_dtype(element)
    if attribute.is_splat:
        value = constant_value(attribute.get_splat_value())
        return np.broadcast_to(np.array(value, dtype), type_.shape)
    if isinstance(element, ir.BF16Type):  # which NumPy does not have, so the bindings neither
        return _bfloat16(str(attribute)).reshape(type_.shape)
    return np.array(attribute, dtype)


def _bfloat16(text: str) -> np.ndarray:
    """Reads `dense<[1.0, 0x7FC0]>` or `dense<"0x803F...">`."""
    if found := _HEX_STRING.match(text):
        return np.frombuffer(bytes.fromhex(found[1]), np.uint16)
    body = text[: text.rindex(":")]
    return np.array([_bits(number) for number in _FLOAT.findall(body)], np.uint16)


def _bits(number: str) -> int:
    if number.startswith("0x"):
        return int(number, 16)
    return int(round_to(np.array(float(number)), "bf16"))
