"""Random elements: by Philox, from the seed of the node."""

import struct

from relax_mlir import decompositions as d
from relax_mlir.bindings import ir
from relax_mlir.decompositions.emit import broadcast_to, emit, scalar, vector
from relax_mlir.dialects import graph
from relax_mlir.symbolic import const

from ...elements import mlir_element
from ..node import Node
from ..registry import Value, operator
from ..types import element_name


def state_of(node: Node) -> ir.Value:
    """A state of the generator, by the seed of a node, or by its name."""
    seed = node.attribute("seed")
    if seed is None:
        bits = hash_of("/".join([node.proto.name, *node.proto.output]))
    else:
        (bits,) = struct.unpack("<I", struct.pack("<f", float(seed)))
    return vector([bits, 0], ir.IntegerType.get_signless(64))


def hash_of(text: str) -> int:
    """A value of 32 bits for a text: FNV-1a."""
    result = 2166136261
    for byte in text.encode():
        result = (result ^ byte) * 16777619 % (1 << 32)
    return result


def _element(node: Node, default: str) -> ir.Type:
    return mlir_element(element_name(node.attribute("dtype")) if node.has("dtype") else default)


@operator("RandomUniform", "RandomNormal")
def random(node: Node) -> ir.Value:
    """Elements of a distribution."""
    return _drawn(node, [const(each) for each in node.required("shape")], _element(node, "f32"))


@operator("RandomUniformLike", "RandomNormalLike")
def random_like(node: Node) -> ir.Value:
    """As many as another tensor has."""
    return _drawn(node, node.dims(0), _element(node, node.element(0)))


def _drawn(node: Node, dims: list, element: ir.Type) -> ir.Value:
    if "Uniform" in node.op:
        low, high = node.attribute("low", 0.0), node.attribute("high", 1.0)
        return d.random_uniform(state_of(node), dims, element, low=low, high=high)[0]
    mean, scale = node.attribute("mean", 0.0), node.attribute("scale", 1.0)
    return d.random_normal(state_of(node), dims, element, mean=mean, scale=scale)[0]


@operator("Bernoulli")
def bernoulli(node: Node) -> ir.Value:
    """1 with a probability."""
    element = _element(node, node.element(0))
    return d.bernoulli(state_of(node), node.tensor(0), element)[0]


@operator("Multinomial")
def multinomial(node: Node) -> ir.Value:
    """Classes by the logarithms of probabilities."""
    samples = node.attribute("sample_size", 1)
    return d.multinomial(state_of(node), node.tensor(0), samples, _element(node, "i32"))[0]


@operator("Dropout", since=7)
def dropout(node: Node) -> Value | tuple[Value, ...]:
    """The operand; in training a part of it."""
    x = node.tensor(0)
    if node.version >= 12 and node.value(2) is not None:
        training = bool(node.constant(2, "a mode"))
        ratio = node.constant(1, "a ratio", 0.5)
        if training and ratio:
            return d.dropout(state_of(node), x, ratio)[:2]
    if not node.wants(1):
        return x
    true = emit(graph.EqualOp, scalar(0, ir.F32Type.get()), scalar(0, ir.F32Type.get()))
    return x, broadcast_to(true, node.dims(0))
