"""Constants of models are mapped from files, in which they may be anywhere."""

import subprocess
import sys

import numpy as np
import onnx
import pytest
from onnx_nodes import model, node

import relax_mlir
from relax_mlir.errors import ModelError
from relax_mlir.frontends.onnx import from_onnx
from relax_mlir.frontends.onnx.weights import LARGE

RNG = np.random.default_rng(0)
N = LARGE // 4 + 3


@pytest.fixture
def proto():
    constants = {
        "w": RNG.normal(size=N).astype(np.float32),
        "u": RNG.normal(size=(2, N)).astype(np.float16),
        "few": np.arange(20, dtype=np.float32),
    }
    nodes = [node("Add", "x w", "y"), node("Add", "h u", "z"), node("Add", "f few", "v")]
    kinds = {"h": onnx.TensorProto.FLOAT16}
    return model(nodes, {"x": [N], "h": [2, N], "f": [20]}, ["y", "z", "v"], constants, kinds)


@pytest.mark.parametrize("pad", range(3))
def test_large_constants_of_the_message_are_mapped(tmp_path, proto, pad):
    proto.producer_name = "x" * pad  # so that elements begin anywhere
    path = tmp_path / "model.onnx"
    onnx.save(proto, path)
    imported, expected = from_onnx(path), from_onnx(proto)
    for name, array in expected.parameters.items():
        np.testing.assert_array_equal(imported.parameters[name], array)
    large = [each for each in imported.parameters.values() if each.nbytes >= LARGE]
    assert len(large) == 2
    assert not any(each.flags.writeable or each.flags.owndata for each in large)
    assert str(imported.module) == str(expected.module)


@pytest.mark.parametrize("pad", range(4))
def test_constants_anywhere_in_a_file_are_folded(tmp_path, proto, pad):
    proto.producer_name = "x" * pad
    proto.graph.node.insert(0, node("Exp", "w", "e"))
    proto.graph.node[1].input[1] = "e"
    path = tmp_path / "model.onnx"
    onnx.save(proto, path)
    x, h, f = (np.ones(dims, np.float32) for dims in (N, (2, N), 20))
    actual = relax_mlir.compile(from_onnx(path), opt_level=3)["main"](x, h.astype(np.float16), f)
    w = onnx.numpy_helper.to_array(proto.graph.initializer[0])
    np.testing.assert_allclose(actual[0], x + np.exp(w), rtol=1e-6)


def test_constants_that_were_in_a_file_before(tmp_path, proto):
    """Their messages say that elements are in them, and may still say where they were."""
    for each in proto.graph.initializer:
        each.data_location = onnx.TensorProto.DEFAULT
        each.external_data.add(key="location", value="nowhere")
        each.external_data.add(key="offset", value="7")
    path = tmp_path / "model.onnx"
    path.write_bytes(proto.SerializeToString())
    imported = from_onnx(path)
    for name, array in from_onnx(proto).parameters.items():
        np.testing.assert_array_equal(imported.parameters[name], array)
    assert sum(not each.flags.owndata for each in imported.parameters.values()) >= 2


def test_data_next_to_the_model(tmp_path, proto):
    path = tmp_path / "model.onnx"
    onnx.save(proto, path, save_as_external_data=True, location="weights", size_threshold=0)
    x, h, f = (np.ones(dims, np.float32) for dims in (N, (2, N), 20))
    actual = relax_mlir.compile(from_onnx(path), opt_level=0)["main"](x, h.astype(np.float16), f)
    w, u, few = map(onnx.numpy_helper.to_array, onnx.load(path).graph.initializer)
    for one, other in zip(actual, (x + w, h.astype(np.float16) + u, f + few), strict=True):
        np.testing.assert_array_equal(one, other)
    whole = (tmp_path / "weights").read_bytes()
    (tmp_path / "weights").write_bytes(whole[:-1])
    with pytest.raises(ModelError, match=r"constant '\w+' of \d+ bytes is not from \d+ on in"):
        from_onnx(path)
    (tmp_path / "weights").unlink()
    with pytest.raises(ModelError, match="is in 'weights', which is no file"):
        from_onnx(path)


def test_negative_offsets_and_dims(tmp_path, proto):
    path = tmp_path / "model.onnx"
    onnx.save(proto, path, save_as_external_data=True, location="weights", size_threshold=0)
    light = onnx.load(path, load_external_data=False)
    for key, value in (
        ("offset", "-1"),
        ("offset", str(1 << 62)),
        ("length", "3"),
        ("offset", "x"),
    ):
        changed = onnx.ModelProto.FromString(light.SerializeToString())
        entries = changed.graph.initializer[0].external_data
        kept = {each.key: each.value for each in entries} | {key: value}
        del entries[:]
        for name, text in kept.items():
            entries.add(key=name, value=text)
        path.write_bytes(changed.SerializeToString())
        with pytest.raises(ModelError, match="constant 'w'"):
            from_onnx(path)
    light.graph.initializer[0].dims[0] = -N
    path.write_bytes(light.SerializeToString())
    with pytest.raises(ModelError, match="constant 'w'"):
        from_onnx(path)


def test_shared_objects_beside_their_constants(tmp_path, proto):
    path = tmp_path / "model.onnx"
    onnx.save(proto, path)
    from relax_mlir.tools import relax_compile

    made = tmp_path / "model.so"
    assert relax_compile.main([str(path), "-o", str(made), "-O0", "--external-data"]) == 0
    (beside,) = tmp_path.glob("*.safetensors")
    assert beside.stat().st_size >= 8 * N > made.stat().st_size // 2
    x, h, f = np.ones(N, np.float32), np.ones((2, N), np.float16), np.ones(20, np.float32)
    w, u, few = map(onnx.numpy_helper.to_array, proto.graph.initializer)
    for one, other in zip(
        relax_mlir.load(made)["main"](x, h, f), (x + w, h + u, f + few), strict=True
    ):
        np.testing.assert_array_equal(one, other)


PEAKS = """
import sys
from relax_mlir.tools import relax_compile

for path in sys.argv[1:]:
    assert relax_compile.main([path, "-o", path + ".so", "--no-cache"]) == 0
    (peak,) = (line for line in open("/proc/self/status") if line.startswith("VmHWM"))
    print(int(peak.split()[1]) >> 10)
"""


def test_a_model_compiles_in_the_memory_that_its_weights_are_mapped_to(tmp_path):
    """The first model differs in its weights alone, which it has hardly any of."""
    paths = [tmp_path / "few.onnx", tmp_path / "many.onnx"]
    for path, k in zip(paths, (8, 16384), strict=True):
        weights = {"w": RNG.normal(size=(k, 1024)).astype(np.float32)}
        made = model([node("MatMul", "x w", "y")], {"x": ["n", k]}, ["y"], weights)
        onnx.save(made, path, save_as_external_data=True, location=f"{path.name}.weights")
    run = subprocess.run(
        [sys.executable, "-c", PEAKS, *map(str, paths)], capture_output=True, text=True, check=True
    )
    few, many = map(int, run.stdout.split())
    assert many - few < 64 * 1.3  # MB, of 64 that are mapped
