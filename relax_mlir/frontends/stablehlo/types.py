"""Types of StableHLO: element types by name, dims that are constants or not known."""

import math
from dataclasses import dataclass

import numpy as np

from relax_mlir.bindings import ir
from relax_mlir.bindings.stablehlo import element_bytes
from relax_mlir.data import bytes_of, dtype_of
from relax_mlir.errors import ModelError

from ..elements import DTYPES, SMALL_FLOATS
from ..known import Known
from .quantization import Quantization, quantization_of

COMPLEX = {"complex<f32>": "f32", "complex<f64>": "f64"}
"""The elements of both parts of complex ones."""

ELEMENTS = {*DTYPES, *SMALL_FLOATS}


@dataclass(frozen=True)
class Declared:
    """The type of a tensor as the source has it: a dim is None where run time says."""

    dims: tuple[int | None, ...]
    element: str
    quantization: Quantization | None = None

    @property
    def is_complex(self) -> bool:
        """Whether elements are pairs of floats."""
        return self.element in COMPLEX

    @property
    def part(self) -> str:
        """The elements of one part of a complex tensor, the integers of a quantised one."""
        if self.quantization is not None:
            return self.quantization.storage
        return COMPLEX.get(self.element, self.element)

    @property
    def shape(self) -> list[int]:
        """The dims; raises ModelError where one is not known."""
        if any(dim is None for dim in self.dims):
            raise ModelError(f"has the type '{self}', whose dims have to be constants")
        return [dim for dim in self.dims if dim is not None]

    def __str__(self) -> str:
        dims = ["?" if dim is None else str(dim) for dim in self.dims]
        return f"tensor<{'x'.join([*dims, self.element])}>"


def declared(type_: ir.Type) -> Declared:
    """The type of a value of the source; raises ModelError for what is not supported."""
    if not isinstance(type_, ir.RankedTensorType):
        raise ModelError(f"has a value of type '{type_}', which is not supported")
    element, quantization = str(type_.element_type), quantization_of(type_)
    if quantization is None and element not in ELEMENTS and element not in COMPLEX:
        raise ModelError(f"has elements of {element}, which is not supported")
    dynamic = ir.ShapedType.get_dynamic_size()
    dims = [None if dim == dynamic else dim for dim in type_.shape]
    if quantization is not None and quantization.axis is not None:
        dims[quantization.axis] = len(quantization.scales)
    return Declared(tuple(dims), element, quantization)


def constant(op: ir.Operation, kind: Declared) -> tuple[Known, ...]:
    """The elements of a constant: of a complex one, those of both parts.

    Those that NumPy has no type for are their bits, as unsigned integers.
    """
    shape = kind.shape
    if kind.is_complex:
        dtype = DTYPES[kind.part]
        raw = element_bytes(op, "value", math.prod(shape), 2 * dtype.itemsize)
        if raw is None:
            raise ModelError("has complex elements that are not written out")
        flat = np.frombuffer(raw, dtype).reshape(-1, 2)
        return tuple(Known(_shaped(flat[:, i], shape), kind.part) for i in (0, 1))
    value = op.attributes["value"]
    data = bytes_of(value)
    if data is None:
        raise ModelError("has no data: the text names a resource, but its bytes are missing")
    stored = dtype_of(ir.ShapedType(value.type).element_type)
    elements = data.view(stored if kind.quantization is None else DTYPES[kind.part]).copy()
    return (Known(_shaped(elements, shape), kind.part),)


def _shaped(flat: np.ndarray, shape: list[int]) -> np.ndarray:
    count = math.prod(shape)
    if len(flat) == 1 and count != 1:
        return np.broadcast_to(flat.reshape(()), shape)
    return flat.reshape(shape)
