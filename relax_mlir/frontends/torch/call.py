"""A node of an exported program, as the functions that import operators see it."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch._prims_common import is_contiguous_or_false

from relax_mlir.bindings import ir
from relax_mlir.decompositions.emit import astype, element_of, reshape, scalar, symbol
from relax_mlir.dialects import graph
from relax_mlir.dialects.graph import TensorType
from relax_mlir.errors import ModelError
from relax_mlir.symbolic import Expr, bounds, maximum, minimum

from ..complex import Pair, of_real
from ..elements import mlir_element
from .types import ELEMENTS, PARTS, element_name

if TYPE_CHECKING:
    from .importer import Importer


class Call:
    """What a node is to compute: `value` has the types of the results, which PyTorch inferred.

    `operands` are nodes, or constants. `part` is 0 or 1 where only real or imaginary parts are to
    be computed; operands that are complex tensors are pairs of tensors otherwise.
    """

    def __init__(
        self,
        importer: "Importer",
        value: Any,
        operands: Sequence[Any] = (),
        part: int | None = None,
    ) -> None:
        self.importer = importer
        self.value = value
        self.operands = operands
        self.part = part

    def for_part(self, part: int) -> "Call":
        """The node, of which real or imaginary parts are to be computed."""
        return Call(self.importer, self.value, self.operands, part)

    @property
    def element(self) -> ir.Type:
        """The element type of the first result, of its parts if it is complex."""
        return self.type_of(self.first.dtype)

    @property
    def first(self) -> torch.Tensor:
        """The first result, as PyTorch describes it."""
        value = self.value[0] if isinstance(self.value, list | tuple) else self.value
        assert isinstance(value, torch.Tensor)
        return value

    @property
    def dims(self) -> list[Expr]:
        """The dims of the first result."""
        return self.exprs(self.first.shape)

    @staticmethod
    def type_of(dtype: torch.dtype | None) -> ir.Type:
        """The element type for one of PyTorch's."""
        return mlir_element(element_name(torch.float32 if dtype is None else dtype))

    def expr(self, size: Any) -> Expr:
        """A size as an expression."""
        if isinstance(size, ir.Value):
            raise ModelError(
                "takes an integer that may be negative for a size; torch._check(n >= 0) says that "
                "it is none"
            )
        return self.importer.dims.expr(size)

    def exprs(self, sizes: Sequence[Any]) -> list[Expr]:
        """Sizes as expressions."""
        return [self.expr(size) for size in sizes]

    def position(self, index: Any, extent: Expr) -> Expr:
        """An index of an axis from the front, of which one below 0 counts from the end."""
        expr = self.expr(index)
        low, high = bounds(expr, self.importer.facts)
        if low is not None and low >= 0:
            return expr
        if high is not None and high < 0:
            return extent + expr
        return expr + extent * minimum(maximum(expr * -1, 0), 1)

    def first_element(self) -> Expr:
        """Where the first operand begins in its memory; raises ModelError unless it is in order."""
        own = self.operands[0].meta["val"]
        if not is_contiguous_or_false(own):
            raise ModelError("has an operand that is not contiguous, which is not supported")
        offset = own.storage_offset()
        known = self.importer.dims.known
        if any(str(each) not in known for each in _symbols_of(offset)):
            raise ModelError("reads the memory that an operand is a view of; call clone() first")
        return self.expr(offset)

    def integer(self, size: Any, what: str) -> int:
        """A size that has to be known."""
        value = self.expr(size).value
        if value is None:
            raise ModelError(f"has {what} of {size}, which has to be known")
        return value

    def integers(self, sizes: Sequence[Any], what: str) -> list[int]:
        """Sizes that have to be known."""
        return [self.integer(size, what) for size in sizes]

    def tensor(self, value: Any, element: ir.Type | None = None) -> ir.Value:
        """An operand as a tensor of an element type: a scalar as a constant."""
        if isinstance(value, ir.Value):
            return value if element is None else astype_of(value, element)
        element = element or self.element
        if isinstance(value, Expr) and value.value is None:
            return reshape(symbol(value, element), [])
        if isinstance(value, Expr):
            value = value.value
        if self.part is not None and isinstance(value, int | float | complex):
            value = value.imag if self.part else value.real
        if isinstance(value, bool | int | float):
            return scalar(value, element)
        kind = "complex" if isinstance(value, Pair) else type(value).__name__
        raise ModelError(f"has an operand of type {kind}, which is not supported")

    def pair(self, value: Any, element: ir.Type | None = None) -> Pair:
        """An operand as a complex tensor, with parts of an element type."""
        element = element or self.element
        if isinstance(value, Pair):
            return value.map(lambda part: astype(part, element))
        if isinstance(value, int | float | complex):
            return Pair(scalar(value.real, element), scalar(value.imag, element))
        return of_real(self.tensor(value, element))

    def holds(self, value: Any) -> bool:
        """Whether the element type of the first result has a scalar exactly, or is no half."""
        dtype = self.first.dtype
        if dtype not in (torch.float16, torch.bfloat16):
            return True
        if isinstance(value, Expr):
            value = value.value
        return value is not None and torch.tensor(value, dtype=dtype).item() == value

    def common(self, *values: Any) -> list[ir.Value]:
        """Operands of a comparison, in the type in which PyTorch compares them."""
        dtype = self.common_dtype(values)
        return [self.tensor(value, self.type_of(dtype)) for value in values]

    def common_pairs(self, *values: Any) -> list[Pair]:
        """Operands of a comparison as complex tensors, in the type in which they are compared."""
        element = self.type_of(self.common_dtype(values))
        return [self.pair(value, element) for value in values]

    def common_dtype(self, values: Sequence[Any]) -> torch.dtype:
        """The type that PyTorch's promotion gives operands."""
        samples = [self._sample(value) for value in values]
        result = samples[0]
        for other in samples[1:]:
            result = torch.empty(0, dtype=torch.result_type(result, other))
            dims = max(_rank(each) for each in samples)
            result = torch.empty([0] * dims if dims else [], dtype=result.dtype)
        return (
            result.dtype if isinstance(result, torch.Tensor) else torch.result_type(result, result)
        )

    def _sample(self, value: Any) -> Any:
        if isinstance(value, Pair):
            real = self._sample(value.real)
            return real.to(next(own for own, part in PARTS.items() if part == real.dtype))
        if isinstance(value, ir.Value):
            annotation = TensorType.of(value)
            name = str(annotation.element)
            dtype = next(own for own, its in ELEMENTS.items() if its == name)
            return torch.empty([0] * len(annotation.dims or ()), dtype=dtype)
        return 1 if isinstance(value, Expr) else value

    def axis(self, axis: int, rank: int) -> int:
        """An axis from the front; a scalar has one."""
        return axis % max(rank, 1)

    def rank(self, value: ir.Value | Pair) -> int:
        """The rank of a tensor."""
        return _rank(self._sample(value))


def _symbols_of(size: Any) -> set[Any]:
    """The symbols of PyTorch's in a size."""
    return set(size.node.expr.free_symbols) if isinstance(size, torch.SymInt) else set()


def astype_of(value: ir.Value, element: ir.Type) -> ir.Value:
    """The elements in another type; what is not 0 is true."""
    own = element_of(value)
    if str(element) == "i1" and str(own) != "i1":
        return graph.NotEqualOp.build(value, scalar(0, own)).operation.results[0]
    return astype(value, element)


def _rank(sample: Any) -> int:
    return sample.dim() if isinstance(sample, torch.Tensor) else 0
