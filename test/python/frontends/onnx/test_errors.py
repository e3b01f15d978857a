"""Models that are wrong, or not supported, are errors that name the node."""

import numpy as np
import onnx
import pytest
from onnx_nodes import BOOL, INT64, graph, model, node

import relax_mlir
from relax_mlir.errors import ModelError
from relax_mlir.frontends.onnx import backend, from_onnx
from relax_mlir.tools import relax_compile


def refused(proto, match, **options):
    with pytest.raises(ModelError, match=match):
        from_onnx(proto, **options)


def test_unsupported_operators_are_named_at_once():
    nodes = [
        node("TfIdfVectorizer", "x", "a", name="first"),
        node("Relu", "x", "b"),
        node("Unheard", "b", "c", domain="my.domain"),
    ]
    refused(
        model(nodes, {"x": ["n"]}, ["c"]),
        r"not supported: TfIdfVectorizer \(node 'first' \(TfIdfVectorizer\)\), "
        r"my\.domain\.Unheard \(node 2 \(Unheard\)\)",
    )


@pytest.mark.parametrize(
    ("nodes", "inputs", "match"),
    [
        ([node("Relu", "y", "x")], {}, r"node 0 \(Relu\): uses 'y', which is not computed before"),
        ([node("Add", "a b", "x"), node("Neg", "x", "b")], {"a": [2]}, "uses 'b', which is not"),
        ([node("Relu", "a", "y")], {"a": [2]}, "the output of graph 'graph' uses 'x'"),
        ([node("Softmax", "a", "x", axis=3)], {"a": [2, 3]}, "has axis 3 for a tensor of rank 2"),
        ([node("MatMul", "a b", "x")], {"a": [2, 3], "b": [4, 5]}, r"node 0 \(MatMul\): "),
        ([node("Concat", "a b", "x", axis=0)], {"a": [2, 3], "b": [4]}, r"node 0 \(Concat\): "),
        ([node("Concat", "a a", "x")], {"a": [2]}, "has no attribute 'axis'"),
        ([node("Clip", "- -", "x")], {"a": [2]}, "has 0 inputs, where 1 to 3 are expected"),
        ([node("ReduceSum", "a b", "x")], {"a": [2], "b": [1]}, "axes that are computed at run"),
        ([node("Conv", "a b", "x")], {"a": [1, 3, 8, 8], "b": [4, 5, 3, 3]}, r"node 0 \(Conv\): "),
    ],
)
def test_nodes(nodes, inputs, match):
    kinds = {"b": INT64} if nodes[0].op_type == "ReduceSum" else {}
    refused(model(nodes, inputs, ["x"], kinds=kinds), match)


def test_versions_and_types():
    refused(model([node("Relu", "x", "y")], {"x": [2]}, ["y"], opset=99), "is of opset 99, but")
    kinds = {"x": onnx.TensorProto.STRING}
    refused(
        model([node("Identity", "x", "y")], {"x": [2]}, ["y"], kinds=kinds), "of string are not"
    )
    refused(model([node("Relu", "x", "y")], {"x": [2]}, ["y"]), "no input 'z'", values={"z": 1})


@pytest.mark.parametrize("value", [np.array([1j]), np.array(["a"]), object()])
def test_values_that_are_no_numbers(value):
    proto = model([node("ReduceSum", "x axes", "y")], {"x": [2], "axes": [1]}, ["y"])
    refused(proto, "input 'axes' is given as .*, which is not supported", values={"axes": value})


def test_lists_for_tensors():
    proto = model([node("ReduceSum", "x axes", "y")], {"x": [2], "axes": [1]}, ["y"])
    refused(proto, "input 'axes' is a tensor, but given as a list", values={"axes": [1]})


def test_values_of_inputs_that_have_one():
    """A value that is given counts, and not the one of the model."""
    constants = {"axes": np.array([0])}
    nodes, inputs = [node("ReduceSum", "x axes", "y", keepdims=0)], {"x": [2, 3], "axes": [1]}
    proto = model(nodes, inputs, ["y"], constants, {"axes": INT64})
    for values, count in (({}, 3), ({"axes": np.array([1])}, 2)):
        main = relax_mlir.interpret(from_onnx(proto, values=values).module)["main"]
        assert main(np.ones((2, 3), np.float32)).shape == (count,)


def test_dims_below_0():
    proto = model([node("Relu", "x", "y")], {"x": ["n"]}, ["y"])
    refused(proto, "dim 'n' is to be -1, but no dim is below 0", dims={"n": -1})


def test_files(tmp_path, capsys):
    path = tmp_path / "model.onnx"
    with pytest.raises(ModelError, match="no such file"):
        from_onnx(path)
    onnx.save(model([node("Relu", "x", "y")], {"x": ["n"]}, ["y"]), path)
    whole = path.read_bytes()
    path.write_bytes(whole[:-7])
    with pytest.raises(ModelError, match="cannot read the model"):
        from_onnx(path)
    path.write_bytes(b"")
    with pytest.raises(ModelError, match="has no graph"):
        from_onnx(path)
    path.write_bytes(whole)
    assert relax_compile.main([str(path), "--dim", "n=x y"]) == 2
    assert "expects a dim as batch=8, batch=1..64 or batch=n" in capsys.readouterr().err
    assert relax_compile.main(["-", "--dim", "n=3"]) == 2
    assert relax_compile.main([str(path), "-o", str(tmp_path / "m.so"), "--dim", "n=1..4"]) == 0
    main = relax_mlir.load(tmp_path / "m.so")["main"]
    np.testing.assert_array_equal(main(np.array([-1, 1], np.float32)), [0, 1])


def test_data_outside_of_the_folder(tmp_path):
    """External data is read from the folder of the model alone."""
    (tmp_path / "secret").write_bytes(b"\0" * 8)
    inner = tmp_path / "inner"
    inner.mkdir()
    proto = model([node("Add", "x w", "y")], {"x": [2]}, ["y"], {"w": np.zeros(2, np.float32)})
    weight = proto.graph.initializer[0]
    weight.ClearField("raw_data")
    weight.data_location = onnx.TensorProto.EXTERNAL
    entry = weight.external_data.add()
    entry.key, entry.value = "location", "../secret"
    (inner / "model.onnx").write_bytes(proto.SerializeToString())
    with pytest.raises(ModelError, match="out of the model's folder"):
        from_onnx(inner / "model.onnx")
    (inner / "link").symlink_to(tmp_path / "secret")
    entry.value = "link"
    (inner / "model.onnx").write_bytes(proto.SerializeToString())
    with pytest.raises(ModelError, match="out of the model's folder"):
        from_onnx(inner / "model.onnx")
    refused(proto, "constant 'w' is in a file: import the model by its path")


def test_backend():
    proto = model([node("ReduceSum", "x axes", "y", keepdims=0)], {"x": ["n", "m"], "axes": ["k"]},
                  ["y"], kinds={"axes": INT64})  # fmt: skip
    rep, x = backend.prepare(proto), np.ones((2, 3), np.float32)
    np.testing.assert_array_equal(rep.run([x, np.array([0])])[0], [2, 2, 2])
    np.testing.assert_array_equal(rep.run({"x": x, "axes": np.array([1])})[0], [3, 3])
    for values in ([x], [x, x, x]):
        with pytest.raises(ModelError, match=f"expects 2 inputs, but got {len(values)}"):
            rep.run(values)
    with pytest.raises(ModelError, match="expects input 'axes', but got x, axis"):
        rep.run({"x": x, "axis": x})
    difference = backend.prepare(model([node("Sub", "a b", "y")], {"a": ["n"], "b": ["n"]}, ["y"]))
    np.testing.assert_array_equal(difference.run({"b": x[0], "a": 3 * x[0]})[0], [2, 2, 2])
    with pytest.raises(ModelError, match="is to run on 'CUDA', but is compiled for CPUs"):
        backend.prepare(proto, "CUDA")
    assert backend.supports_device("CPU")
    assert not backend.supports_device("CUDA")
    assert backend.run_node(onnx.helper.make_node("Neg", ["x"], ["y"]), [x])[0][0, 0] == -1


def test_values_that_are_computed_twice():
    nodes = [node("Relu", "x", "y"), node("Neg", "x", "y")]
    refused(
        model(nodes, {"x": [2]}, ["y"]), r"node 1 \(Neg\): computes 'y', which there is already"
    )
    proto = model([node("Relu", "x", "y")], {"x": [2]}, ["y"])
    proto.graph.input.append(proto.graph.input[0])
    refused(proto, "has input 'x' twice")


def test_attributes_that_no_node_has():
    proto = model([node("Softmax", "x", "y", axis=[1])], {"x": [2, 3]}, ["y"])
    refused(proto, "has attribute 'axis' of type ints, where int is expected")
    proto = model([node("ReduceMax", "x", "y", keepdims=2)], {"x": [2, 3]}, ["y"])
    refused(proto, "has keepdims 2, where 0 or 1 is expected")
    proto = model([node("Squeeze", "x", "y", axes=[1])], {"x": [2, 1]}, ["y"])
    refused(proto, "has attribute 'axes', which Squeeze of opset 21 has not")
    proto = model([node("Softmax", "x", "y")], {"x": [2, 3]}, ["y"])
    proto.graph.node[0].attribute.add(name="axis", ref_attr_name="k", type=onnx.AttributeProto.INT)
    refused(proto, "has attribute 'axis' of a function, but is in none")


def test_operands_that_no_node_has():
    refused(model([node("Relu", "x x", "y")], {"x": [2]}, ["y"]), "has 2 inputs, where 1 is")
    refused(model([node("Relu", "x", "y z")], {"x": [2]}, ["y"]), "has 2 outputs, where 1 is")
    constants = {"a": np.array([1, 2]), "b": np.array([0.5, 1], np.float32)}
    joined = model([node("Concat", "a b", "y", axis=0)], {}, ["y"], constants)
    refused(joined, "expects one element type, but got i64 and f32")


def test_graphs_that_take_other_values():
    body = graph([node("Identity", "go", "goes")], {"go": (BOOL, [])}, ["goes"])
    loop = model([node("Loop", "n c x", "y", body=body)], {"x": [2], "n": [], "c": []}, ["y"],
                 kinds={"n": INT64, "c": BOOL})  # fmt: skip
    refused(loop, r"node 0 \(Loop\): has a graph of 1 inputs, where 3 are expected")
    scan = model([node("Scan", "x x", "y z", body=body, num_scan_inputs=1)], {"x": [2]}, ["y"])
    refused(scan, r"node 0 \(Scan\): has a graph of 1 inputs, where 2 are expected")


def test_bits_of_other_widths():
    bits = model(
        [node("BitCast", "x", "y", to=onnx.TensorProto.INT64)], {"x": [2, 2]}, ["y"], opset=26
    )
    refused(bits, r"node 0 \(BitCast\): has elements of 32 bits, where 64 are expected")
