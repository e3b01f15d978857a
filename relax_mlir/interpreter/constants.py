"""Attributes with elements, as NumPy arrays."""

from typing import Any

import numpy as np

from relax_mlir.bindings import ir
from relax_mlir.data import NO_DATA, bytes_of, is_data

from .elements import PACKED, UnknownElement, round_to, stored_dtype


def constant_value(attribute: ir.Attribute) -> Any:
    """The stored elements of a tensor, a stored element, or an index as an integer."""
    if isinstance(attribute, ir.DenseElementsAttr):
        return _dense(attribute)
    if is_data(attribute):
        return _data(attribute)
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
    if str(element) in PACKED:  # unknown to NumPy and so to the bindings
        return _data(attribute)
    return np.array(attribute, dtype)


def _data(attribute: ir.Attribute) -> np.ndarray:
    """The stored elements."""
    type_ = ir.ShapedType(attribute.type)
    dtype = stored_dtype(type_.element_type)
    data = bytes_of(attribute)
    if data is None:
        raise UnknownElement(NO_DATA)
    if dtype.kind == "O":
        raise UnknownElement(f"has data of {type_.element_type}, which only code writes out")
    return data.view(dtype).reshape(type_.shape)
