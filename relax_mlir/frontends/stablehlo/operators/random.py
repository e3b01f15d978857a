"""Random bits: ThreeFry, of a state that is a key and a counter."""

from relax_mlir.bindings import ir
from relax_mlir.decompositions.emit import (
    add,
    arange,
    astype,
    binary,
    concat,
    emit,
    reshape,
    scalar,
)
from relax_mlir.dialects import graph
from relax_mlir.errors import ModelError
from relax_mlir.symbolic import const

from ...elements import mlir_element
from ..node import Node
from ..registry import operator
from .elementwise import converted

_ROTATIONS = (13, 15, 26, 6), (17, 29, 16, 24)
_PARITY = 0x1BD11BDA


@operator("rng_bit_generator")
def rng_bit_generator(node: Node) -> tuple[ir.Value, ir.Value]:
    """The state after so many elements, and their bits; algorithms of 64 bits."""
    kind, algorithm = node.results[1], node.keyword("rng_algorithm")
    state = node.tensor(0)
    words = node.dims()[0].value
    if algorithm not in ("THREE_FRY", "DEFAULT") or node.element() != "ui64" or words != 2:
        raise ModelError(f"has algorithm {algorithm} with a state of {words} {node.element()}")
    if algorithm == "THREE_FRY" and kind.element not in ("ui64", "i64"):
        raise ModelError(f"yields {kind.element} by {algorithm}, where ui64 is supported")
    ui64, ui32 = mlir_element("ui64"), mlir_element("ui32")
    shape = [const(dim) for dim in kind.shape]
    total = 1
    for dim in kind.shape:
        total *= dim
    key, counter = (_element(state, i) for i in (0, 1))
    counters = add(astype(arange(0, total, 1, mlir_element("i64")), ui64), counter)
    low, high = _halves(counters, ui32)
    x, y = _three_fry(_halves(key, ui32), low, high)
    shifted = binary(graph.LeftShiftOp, astype(y, ui64), 32)
    bits = emit(graph.BitwiseOrOp, shifted, astype(x, ui64))
    after = add(counter, total)
    own = concat([reshape(each, [1]) for each in (key, after)], 0)
    return own, reshape(converted(bits, mlir_element(kind.element)), shape)


def _element(state: ir.Value, index: int) -> ir.Value:
    return emit(graph.TakeOp, state, scalar(index, mlir_element("i64")), axis=0)


def _halves(x: ir.Value, ui32: ir.Type) -> tuple[ir.Value, ir.Value]:
    """The low and the high bits."""
    low = binary(graph.BitwiseAndOp, x, 0xFFFFFFFF)
    return astype(low, ui32), astype(binary(graph.LogicalRightShiftOp, x, 32), ui32)


def _three_fry(
    key: tuple[ir.Value, ir.Value], x: ir.Value, y: ir.Value
) -> tuple[ir.Value, ir.Value]:
    """ThreeFry 2x32 of 20 rounds. Source: Salmon et al., SC 2011 (Random123)."""
    parity = binary(graph.BitwiseXorOp, emit(graph.BitwiseXorOp, *key), _PARITY)
    keys = [*key, parity]
    x, y = add(x, keys[0]), add(y, keys[1])
    for turn in range(5):
        for count in _ROTATIONS[turn % 2]:
            x = add(x, y)
            up = binary(graph.LeftShiftOp, y, count)
            down = binary(graph.LogicalRightShiftOp, y, 32 - count)
            y = emit(graph.BitwiseXorOp, emit(graph.BitwiseOrOp, up, down), x)
        x = add(x, keys[(turn + 1) % 3])
        y = add(add(y, keys[(turn + 2) % 3]), turn + 1)
    return x, y
