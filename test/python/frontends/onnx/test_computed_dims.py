"""Dims that ranks, steps and rounds of loops decide."""

import numpy as np
import pytest
from onnx_nodes import BOOL, FLOAT, INT64, graph, model, node

import relax_mlir
from relax_mlir.errors import ExecutionError, ModelError
from relax_mlir.frontends.onnx import from_onnx

RNG = np.random.default_rng(0)


def compiled(proto, **options):
    return relax_mlir.compile(from_onnx(proto, **options), opt_level=0)["main"]


@pytest.mark.parametrize("step", [-1, -3])
def test_ranges_down_from_a_dim(step):
    nodes = [
        node("Shape", "x", "shape"),
        node("Gather", "shape zero", "n"),
        node("Range", "n stop step", "y"),
    ]
    constants = {"zero": np.array(0), "stop": np.array(-2), "step": np.array(step)}
    main = compiled(model(nodes, {"x": ["n", 1]}, ["y"], constants))
    for n in (0, 1, 2, 7):
        np.testing.assert_array_equal(main(np.zeros((n, 1), np.float32)), np.arange(n, -2, step))


def test_tuples_whose_length_follows_from_ranks():
    proto = model(
        [node("ScatterND", "x i u", "y")],
        {"x": ["a", "b", 3], "i": ["k", "width"], "u": ["k", 3]},
        ["y"],
        kinds={"i": INT64},
    )
    main = compiled(proto)
    x, u = (RNG.normal(size=dims).astype(np.float32) for dims in ((4, 5, 3), (2, 3)))
    indices = np.array([[0, -1], [3, 2]])
    wanted = x.copy()
    wanted[0, -1], wanted[3, 2] = u
    np.testing.assert_array_equal(main(x, indices, u), wanted)
    with pytest.raises(ExecutionError, match="dim 1 is 3"):
        main(x, np.zeros((2, 3), np.int64), u)


def test_slices_whose_rank_the_model_states():
    proto = model(
        [node("GatherND", "x i", "y")],
        {"x": ["a", "b", 3], "i": ["k", "w"]},
        ["y"],
        kinds={"i": INT64},
    )
    with pytest.raises(ModelError, match="tuples of indices of unknown length"):
        from_onnx(proto)
    dims = proto.graph.output[0].type.tensor_type
    dims.elem_type = FLOAT
    for _ in range(2):
        dims.shape.dim.add()
    x = RNG.normal(size=(4, 5, 3)).astype(np.float32)
    indices = np.array([[0, -1], [3, 2], [-4, 0]])
    np.testing.assert_array_equal(compiled(proto)(x, indices), x[indices[:, 0], indices[:, 1]])


def test_signals_without_an_axis_of_parts():
    constants = {"step": np.array(4), "w": np.hanning(8).astype(np.float32)}
    main = compiled(model([node("STFT", "x step w", "y")], {"x": ["b", "n"]}, ["y"], constants))
    x = RNG.normal(size=(2, 21)).astype(np.float32)
    parts = np.stack([x[:, i : i + 8] for i in range(0, 14, 4)], axis=1)
    wanted = np.fft.rfft(parts.astype(np.float64) * constants["w"])
    np.testing.assert_allclose(main(x), np.stack([wanted.real, wanted.imag], -1), atol=1e-5)


@pytest.mark.parametrize("opt_level", [0, 2])
def test_rows_whose_dims_the_first_round_finds(opt_level):
    body = graph(
        [
            node("Compress", "v keep", "row", axis=0),
            node("Add", "v v", "next"),
            node("Identity", "c", "go"),
        ],
        {"i": (INT64, []), "c": (BOOL, []), "v": (FLOAT, ["n"])},
        ["go", "next", "row"],
    )
    proto = model(
        [node("Loop", "count - x", "last rows", body=body)],
        {"x": ["n"], "count": [], "keep": ["n"]},
        ["last", "rows"],
        kinds={"count": INT64, "keep": BOOL},
    )
    main = relax_mlir.compile(from_onnx(proto), opt_level=opt_level)["main"]
    x, keep = np.arange(1, 6, dtype=np.float32), np.array([True, False, True, True, False])
    for count in (0, 1, 4):
        last, rows = main(x, np.array(count), keep)
        np.testing.assert_array_equal(last, x * 2**count)
        wanted = np.stack([x[keep] * 2**i for i in range(count)]) if count else np.zeros((0, 0))
        np.testing.assert_array_equal(rows, wanted)


def test_branches_with_sequences():
    def branch(names, values):
        nodes = [node("Add", f"x {each}", f"{each}_{names[0]}") for each in values]
        items = " ".join(each.output[0] for each in nodes)
        return graph([*nodes, node("SequenceConstruct", items, names[0])], {}, names)

    def choice(*others):
        one = branch(["s"], ["one", "two"])
        chosen = node("If", "c", "s", then_branch=one, else_branch=branch(["t"], others))
        constants = {"one": np.float32(1), "two": np.float32(2), "last": np.array(-1)}
        nodes = [chosen, node("SequenceAt", "s last", "y")]
        return model(nodes, {"c": [], "x": ["n"]}, ["y"], constants, {"c": BOOL})

    main, x = compiled(choice("two", "one")), np.arange(3, dtype=np.float32)
    np.testing.assert_array_equal(main(np.array(True), x), x + 2)
    np.testing.assert_array_equal(main(np.array(False), x), x + 1)
    with pytest.raises(ModelError, match="branches with sequences of other lengths"):
        from_onnx(choice("one"))
