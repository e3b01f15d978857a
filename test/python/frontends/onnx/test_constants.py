"""Constants of models, compiled, and what is computed of them during import."""

import numpy as np
import onnx
import pytest
from onnx_nodes import INT64, model, node

import relax_mlir
from relax_mlir.frontends.onnx import from_onnx

KINDS = ("u1", "u2", "u4", "u8", "i1", "i8", "f2", "f8", "?")


@pytest.mark.parametrize("count", [0, 1, 3, 17])
def test_constants_of_all_types(count):
    values = {f"c_{k}": np.arange(250, 250 + count).astype(np.int64).astype(k) for k in KINDS}
    nodes = [node("Concat", f"{name} {name}", f"y{name}", axis=0) for name in values]
    outputs = [f"y{name}" for name in values]
    main = relax_mlir.compile(from_onnx(model(nodes, {}, outputs, values)), opt_level=0)["main"]
    for got, wanted in zip(main(), values.values(), strict=True):
        np.testing.assert_array_equal(got, np.concatenate([wanted, wanted]), strict=True)


LEAST = np.iinfo(np.int64).min
FOLDED = [
    ("Div", (np.array([LEAST]), np.array([-1])), [LEAST]),
    ("Neg", (np.array([LEAST, 3]),), [LEAST, -3]),
    ("Abs", (np.array([-(2**31)], np.int32),), [-(2**31)]),
    ("LessOrEqual", (np.array([np.nan, 1, 1]), np.array([1, np.nan, 1])), [False, False, True]),
    ("GreaterOrEqual", (np.array([np.nan, 1, 2]), np.array([1, np.nan, 1])), [False, False, True]),
    ("Sqrt", (np.array(9.0, np.float32),), 3),
    ("NonZero", (np.array(3.0, np.float32),), [[0]]),
]


@pytest.mark.parametrize(("op", "constants", "wanted"), FOLDED)
def test_nodes_of_constants(op, constants, wanted):
    names = {f"c{i}": value for i, value in enumerate(constants)}
    assert np.array_equal(_interpreted([node(op, " ".join(names), "y")], names), wanted)


@pytest.mark.parametrize("start", [-9, -6, -5, -1, 0, 3, 9])
@pytest.mark.parametrize("step", [1, 2, -1, -2])
def test_slices_of_constants_are_those_of_tensors(start, step):
    nodes = [node("Slice", "x s e a t", "y")]
    x = np.arange(5)
    constants = {"e": np.array([-9 if step < 0 else 9]), "a": np.array([0])}
    constants |= {"s": np.array([start]), "t": np.array([step])}
    own = x[max(start, -5) :: step]
    np.testing.assert_array_equal(_interpreted(nodes, {"x": x, **constants}), own)
    np.testing.assert_array_equal(_interpreted(nodes, constants, x=x), own)


def test_constants_of_small_floats_are_chosen():
    kind = onnx.TensorProto.BFLOAT16
    nodes = [node("Where", "c a b", "y"), node("Cast", "y", "z", to=1)]
    for name in "ab":
        nodes.insert(0, node("Cast", f"{name}32", name, to=kind))
    constants = {"a32": np.float32([1, 2]), "b32": np.float32([3, 4]), "c": np.array([True, False])}
    proto = model(nodes, {}, ["z"], constants)
    for name in "ab":  # as constants, not as what `Cast` computes
        cast = next(each for each in proto.graph.node if each.output[0] == name)
        proto.graph.node.remove(cast)
        made = onnx.helper.make_tensor(name, kind, [2], constants[f"{name}32"].tolist())
        proto.graph.initializer.append(made)
    np.testing.assert_array_equal(_run(proto), [1, 4])


@pytest.mark.parametrize("n", [3, 300])
def test_dims_as_elements_of_other_types(n):
    """A dim that wraps, one among fractions, one that is compared with a NaN."""
    nodes = [
        node("Shape", "x", "n"),
        *(node("Cast", "n", "u", to=2), node("Cast", "u", "wrapped", to=7)),
        *(node("Cast", "n", "f", to=1), node("Concat", "f half", "two", axis=0)),
        *(node("Floor", "two", "low"), node("Ceil", "two", "high")),
        node("Cast", "two", "cut", to=7),
        *(node("LessOrEqual", "f nan", "less"), node("Mul", "f nan", "product")),
    ]
    constants = {"half": np.float32([2.5]), "nan": np.float32([np.nan])}
    outputs = ["wrapped", "low", "high", "cut", "less", "product"]
    main = relax_mlir.interpret(from_onnx(model(nodes, {"x": ["n"]}, outputs, constants)).module)
    wanted = [[n % 256], [n, 2], [n, 3], [n, 2], [False], [np.nan]]
    for got, own in zip(main["main"](np.zeros(n, np.float32)), wanted, strict=True):
        np.testing.assert_array_equal(got, own)


def _interpreted(nodes, constants, **inputs):
    kinds = {name: INT64 for name in inputs}
    dims = {name: ["n"] for name in inputs}
    return _run(model(nodes, dims, ["y"], constants, kinds), *inputs.values())


def _run(proto, *values):
    imported = from_onnx(proto)
    return relax_mlir.interpret(imported.module)["main"](*values, *imported.parameters.values())
