"""Arrays whose elements are known during import: values, or expressions over symbols.

Shape arithmetic of models is evaluated on them, so that a reshape to a concatenation of dims has
these dims and no unknown ones.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from relax_mlir.bindings import ir
from relax_mlir.decompositions.emit import concat, reshape, symbol
from relax_mlir.dialects import graph
from relax_mlir.symbolic import Expr, as_expr

from .elements import DTYPES, mlir_element


@dataclass(frozen=True, eq=False)
class Known:
    """An array of values of a NumPy type, or of objects, which are `Expr` or Python's values.

    `element` is the name of MLIR's type.
    """

    array: np.ndarray
    element: str

    @property
    def is_symbolic(self) -> bool:
        """Whether an element is an expression with symbols."""
        return self.array.dtype == object

    @property
    def exprs(self) -> list[Expr]:
        """The elements in row-major order; raises TypeError where one is a fraction."""
        return [_as_integer(each) for each in self.array.reshape(-1).tolist()]

    def emit(self) -> ir.Value:
        """The array as a tensor, written into the module."""
        element = mlir_element(self.element)
        if self.is_symbolic:
            return _stacked([symbol(each, element) for each in self.exprs], self.array.shape)
        stored = graph.storage_element(element)
        kind = ir.RankedTensorType.get(list(self.array.shape), stored)
        return graph.constant(_attribute(self.array, kind, element), element)


def known(values: Sequence[Expr | int] | Expr | int, element: str = "i64") -> Known:
    """An array of expressions: a vector, or a value."""
    if isinstance(values, Sequence):
        values = [_simplest(each) for each in values]
        if all(isinstance(each, int) for each in values):
            return Known(np.array(values, DTYPES[element]), element)
        array = np.empty(len(values), object)
        array[:] = values
        return Known(array, element)
    value = _simplest(values)
    if isinstance(value, int):
        return Known(np.array(value, DTYPES[element]), element)
    array = np.empty((), object)
    array[()] = value
    return Known(array, element)


def _simplest(value: Expr | int) -> Expr | int:
    value = as_expr(value)
    return value if value.value is None else value.value


def _as_integer(value: object) -> Expr:
    if isinstance(value, Expr):
        return value
    if isinstance(value, float) and not value.is_integer():
        raise TypeError(f"expects an integer, but got {value}")
    return as_expr(int(value))  # type: ignore[call-overload]  # a value of Python


def _stacked(parts: Sequence[ir.Value], shape: Sequence[int]) -> ir.Value:
    vectors = [reshape(part, [1]) for part in parts]
    return reshape(concat(vectors, 0), list(shape))


def _attribute(array: np.ndarray, kind: ir.RankedTensorType, element: ir.Type) -> ir.Attribute:
    if array.size == 0:
        return ir.Attribute.parse(f"dense<> : {kind}")
    if isinstance(element, ir.IntegerType):
        attributes: list[ir.Attribute] = [
            graph.stored_integer(element, int(each)) for each in array.reshape(-1).tolist()
        ]
    else:
        values = array.astype(np.float64).reshape(-1).tolist()
        attributes = [ir.FloatAttr.get(element, each) for each in values]
    return ir.DenseElementsAttr.get(attributes, kind)
