"""Operators on arrays that are known during import: the shape arithmetic of models.

Elements are values or expressions over symbols. What cannot be decided during import, such as a
comparison of symbols, is left to operators at run time.
"""

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from relax_mlir.dialects.graph import dims_differ
from relax_mlir.errors import CompileError
from relax_mlir.symbolic import Expr, at_most, const, equal, maximum, minimum, product

from ..elements import DTYPES, is_float
from ..known import Known
from .node import Node, normalized
from .registry import Value
from .types import element_name

MOST = 4096
"""Elements of an array that is computed during import."""

Folder: TypeAlias = Callable[[Node, Sequence[Known]], "np.ndarray | Known | None"]

_table: dict[str, Folder] = {}


def evaluate(node: Node) -> list[Value] | None:
    """The outputs of a node whose inputs are all known; None if it has to be computed later."""
    folder = _table.get(node.op) if node.proto.domain in ("", "ai.onnx") else None
    inputs = [each for each in node.inputs if each is not None]
    if folder is None or not inputs or not all(isinstance(each, Known) for each in inputs):
        return None
    arrays = [each for each in inputs if isinstance(each, Known)]
    if any(each.array.size > MOST for each in arrays):
        return None
    try:
        with np.errstate(all="ignore"):
            result = folder(node, arrays)
        if isinstance(result, np.ndarray):
            result = _known(result, arrays[0].element)
    except (Undecided, CompileError, ArithmeticError, MemoryError):
        return None
    return None if result is None else [result]


class Undecided(Exception):
    """What symbols leave open."""


def folds(*names: str) -> Callable[[Folder], Folder]:
    """Registers the function that computes operators on known arrays."""

    def register(folder: Folder) -> Folder:
        for name in names:
            _table[name] = folder
        return folder

    return register


def _known(array: np.ndarray, element: str) -> Known:
    """An array whose elements have the type of the element, if none is symbolic.

    Raises Undecided for an integer that does not fit: then run time wraps it.
    """
    if array.dtype != object:
        dtype = DTYPES.get(element)
        return Known(array if dtype is None else array.astype(dtype), element)
    flat = array.reshape(-1).tolist()
    values = [each.value if isinstance(each, Expr) else each for each in flat]
    if DTYPES[element].kind in "iu":
        least, most = np.iinfo(DTYPES[element]).min, np.iinfo(DTYPES[element]).max
        if any(value is not None and not least <= value <= most for value in values):
            raise Undecided
    if None in values:
        return Known(array, element)
    return Known(np.array(values, DTYPES[element]).reshape(array.shape), element)


def objects(value: Known) -> np.ndarray:
    """The elements as Python's values or expressions."""
    return value.array if value.is_symbolic else value.array.astype(object)


def _each(function: Callable[..., Any], *operands: Known) -> np.ndarray:
    """A function of each element, of operands that broadcast."""
    arrays = np.broadcast_arrays(*map(objects, operands))
    if arrays[0].size > MOST:
        raise Undecided
    result = np.empty(arrays[0].shape, object)
    for index in np.ndindex(result.shape):
        result[index] = function(*(array[index] for array in arrays))
    return result


def truth(value: Any) -> bool:
    """Whether an element is true; raises Undecided if symbols say."""
    if isinstance(value, Expr):
        if value.value is None:
            if dims_differ(value, const(0)):
                return True
            raise Undecided
        return value.value != 0
    return bool(value)


def _is_equal(a: Any, b: Any) -> bool:
    if isinstance(a, Expr) or isinstance(b, Expr):
        a, b = _expr(a), _expr(b)
        if equal(a, b).proved:
            return True
        if dims_differ(a, b):
            return False
        raise Undecided
    return bool(a == b)


def _is_less(a: Any, b: Any) -> bool:
    if isinstance(a, Expr) or isinstance(b, Expr):
        a, b = _expr(a), _expr(b)
        if at_most(a + 1, b).proved:
            return True
        if at_most(b, a).proved:
            return False
        raise Undecided
    return bool(a < b)


def _is_at_most(a: Any, b: Any) -> bool:
    if isinstance(a, Expr) or isinstance(b, Expr):
        return not _is_less(b, a)
    return bool(a <= b)  # which is false of a NaN


def _expr(value: Any) -> Expr:
    if isinstance(value, float) and not value.is_integer():
        raise Undecided
    return value if isinstance(value, Expr) else const(int(value))


def _integral(value: Any) -> Any:
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _product(a: Any, b: Any) -> Any:
    if isinstance(a, Expr) or isinstance(b, Expr):
        return _expr(_integral(a)) * _expr(_integral(b))
    return a * b


def _sum(a: Any, b: Any) -> Any:
    if isinstance(a, Expr) or isinstance(b, Expr):
        return _expr(_integral(a)) + _expr(_integral(b))
    return a + b


def _difference(a: Any, b: Any) -> Any:
    return _sum(a, _product(b, -1))


def _quotient(element: str) -> Callable[[Any, Any], Any]:
    def divide(a: Any, b: Any) -> Any:
        if isinstance(a, Expr) or isinstance(b, Expr):
            return _exact(_expr(a), _expr(_integral(b)), is_float(element))
        if is_float(element):
            return a / b
        quotient = abs(a) // abs(b)
        return quotient if (a < 0) == (b < 0) else -quotient

    return divide


def _exact(a: Expr, b: Expr, is_exact: bool) -> Expr:
    """A quotient of expressions, which is no less than 0, or a multiple."""
    quotient = a // b
    if equal(quotient * b, a).proved:
        return quotient
    if is_exact or not at_most(0, a).proved or not at_most(1, b).proved:
        raise Undecided
    return quotient


def _least(a: Any, b: Any) -> Any:
    return minimum(_expr(a), _expr(b)) if isinstance(a, Expr) or isinstance(b, Expr) else min(a, b)


def _greatest(a: Any, b: Any) -> Any:
    return maximum(_expr(a), _expr(b)) if isinstance(a, Expr) or isinstance(b, Expr) else max(a, b)


_BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "Add": _sum,
    "Sub": _difference,
    "Mul": _product,
    "Min": _least,
    "Max": _greatest,
}
_RELATIONS: dict[str, Callable[[Any, Any], bool]] = {
    "Equal": _is_equal,
    "Less": _is_less,
    "Greater": lambda a, b: _is_less(b, a),
    "LessOrEqual": _is_at_most,
    "GreaterOrEqual": lambda a, b: _is_at_most(b, a),
    "And": lambda a, b: truth(a) and truth(b),
    "Or": lambda a, b: truth(a) or truth(b),
    "Xor": lambda a, b: truth(a) != truth(b),
}


@folds("Add", "Sub", "Mul", "Min", "Max")
def _binary(node: Node, inputs: Sequence[Known]) -> np.ndarray | None:
    if not any(each.is_symbolic for each in inputs) and is_float(inputs[0].element):
        return None
    result = inputs[0]
    for other in inputs[1:]:
        array = _each(_BINARY[node.op], result, other)
        result = _known(array, inputs[0].element)
    return result.array


@folds("Div")
def _divide(node: Node, inputs: Sequence[Known]) -> np.ndarray | None:
    if not any(each.is_symbolic for each in inputs) and is_float(inputs[0].element):
        return None
    return _each(_quotient(inputs[0].element), *inputs)


@folds("Mod")
def _modulo(node: Node, inputs: Sequence[Known]) -> np.ndarray | None:
    if is_float(inputs[0].element) or node.flag("fmod"):
        return None
    return _each(lambda a, b: a % b, *inputs)


@folds(*_RELATIONS)
def _relation(node: Node, inputs: Sequence[Known]) -> Known:
    return Known(_each(_RELATIONS[node.op], *inputs).astype(bool), "i1")


@folds("Not")
def _not(node: Node, inputs: Sequence[Known]) -> Known:
    return Known(_each(lambda a: not truth(a), *inputs).astype(bool), "i1")


@folds("Neg")
def _negative(node: Node, inputs: Sequence[Known]) -> np.ndarray | None:
    return None if is_float(inputs[0].element) else _each(lambda a: _product(a, -1), *inputs)


@folds("Abs")
def _absolute(node: Node, inputs: Sequence[Known]) -> np.ndarray | None:
    if is_float(inputs[0].element):
        return None
    return _each(lambda a: _greatest(a, _product(a, -1)), *inputs)


@folds("Floor", "Ceil")
def _rounded(node: Node, inputs: Sequence[Known]) -> np.ndarray | None:
    if not inputs[0].is_symbolic:
        return None
    function = np.floor if node.op == "Floor" else np.ceil
    return _each(lambda a: a if isinstance(a, Expr) else float(function(a)), inputs[0])


@folds("Sqrt")
def _root(node: Node, inputs: Sequence[Known]) -> np.ndarray | None:
    return None if inputs[0].is_symbolic else np.asarray(np.sqrt(inputs[0].array))


@folds("Where")
def _where(node: Node, inputs: Sequence[Known]) -> Known:
    if not any(each.is_symbolic for each in inputs):
        return Known(np.where(*(each.array for each in inputs)), inputs[1].element)
    array = _each(lambda c, a, b: a if truth(c) else b, *inputs)
    return _known(array, inputs[1].element)


@folds("Cast", "CastLike")
def _cast(node: Node, inputs: Sequence[Known]) -> Known | None:
    source = inputs[0]
    target = inputs[1].element if node.op == "CastLike" else element_name(node.required("to"))
    if target not in DTYPES:
        return None
    is_rounded = is_float(source.element) and DTYPES[target].kind in "iu"
    if source.is_symbolic:  # which int32 is taken to hold, but no type of fewer bits
        array = _each(_truncated, source) if is_rounded else source.array
        return Known(array, target) if DTYPES[target].itemsize > 2 else None
    if is_rounded:
        least, most = np.iinfo(DTYPES[target]).min, np.iinfo(DTYPES[target]).max
        if not np.all(np.isfinite(source.array) & (source.array >= least) & (source.array < most)):
            return None
    return Known(source.array.astype(DTYPES[target]), target)


def _truncated(value: Any) -> Any:
    return value if isinstance(value, Expr) or not np.isfinite(value) else int(value)


@folds("Identity")
def _identity(node: Node, inputs: Sequence[Known]) -> Known:
    return inputs[0]


@folds("Shape")
def _shape(node: Node, inputs: Sequence[Known]) -> Known:
    array = np.array(inputs[0].array.shape, np.int64)
    return Known(array[node.attribute("start", 0) : node.attribute("end")], "i64")


@folds("Size")
def _size(node: Node, inputs: Sequence[Known]) -> Known:
    return Known(np.array(inputs[0].array.size, np.int64), "i64")


@folds("Concat")
def _concat(node: Node, inputs: Sequence[Known]) -> np.ndarray:
    arrays = [each.array for each in inputs]
    if any(each.is_symbolic for each in inputs):
        arrays = [objects(each) for each in inputs]
    return np.concatenate(arrays, axis=node.axis())


@folds("Gather")
def _gather(node: Node, inputs: Sequence[Known]) -> np.ndarray | None:
    if inputs[1].is_symbolic:
        return None
    axis = node.axis(0)
    extent = inputs[0].array.shape[axis]
    if not np.all((inputs[1].array >= -extent) & (inputs[1].array < extent)):
        return None
    return np.asarray(np.take(inputs[0].array, inputs[1].array, axis=axis))


@folds("Slice")
def _slice(node: Node, inputs: Sequence[Known]) -> np.ndarray | None:
    if node.version < 10:
        starts, ends = node.required("starts"), node.required("ends")
        axes, steps = node.attribute("axes"), None
    else:
        if any(each.is_symbolic for each in inputs[1:]):
            return None
        starts, ends = node.integers(1, "starts"), node.integers(2, "ends")
        axes = None if node.value(3) is None else node.integers(3, "axes")
        steps = None if node.value(4) is None else node.integers(4, "steps")
    array = inputs[0].array
    index = [slice(None)] * array.ndim
    for i, (start, end) in enumerate(zip(starts, ends, strict=True)):
        axis = normalized(axes[i] if axes else i, array.ndim)
        step = steps[i] if steps else 1
        if step < 0 and end < -array.shape[axis]:
            end = None
        if step < 0:
            start = max(start, -array.shape[axis])  # which is cut off at both ends, unlike NumPy's
        index[axis] = slice(start, end, step)
    return array[tuple(index)]


@folds("Squeeze")
def _squeeze(node: Node, inputs: Sequence[Known]) -> np.ndarray:
    axes = node.attribute("axes") if len(inputs) < 2 else node.integers(1, "axes")
    return np.squeeze(inputs[0].array, None if axes is None else tuple(axes))


@folds("Unsqueeze")
def _unsqueeze(node: Node, inputs: Sequence[Known]) -> np.ndarray:
    axes = node.required("axes") if len(inputs) < 2 else node.integers(1, "axes")
    return np.expand_dims(inputs[0].array, tuple(axes))


@folds("Reshape")
def _reshape(node: Node, inputs: Sequence[Known]) -> np.ndarray | None:
    if inputs[1].is_symbolic:
        return None
    shape = node.integers(1, "shape")
    if any(extent < -1 for extent in shape):
        return None
    if not node.flag("allowzero"):
        shape = [inputs[0].array.shape[i] if d == 0 else d for i, d in enumerate(shape)]
    return inputs[0].array.reshape(shape)


@folds("Transpose")
def _transpose(node: Node, inputs: Sequence[Known]) -> np.ndarray:
    return np.transpose(inputs[0].array, node.attribute("perm"))


@folds("Expand")
def _expand(node: Node, inputs: Sequence[Known]) -> np.ndarray | None:
    if inputs[1].is_symbolic:
        return None
    shape = np.broadcast_shapes(tuple(node.integers(1, "shape")), inputs[0].array.shape)
    if np.prod(shape, dtype=object) > MOST:
        return None
    return np.array(np.broadcast_to(inputs[0].array, shape))


@folds("Tile")
def _tile(node: Node, inputs: Sequence[Known]) -> np.ndarray | None:
    repeats = None if inputs[1].is_symbolic else node.integers(1, "repeats")
    if repeats is None or any(count < 0 for count in repeats):
        return None
    # zeros count as ones: NumPy repeats along one axis after the other
    if np.prod([max(count, 1) for count in repeats], dtype=object) * inputs[0].array.size > MOST:
        return None
    return np.tile(inputs[0].array, repeats)


@folds("ConstantOfShape")
def _constant_of_shape(node: Node, inputs: Sequence[Known]) -> Known | None:
    if inputs[0].is_symbolic:
        return None
    shape = node.integers(0, "shape")
    if np.prod(shape, dtype=object) > MOST or any(extent < 0 for extent in shape):
        return None
    value = node.attribute("value", Known(np.zeros(1, np.float32), "f32"))
    return Known(np.full(shape, value.array.reshape(-1)[0]), value.element)


@folds("Range")
def _range(node: Node, inputs: Sequence[Known]) -> np.ndarray | None:
    if any(each.is_symbolic for each in inputs) or is_float(inputs[0].element):
        return None
    start, stop, step = (each.array.reshape(-1)[0].item() for each in inputs)
    values = range(start, stop, step)
    return np.array(values, np.int64) if len(values) <= MOST else None


@folds("ReduceProd", "ReduceSum", "ReduceMax", "ReduceMin")
def _reduce(node: Node, inputs: Sequence[Known]) -> np.ndarray | None:
    if is_float(inputs[0].element) and not inputs[0].is_symbolic:
        return None
    axes = node.attribute("axes") if len(inputs) < 2 else node.integers(1, "axes")
    array = objects(inputs[0])
    if axes is None and node.flag("noop_with_empty_axes"):
        return None
    if (axes is not None and list(axes) not in ([0], [-1])) or array.ndim != 1 or not array.size:
        return None
    values = array.tolist()
    if node.op == "ReduceProd":
        result: Any = product([_expr(each) for each in values])
    else:
        name = {"ReduceSum": "Add", "ReduceMax": "Max", "ReduceMin": "Min"}[node.op]
        result = values[0]
        for each in values[1:]:
            result = _BINARY[name](result, each)
    box = np.empty((1,) if node.flag("keepdims", default=True) else (), object)
    box[...] = result
    return box


@folds("NonZero")
def _nonzero(node: Node, inputs: Sequence[Known]) -> Known | None:
    if inputs[0].is_symbolic or not inputs[0].array.ndim:
        return None
    return Known(np.array(np.nonzero(inputs[0].array), np.int64), "i64")
