"""What matrices are multiplied with, against NumPy, and files that are rounded for it."""

import json

import numpy as np
import pytest
import reference_llama
from architecture_cases import CASES, write
from gguf import GGMLQuantizationType, dequantize
from gguf.gguf_reader import GGUFReader
from tiny_models import CONFIG, random_weights, write_hf

from relax_mlir.errors import ModelError
from relax_mlir.llm.architectures.registry import of_folder
from relax_mlir.llm.calibration.calibration import Calibration
from relax_mlir.llm.calibration.observing import ObservedDecoder
from relax_mlir.llm.checkpoints.checkpoint import open_checkpoint
from relax_mlir.llm.modules.decoder import Transformer
from relax_mlir.llm.modules.operands import export_operands
from relax_mlir.tools.relax_llm import main

TEXT = "hello world 12 hello hello 2 21 world 1, the rest is bytes: äöü " * 3
WINDOW = 23


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_hf(tmp_path_factory.mktemp("calibration") / "folder", random_weights())


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    file = tmp_path_factory.mktemp("text") / "text.txt"
    file.write_text(TEXT)
    return file


class Recorder(np.ndarray):
    """A matrix that keeps what it is multiplied with."""

    name, operands = "", None

    def __array_finalize__(self, other):
        self.name, self.operands = getattr(other, "name", ""), getattr(other, "operands", None)

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        if ufunc is np.matmul:
            self.operands.setdefault(self.name, []).append(np.asarray(inputs[0]))
        plain = [np.asarray(each) for each in inputs]
        return getattr(ufunc, method)(*plain, **kwargs)


def recorded(ids):
    """The operands of each matrix in the reference, by name, float64[tokens, columns]."""
    weights, operands = random_weights(), {}

    def weight(name):
        matrix = weights[name].astype(np.float64).view(Recorder)
        matrix.name, matrix.operands = name, operands
        return matrix if matrix.ndim == 2 and "embed" not in name else np.asarray(matrix)

    reference_llama.logits(CONFIG, weight, np.array(ids), np.float64)
    return {name: np.concatenate(parts) for name, parts in operands.items()}


@pytest.mark.parametrize("memory", [1, 10**9])
def test_sums(folder, memory):
    """Those of the reference, in windows, however many runs they take."""
    checkpoint = open_checkpoint(str(folder))
    found = Calibration(checkpoint, TEXT, "gptq", WINDOW, memory)
    ids = checkpoint.tokenizer.encode(TEXT)
    parts = [recorded(ids[i : i + WINDOW]) for i in range(0, len(ids), WINDOW)]
    assert len(ids) % WINDOW
    names = [name for name in parts[0] if memory > 1 or "layers.1" in name]
    assert len(names) == (15 if memory > 1 else 7)
    for name in names:
        x = np.concatenate([part[name] for part in parts])
        inputs = found.inputs(name)
        assert inputs.count == len(x) == len(ids)
        np.testing.assert_allclose(inputs.squares, np.square(x).mean(0), rtol=1e-4)
        expected = x.T @ x / len(x)
        tolerance = 1e-5 * np.abs(expected).max()
        np.testing.assert_allclose(inputs.products, expected, atol=tolerance)
    assert found.inputs("model.embed_tokens.weight") is None


def test_rows_of_experts(tmp_path):
    """Each expert has the rows of the tokens that chose it, and its own hidden elements."""
    folder = write(tmp_path, "mixtral")
    checkpoint = open_checkpoint(str(folder))
    decoder = ObservedDecoder(checkpoint, 16)
    units = {name: unit for unit, names in enumerate(decoder.units) for name in names}
    [(count, observed)] = decoder.run(range(16))
    rows = {each.unit: each.rows for each in observed}
    prefix = "model.layers.1.mlp"
    tokens = rows[units[f"{prefix}.gate.weight"]]
    scores = tokens @ checkpoint.weights.load_f32(f"{prefix}.gate.weight").T
    experts = checkpoint.config.experts
    chosen = np.sort(np.argsort(-scores, axis=1)[:, : experts.chosen])
    for expert in range(experts.count):
        names = [f"{prefix}.experts.{expert}.{name}_proj.weight" for name in ("gate", "up", "down")]
        gate, up = (checkpoint.weights.load_f32(name) for name in names[:2])
        x = rows[units[names[1]]]
        np.testing.assert_array_equal(x, tokens[(chosen == expert).any(1)])
        assert units[names[0]] == units[names[1]]
        z = x @ gate.T
        hidden = z / (1 + np.exp(-z)) * (x @ up.T)
        np.testing.assert_allclose(rows[units[names[2]]], hidden, rtol=1e-3, atol=1e-4)
    assert count == 16


def test_every_matrix_has_an_operand(tmp_path):
    """Of all architectures, in the graph; matrices that are looked up in have none."""
    for name in CASES:
        _, config = of_folder(write(tmp_path / name, name))
        module, operands = export_operands(Transformer(config))
        names = [weight for operand in operands for names in operand.names for weight in names]
        assert len(names) == len(set(names))
        looked_up = {"model.embed_positions.weight"}
        if not config.tie_embeddings:
            looked_up.add("model.embed_tokens.weight")
        matrices = {weight for weight, shape in config.weight_shapes().items() if len(shape) == 2}
        rest = {weight for weight in matrices - set(names) if weight not in looked_up}
        assert {weight.split(".")[-2] for weight in rest} <= {"k_b_proj", "v_b_proj", "conv1d"}
        results = module.split("-> (", 1)[1].split("attributes")[0]
        assert results.count("tensor<") >= len(operands)


def stored(path, name):
    [tensor] = [each for each in GGUFReader(path).tensors if each.name == name]
    return dequantize(tensor.data, GGMLQuantizationType(tensor.tensor_type))


@pytest.mark.parametrize("format", ["q4_0", "q3_k"])  # whose rows are no super-blocks: q4_0 too
def test_command(folder, text, tmp_path, capsys, format):
    """Errors of products with what the text gives go down, as another reader has the file."""
    checkpoint = open_checkpoint(str(folder))
    found = Calibration(checkpoint, TEXT, "gptq", WINDOW)
    names = {
        "blk.1.ffn_down.weight": "model.layers.1.mlp.down_proj.weight",
        "blk.0.attn_v.weight": "model.layers.0.self_attn.v_proj.weight",
        "output.weight": "lm_head.weight",
    }
    errors = {}
    for rounding in ("", "importance", "gptq"):
        out = tmp_path / f"{rounding}.gguf"
        command = ["convert", str(folder), "-o", str(out), "--weights", format]
        if rounding:
            command += ["--calibrate", str(text), "--rounding", rounding, "--window", str(WINDOW)]
        assert main(command) == 0
        assert f"{out.stat().st_size} bytes" in capsys.readouterr().out
        again = open_checkpoint(str(out)).weights
        for name, weight in names.items():
            matrix = stored(out, name)
            np.testing.assert_array_equal(matrix, again.load_f32(weight))
            error = matrix - checkpoint.weights.load_f32(weight)
            inputs = found.inputs(weight)
            errors[rounding, name] = (
                float((np.square(error) @ inputs.squares).sum()),
                float(((error @ inputs.products) * error).sum()),
            )
    for name in names:
        plain, importance, gptq = (errors[each, name] for each in ("", "importance", "gptq"))
        assert importance[0] < 0.95 * plain[0]
        assert gptq[1] < 0.7 * min(plain[1], importance[1])


def test_wrong_use(folder, text, tmp_path, capsys):
    empty, short = tmp_path / "empty.txt", tmp_path / "short.txt"
    empty.write_text("")
    short.write_text("hello")
    out = tmp_path / "out.gguf"
    for options, message in (
        (["--calibrate", str(empty)], "has 0 tokens; expects 64 or more, a window"),
        (["--calibrate", str(short)], "has 1 tokens; expects 64 or more, a window"),
        (["--calibrate", str(text), "--window", "0"], "window is 0; expects 1 token or more"),
        (["--calibrate", str(tmp_path / "none")], "cannot read"),
        (["--rounding", "gptq"], "--rounding needs --calibrate"),
        (["--calibrate", str(text), "--weights", "native"], "not for 'native'"),
        (["--calibrate", str(text), "--weights", "bf16"], "calibration is for weights of q8_0, "),
    ):
        command = ["convert", str(folder), "-o", str(out), "--weights", "q4_0", *options]
        assert main(command) == 2
        assert message in capsys.readouterr().err
    assert not out.exists()


@pytest.mark.parametrize("rounding", ["importance", "gptq"])
@pytest.mark.parametrize("value", [np.inf, 1e30])
def test_infinite_inputs(tmp_path, capsys, text, value, rounding):
    """Or so great that products of two are."""
    weights = random_weights()
    weights["model.layers.0.input_layernorm.weight"][3] = value
    folder = write_hf(tmp_path / "folder", weights)
    out = tmp_path / "out.gguf"
    command = [
        "convert",
        str(folder),
        "-o",
        str(out),
        "--weights",
        "q4_0",
        "--calibrate",
        str(text),
        "--rounding",
        rounding,
    ]
    assert main(command) == 1
    assert "are infinite or NaN" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


def test_tokens_that_the_model_has_not(tmp_path):
    folder = write_hf(tmp_path, random_weights())
    path = folder / "tokenizer.json"
    tokenizer = json.loads(path.read_text())
    tokenizer["model"]["vocab"]["<x>"] = 5000
    token = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    tokenizer["added_tokens"].append({**token, "id": 5000, "content": "<x>", "special": True})
    path.write_text(json.dumps(tokenizer))
    checkpoint = open_checkpoint(str(folder))
    with pytest.raises(ModelError, match=r"has token 5000 .* a vocabulary of 267 tokens"):
        Calibration(checkpoint, "hello <x> " * 9, window=16)


@pytest.mark.rotate(12)
@pytest.mark.parametrize("name", sorted(CASES))
def test_architectures(tmp_path, name):
    checkpoint = open_checkpoint(str(write(tmp_path / "folder", name)))
    decoder = ObservedDecoder(checkpoint, 8)
    finite = [np.isfinite(each.rows).all() for _, found in decoder.run(range(8)) for each in found]
    assert all(finite)
    assert len(finite) == len(decoder.units) == len(decoder.columns)
