"""Folders of GPTQ and AWQ against their formulas, element by element in NumPy."""

import json

import numpy as np
import pytest
from architecture_cases import TOKENS, in_blocks, write
from safetensors.numpy import load_file, save_file

from relax_mlir.errors import ModelError
from relax_mlir.llm import load
from relax_mlir.llm.checkpoints.checkpoint import open_checkpoint
from relax_mlir.tools.relax_llm import main

RNG = np.random.default_rng(3)
GPTQ = {"quant_method": "gptq", "bits": 4, "group_size": 32, "desc_act": False, "sym": True}
AWQ = {"quant_method": "awq", "bits": 4, "group_size": 32, "zero_point": True, "version": "gemm"}
KINDS = {
    "symmetric": (GPTQ, "Q4_0"),
    "asymmetric": ({**GPTQ, "sym": False}, "Q5_0"),
    "gptq-v2": ({**GPTQ, "sym": False, "checkpoint_format": "gptq_v2"}, "Q5_0"),
    "act-order": ({**GPTQ, "desc_act": True}, "F32"),
    "groups-of-64": ({**GPTQ, "group_size": 64}, "Q4_0"),
    "groups-of-16": ({**GPTQ, "group_size": 16}, "F32"),
    "one-group": ({**GPTQ, "group_size": -1}, "Q4_0"),
    "awq": (AWQ, "Q5_0"),
    "awq-of-48": ({**AWQ, "group_size": 48}, "F32"),
}


def packed(values: np.ndarray, order: tuple[int, ...] = tuple(range(8))) -> np.ndarray:
    """Words of 8 values along the last axis."""
    words = np.zeros((*values.shape[:-1], values.shape[-1] // 8), np.uint32)
    for place, value in enumerate(order):
        words |= values[..., value::8].astype(np.uint32) << np.uint32(4 * place)
    return words.view(np.int32)


def pack(columns: int, rows: int, how: dict) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Random parts of a matrix, and its values, float32[rows, columns]."""
    size = how["group_size"] if how["group_size"] > 0 else columns
    groups = -(-columns // size)
    q = RNG.integers(0, 16, (columns, rows))
    zeros = np.full((groups, rows), 8)
    if not how.get("sym", False):
        zeros = RNG.integers(0 if "version" in how else 1, 16, (groups, rows))
    scales = (0.02 * RNG.uniform(0.5, 2, (groups, rows))).astype(np.float16)
    group_of = np.arange(columns) // size
    if how.get("desc_act"):
        group_of = RNG.permutation(group_of)
    values = np.empty((rows, columns), np.float32)
    for i in range(columns):
        g = group_of[i]
        values[:, i] = scales[g].astype(np.float32) * (q[i] - zeros[g])
    if how["quant_method"] == "awq":
        order = (0, 2, 4, 6, 1, 3, 5, 7)
        return {
            "qweight": packed(q, order),
            "qzeros": packed(zeros, order),
            "scales": scales,
        }, values
    stored = zeros if how.get("checkpoint_format") == "gptq_v2" else zeros - 1
    words = np.ascontiguousarray(packed(np.ascontiguousarray(q.T)).T)
    parts = {"qweight": words, "qzeros": packed(stored), "scales": scales}
    return {**parts, "g_idx": group_of.astype(np.int32)}, values


def write_packed(folder, how: dict, name: str = "llama"):
    """A folder of packed matrices, and one of their values."""
    plain = write(folder / "plain", name, in_blocks(name))
    weights = load_file(plain / "model.safetensors")
    stored = {}
    for weight, array in weights.items():
        module = weight.removesuffix(".weight")
        if array.ndim == 2 and ".layers." in module:
            parts, weights[weight] = pack(*array.shape[::-1], how)
            stored.update({f"{module}.{part}": data for part, data in parts.items()})
        else:
            stored[weight] = array
    save_file(weights, plain / "model.safetensors", {"format": "pt"})
    quantised = write(folder / "packed", name, in_blocks(name))
    save_file(stored, quantised / "model.safetensors", {"format": "pt"})
    state_quantization(quantised, how)
    return quantised, plain


def state_quantization(folder, how: dict) -> None:
    config = json.loads((folder / "config.json").read_text())
    config["quantization_config"] = how
    (folder / "config.json").write_text(json.dumps(config))


@pytest.mark.parametrize("kind", KINDS)
def test_values(tmp_path, kind):
    how, format = KINDS[kind]
    folders = write_packed(tmp_path, how)
    ours, wanted = (open_checkpoint(str(folder)).weights for folder in folders)
    for name in wanted.names:
        is_packed = ".layers." in name and wanted.raw(name).data.ndim == 2
        assert ours.format(name) == ours.raw(name).format == (format if is_packed else "F32")
        np.testing.assert_array_equal(ours.load_f32(name), wanted.load_f32(name))


@pytest.mark.usefixtures("llvm_turns")
@pytest.mark.rotate(2)
@pytest.mark.parametrize("kind", ["awq", "symmetric"])
def test_logits(tmp_path, kind):
    quantised, plain = write_packed(tmp_path, KINDS[kind][0])
    ours = load(str(quantised), activations="f32").logits(TOKENS)
    wanted = load(str(plain), weights="f32").logits(TOKENS)
    assert np.abs(ours - wanted).max() < 1e-5 * np.ptp(wanted)


def test_converted(tmp_path):
    """A GGUF file has the same blocks."""
    quantised, _ = write_packed(tmp_path, AWQ)
    file = tmp_path / "m.gguf"
    assert main(["convert", str(quantised), "-o", str(file)]) == 0
    a, b = (open_checkpoint(str(path)).weights for path in (quantised, file))
    for name in a.names:
        assert a.format(name) == b.format(name)
        np.testing.assert_array_equal(a.load_f32(name), b.load_f32(name))


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"quant_method": "bitsandbytes", "load_in_4bit": True}, "'bitsandbytes'; supported are"),
        ({"quant_method": "fp8"}, "'fp8'; supported are gptq and awq"),
        ({"bits": 4}, "'quant_method' ''; supported are gptq and awq"),
        ({**GPTQ, "bits": 3}, "'bits' 3; supported are 4"),
        ({**GPTQ, "checkpoint_format": "marlin"}, "'checkpoint_format' 'marlin'; supported are"),
        ({**AWQ, "version": "gemv"}, "'version' 'gemv'; supported are 'gemm'"),
        ({**GPTQ, "group_size": 0}, "'group_size' is 0; expects a positive integer"),
        ({**GPTQ, "dynamic": {"x": 1}}, "'dynamic' .*; supported are {}"),
        ("gptq", "'quantization_config' is 'gptq'; expects an object"),
    ],
)
def test_other_methods_are_refused(tmp_path, how, message):
    folder = write(tmp_path, "llama")
    (folder / "model.safetensors").unlink()  # before a weight is read
    state_quantization(folder, how)
    with pytest.raises(ModelError, match=message):
        open_checkpoint(str(folder))


@pytest.mark.parametrize("damage", ["shape", "missing", "dtype", "group", "bias"])
def test_damaged_parts(tmp_path, damage):
    folder, _ = write_packed(tmp_path, GPTQ)
    weights = load_file(folder / "model.safetensors")
    name = "model.layers.0.mlp.up_proj"
    if damage == "shape":
        weights[f"{name}.qzeros"] = weights[f"{name}.qzeros"][:, 1:].copy()
    elif damage == "missing":
        del weights[f"{name}.scales"]
    elif damage == "dtype":
        weights[f"{name}.qweight"] = weights[f"{name}.qweight"].astype(np.float32)
    elif damage == "group":
        weights[f"{name}.g_idx"][5] = 2
    else:
        weights["lm_head.bias"] = np.zeros(271, np.int32)
    save_file(weights, folder / "model.safetensors")
    with pytest.raises(ModelError, match=r"up_proj|lm_head"):
        open_checkpoint(str(folder)).weights.raw(f"{name}.weight")
