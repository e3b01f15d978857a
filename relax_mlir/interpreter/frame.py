"""Runs blocks of ops: what each op reads, the function that computes it, what becomes of it."""

from __future__ import annotations

import inspect
import keyword
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any, NoReturn

import numpy as np

from relax_mlir.bindings import arith, func, ir
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
from relax_mlir.dialects.lib import FunctionOp
from relax_mlir.dialects.tir import PrimFunc
from relax_mlir.errors import ExecutionError
from relax_mlir.symbolic import Expr, Fact, SymbolicError

from .binding import Signature, Symbols
from .constants import constant_value
from .elements import UnknownElement, round_to, stored, stored_dtype

Dims = Sequence[Expr | None]
Read = Callable[[np.ndarray, str], np.ndarray]


@dataclass
class Frame:
    """A function while it runs: what its values and its symbols are.

    `loops` are the indices of the loop nest whose body runs: arrays that broadcast, or integers.
    """

    code: Code
    signature: Signature
    values: dict[ir.Value, Any] = field(default_factory=dict)
    symbols: Symbols = field(default_factory=Symbols)
    loops: Sequence[Any] = ()

    def nested(self) -> Frame:
        """A frame for a region: it sees everything here, and symbols that it binds stay in it."""
        return Frame(self.code, self.signature, self.values, self.symbols.nested(), self.loops)

    def run(self, block: ir.Block, arguments: Sequence[Any] = ()) -> list[Any]:
        """Runs a block; returns the operands of its terminator."""
        steps = self.code.steps(block)
        self.values.update(zip(steps.arguments, arguments, strict=True))
        for step in steps.steps:
            step(self)
        return [self.values[value] for value in steps.yielded]

    def evaluate(self, dims: Dims) -> tuple[int, ...]:
        """The integers that expressions are."""
        return tuple(_known(dim).evaluate(self.symbols) for dim in dims)

    @staticmethod
    def element(value: ir.Value) -> str:
        """The name of the type of a value, or of its elements."""
        type_ = value.type
        return str(type_.element_type if isinstance(type_, ir.ShapedType) else type_)


def _known(dim: Expr | None) -> Expr:
    if dim is None:
        raise ValueError("has a dim that is not known; assert it with graph.match_cast")
    return dim


@dataclass(frozen=True)
class Steps:
    """A block, made ready to run."""

    arguments: list[ir.Value]
    steps: list[Step]
    yielded: list[ir.Value]


class Code:
    """The functions of a module; blocks are read when they run first.

    Of kernels that are scheduled, the programs of `before` stand for what they are to compute.
    """

    def __init__(self, module: ir.Operation | ir.OpView, before: Code | None = None) -> None:
        operations = module.regions[0].blocks[0].operations
        self.functions = {op.name.value: op for op in operations if isinstance(op, func.FuncOp)}
        self.uses_before = False
        for name, function in self.functions.items() if before is not None else ():
            is_kernel = PrimFunc.is_prim_func(function) and PrimFunc(function).is_scheduled
            if is_kernel and before is not None and name in before.functions:
                self.functions[name] = before.functions[name]
                self.uses_before = True
        self.libraries = {
            op.attributes["sym_name"].value: op for op in operations if isinstance(op, FunctionOp)
        }
        self._steps: dict[ir.Block, Steps] = {}
        self._signatures: dict[str, Signature] = {}

    def signature(self, function: func.FuncOp) -> Signature:
        """What a function of the module says of its arguments."""
        name = function.name.value
        if name not in self._signatures:
            self._signatures[name] = Signature(function)
        return self._signatures[name]

    def steps(self, block: ir.Block) -> Steps:
        """The ops of a block, made ready to run; raises CompileError at one that cannot be."""
        found = self._steps.get(block)
        if found is None:
            *operations, terminator = list(block.operations)
            steps = [Step(op) for op in operations]
            found = Steps(list(block.arguments), steps, list(terminator.operands))
            self._steps[block] = found
        return found


class Step:
    """An op, made ready to run."""

    def __init__(self, op: ir.OpView) -> None:
        self.op, self.name = op, op.operation.name
        self.results = list(op.operation.results)
        operator = op if isinstance(op, GraphOp) and op.has_rule() else None
        self.operands = operator.slots() if operator else list(op.operation.operands)
        self.facts: list[Fact] = []
        module, self.function = _function_of(op)
        self.read: Read = module.read
        try:
            if operator is not None:
                self.facts = _granted(operator)
            self.needs_frame, names = _parameters(self.function)
            self.keywords = _keywords(op, names, self.results)
            self.kinds = [_Kind.of(value) for value in self.results]
            self.elements = [
                "" if value is None else Frame.element(value) for value in self.operands
            ]
        except (ShapeError, UnknownElement) as error:
            self.refuse(str(error))

    def refuse(self, message: str) -> NoReturn:
        """Raises CompileError at the op."""
        text = f"'{self.name}' op {message}"
        raise compile_error([Diagnostic.at(self.op.location, "error", text)])

    def __call__(self, frame: Frame) -> None:
        """Runs the op; raises ExecutionError if it cannot be computed."""
        values = frame.values
        operands = [None if value is None else values[value] for value in self.operands]
        try:
            for fact in self.facts:
                frame.symbols.require(fact, frame.signature.name)
            for value, result, kind in zip(
                self.results, self._compute(frame, operands), self.kinds, strict=True
            ):
                values[value] = kind.finish(result, frame, self.read is not stored)
        except (ValueError, IndexError, ArithmeticError, SymbolicError) as error:
            where = Diagnostic.at(self.op.location, "error", f"'{self.name}' op {error}")
            raise ExecutionError(str(where)) from error

    def _compute(self, frame: Frame, operands: list[Any]) -> Sequence[Any]:
        if self.needs_frame:
            found = self.function(frame, self.op, *operands)
        else:
            keywords = {
                name: frame.evaluate(value.dims) if isinstance(value, _Expressions) else value
                for name, value in self.keywords.items()
            }
            read = self.read
            if read is not stored:
                operands = [
                    x if x is None or isinstance(x, int) else read(x, element)
                    for x, element in zip(operands, self.elements, strict=True)
                ]
            found = self.function(*operands, **keywords)
        if len(self.results) == 1 and not isinstance(found, list):
            return (found,)
        return found or ()


def _granted(op: GraphOp) -> list[Fact]:
    """What an operator takes for granted of dims: its rule does, and its declared results do.

    Whether dims broadcast, NumPy checks.
    """
    with assumptions() as found:
        inferred = op.infer()
        for annotation, result in zip(inferred, op.operation.results, strict=True):
            compatible(annotation, annotation_of(result))
    return [item for item in found if isinstance(item, Fact)]


@dataclass(frozen=True)
class _Expressions:
    """An attribute whose value follows from the symbols."""

    dims: Dims


def _keywords(op: ir.OpView, names: Sequence[str], results: Sequence[ir.Value]) -> dict[str, Any]:
    """The values of the keywords that a function asks for."""
    found: dict[str, Any] = {}
    for name in names:
        if name == "result":
            found[name] = results[0].type
        elif name == "element":
            found[name] = Frame.element(results[0])
        elif name in op.attributes:
            attribute = op.attributes[name]
            if isinstance(attribute, ShapeAttr):
                found[name] = _Expressions(dims_of_attr(ShapeAttr(attribute).dims))
            else:
                found[name] = attribute_to_python(attribute)
    return found


@dataclass(frozen=True)
class _Kind:
    """What a result has to be: its element type, and its dims if it is a tensor."""

    element: str
    dims: Dims | None
    is_tensor: bool
    is_shape: bool

    @staticmethod
    def of(value: ir.Value) -> _Kind:
        type_ = value.type
        if isinstance(type_, ShapeValueType):
            return _Kind("", shape_value_dims(type_), False, True)
        element = Frame.element(value)
        if isinstance(type_, ir.RankedTensorType | ir.UnrankedTensorType):
            stored_dtype(element)
            return _Kind(element, TensorType.of(type_).dims, True, False)
        return _Kind(element, None, False, False)

    def finish(self, result: Any, frame: Frame, rounds: bool) -> Any:
        """The result as it is stored, its dims held against the annotation."""
        if self.is_tensor:
            if rounds:
                result = round_to(result, self.element)
            assert result.dtype == stored_dtype(self.element), (result.dtype, self.element)
            self.check_dims(result.shape, frame)
        elif self.is_shape:
            self.check_dims(result, frame)
        elif self.element == "index":
            return int(result) if np.ndim(result) == 0 else np.asarray(result, np.int64)
        elif rounds:
            return round_to(result, self.element)[()]
        return result

    def check_dims(self, shape: Sequence[int], frame: Frame) -> None:
        """Raises ValueError if the dims are not those of the annotation."""
        if self.dims is None:
            return
        if len(shape) != len(self.dims):
            raise ValueError(f"has a result of rank {len(shape)}, but {len(self.dims)} is declared")
        for axis, (extent, dim) in enumerate(zip(shape, self.dims, strict=True)):
            if dim is None or not dim.symbols <= frame.symbols.keys():
                continue
            if (declared := dim.evaluate(frame.symbols)) != extent:
                want = "declared" if dim.value is not None else f"what '{dim}' is"
                raise ValueError(
                    f"has a result whose dim {axis} is {extent}, but {declared} is {want}"
                )


def _function_of(op: ir.OpView) -> tuple[ModuleType, Callable[..., Any]]:
    """The function that computes an op, and the module that it is in."""
    if isinstance(op, arith.ConstantOp):
        return _module("dialects.tensor"), _constant(op)
    dialect, _, name = op.operation.name.partition(".")
    is_operator = isinstance(op, GraphOp) and op.has_rule()
    module = _module(_family(op) if is_operator else f"dialects.{dialect}")
    function = _member(module, name) or _member(module, "any_op")
    if function is None:
        message = f"'{op.operation.name}' op is unknown to the interpreter"
        raise compile_error([Diagnostic.at(op.location, "error", message)])
    return module, function


def function_of_operator(kind: type[GraphOp]) -> Callable[..., Any] | None:
    """The function that says what an operator means, None if there is none."""
    return _member(_module(_family(kind)), kind.OPERATION_NAME.partition(".")[2])


def _family(op: ir.OpView | type[GraphOp]) -> str:
    """The module for the operators of a file of the dialect."""
    return "operators." + op.__module__.rpartition(".")[2]


def _member(module: ModuleType, name: str) -> Callable[..., Any] | None:
    return getattr(module, f"{name}_" if keyword.iskeyword(name) else name, None)


def _constant(op: arith.ConstantOp) -> Callable[[], Any]:
    value = constant_value(op.attributes["value"])
    return lambda: value


@cache
def _module(name: str) -> ModuleType:
    """A module of this package; an empty one if there is none of that name."""
    if find_spec(f"{__package__}.{name}") is None:
        return ModuleType(name)
    return import_module(f"{__package__}.{name}")


@cache
def _parameters(function: Callable[..., Any]) -> tuple[bool, list[str]]:
    """Whether a function takes the frame, and the names of what it takes as keywords."""
    try:
        parameters = inspect.signature(function).parameters
    except ValueError:  # one of NumPy's
        return False, []
    kinds = {name: parameter.kind for name, parameter in parameters.items()}
    if isinstance(function, np.ufunc):
        return False, []
    named = [name for name, kind in kinds.items() if kind is inspect.Parameter.KEYWORD_ONLY]
    return "frame" in kinds, named
