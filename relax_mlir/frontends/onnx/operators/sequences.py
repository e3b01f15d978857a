"""Sequences and optionals, which are known during import; their tensors are not."""

import numpy as np

from relax_mlir.decompositions.emit import concat, emit, expand_dims
from relax_mlir.dialects import graph
from relax_mlir.errors import ModelError
from relax_mlir.symbolic import const

from ...known import Known, known
from ..node import Node
from ..registry import Value, operator
from .control_flow import check_body
from .manipulation import parts_of

MOST = 4096
"""Tensors that one node makes a sequence of."""


def _sequence(node: Node, index: int = 0) -> list[Value]:
    value = node.value(index)
    if not isinstance(value, list):
        raise ModelError(f"has no sequence as input {index}")
    return value


def _element(value: Value) -> Value:
    """A tensor, which is all that sequences are of: those of sequences could grow without end."""
    if value is None or isinstance(value, list):
        raise ModelError("makes a sequence of what is no tensor")
    return value


def _position(node: Node, index: int, count: int, most: int) -> int:
    if node.value(index) is None:
        return most
    position = int(node.constant(index, "a position"))
    if not -count <= position <= most:
        raise ModelError(f"has position {position} in a sequence of {count}")
    return position + count if position < 0 else position


@operator("SequenceEmpty")
def sequence_empty(node: Node) -> Value:
    """Nothing in it."""
    return []


@operator("SequenceConstruct")
def sequence_construct(node: Node) -> Value:
    """The inputs."""
    return [_element(each) for each in node.inputs]


@operator("SequenceInsert")
def sequence_insert(node: Node) -> Value:
    """With one more."""
    items = list(_sequence(node))
    items.insert(_position(node, 2, len(items), len(items)), _element(node.value(1)))
    return items


@operator("SequenceErase")
def sequence_erase(node: Node) -> Value:
    """With one less."""
    items = list(_sequence(node))
    del items[_position(node, 1, len(items), len(items) - 1)]
    return items


@operator("SequenceAt")
def sequence_at(node: Node) -> Value:
    """One of them."""
    items = _sequence(node)
    return items[_position(node, 1, len(items), len(items) - 1)]


@operator("SequenceLength")
def sequence_length(node: Node) -> Value:
    """How many there are."""
    return known(len(_sequence(node)))


@operator("ConcatFromSequence")
def concat_from_sequence(node: Node) -> Value:
    """All in a row, or stacked."""
    tensors, axis = [node.importer.tensor(each) for each in _sequence(node)], node.required("axis")
    if not tensors:
        raise ModelError("has an empty sequence")
    rank = len(graph.TensorType.of(tensors[0]).dims or ())
    if node.flag("new_axis"):
        axis = axis + rank + 1 if axis < 0 else axis
        tensors = [expand_dims(each, [axis]) for each in tensors]
    else:
        axis = axis + rank if axis < 0 else axis
    return concat(tensors, axis)


@operator("SplitToSequence")
def split_to_sequence(node: Node) -> Value:
    """Parts along an axis, of a size or of sizes; single slices without them."""
    axis = node.axis(0)
    extent = node.dims(0)[axis]
    keep = node.flag("keepdims", default=True) or node.value(1) is not None
    if node.value(1) is not None and node.rank(1) == 1:
        sizes = node.exprs(1, "sizes")
    else:
        size = 1 if node.value(1) is None else int(node.constant(1, "a size"))
        if extent.value is None or size < 1:
            raise ModelError(f"makes as many parts as dim {extent} says, which is not supported")
        whole, rest = divmod(extent.value, size)
        if whole > MOST:
            raise ModelError(f"makes {whole} parts, of which {MOST} are supported")
        sizes = [const(size)] * whole + ([const(rest)] if rest else [])
    parts = parts_of(node, sizes, axis)
    return parts if keep else [emit(graph.SqueezeOp, part, axes=[axis]) for part in parts]


@operator("Optional")
def optional(node: Node) -> Value:
    """The input, or nothing."""
    return node.value(0)


@operator("OptionalHasElement")
def optional_has_element(node: Node) -> Value:
    """Whether there is something."""
    return Known(np.array(node.value(0) is not None), "i1")


@operator("OptionalGetElement")
def optional_get_element(node: Node) -> Value:
    """What there is."""
    if node.value(0) is None:
        raise ModelError("takes an element of nothing")
    return node.value(0)


@operator("SequenceMap")
def sequence_map(node: Node) -> tuple[Value, ...]:
    """A graph for each element."""
    body, count = node.required("body"), len(_sequence(node))
    check_body(body, len(node.inputs), 1)
    results: list[list[Value]] = [[] for _ in body.output]
    for i in range(count):
        scope = node.scope.inner()
        values = [each[i] if isinstance(each, list) else each for each in node.inputs]
        scope.values.update(zip([each.name for each in body.input], values))
        for result, value in zip(results, scope.run(body), strict=True):
            result.append(_element(value))
    return tuple(results)
