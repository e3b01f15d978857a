"""Maps values that one block passes to another to block arguments.

    %r = scf.if %c -> (tensor<?x4xf32>, f32, !graph.shape_value<["?", "n"]>)
      ->
    after(%address: !llvm.ptr, %dim_0: i64, %scalar: f32, %shape_0: i64):

A tensor is passed as its address and the dims that are not expressions in the scope of the other
block, a shape as such dims alone, a scalar as itself.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from relax_mlir.bindings import ir
from relax_mlir.dialects.graph import Dim, ShapeValueType, shape_value_dims
from relax_mlir.passes import PassFailure

from .function import HostFunction
from .scalars import scalar_type
from .scope import HostTensor, Size


@dataclass(frozen=True)
class _Scalar:
    """A scalar of a type of host code."""

    type_: ir.Type


@dataclass(frozen=True)
class _Sizes:
    """The dims of a tensor or shape that are known in the receiving block, None for others."""

    known: tuple[Dim, ...]
    is_tensor: bool


_Form: TypeAlias = _Scalar | _Sizes


class Passed:
    """Values of a graph function as the arguments of a block, in the current scope.

    Raises PassFailure at the op for a value that cannot be passed.
    """

    def __init__(self, host: HostFunction, op: ir.OpView, values: Sequence[ir.Value]) -> None:
        self._host, self._op, self._values = host, op, values
        self._forms = [self._form(value) for value in values]
        self.types = [type_ for form in self._forms for type_ in self._types(form)]

    def operands(self, sources: Sequence[ir.Value]) -> list[ir.Value]:
        """The operands of a branch to the block that passes `sources` as these values."""
        operands_: list[ir.Value] = []
        for source, form in zip(sources, self._forms, strict=True):
            if isinstance(form, _Scalar):
                operands_.append(self._host.scalar(self._op, source))
                continue
            if form.is_tensor:
                operands_.append(self._host.tensor(source).pointer)
            sizes = self._host.sizes(source)
            open_ = [size for size, dim in zip(sizes, form.known, strict=True) if dim is None]
            operands_ += self._host.integers(self._op, open_)
        return operands_

    def define(self, arguments: Sequence[ir.Value]) -> None:
        """Defines the values in the entered block."""
        rest, scope = iter(arguments), self._host.scope
        for value, form in zip(self._values, self._forms, strict=True):
            if isinstance(form, _Scalar):
                scope.scalars[value] = next(rest)
            elif form.is_tensor:
                pointer, element = next(rest), self._host.annotation(value).element
                self._host.define(value, HostTensor(pointer, _sizes(form, rest), element))
            else:
                scope.shapes[value] = _sizes(form, rest)

    def _form(self, value: ir.Value) -> _Form:
        scalar, type_ = scalar_type(value.type), value.type
        if scalar is not None:
            return _Scalar(scalar)
        if isinstance(type_, ShapeValueType):
            return _Sizes(self._known(shape_value_dims(type_)), is_tensor=False)
        if isinstance(type_, ir.RankedTensorType):
            return _Sizes(self._known(self._host.annotation(value).dims or ()), is_tensor=True)
        raise PassFailure(self._op, f"passes a value of type '{type_}'")

    def _known(self, dims: Sequence[Dim]) -> tuple[Dim, ...]:
        known = self._host.scope.symbols.keys()
        return tuple(dim if dim is not None and dim.symbols <= known else None for dim in dims)

    def _types(self, form: _Form) -> list[ir.Type]:
        out = self._host.out
        if isinstance(form, _Scalar):
            return [form.type_]
        sizes: list[ir.Type] = [out.i64 for dim in form.known if dim is None]
        return [out.pointer, *sizes] if form.is_tensor else sizes


def _sizes(form: _Sizes, passed: Iterator[ir.Value]) -> tuple[Size, ...]:
    return tuple(next(passed) if dim is None else dim for dim in form.known)
