"""A prepared op: its operands, the function that computes it, and the checks of its results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from relax_mlir.bindings import ir
from relax_mlir.diagnostics import Diagnostic, compile_error
from relax_mlir.dialects.graph import (
    GraphOp,
    ShapeAttr,
    ShapeError,
    ShapeValueType,
    TensorType,
    annotation_of,
    assumptions,
    compatible,
    dims_of_attr,
    shape_value_dims,
)
from relax_mlir.dialects.graph.op import attribute_to_python
from relax_mlir.errors import ExecutionError
from relax_mlir.symbolic import Expr, Fact, SymbolicError

from .elements import (
    PACKED,
    Read,
    UnknownElement,
    exact,
    round_to,
    rounded,
    stored,
    stored_dtype,
    widen,
)
from .lookup import find, parameters
from .small_floats import FORMATS

if TYPE_CHECKING:
    from .frame import Frame

Dims = Sequence[Expr | None]
Finish = Callable[[Any, "Frame"], Any]
Find = Callable[[ir.OpView], tuple[Callable[..., Any], Read] | None]


class Step:
    """An op, prepared to run."""

    def __init__(self, op: ir.OpView, find: Find = find) -> None:
        """Looks up the function of the op; raises CompileError at it if there is none."""
        self.op = op
        self.results = list(op.operation.results)
        operator = op if isinstance(op, GraphOp) and op.has_rule() else None
        self.operands = operator.slots() if operator else list(op.operation.operands)
        self.facts: list[Fact] = []
        try:
            match = find(op)
            if match is None:
                self._refuse("is unknown to the interpreter")
            self.function, read = match
            if operator is not None and _moves_small_floats(operator):
                read = stored
            if operator is not None:
                self.facts = _assumptions(operator)
            self.needs_frame, names = parameters(self.function)
            self._read_keywords(names)
            self.readers = [_reader(read, value) for value in self.operands]
            self.reads_all_as_stored = self.needs_frame or not any(self.readers)
            rounds = read is not stored and not self.needs_frame
            self.finishers = [_finisher(value, rounds) for value in self.results]
        except (ShapeError, UnknownElement) as error:
            self._refuse(str(error))

    def _read_keywords(self, names: Sequence[str]) -> None:
        """Reads the attributes that are keywords of the function; some depend on symbols."""
        self.keywords: dict[str, Any] = {}
        self.expressions: dict[str, Dims] = {}
        for name in names:
            if name == "result":
                self.keywords[name] = self.results[0].type
            elif name == "element":
                self.keywords[name] = element_of(self.results[0])
            elif name in self.op.attributes:
                attribute = self.op.attributes[name]
                if isinstance(attribute, ShapeAttr):
                    self.expressions[name] = dims_of_attr(ShapeAttr(attribute).dims)
                else:
                    self.keywords[name] = attribute_to_python(attribute)

    def _refuse(self, message: str) -> NoReturn:
        text = f"'{self.op.operation.name}' op {message}"
        raise compile_error([Diagnostic.at(self.op.location, "error", text)])

    def __call__(self, frame: Frame) -> None:
        """Runs the op; raises ExecutionError if it cannot be computed."""
        values = frame.values
        try:
            for fact in self.facts:
                frame.symbols.require(fact, frame.signature.name)
            results = self._compute(frame, values)
            if len(self.results) == 1:
                one = results[0] if isinstance(results, list) else results
                values[self.results[0]] = self.finishers[0](one, frame)
            else:
                for value, result, finish in zip(
                    self.results, results, self.finishers, strict=True
                ):
                    values[value] = finish(result, frame)
        except (ValueError, IndexError, ArithmeticError, SymbolicError) as error:
            text = f"'{self.op.operation.name}' op {error}"
            raise ExecutionError(str(Diagnostic.at(self.op.location, "error", text))) from error

    def _compute(self, frame: Frame, values: dict[ir.Value, Any]) -> Any:
        if self.needs_frame:
            operands = [values[value] for value in self.operands if value is not None]
            return self.function(frame, self.op, *operands)
        keywords = self.keywords
        if self.expressions:
            known = {name: frame.evaluate(dims) for name, dims in self.expressions.items()}
            keywords = {**keywords, **known}
        if self.reads_all_as_stored:
            operands = [None if value is None else values[value] for value in self.operands]
        else:
            operands = [
                None if value is None else values[value] if read is None else read(values[value])
                for value, read in zip(self.operands, self.readers, strict=True)
            ]
        return self.function(*operands, **keywords)


def element_of(value: ir.Value) -> str:
    """The name of the type of a value, or of its elements."""
    type_ = value.type
    return str(type_.element_type if isinstance(type_, ir.ShapedType) else type_)


def _moves_small_floats(op: GraphOp) -> bool:
    """Whether results are among the operand's floats of 8 bits: as codes, infinities stay."""
    kinds = {element_of(value) for value in op.operation.operands}
    return any(element_of(value) in kinds & FORMATS.keys() for value in op.operation.results)


def _assumptions(op: GraphOp) -> list[Fact]:
    """The assumptions on dims of an operator's rule and of its declared results.

    NumPy itself checks that dims broadcast.
    """
    with assumptions() as assumed:
        inferred = op.infer()
        for annotation, result in zip(inferred, op.operation.results, strict=True):
            compatible(annotation, annotation_of(result))
    return [item for item in assumed if isinstance(item, Fact)]


def _reader(read: Read, value: ir.Value | None) -> Callable[[Any], Any] | None:
    """The function that reads an operand; None if it is not converted."""
    if value is None or read is stored:
        return None
    element = element_of(value)
    if read is widen and element not in PACKED:
        return None
    if read is exact and not isinstance(value.type, ir.ShapedType):
        return None
    return lambda x: read(x, element)


def _finisher(value: ir.Value, rounds: bool) -> Finish:
    """The function that rounds a result to its type and checks its declared dims."""
    type_ = value.type
    if isinstance(type_, ShapeValueType):
        return _with_dims(shape_value_dims(type_))
    element = element_of(value)
    if element == "index" and not isinstance(type_, ir.RankedTensorType):
        return _index
    if isinstance(type_, ir.RankedTensorType | ir.UnrankedTensorType):
        annotation = TensorType.of(type_)
        check = _with_dims(annotation.dims)
        if annotation.is_of_any_element:
            return lambda result, frame: (check(result.shape, frame), result)[1]
        dtype = stored_dtype(element)

        def tensor(result: Any, frame: Frame) -> Any:
            # NumPy's functions return scalars, which cannot be updated, for arrays of rank 0.
            result = np.asarray(rounded(result, element) if rounds else result)
            assert result.dtype == dtype, (result.dtype, dtype)
            check(result.shape, frame)
            return result

        return tensor
    if not rounds:
        return lambda result, frame: result
    dtype = stored_dtype(element)
    may_be_exact = element not in PACKED

    def single(result: Any, frame: Frame) -> Any:
        if may_be_exact and getattr(result, "dtype", None) is dtype:
            return result
        return round_to(result, element)[()]

    return single


def _index(result: Any, frame: Frame) -> Any:
    if isinstance(result, int):
        return result if -_BEYOND <= result < _BEYOND else _wrapped(result)
    return int(result) if np.ndim(result) == 0 else np.asarray(result, np.int64)


_BEYOND = 1 << 63


def _wrapped(number: int) -> int:
    """The number of 64 bits with the same last 64 bits."""
    return (number + _BEYOND) % (2 * _BEYOND) - _BEYOND


def _with_dims(declared: Dims | None) -> Finish:
    """Checks dims against an annotation; ignores dims of unbound symbols."""

    def check(shape: Sequence[int], frame: Frame) -> Any:
        if declared is None:
            return shape
        if len(shape) != len(declared):
            raise ValueError(f"has a result of rank {len(shape)}, but {len(declared)} is declared")
        for axis, (extent, dim) in enumerate(zip(shape, declared, strict=True)):
            if dim is None or not dim.symbols <= frame.symbols.keys():
                continue
            if (wanted := dim.evaluate(frame.symbols)) != extent:
                why = "declared" if dim.value is not None else f"what '{dim}' is"
                raise ValueError(
                    f"has a result whose dim {axis} is {extent}, but {wanted} is {why}"
                )
        return shape

    return check
