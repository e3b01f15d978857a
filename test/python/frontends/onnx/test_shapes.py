"""Shape arithmetic of models becomes expressions, and not unknown dims."""

import numpy as np
import pytest
from onnx_nodes import INT64, model, node

import relax_mlir
from relax_mlir.errors import ExecutionError, ModelError
from relax_mlir.frontends.onnx import from_onnx


def signature(proto, **options):
    """The arguments and results of the compiled model, as text."""
    return str(relax_mlir.compile(from_onnx(proto, **options), opt_level=0)["main"])


def test_reshape_to_a_concat_of_dims():
    nodes = [
        node("Shape", "x", "shape"),
        node("Gather", "shape zero", "n"),
        node("Unsqueeze", "n axes", "n1"),
        node("Concat", "n1 rest", "dims", axis=0),
        node("Reshape", "x dims", "y"),
    ]
    constants = {"zero": np.array(0), "axes": np.array([0]), "rest": np.array([-1])}
    proto = model(nodes, {"x": ["batch", 3, "length"]}, ["y"], constants)
    assert signature(proto) == "main(x: f32[batch, 3, length]) -> (f32[batch, 3*length])"


def test_arithmetic_of_dims():
    nodes = [
        node("Shape", "x", "n", start=0, end=1),
        node("Mul", "n two", "double"),
        node("Sub", "double one", "less"),
        node("Div", "less three", "third"),
        node("Max", "third one", "most"),
        node("ConstantOfShape", "most", "y"),
    ]
    constants = {name: np.array([i]) for i, name in enumerate(("zero", "one", "two", "three"))}
    proto = model(nodes, {"x": ["n"]}, ["y"], constants)
    main = relax_mlir.compile(from_onnx(proto), opt_level=0)["main"]
    for n in (0, 1, 2, 7, 8):
        wanted = max(int((2 * n - 1) / 3), 1)
        assert main(np.zeros(n, np.float32)).shape == (wanted,), n


@pytest.mark.parametrize(
    ("start", "end", "step", "text"),
    [
        (0, 2**63 - 1, 1, "f32[n]"),
        (-3, 2**63 - 1, 1, None),
        (1, -1, 1, None),
        (2**63 - 1, -(2**63), -1, "f32[n]"),
        (-1, -5, -2, None),
    ],
)
def test_slices(start, end, step, text):
    constants = {"s": np.array([start]), "e": np.array([end]), "a": np.array([0])}
    constants["t"] = np.array([step])
    proto = model([node("Slice", "x s e a t", "y")], {"x": ["n"]}, ["y"], constants)
    if text is not None:
        assert signature(proto).endswith(f"-> ({text})")
    main = relax_mlir.compile(from_onnx(proto), opt_level=0)["main"]
    for n in (0, 1, 2, 3, 8):
        x = np.arange(n, dtype=np.float32)
        np.testing.assert_array_equal(main(x), x[start:end:step])


def test_a_start_before_the_axis_is_its_first_element_in_reverse():
    constants = {"s": np.array([-9]), "e": np.array([-(2**40)]), "a": np.array([0])}
    constants["t"] = np.array([-1])
    proto = model([node("Slice", "x s e a t", "y")], {"x": ["n"]}, ["y"], constants)
    main = relax_mlir.compile(from_onnx(proto), opt_level=0)["main"]
    for n in (0, 1, 2, 8, 9, 10, 12):
        x = np.arange(n, dtype=np.float32)
        np.testing.assert_array_equal(main(x), x[max(n - 9, 0) :: -1] if n else x)


@pytest.mark.parametrize("by_end", [False, True])
@pytest.mark.parametrize("step", [1, -1, 2])
@pytest.mark.parametrize(
    ("scale", "shift"), [(-1, 0), (-1, -1), (1, -1), (1, -2), (1, -5), (-2, 3), (1, 0)]
)
def test_bounds_of_dims_that_may_be_negative(scale, shift, step, by_end):
    """A bound scale * n + shift counts from the end where it is below 0."""
    nodes = [
        node("Shape", "p", "n"),
        *(node("Mul", "n scale", "m"), node("Add", "m shift", "bound")),
        node("Slice", "x fixed bound a t" if by_end else "x bound fixed a t", "y"),
    ]
    fixed = (4 if step < 0 else 0) if by_end else (-100 if step < 0 else 100)
    constants = {"scale": scale, "shift": [shift], "fixed": [fixed], "a": [0], "t": [step]}
    constants = {name: np.array(value) for name, value in constants.items()}
    proto = model(nodes, {"p": ["n"], "x": ["k"]}, ["y"], constants)
    main = relax_mlir.interpret(from_onnx(proto).module)["main"]
    for n, k in ((2, 7), (0, 3), (5, 5), (1, 1), (9, 4), (0, 0), (3, 3), (6, 2)):
        x, bound = np.arange(k, dtype=np.float32), scale * n + shift
        wanted = x[fixed:bound:step] if by_end else x[bound:fixed:step]
        if step < 0 and not by_end and bound < -k:
            wanted = x[:1]  # cut off at both ends
        np.testing.assert_array_equal(main(np.zeros(n, np.float32), x), wanted)


def test_parts_of_an_axis_by_its_own_dim():
    nodes = [
        node("Shape", "x", "n"),
        *(node("Sub", "n five", "start"), node("Slice", "x start end a", "y")),
        *(node("Sub", "n one", "last"), node("Slice", "x last end a", "z")),
    ]
    constants = {"five": [5], "one": [1], "end": [2**62], "a": [0]}
    constants = {name: np.array(value) for name, value in constants.items()}
    main = relax_mlir.compile(from_onnx(model(nodes, {"x": ["n"]}, ["y", "z"], constants)))["main"]
    for n in range(9):
        x = np.arange(n, dtype=np.float32)
        y, z = main(x)
        np.testing.assert_array_equal(y, x[n - 5 :])
        np.testing.assert_array_equal(z, x[n - 1 :])


def test_a_reduction_over_no_axes_of_known_values():
    nodes = [node("ReduceSum", "c", "y", noop_with_empty_axes=1)]
    proto = model(nodes, {}, ["y"], {"c": np.array([-4, 4, 2])})
    main = relax_mlir.compile(from_onnx(proto), opt_level=0)["main"]
    np.testing.assert_array_equal(main(), [-4, 4, 2])


@pytest.mark.parametrize("op", ["Split", "SplitToSequence"])
def test_parts_that_are_not_the_whole(op):
    """Sizes add up to the dim, also a single one."""
    last = [node("SequenceLength", "y", "count")] if op != "Split" else []
    nodes, out = [node(op, "x s", "y"), *last], ["count" if last else "y"]
    constants = {"s": np.array([2])}
    with pytest.raises(ModelError, match=r"node 0 \(Split.*splits dim 0 of 5 into extents of 2"):
        from_onnx(model(nodes, {"x": [5]}, out, constants))
    if op == "Split":
        main = relax_mlir.compile(from_onnx(model(nodes, {"x": ["n"]}, out, constants)))["main"]
        np.testing.assert_array_equal(main(np.ones(2, np.float32)), [1, 1])
        with pytest.raises(ExecutionError, match=r"requires .*n"):
            main(np.ones(5, np.float32))


def test_more_parts_than_elements():
    proto = model([node("Split", "x", "a b c d", num_outputs=4)], {"x": [5]}, ["d"])
    with pytest.raises(ModelError, match="splits 5 into 2, 2, 2, -1, which is below 0"):
        from_onnx(proto)
    proto = model([node("Split", "x", "a b c d", num_outputs=4)], {"x": ["n"]}, ["d"])
    main = relax_mlir.compile(from_onnx(proto), opt_level=0)["main"]
    np.testing.assert_array_equal(main(np.arange(7, dtype=np.float32)), [6])
    with pytest.raises(ExecutionError):
        main(np.arange(5, dtype=np.float32))
    nodes = [node("SplitToSequence", "x", "s"), node("SequenceLength", "s", "y")]
    main = relax_mlir.compile(from_onnx(model(nodes, {"x": [0]}, ["y"])), opt_level=0)["main"]
    assert main(np.zeros(0, np.float32)) == 0


def test_dims_are_renamed_valued_and_bounded():
    proto = model([node("Relu", "x", "y")], {"x": ["batch", "seq len", None, "?"]}, ["y"])
    assert signature(proto, dims={"batch": 4, "seq len": "t"}).startswith(
        "main(x: f32[4, t, x_2, x_3])"
    )
    exe = relax_mlir.compile(from_onnx(proto, facts=["batch <= 2"]), opt_level=0)
    with pytest.raises(ExecutionError, match="requires batch <= 2"):
        exe["main"](np.zeros((3, 1, 1, 1), np.float32))
    with pytest.raises(
        ModelError, match=r"no dim of an input is called 'heigth'; there are 'batch'"
    ):
        from_onnx(proto, dims={"heigth": 3})


def test_dims_that_are_arithmetic_of_names():
    proto = model([node("Relu", "x", "y")], {"x": ["past + 1"], "p": ["past"]}, ["y"])
    assert "x: f32[past + 1], p: f32[past]" in signature(proto)


def test_dims_that_run_time_reads():
    proto = model(
        [node("Expand", "x dims", "y")], {"x": ["n"], "dims": [2]}, ["y"], kinds={"dims": INT64}
    )
    main = relax_mlir.compile(from_onnx(proto), opt_level=0)["main"]
    x = np.arange(3, dtype=np.float32)
    np.testing.assert_array_equal(main(x, np.array([2, 3])), np.broadcast_to(x, (2, 3)))
    np.testing.assert_array_equal(main(x[:1], np.array([2, 3])), np.zeros((2, 3)))


def test_two_paths_through_windows_agree():
    """Dims of two strided paths are taken to be equal, which is checked."""
    nodes = [
        node("MaxPool", "x", "a", kernel_shape=[3], strides=[2], pads=[1, 1]),
        node("AveragePool", "x", "b", kernel_shape=[2], strides=[2]),
        node("Add", "a b", "y"),
    ]
    main = relax_mlir.compile(from_onnx(model(nodes, {"x": ["n", 1, "w"]}, ["y"])))["main"]
    x = np.random.default_rng(0).normal(size=(2, 1, 10)).astype(np.float32)
    padded = np.pad(x, [(0, 0), (0, 0), (1, 1)], constant_values=-np.inf)
    most = np.stack([padded[..., i : i + 3].max(-1) for i in range(0, 10, 2)], -1)
    np.testing.assert_allclose(main(x), most + x.reshape(2, 1, 5, 2).mean(-1), rtol=1e-6)
    with pytest.raises(ExecutionError, match=r"node 2 \(Add\): broadcast requires"):
        main(np.zeros((2, 1, 9), np.float32))


def test_squeeze_of_dims_that_may_be_one():
    """Without axes, dims that are not known stay: that they are not 1 is checked."""
    main = relax_mlir.compile(from_onnx(model([node("Squeeze", "x", "y")], {"x": ["n", 1]}, ["y"])))
    for n in (0, 2, 5):
        assert main["main"](np.zeros((n, 1), np.float32)).shape == (n,)
    with pytest.raises(ExecutionError, match=r"node 0 \(Squeeze\): .*requires n != 1"):
        main["main"](np.zeros((1, 1), np.float32))
