"""Damaged models are imported or refused: nothing crashes, takes long, or takes much memory."""

import contextlib
import resource
import time

import numpy as np
import onnx
import pytest
from onnx_nodes import FLOAT, graph, model, node

from relax_mlir.errors import ModelError
from relax_mlir.frontends.onnx import from_onnx

SECONDS, GIBIBYTE = 10, 1 << 30
EXTREMES = (-(2**63), -(2**31), -3, -1, 0, 1, 2, 5, 65, 2**31, 2**40, 2**62, 2**63 - 1)


def whole():
    """A model of operators whose attributes and constants decide dims."""
    body = graph([node("Add", "s v", "t"), node("Mul", "t t", "r")],
                 {"s": (FLOAT, [4]), "v": (FLOAT, [4])}, ["t", "r"])  # fmt: skip
    branch = graph([node("Neg", "zero", "n")], {}, ["n"])
    nodes = [
        node("Conv", "x w", "a", pads=[1, 1, 1, 1]),
        node("Relu", "a", "b"),
        node("Reshape", "b s", "c"),
        node("Slice", "c lo hi", "d"),
        node("Softmax", "d", "e", axis=1),
        node("Expand", "zero s4", "f"),
        node("Scan", "zero f", "last all", body=body, num_scan_inputs=1),
        node("Range", "first end step", "g"),
        node("ConstantOfShape", "s4", "h"),
        node("Tile", "h s4", "i"),
        node("OneHot", "g depth values", "j", axis=-1),
        node("If", "c1", "k", then_branch=branch, else_branch=branch),
        node("Resize", "x - scales", "l", mode="linear", antialias=1),
        node("Pad", "h p", "m"),
        node("Split", "x", "o q u", axis=1, num_outputs=3),
        node("SplitToSequence", "w two", "parts", axis=0),
        node("SequenceLength", "parts", "aa"),
        node("HannWindow", "w_size", "bb"),
        node("STFT", "signal hop bb", "cc"),
        node("MelWeightMatrix", "mels w_size rate low high", "dd"),
        node("SpaceToDepth", "x", "ee", blocksize=2),
        node("GlobalLpPool", "x", "ff", p=2),
        node("LSTM", "sequence lw lr", "gg hh ii", hidden_size=2),
    ]
    constants = {
        "w": np.ones((2, 3, 3, 3), np.float32),
        "s": np.array([0, -1]),
        "lo": np.array([0, 1]),
        "hi": np.array([2**40, -1]),
        "s4": np.array([2, 4]),
        "zero": np.zeros(4, np.float32),
        "first": np.array(9),
        "end": np.array(1),
        "step": np.array(-2),
        "depth": np.array(3),
        "values": np.array([0, 1], np.float32),
        "scales": np.array([1, 1, 0.5, 0.25], np.float32),
        "p": np.array([0, 1, 2, 0]),
        "two": np.array(1),
        "w_size": np.array(8),
        "hop": np.array(4),
        "mels": np.array(5),
        "rate": np.array(8000),
        "low": np.array(0, np.float32),
        "high": np.array(4000, np.float32),
        "signal": np.ones((1, 20, 1), np.float32),
        "sequence": np.ones((3, 1, 2), np.float32),
        "lw": np.ones((1, 8, 2), np.float32),
        "lr": np.ones((1, 8, 2), np.float32),
    }
    inputs, outputs = (
        {"x": ["n", 3, "h", "w_"], "c1": []},
        ["e", "all", "i", "j", "k", "l", "m", "u", *(2 * each for each in "bcdefgi")],
    )
    return model(nodes, inputs, outputs, constants, {"c1": onnx.TensorProto.BOOL})


def bytes_of(proto, rng):
    """The message with some bytes replaced."""
    data = bytearray(proto.SerializeToString())
    for _ in range(rng.integers(1, 4)):
        data[rng.integers(len(data))] = rng.integers(256)
    return bytes(data)


def changed(proto, rng):
    """A well-formed message, some of whose parts are exchanged, left out or extreme."""
    made = onnx.ModelProto.FromString(proto.SerializeToString())
    for _ in range(rng.integers(1, 3)):
        rng.choice([_operands, _order, _attribute, _constant, _dims, _operator, _version])(
            made, rng
        )
    return made


def _any(values, rng):
    return values[int(rng.integers(len(values)))]


def _operands(made, rng):
    one, other = _any(made.graph.node, rng), _any(made.graph.node, rng)
    names = [*other.output, *(each.name for each in made.graph.initializer), "", "nowhere"]
    if one.input:
        one.input[int(rng.integers(len(one.input)))] = _any(names, rng)


def _order(made, rng):
    nodes = list(made.graph.node)
    rng.shuffle(nodes)
    del made.graph.node[:]
    made.graph.node.extend(nodes)


def _attribute(made, rng):
    attributes = [each for one in made.graph.node for each in one.attribute]
    one = _any(attributes, rng)
    if one.ints:
        one.ints[int(rng.integers(len(one.ints)))] = _any(EXTREMES, rng)
    else:
        one.i = _any(EXTREMES, rng)
    if rng.random() < 0.1:
        one.type = int(rng.integers(15))


def _constant(made, rng):
    one = _any(made.graph.initializer, rng)
    data = onnx.numpy_helper.to_array(one).copy()
    if rng.random() < 0.3:
        one.dims[:] = [_any(EXTREMES, rng) for _ in one.dims]
    elif data.size:
        extreme = _any(EXTREMES, rng)
        data.flat[int(rng.integers(data.size))] = extreme
        one.raw_data = data.tobytes()


def _dims(made, rng):
    dims = _any(made.graph.input, rng).type.tensor_type
    if dims.shape.dim:
        _any(dims.shape.dim, rng).dim_value = _any(EXTREMES, rng)
    if rng.random() < 0.2:
        dims.elem_type = int(rng.integers(30))


def _operator(made, rng):
    one, other = _any(made.graph.node, rng), _any(made.graph.node, rng)
    one.op_type = other.op_type


def _version(made, rng):
    made.opset_import[0].version = int(rng.integers(1, 40))


@contextlib.contextmanager
def limited(size):
    """Memory beyond `size` more than there is now raises MemoryError."""
    pages = int(open("/proc/self/statm").read().split()[0])
    old = resource.getrlimit(resource.RLIMIT_AS)
    limit = pages * resource.getpagesize() + size
    resource.setrlimit(resource.RLIMIT_AS, (limit, old[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, old)


def outcomes(damage, count):
    """Whether damaged models are imported or refused, which is all that they may be."""
    proto, rng, seen = whole(), np.random.default_rng(), set()
    from_onnx(proto)
    with limited(GIBIBYTE):
        for _ in range(count):
            damaged, start = damage(proto, rng), time.process_time()
            try:
                from_onnx(damaged)
                seen.add("imported")
            except ModelError:
                seen.add("refused")
            assert time.process_time() - start < SECONDS, damaged
    return seen


@pytest.mark.parametrize("damage", [bytes_of, changed])
def test_damaged_models(damage):
    assert outcomes(damage, 150) == {"imported", "refused"}


@pytest.mark.sweep
@pytest.mark.parametrize("damage", [bytes_of, changed])
def test_many_damaged_models(damage):
    assert outcomes(damage, 10_000) == {"imported", "refused"}
