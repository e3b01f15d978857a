"""Ops on integers that are known during import: the shape arithmetic of modules.

Elements are values, which wrap as those of their type do, or expressions over symbols, which are
sizes and assumed to fit. What symbols leave open is left to ops at run time.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from relax_mlir.errors import CompileError
from relax_mlir.symbolic import Expr, Facts, as_expr, at_most, differ, equal, maximum, minimum

from ..elements import DTYPES
from ..known import Known

if TYPE_CHECKING:
    from .node import Node

MOST = 1024
"""Elements of an array that is computed during import."""

Folder: TypeAlias = "Callable[[Node, Sequence[np.ndarray]], np.ndarray]"

_table: dict[str, Folder] = {}


class Undecided(Exception):
    """What symbols leave open."""


def folds(*names: str) -> Callable[[Folder], Folder]:
    """Registers the function that computes ops on known arrays of Python's values."""

    def register(folder: Folder) -> Folder:
        for name in names:
            _table[f"stablehlo.{name}"] = folder
        return folder

    return register


def evaluate(node: "Node") -> Known | None:
    """The result of an op whose operands are all known integers; None if it is computed later."""
    folder = _table.get(node.op.name)
    if folder is None or not node.operands or len(node.op.results) != 1:
        return None
    known = [each for each in node.operands if isinstance(each, Known) and is_exact(each)]
    if len(known) < len(node.operands) or any(each.array.size > MOST for each in known):
        return None
    element = node.result.element
    if element not in DTYPES or DTYPES[element].kind == "f":
        return None
    try:
        result = folder(node, [objects(each) for each in known])
    except (Undecided, CompileError, ArithmeticError):
        return None
    if result.size > MOST or node.scope.lifted:
        return None
    made = as_known(result, element)
    return made if not made.is_symbolic or _fits(made, node.importer.facts) else None


def _fits(value: Known, facts: Facts) -> bool:
    """Whether a type has room for sizes, and unsigned ones none that may be negative."""
    is_unsigned = value.element.startswith("ui")
    if value.element not in ("i32", "i64", "ui32", "ui64"):
        return False
    return not is_unsigned or all(at_most(0, each, facts).proved for each in value.exprs)


def is_exact(value: Known) -> bool:
    """Whether elements are integers or truth values."""
    return value.element in DTYPES and DTYPES[value.element].kind != "f"


def as_known(array: np.ndarray, element: str) -> Known:
    """An array of Python's values and expressions; the former wrap."""
    flat = array.reshape(-1).tolist()
    values = [
        each.value if isinstance(each, Expr) and each.value is not None else each for each in flat
    ]
    if any(isinstance(each, Expr) for each in values):
        result = np.empty(len(values), object)
        result[:] = values
        return Known(result.reshape(array.shape), element)
    wrapped = [_wrapped(each, element) for each in values]
    return Known(np.array(wrapped, DTYPES[element]).reshape(array.shape), element)


def _wrapped(value: Any, element: str) -> int | bool:
    if element == "i1":
        return bool(value)
    dtype = DTYPES[element]
    bits, span = 8 * dtype.itemsize, 1 << (8 * dtype.itemsize)
    value = int(value) % span
    return value - span if dtype.kind == "i" and value >> (bits - 1) else value


def objects(value: Known) -> np.ndarray:
    """The elements as Python's values or expressions."""
    return value.array if value.is_symbolic else value.array.astype(object)


def each(function: Callable[..., Any], *operands: np.ndarray) -> np.ndarray:
    """A function of each element, of operands that broadcast."""
    arrays = np.broadcast_arrays(*operands)
    result = np.empty(arrays[0].shape, object)
    for index in np.ndindex(result.shape):
        result[index] = function(*(array[index] for array in arrays))
    return result


# What one element is.


def less_equal(a: Any, b: Any, facts: Facts) -> bool:
    """Whether a <= b; raises Undecided where symbols say."""
    if not isinstance(a, Expr) and not isinstance(b, Expr):
        return bool(a <= b)
    if at_most(as_expr(a), as_expr(b), facts).proved:
        return True
    if at_most(as_expr(b) + 1, as_expr(a), facts).proved:
        return False
    raise Undecided


def is_equal(a: Any, b: Any, facts: Facts) -> bool:
    """Whether a == b; raises Undecided where symbols say."""
    if not isinstance(a, Expr) and not isinstance(b, Expr):
        return bool(a == b)
    if equal(as_expr(a), as_expr(b), facts).proved:
        return True
    if differ(as_expr(a), as_expr(b), facts).proved:
        return False
    raise Undecided


def compared(direction: str, a: Any, b: Any, facts: Facts) -> bool:
    """Whether a relation holds."""
    if direction in ("EQ", "NE"):
        return is_equal(a, b, facts) == (direction == "EQ")
    if direction in ("GE", "LT"):
        return less_equal(b, a, facts) == (direction == "GE")
    return less_equal(a, b, facts) == (direction == "LE")


def _divided(a: Any, b: Any, facts: Facts) -> Any:
    if not isinstance(a, Expr) and not isinstance(b, Expr):
        if b == 0:
            raise Undecided
        return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
    if less_equal(0, a, facts) and less_equal(1, b, facts):
        return as_expr(a) // as_expr(b)
    raise Undecided


def _rest(a: Any, b: Any, facts: Facts) -> Any:
    return a - _divided(a, b, facts) * b


def _sign(a: Any, facts: Facts) -> Any:
    if not isinstance(a, Expr):
        return (a > 0) - (a < 0)
    if less_equal(0, a, facts):
        return minimum(a, 1)
    raise Undecided


ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda a, b: a + b,
    "subtract": lambda a, b: a - b,
    "multiply": lambda a, b: a * b,
    "maximum": lambda a, b: max(a, b) if _plain(a, b) else maximum(a, b),
    "minimum": lambda a, b: min(a, b) if _plain(a, b) else minimum(a, b),
}
BITS: dict[str, Callable[[Any, Any], Any]] = {
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
}
DIVISIONS: dict[str, Callable[[Any, Any, Facts], Any]] = {"divide": _divided, "remainder": _rest}


def _plain(*values: Any) -> bool:
    return not any(isinstance(each, Expr) for each in values)


@folds(*ARITHMETIC)
def arithmetic(node: "Node", operands: Sequence[np.ndarray]) -> np.ndarray:
    """Sums, differences, products, bounds."""
    if node.result.element == "i1":
        raise Undecided
    return each(ARITHMETIC[node.name], *operands)


@folds(*DIVISIONS)
def divisions(node: "Node", operands: Sequence[np.ndarray]) -> np.ndarray:
    """Quotients that are rounded to 0, and what they leave."""
    facts = node.importer.facts
    return each(lambda a, b: DIVISIONS[node.name](a, b, facts), *operands)


@folds(*BITS)
def bits(node: "Node", operands: Sequence[np.ndarray]) -> np.ndarray:
    """Bits, and logic, of which one operand may decide."""
    if node.result.element != "i1" and not all(_plain(*x.reshape(-1).tolist()) for x in operands):
        raise Undecided
    return each(BITS[node.name], *operands)


@folds("not", "negate", "sign", "abs")
def unary(node: "Node", operands: Sequence[np.ndarray]) -> np.ndarray:
    """Of one operand."""
    facts, is_bool = node.importer.facts, node.result.element == "i1"
    functions: dict[str, Callable[[Any], Any]] = {
        "not": lambda a: not a if is_bool else -a - 1,
        "negate": lambda a: a * -1,
        "sign": lambda a: _sign(a, facts),
        "abs": lambda a: abs(a) if _plain(a) else (a if less_equal(0, a, facts) else a * -1),
    }
    return each(functions[node.name], *operands)


@folds("compare")
def compare(node: "Node", operands: Sequence[np.ndarray]) -> np.ndarray:
    """Relations."""
    direction, facts = node.keyword("comparison_direction"), node.importer.facts
    return each(lambda a, b: compared(direction, a, b, facts), *operands)


@folds("select")
def select(node: "Node", operands: Sequence[np.ndarray]) -> np.ndarray:
    """One of two."""
    return each(lambda condition, a, b: a if condition else b, *operands)


@folds("clamp")
def clamp(node: "Node", operands: Sequence[np.ndarray]) -> np.ndarray:
    """Within bounds."""

    def within(low: Any, value: Any, high: Any) -> Any:
        if _plain(low, value, high):
            return min(max(value, low), high)
        return minimum(maximum(value, low), high)

    return each(within, *operands)


@folds("convert")
def convert(node: "Node", operands: Sequence[np.ndarray]) -> np.ndarray:
    """Of another type."""
    if node.result.element == "i1":
        facts = node.importer.facts
        return each(lambda a: not is_equal(a, 0, facts), operands[0])
    return operands[0]


# Where elements are.


@folds("reshape")
def reshape(node: "Node", operands: Sequence[np.ndarray]) -> np.ndarray:
    """Under other dims."""
    return operands[0].reshape(_static(node))


@folds("broadcast_in_dim")
def broadcast_in_dim(node: "Node", operands: Sequence[np.ndarray]) -> np.ndarray:
    """Repeated."""
    shape, axes = _static(node), node.integers("broadcast_dimensions")
    ordered = operands[0].transpose(sorted(range(len(axes)), key=lambda i: axes[i]))
    sizes = iter(ordered.shape)
    spread = [next(sizes) if axis in axes else 1 for axis in range(len(shape))]
    return np.broadcast_to(ordered.reshape(spread), shape)


@folds("transpose")
def transpose(node: "Node", operands: Sequence[np.ndarray]) -> np.ndarray:
    """Axes in another order."""
    return operands[0].transpose(node.integers("permutation"))


@folds("concatenate")
def concatenate(node: "Node", operands: Sequence[np.ndarray]) -> np.ndarray:
    """In a row."""
    return np.concatenate(operands, axis=node.integer("dimension"))


@folds("slice")
def slice_(node: "Node", operands: Sequence[np.ndarray]) -> np.ndarray:
    """A part."""
    bounds = zip(*(node.integers(name) for name in ("start_indices", "limit_indices", "strides")))
    return operands[0][tuple(slice(*each) for each in bounds)]


def _static(node: "Node") -> list[int]:
    if any(dim is None for dim in node.result.dims):
        raise Undecided
    return node.result.shape
