"""Models of many operators whose attributes and constants decide dims, to be damaged."""

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import onnx
from onnx import helper
from onnx_nodes import BOOL, FLOAT, INT64, graph, model, node


@cache
def samples() -> Sequence[Any]:
    """All of them."""
    return [movement(), layers(), signals(), regions(), sequences(), functions()]


def movement() -> Any:
    """Shapes, order and choice of elements."""
    nodes = [
        node("Reshape", "x s", "c"),
        node("Slice", "c lo hi", "d"),
        node("Expand", "zero s4", "f"),
        node("Range", "first end step", "g"),
        node("ConstantOfShape", "s4", "h"),
        node("Tile", "h s4", "i"),
        node("OneHot", "g depth values", "j", axis=-1),
        node("Pad", "h p", "m"),
        node("Split", "x", "o q u", axis=1, num_outputs=3),
        node("SpaceToDepth", "x", "ee", blocksize=2),
        node("Gather", "f g", "aa", axis=1),
        node("ScatterND", "f at row", "bb"),
        node("TopK", "x two", "cc dd", axis=-1),
        node("Transpose", "x", "ff", perm=[0, 2, 3, 1]),
        node("CumSum", "x axis", "gg"),
        node("Trilu", "f first", "hh"),
        node("Einsum", "f f", "ii", equation="ab,cb->ac"),
        node("ReduceSum", "x axes", "jj", keepdims=0),
        node("Unsqueeze", "f axes", "kk"),
        node("CenterCropPad", "f s4", "ll"),
    ]
    constants = {
        "s": np.array([0, -1]),
        "lo": np.array([0, 1]),
        "hi": np.array([2**40, -1]),
        "s4": np.array([2, 4]),
        "zero": np.zeros(4, np.float32),
        "first": np.array(3),
        "end": np.array(1),
        "step": np.array(-2),
        "depth": np.array(3),
        "values": np.array([0, 1], np.float32),
        "p": np.array([0, 1, 2, 0]),
        "two": np.array([2]),
        "at": np.array([[1]]),
        "row": np.ones((1, 4), np.float32),
        "axis": np.array(1),
        "axes": np.array([1, 2]),
    }
    names = ["d", "i", "j", "m", "u", *(2 * each for each in "abcdefghijkl")]
    return model(nodes, {"x": ["n", 3, "h", "w_"]}, names, constants)


def layers() -> Any:
    """Windows, recurrent layers, attention and normalization."""
    nodes = [
        node("Conv", "x w", "a", pads=[1, 1, 1, 1]),
        node("ConvTranspose", "a w", "b", strides=[2, 2]),
        node("Relu", "a", "c"),
        node("MaxPool", "c", "d e", kernel_shape=[2, 2], strides=[2, 2]),
        node("AveragePool", "c", "f", kernel_shape=[3, 3], auto_pad="SAME_UPPER"),
        node("Resize", "x - scales", "g", mode="linear", antialias=1),
        node("GlobalLpPool", "x", "h", p=2),
        node("LSTM", "sequence lw lr", "i j k", hidden_size=2),
        node("Attention", "sequence sequence sequence", "l", q_num_heads=1, kv_num_heads=1),
        node("LayerNormalization", "x scale", "m", axis=-3),
        node("GroupNormalization", "x ones ones", "o", num_groups=3),
        node("QuantizeLinear", "x step zero", "p"),
        node("DequantizeLinear", "p step zero", "q"),
        node("GridSample", "x grid", "r", mode="linear", padding_mode="border"),
    ]
    constants = {
        "w": np.ones((2, 3, 3, 3), np.float32),
        "scales": np.array([1, 1, 0.5, 0.25], np.float32),
        "sequence": np.ones((3, 1, 2), np.float32),
        "lw": np.ones((1, 8, 2), np.float32),
        "lr": np.ones((1, 8, 2), np.float32),
        "scale": np.ones((3, 6, 5), np.float32),
        "ones": np.ones(3, np.float32),
        "step": np.array(0.5, np.float32),
        "zero": np.array(3, np.uint8),
        "grid": np.zeros((2, 3, 3, 2), np.float32),
    }
    return model(nodes, {"x": [2, 3, 6, 5]}, list("bdefghijklmqr"), constants)


def signals() -> Any:
    """Windows, transforms and filters of signals; random elements."""
    nodes = [
        node("HannWindow", "size", "a"),
        node("STFT", "signal hop a", "b"),
        node("MelWeightMatrix", "mels size rate low high", "c"),
        node("DFT", "signal", "d", axis=1),
        node("RandomNormal", "", "e", shape=[2, 3]),
        node("RandomUniformLike", "signal", "f", low=-1.0),
        node("EyeLike", "low2", "g", k=1),
        node("BlackmanWindow", "size", "h", periodic=0),
        node("Multinomial", "low2", "i", sample_size=3),
    ]
    constants = {
        "size": np.array(8),
        "hop": np.array(4),
        "mels": np.array(5),
        "rate": np.array(8000),
        "low": np.array(0, np.float32),
        "high": np.array(4000, np.float32),
        "low2": np.zeros((2, 3), np.float32),
    }
    return model(nodes, {"signal": ["n", 20, 1]}, list("bcdefghi"), constants, opset=19)


def regions() -> Any:
    """Branches and loops."""
    sums = graph([node("Add", "s v", "t"), node("Mul", "t t", "r")],
                 {"s": (FLOAT, [4]), "v": (FLOAT, [4])}, ["t", "r"])  # fmt: skip
    branch = graph([node("Neg", "zero", "n")], {}, ["n"])
    inner = graph([node("If", "c1", "m", then_branch=branch, else_branch=branch)], {}, ["m"])
    rounds = graph(
        [node("Add", "carried y", "next"), node("Identity", "go", "goes")],
        {"round": (INT64, []), "go": (BOOL, []), "carried": (FLOAT, [4])},
        ["goes", "next", "carried"],
    )
    nodes = [
        node("If", "c1", "y", then_branch=branch, else_branch=inner),
        node("Scan", "zero x", "last all", body=sums, num_scan_inputs=1),
        node("Loop", "count c1 y", "a b", body=rounds),
    ]
    constants = {"zero": np.zeros(4, np.float32), "count": np.array(3)}
    inputs = {"c1": [], "x": ["n", 4]}
    return model(nodes, inputs, ["all", "a", "b"], constants, {"c1": BOOL})


def sequences() -> Any:
    """Sequences and optionals."""
    double = graph([node("Add", "one one", "two")], {"one": (FLOAT, ["k"])}, ["two"])
    more = graph(
        [node("SequenceInsert", "all x", "next"), node("Identity", "go", "goes")],
        {"round": (INT64, []), "go": (BOOL, []), "all": (FLOAT, [])},
        ["goes", "next"],
    )
    nodes = [
        node("SplitToSequence", "w two", "parts", axis=0),
        node("SequenceLength", "parts", "a"),
        node("SequenceMap", "parts", "doubled", body=double),
        node("SequenceConstruct", "x x", "pair"),
        node("Loop", "count - pair", "longer", body=more),
        node("SequenceAt", "longer a", "b"),
        node("ConcatFromSequence", "longer", "c", axis=0),
        node("SequenceErase", "doubled zero", "d"),
        node("Optional", "x", "e"),
        node("OptionalGetElement", "e", "f"),
    ]
    constants = {"w": np.ones((3, 4), np.float32), "two": np.array(2), "count": np.array(3)}
    constants["zero"] = np.array(0)
    return model(nodes, {"x": ["n", 4]}, ["b", "c", "f", "doubled"], constants)


def functions() -> Any:
    """Functions of the model that call one another, and operators of ONNX Runtime."""
    nodes = [
        helper.make_node("Outer", ["x"], ["y"], domain="local", axis=1),
        helper.make_node("MatMulNBits", ["y", "b", "scales"], ["z"], domain="com.microsoft",
                         K=4, N=2, bits=4, block_size=16),
        helper.make_node("QuickGelu", ["z"], ["g"], domain="com.microsoft", alpha=1.5),
    ]  # fmt: skip
    constants = {"b": np.ones((2, 1, 8), np.uint8), "scales": np.ones((2, 1), np.float32)}
    made = model(nodes, {"x": ["n", 4]}, ["g"], constants)
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("local", 1)]
    inner = [node("Softmax", "a", "s"), node("Mul", "s a", "b")]
    inner[0].attribute.add(name="axis", ref_attr_name="axis", type=onnx.AttributeProto.INT)
    outer = [helper.make_node("Inner", ["a"], ["b"], domain="local")]
    outer[0].attribute.add(name="axis", ref_attr_name="axis", type=onnx.AttributeProto.INT)
    for name, own in (("Inner", inner), ("Outer", outer)):
        made.functions.append(
            helper.make_function("local", name, ["a"], ["b"], own, opsets, attributes=["axis"])
        )
    made.opset_import.extend([opsets[1], helper.make_opsetid("com.microsoft", 1)])
    return made
