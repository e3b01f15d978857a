"""Ways to damage a model: each changes a message of ONNX at random, and leaves it a message."""

import string
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import onnx

EXTREMES = (-(2**63), -(2**31), -3, -1, 0, 1, 2, 5, 65, 2**31, 2**40, 2**62, 2**63 - 1)
FLOATS = (-1e38, -2.5, -1.0, -0.0, 1e-45, 0.3, 1.0, 7.0, 3e38, np.inf, -np.inf, np.nan)
TEXTS = ("", "a", "linear", "NOTSET", "SAME_UPPER", "VALID", "é", "n + 1", "1 << 99", "a" * 300)
PLACES = ("", ".", "..", "/etc/passwd", "../x", "a\0b", "no such file", "model.onnx", "/dev/zero")

KINDS: list[Callable[[Any, np.random.Generator], None]] = []
"""All ways; each takes a model, which it changes, and a generator."""


def kind(function: Callable[[Any, np.random.Generator], None]) -> Callable:
    """Registers a way."""
    KINDS.append(function)
    return function


def bytes_of(proto: Any, rng: np.random.Generator) -> bytes:
    """The message with some bytes replaced, left out or doubled."""
    data = bytearray(proto.SerializeToString())
    for _ in range(rng.integers(1, 4)):
        at, way = int(rng.integers(len(data))), rng.random()
        if way < 0.8:
            data[at] = rng.integers(256)
        elif way < 0.9:
            del data[at]
        else:
            data[at:at] = data[at : at + 5]
    return bytes(data)


def changed(proto: Any, rng: np.random.Generator) -> Any:
    """A well-formed message, some of whose parts are exchanged, left out or extreme."""
    made = onnx.ModelProto.FromString(proto.SerializeToString())
    for _ in range(rng.integers(1, 4)):
        KINDS[int(rng.integers(len(KINDS)))](made, rng)
    return made


def any_of(values: Sequence[Any], rng: np.random.Generator) -> Any:
    """One of several; None of nothing."""
    return values[int(rng.integers(len(values)))] if len(values) else None


def graphs(made: Any) -> list[Any]:
    """The graph of a model, and those of its nodes."""
    return [made.graph, *(g for one in nodes(made) for a in one.attribute for g in _inner(a))]


def nodes(made: Any) -> list[Any]:
    """All nodes of a model, also those of graphs of nodes and of functions."""
    lists = [made.graph.node, *(each.node for each in made.functions)]
    return [each for one in lists for each in _below(one)]


def _below(some: Any) -> Iterator[Any]:
    for one in some:
        yield one
        for attribute in one.attribute:
            for graph in _inner(attribute):
                yield from _below(graph.node)


def _inner(attribute: Any) -> list[Any]:
    return [*([attribute.g] if attribute.HasField("g") else []), *attribute.graphs]


def _attributes(made: Any) -> list[Any]:
    return [each for one in nodes(made) for each in one.attribute]


def _tensors(made: Any) -> list[Any]:
    of_nodes = [a.t for a in _attributes(made) if a.HasField("t")]
    return [*(t for graph in graphs(made) for t in graph.initializer), *of_nodes]


def _names(made: Any) -> list[str]:
    values = [*made.graph.input, *made.graph.initializer]
    results = [name for one in nodes(made) for name in one.output]
    return [*results, *(each.name for each in values), "", "nowhere"]


@kind
def _operands(made: Any, rng: np.random.Generator) -> None:
    one = any_of(nodes(made), rng)
    if one is None:
        return
    if one.input and rng.random() < 0.7:
        one.input[int(rng.integers(len(one.input)))] = any_of(_names(made), rng)
    elif one.input and rng.random() < 0.5:
        del one.input[int(rng.integers(len(one.input)))]
    else:
        one.input.append(any_of(_names(made), rng))


@kind
def _results(made: Any, rng: np.random.Generator) -> None:
    one = any_of(nodes(made), rng)
    if one is None:
        return
    if one.output and rng.random() < 0.5:
        del one.output[int(rng.integers(len(one.output)))]
    else:
        one.output.append(any_of([*_names(made), "new"], rng))


@kind
def _order(made: Any, rng: np.random.Generator) -> None:
    graph = any_of(graphs(made), rng)
    own = list(graph.node)
    rng.shuffle(own)
    del graph.node[:]
    graph.node.extend(own)


@kind
def _fewer_or_more(made: Any, rng: np.random.Generator) -> None:
    graph = any_of(graphs(made), rng)
    part = any_of([graph.node, graph.input, graph.output, graph.initializer], rng)
    if not part:
        return
    if rng.random() < 0.5:
        del part[int(rng.integers(len(part)))]
    else:
        part.add().CopyFrom(any_of(part, rng))


@kind
def _names_of_values(made: Any, rng: np.random.Generator) -> None:
    graph = any_of(graphs(made), rng)
    one = any_of([*graph.input, *graph.output, *graph.initializer], rng)
    if one is not None:
        one.name = any_of([*_names(made), *TEXTS], rng)


@kind
def _attribute(made: Any, rng: np.random.Generator) -> None:
    one = any_of(_attributes(made), rng)
    if one is None:
        return
    if one.ints:
        one.ints[int(rng.integers(len(one.ints)))] = any_of(EXTREMES, rng)
    elif one.floats:
        one.floats[int(rng.integers(len(one.floats)))] = any_of(FLOATS, rng)
    elif one.type == onnx.AttributeProto.FLOAT:
        one.f = any_of(FLOATS, rng)
    elif one.type == onnx.AttributeProto.STRING:
        one.s = any_of(TEXTS, rng).encode()
    else:
        one.i = any_of(EXTREMES, rng)
    if rng.random() < 0.1:
        one.type = int(rng.integers(15))


@kind
def _attribute_of_another(made: Any, rng: np.random.Generator) -> None:
    one, other = any_of(nodes(made), rng), any_of(_attributes(made), rng)
    if one is None or other is None:
        return
    copy = onnx.AttributeProto.FromString(other.SerializeToString())  # `one` may be below it
    if one.attribute and rng.random() < 0.4:
        del one.attribute[int(rng.integers(len(one.attribute)))]
    elif one.attribute and rng.random() < 0.3:
        part = any_of(one.attribute, rng)
        count = len(part.ints) or len(part.floats)
        for values in (part.ints, part.floats):
            if values:
                values[:] = [*values, *values][: int(rng.integers(2 * count + 1))]
    else:
        own = one.attribute.add()
        own.CopyFrom(copy)
        if rng.random() < 0.3:
            own.ref_attr_name = any_of(["axis", "body", *string.ascii_letters[:3]], rng)


@kind
def _standard_attribute(made: Any, rng: np.random.Generator) -> None:
    one = any_of(nodes(made), rng)
    version = made.opset_import[0].version if made.opset_import else 1
    if one is None or not onnx.defs.has(one.op_type, one.domain):
        return
    try:
        schema = onnx.defs.get_schema(one.op_type, version, one.domain)
    except onnx.defs.SchemaError:
        return
    wanted = any_of(list(schema.attributes.values()), rng)
    if wanted is None or wanted.name in {each.name for each in one.attribute}:
        return
    own = one.attribute.add(name=wanted.name, type=wanted.type.value)
    small = int(rng.integers(-2, 4))
    own.i, own.f = small, float(any_of(FLOATS, rng))
    own.s = any_of(TEXTS, rng).encode()
    own.ints.extend([small] * int(rng.integers(4)))
    own.floats.extend([own.f] * int(rng.integers(4)))


@kind
def _constant(made: Any, rng: np.random.Generator) -> None:
    one, way = any_of(_tensors(made), rng), rng.random()
    if one is None:
        return
    if way < 0.25:
        one.dims[:] = [any_of(EXTREMES, rng) for _ in one.dims]
    elif way < 0.35:
        one.data_type = int(rng.integers(30))
    elif way < 0.45:
        one.dims.append(any_of(EXTREMES, rng))
    elif way < 0.55:
        one.raw_data = rng.bytes(int(rng.integers(40)))
    else:
        _element(one, rng)


def _element(one: Any, rng: np.random.Generator) -> None:
    if one.data_location == onnx.TensorProto.EXTERNAL:
        return
    try:
        data = onnx.numpy_helper.to_array(one).copy()
    except (TypeError, ValueError):
        return
    if not data.size or data.dtype.kind not in "iufb":
        return
    value = any_of(FLOATS if data.dtype.kind == "f" else EXTREMES, rng)
    with np.errstate(all="ignore"):
        data.flat[int(rng.integers(data.size))] = np.array(value).astype(data.dtype)
    one.CopyFrom(onnx.numpy_helper.from_array(data, one.name))


@kind
def _in_file(made: Any, rng: np.random.Generator) -> None:
    one = any_of(_tensors(made), rng)
    if one is None:
        return
    one.data_location = onnx.TensorProto.EXTERNAL
    texts = [*map(str, EXTREMES), *TEXTS]
    for key, values in (("location", PLACES), ("offset", texts), ("length", texts)):
        if rng.random() < 0.8:
            one.external_data.add(key=key, value=str(any_of(values, rng)))


@kind
def _sparse(made: Any, rng: np.random.Generator) -> None:
    one = any_of(made.graph.initializer, rng)
    if one is not None:
        sparse = made.graph.sparse_initializer.add(dims=[any_of(EXTREMES, rng)])
        sparse.values.CopyFrom(one)
        sparse.indices.CopyFrom(any_of(made.graph.initializer, rng))


@kind
def _types(made: Any, rng: np.random.Generator) -> None:
    graph = any_of(graphs(made), rng)
    one, way = any_of([*graph.input, *graph.output], rng), rng.random()
    if one is None:
        return
    tensor = one.type.tensor_type
    if way < 0.3 and tensor.shape.dim:
        any_of(tensor.shape.dim, rng).dim_value = any_of(EXTREMES, rng)
    elif way < 0.4 and tensor.shape.dim:
        any_of(tensor.shape.dim, rng).dim_param = any_of(TEXTS, rng)
    elif way < 0.6:
        tensor.elem_type = int(rng.integers(30))
    elif way < 0.7:
        tensor.shape.dim.add(dim_value=any_of(EXTREMES, rng))
    elif way < 0.8:
        one.type.Clear()
    else:
        inner = onnx.TypeProto.FromString(one.type.SerializeToString())
        outer = any_of([one.type.sequence_type, one.type.optional_type], rng)
        outer.elem_type.CopyFrom(inner)


@kind
def _operator(made: Any, rng: np.random.Generator) -> None:
    one, other = any_of(nodes(made), rng), any_of(nodes(made), rng)
    if one is not None:
        names = [other.op_type, *(each.name for each in made.functions), "Scan", "If", "Loop"]
        one.op_type = any_of(names, rng)


@kind
def _domain(made: Any, rng: np.random.Generator) -> None:
    one = any_of([*nodes(made), *made.opset_import], rng)
    if one is not None:
        one.domain = any_of(["", "ai.onnx", "ai.onnx.ml", "com.microsoft", "local"], rng)


@kind
def _version(made: Any, rng: np.random.Generator) -> None:
    if made.opset_import:
        any_of(made.opset_import, rng).version = int(rng.integers(1, 31))


@kind
def _body(made: Any, rng: np.random.Generator) -> None:
    one, other = any_of(graphs(made)[1:], rng), any_of(graphs(made), rng)
    if one is not None:
        inner = onnx.GraphProto.FromString(other.SerializeToString())
        one.CopyFrom(inner)


@kind
def _function(made: Any, rng: np.random.Generator) -> None:
    """A node is computed by a function of its own, which may call itself."""
    one = any_of(nodes(made), rng)
    if one is None:
        return
    own = made.functions.add(name=one.op_type, domain=one.domain)
    own.input.extend(f"in{i}" for i in range(len(one.input) - int(rng.random() < 0.2)))
    own.output.extend(f"out{i}" for i in range(len(one.output) + int(rng.random() < 0.2)))
    own.opset_import.add(domain="", version=any_of([21, 21, 21, 1, 40], rng))
    calls = own.node.add()
    calls.CopyFrom(one)
    calls.input[:] = [f"in{i}" for i in range(len(one.input))]
    calls.output[:] = [f"out{i}" for i in range(len(one.output))]
    if rng.random() < 0.6:  # without which it calls itself
        one.domain, own.domain = "local", "local"
    for attribute in calls.attribute:
        if rng.random() < 0.5:
            name = attribute.name
            attribute.Clear()
            attribute.name, attribute.ref_attr_name = name, name
