"""Recipes of floats of 8 bits: passed or rounded to, rearranged, and converted."""

from relax_mlir.bindings import ir
from relax_mlir.dialects import graph

from ..builder import FLOATS, Builder, Value
from .table import recipe

KINDS = ("f8E4M3FN", "f8E5M2", "f8E4M3FNUZ", "f8E5M2FNUZ")
_GREATEST = {"f8E4M3FN": 448.0, "f8E5M2": 57344.0, "f8E4M3FNUZ": 240.0, "f8E5M2FNUZ": 57344.0}


@recipe("quantised", "floats of 8 bits")
def small_floats(b: Builder, op: object) -> None:
    """Some that are passed or rounded to, rearranged, and converted or returned."""
    kind = b.few("small floats", KINDS, 2)
    b.used.append("floats of 8 bits")
    known = list(b.values)
    if b.chance(0.5):
        value = b.argument(b.pick_dims(b.random.choice([1, 2, 3])), kind)
    else:
        exact = b.exact(lambda v: v.is_float and v.rank > 0)
        value = b.emit(graph.AstypeOp, [exact], True, exact.bound, dtype=ir.Type.parse(kind))
    for _ in range(b.random.randint(0, 3)):
        value = b.random.choice(_MOVES)(b, value)
    made, b.values = b.values[len(known) :], known  # few operators take them
    b.values += [v for v in made if v.element not in KINDS]
    if b.chance(0.3) and b.depth == 0:
        b.more_results.append(value)
    bound = _GREATEST[kind]
    element = b.element if b.element in FLOATS else "f32"
    b.emit(graph.AstypeOp, [value], True, bound, dtype=ir.Type.parse(element))


def _permuted(b: Builder, value: Value) -> Value:
    axes = b.random.sample(range(value.rank), value.rank)
    return b.emit(graph.PermuteDimsOp, [value], axes=axes)


def _flipped(b: Builder, value: Value) -> Value:
    return b.emit(graph.FlipOp, [value], axes=[b.random.randrange(value.rank)])


def _joined(b: Builder, value: Value) -> Value:
    return b.emit(graph.ConcatOp, [value, value], axis=b.random.randrange(value.rank))


def _sliced(b: Builder, value: Value) -> Value:
    axis = b.random.randrange(value.rank)
    end = [value.dims[axis] // 2]
    return b.emit(graph.StridedSliceOp, [value], axes=[axis], begin=[0], end=end, strides=[1])


def _taken(b: Builder, value: Value) -> Value:
    axis, indices = b.random.randrange(value.rank), b.argument([b.pick_dim()], "i32")
    is_empty = value.dims[axis].value == 0
    return value if is_empty else b.emit(graph.TakeOp, [value, indices], axis=axis)


_MOVES = (_permuted, _flipped, _joined, _sliced, _taken)
