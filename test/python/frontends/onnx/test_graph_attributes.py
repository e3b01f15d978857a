"""Branches and loops of models become regions, of values, shapes and sequences."""

import numpy as np
import pytest
from onnx_nodes import BOOL, FLOAT, INT64, graph, model, node

import relax_mlir
from relax_mlir.errors import ExecutionError, ModelError
from relax_mlir.frontends.onnx import from_onnx

LEVELS = (0, 2)


def run(proto, *values):
    """The outputs at each level, which are equal."""
    results = [relax_mlir.compile(from_onnx(proto), opt_level=o)["main"](*values) for o in LEVELS]
    first, *rest = [each if isinstance(each, tuple) else (each,) for each in results]
    for other in rest:
        for a, b in zip(first, other, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-6)
    return first


def test_branches_of_other_dims():
    yes = graph([node("Concat", "x x", "y", axis=0)], {}, ["y"])
    no = graph([node("Neg", "x", "y")], {}, ["y"])
    nodes = [node("If", "c", "z", then_branch=yes, else_branch=no), node("Exp", "z", "r")]
    proto = model(nodes, {"c": [], "x": ["n"]}, ["r"], kinds={"c": BOOL})
    x = np.arange(3, dtype=np.float32)
    np.testing.assert_allclose(run(proto, np.array(True), x)[0], np.exp([*x, *x]), rtol=1e-6)
    np.testing.assert_allclose(run(proto, np.array(False), x)[0], np.exp(-x), rtol=1e-6)


def test_branches_of_other_ranks():
    """The branch of lower rank is compiled; that its condition decides so is checked."""
    nodes = [
        node("Shape", "x", "n", start=1, end=2),
        node("Equal", "n one", "c"),
        node("If", "c", "y", then_branch=graph([node("Squeeze", "x axes", "a")], {}, ["a"]),
             else_branch=graph([node("Identity", "x", "b")], {}, ["b"])),
        node("MatMul", "y w", "z"),
    ]  # fmt: skip
    constants = {"one": np.array([1]), "axes": np.array([1]), "w": np.ones((2, 2), np.float32)}
    proto = model(nodes, {"x": ["n", "m", 2]}, ["z"], constants)
    main = relax_mlir.compile(from_onnx(proto))["main"]
    np.testing.assert_array_equal(main(np.ones((3, 1, 2), np.float32)), np.full((3, 2), 2))
    with pytest.raises(ExecutionError, match="requires m == 1, but m = 2"):
        main(np.ones((3, 2, 2), np.float32))


@pytest.mark.parametrize("trips", [0, 1, 5])
def test_loop_of_a_count(trips):
    body = graph(
        [node("Add", "a x", "b"), node("Cast", "i", "f", to=FLOAT), node("Mul", "b f", "row"),
         node("Identity", "c", "d")],
        {"i": (INT64, []), "c": (BOOL, []), "a": (FLOAT, ["n"])},
        ["d", "b", "row"],
    )  # fmt: skip
    nodes = [node("Loop", "m - x", "last rows", body=body)]
    proto = model(nodes, {"m": [], "x": ["n"]}, ["last", "rows"], kinds={"m": INT64})
    x = np.arange(1, 4, dtype=np.float32)
    last, rows = run(proto, np.array(trips), x)
    np.testing.assert_array_equal(last, x * (trips + 1))
    np.testing.assert_array_equal(
        rows, np.array([x * (i + 2) * i for i in range(trips)]).reshape(-1, 3)
    )


def test_loop_of_a_condition():
    body = graph(
        [node("Add", "a a", "b"), node("ReduceSum", "b", "s", keepdims=0),
         node("Less", "s limit", "d"), node("Concat", "g first", "h", axis=0)],
        {"i": (INT64, []), "c": (BOOL, []), "a": (FLOAT, ["n"]), "g": (FLOAT, ["k"])},
        ["d", "b", "h", "s"],
    )  # fmt: skip
    nodes = [node("Loop", "- c x first", "last grown sums", body=body)]
    constants = {"first": np.zeros(1, np.float32), "limit": np.array(100, np.float32)}
    proto = model(nodes, {"x": ["n"], "c": []}, ["last", "grown", "sums"], constants, {"c": BOOL})
    x = np.ones(3, np.float32)
    last, grown, sums = run(proto, x, np.array(True))
    np.testing.assert_array_equal(last, x * 64)
    np.testing.assert_array_equal(sums, [6, 12, 24, 48, 96, 192])
    assert grown.shape == (7,)
    last, grown, sums = run(proto, x, np.array(False))
    np.testing.assert_array_equal(last, x)
    assert (grown.shape, sums.shape) == ((1,), (0,))


def test_scan():
    body = graph(
        [node("Add", "s x", "t"), node("Mul", "t t", "y")],
        {"s": (FLOAT, ["b"]), "x": (FLOAT, ["b"])},
        ["t", "y"],
    )
    settings = {"num_scan_inputs": 1, "scan_input_axes": [1], "scan_output_axes": [-1]}
    backwards = {"scan_input_directions": [1], "scan_output_directions": [1]}
    nodes = [node("Scan", "s x", "last all", body=body, **settings, **backwards)]
    proto = model(nodes, {"s": ["b"], "x": ["b", "n"]}, ["last", "all"])
    x = np.random.default_rng(0).normal(size=(2, 5)).astype(np.float32)
    last, every = run(proto, np.zeros(2, np.float32), x)
    sums = np.cumsum(x[:, ::-1], 1)
    np.testing.assert_allclose(last, sums[:, -1], rtol=1e-5)
    np.testing.assert_allclose(every, (sums**2)[:, ::-1], rtol=1e-5)


def test_scans_of_tensors_of_other_lengths():
    """That there are as many slices of each is checked."""
    body = graph(
        [node("Add", "u v", "t"), node("Add", "s t", "y"), node("Identity", "y", "z")],
        {"s": (FLOAT, []), "u": (FLOAT, []), "v": (FLOAT, [])},
        ["y", "z"],
    )
    nodes = [node("Scan", "s a b", "last all", body=body, num_scan_inputs=2)]
    proto = model(nodes, {"s": [], "a": ["n"], "b": ["m"]}, ["last", "all"])
    zero, x = np.float32(0), np.arange(5, dtype=np.float32)
    np.testing.assert_array_equal(run(proto, zero, x, x)[1], np.cumsum(2 * x))
    for level in LEVELS:
        main = relax_mlir.compile(from_onnx(proto), opt_level=level)["main"]
        with pytest.raises(ExecutionError, match=r"requires (n == m|m == n)"):
            main(zero, x, x[:3])


def test_sequences_are_known_during_import():
    nodes = [
        node("SplitToSequence", "x two", "s", axis=0),
        node("SequenceAt", "s one", "a"),
        node("SequenceLength", "s", "n"),
        node("ConcatFromSequence", "s", "y", axis=1),
    ]
    constants = {"two": np.array(2), "one": np.array(-1)}
    proto = model(nodes, {"x": [4, "n"]}, ["a", "n", "y"], constants)
    x = np.arange(12, dtype=np.float32).reshape(4, 3)
    a, n, y = run(proto, x)
    np.testing.assert_array_equal(a, x[2:])
    np.testing.assert_array_equal(y, np.concatenate([x[:2], x[2:]], 1))
    assert n == 2


def test_types_that_do_not_agree():
    yes = graph([node("Cast", "x", "y", to=INT64)], {}, ["y"])
    no = graph([node("Neg", "x", "y")], {}, ["y"])
    nodes = [node("If", "c", "z", name="choice", then_branch=yes, else_branch=no)]
    proto = model(nodes, {"c": [], "x": ["n"]}, ["z"], kinds={"c": BOOL})
    with pytest.raises(ModelError, match=r"node 'choice' \(If\): has values of .* no one type"):
        from_onnx(proto)
