"""Weights from GGUF and Hugging Face files: same names, same layout, same numbers."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import reference_llama
import tiny_models
from safetensors.numpy import save_file
from tiny_models import CONFIG, random_weights, write_gguf, write_hf

from relax_mlir.errors import ModelError
from relax_mlir.llm.architectures.layout import half_split_order
from relax_mlir.llm.checkpoints.gguf_reader import GgufWeights
from relax_mlir.llm.checkpoints.hf_reader import HuggingFaceWeights
from relax_mlir.llm.formats.gguf_file import GgufFile

TOKENS = np.array([0, 5, 17, 17, 99, 3, 250])


def open_gguf(path):
    return GgufWeights(GgufFile.open(path))


def assert_same(source, weights):
    assert set(source.names) == set(weights)
    for name, values in weights.items():
        loaded = source.load_f32(name)
        assert loaded.dtype == np.float32
        np.testing.assert_array_equal(loaded, values, err_msg=name)


@pytest.mark.parametrize(("format", "dtype"), [("F32", np.float32), ("F16", np.float16)])
def test_gguf_holds_what_was_written(tmp_path, format, dtype):
    weights = random_weights()
    source = open_gguf(write_gguf(tmp_path / "m.gguf", weights, format))
    assert replace(source.config, norm_eps=CONFIG.norm_eps) == CONFIG
    assert source.config.norm_eps == np.float32(CONFIG.norm_eps)
    expected = {
        name: values.astype(dtype).astype(np.float32) if values.ndim == 2 else values
        for name, values in weights.items()
    }
    assert_same(source, expected)


@pytest.mark.parametrize(("format", "step"), [("Q8_0", 0.01), ("Q4_0", 0.11), ("Q4_1", 0.06)])
def test_quantised_gguf_is_close(tmp_path, format, step):
    """Rows that went to the wrong place would be off by the weights' size, about 0.5."""
    weights = random_weights()
    source = open_gguf(write_gguf(tmp_path / "m.gguf", weights, format))
    for name, values in weights.items():
        assert np.abs(source.load_f32(name) - values).max() < step, name


@pytest.mark.parametrize("shards", [1, 2, 3])
def test_hugging_face_holds_what_was_written(tmp_path, shards):
    weights = random_weights()
    source = HuggingFaceWeights(write_hf(tmp_path / "m", weights, shards))
    assert source.config == CONFIG
    assert_same(source, weights)


def test_bfloat16_safetensors(tmp_path):
    """The package cannot write NumPy bfloat16, so the file is written by hand."""
    weights = random_weights()
    folder = write_hf(tmp_path / "m", weights)
    table, blob, expected = {}, b"", {}
    for name, values in weights.items():
        bits = (values.view(np.uint32) >> 16).astype(np.uint16)
        expected[name] = (bits.astype(np.uint32) << 16).view(np.float32)
        span = [len(blob), len(blob) + bits.nbytes]
        table[name] = {"dtype": "BF16", "shape": list(values.shape), "data_offsets": span}
        blob += bits.tobytes()
    header = json.dumps(table).encode()
    content = len(header).to_bytes(8, "little") + header + blob
    (folder / "model.safetensors").write_bytes(content)
    assert_same(HuggingFaceWeights(folder), expected)


def test_both_sources_compute_the_same(tmp_path):
    weights = random_weights()
    gguf = open_gguf(write_gguf(tmp_path / "m.gguf", weights))
    hf = HuggingFaceWeights(write_hf(tmp_path / "m", weights))
    one = reference_llama.logits(gguf.config, gguf.load_f32, TOKENS, np.float64)
    other = reference_llama.logits(hf.config, hf.load_f32, TOKENS, np.float64)
    np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-6)


def test_half_split_order_undoes_interleaving():
    """Rotating pairs (2i, 2i+1) and reordering is reordering and rotating (i, i + half)."""
    heads, dim = 3, 8
    x = np.random.default_rng(1).standard_normal(heads * dim)
    angles = np.arange(dim // 2) * 0.7
    pairs = x.reshape(heads, dim // 2, 2)
    turned = np.stack(
        [
            pairs[..., 0] * np.cos(angles) - pairs[..., 1] * np.sin(angles),
            pairs[..., 1] * np.cos(angles) + pairs[..., 0] * np.sin(angles),
        ],
        axis=-1,
    ).reshape(-1)
    order = half_split_order(heads, dim)
    split = x[order].reshape(heads, 1, dim)
    rotated = reference_llama._rotate(split, np.cos(angles), np.sin(angles)).reshape(-1)
    np.testing.assert_allclose(turned[order], rotated, rtol=1e-12)


def test_tied_embeddings(tmp_path):
    weights = random_weights()
    del weights["lm_head.weight"]
    assert open_gguf(write_gguf(tmp_path / "m.gguf", weights)).config.tie_embeddings
    folder = write_hf(tmp_path / "m", weights, tie_word_embeddings=True)
    assert_same(HuggingFaceWeights(folder), weights)
    weights["lm_head.weight"] = weights["model.embed_tokens.weight"].copy()
    weights["model.layers.0.self_attn.rotary_emb.inv_freq"] = np.zeros(8, np.float32)
    save_file(weights, folder / "model.safetensors")
    assert "lm_head.weight" not in HuggingFaceWeights(folder).names


def test_raw_blocks_are_mapped_not_copied(tmp_path):
    source = open_gguf(write_gguf(tmp_path / "m.gguf", random_weights(), "Q4_1"))
    raw = source.raw("model.layers.1.mlp.down_proj.weight")
    assert raw.format == "Q4_1"
    assert raw.shape == (96, 160)
    assert raw.data.shape == (96, 5)
    assert raw.data.dtype.names == ("scale", "minimum", "q")
    assert not raw.data.flags.owndata
    assert not raw.data.flags.writeable
    query = "model.layers.1.self_attn.q_proj.weight"
    np.testing.assert_array_equal(source.raw(query).to_f32(), source.load_f32(query))
    with pytest.raises(KeyError):
        source.raw("model.layers.2.mlp.down_proj.weight")


@pytest.mark.parametrize("file", ["gguf", "safetensors"])
def test_every_truncation_is_refused(tmp_path, file):
    weights = random_weights()
    if file == "gguf":
        path = write_gguf(tmp_path / "m.gguf", weights)
    else:
        path = write_hf(tmp_path / "m", weights) / "model.safetensors"
    content = path.read_bytes()
    cuts = [0, 1, 3, 4, 7, 8, 9, 12, 24, 100, 1000, len(content) // 2, len(content) - 1]
    for cut in cuts:
        path.write_bytes(content[:cut])
        with pytest.raises(ModelError, match=path.name) as error:
            open_gguf(path) if file == "gguf" else HuggingFaceWeights(path.parent)
        assert "\n" not in str(error.value)


def test_random_damage_never_crashes(tmp_path):
    """Any byte of the header may be wrong: the file opens, or a ModelError says what is wrong."""
    content = bytearray(write_gguf(tmp_path / "m.gguf", random_weights()).read_bytes())
    rng = np.random.default_rng(7)
    path = tmp_path / "damaged.gguf"
    refused = 0
    for _ in range(150):
        damaged = content.copy()
        for position in rng.integers(0, 9000, 3):
            damaged[position] = rng.integers(0, 256)
        path.write_bytes(damaged)
        try:
            open_gguf(path)
        except ModelError:
            refused += 1
    assert refused > 0


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"PK\x03\x04" + bytes(100), "is no GGUF file: it starts with"),
        (b"GGUF" + (1).to_bytes(4, "little") + bytes(100), "has GGUF version 1"),
        (b"GGUF" + (3).to_bytes(4, "big") + bytes(100), "has GGUF version 50331648"),
        (b"GGUF" + (3).to_bytes(4, "little") + b"\xff" * 100, "is cut short"),
        (b"", "cannot be read"),
    ],
)
def test_foreign_files_are_refused(tmp_path, content, message):
    path = tmp_path / "m.gguf"
    path.write_bytes(content)
    with pytest.raises(ModelError, match=message):
        open_gguf(path)


def test_missing_file_is_refused(tmp_path):
    with pytest.raises(ModelError, match="No such file"):
        open_gguf(tmp_path / "none.gguf")


def with_type(path: Path, name: bytes, number: int) -> Path:
    """A file that says another type of one of its tensors."""
    content = path.read_bytes()
    type_at = content.index(name) + len(name) + 4 + 16
    path.write_bytes(content[:type_at] + number.to_bytes(4, "little") + content[type_at + 4 :])
    return path


# Types of 32 numbers a block or fewer: rows of 96 are whole blocks, and none is past the end.
@pytest.mark.parametrize(
    ("number", "message"),
    [
        (26, "has format I32; supported are F32, F16, BF16, Q8_0"),
        (24, "has format I8; supported are"),
        (23, "has rows of 96, no multiple of IQ4_XS's 256"),
        (99, "has the unknown type 99; supported are F32, F16, BF16, Q8_0"),
    ],
)
def test_unsupported_formats_are_refused(tmp_path, number: int, message: str):
    path = write_gguf(tmp_path / "m.gguf", random_weights(), "F32")
    with pytest.raises(ModelError, match=rf"'blk\.1\.ffn_up\.weight' {message}"):
        open_gguf(with_type(path, b"blk.1.ffn_up.weight", number))


def test_weights_must_be_those_of_the_model(tmp_path):
    weights = random_weights()
    shape = weights["model.norm.weight"].shape
    bias = {**weights, "model.layers.0.self_attn.q_proj.bias": np.zeros(shape, np.float32)}
    with pytest.raises(ModelError, match=r"q_proj\.bias' that a model of architecture 'llama'"):
        HuggingFaceWeights(write_hf(tmp_path / "bias", bias))
    del weights["model.layers.1.mlp.up_proj.weight"]
    with pytest.raises(
        ModelError, match=r"has no weight '(blk\.1\.ffn_up|model\.layers\.1\.mlp\.up_proj)"
    ):
        HuggingFaceWeights(write_hf(tmp_path / "hf", weights))
    with pytest.raises(
        ModelError, match=r"has no weight '(blk\.1\.ffn_up|model\.layers\.1\.mlp\.up_proj)"
    ):
        open_gguf(write_gguf(tmp_path / "m.gguf", weights))
    wrong = random_weights()
    wrong["model.norm.weight"] = np.zeros(95, np.float32)
    with pytest.raises(ModelError, match=r"has shape \(95,\); expects \(96,\)"):
        HuggingFaceWeights(write_hf(tmp_path / "shape", wrong))


def test_hugging_face_folder_must_be_complete(tmp_path):
    with pytest.raises(ModelError, match=r"config\.json: cannot be read"):
        HuggingFaceWeights(tmp_path)
    folder = write_hf(tmp_path / "m", random_weights(), shards=2)
    second = folder / "model-00002-of-00002.safetensors"
    second.unlink()
    with pytest.raises(ModelError, match=r"00002-of-00002\.safetensors: cannot be read"):
        HuggingFaceWeights(folder)
    save_file({"model.norm.weight": np.zeros(96, np.float32)}, second)
    with pytest.raises(ModelError, match=r"has no weight '.*', which model"):
        HuggingFaceWeights(folder)
    index = folder / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": {"model.norm.weight": "../x.safetensors"}}))
    with pytest.raises(ModelError, match="expects a file name"):
        HuggingFaceWeights(folder)
    index.unlink()
    with pytest.raises(ModelError, match="has no weights"):
        HuggingFaceWeights(folder)


def test_unsupported_safetensors_dtype_is_refused(tmp_path):
    weights = {k: v.astype(np.float64) for k, v in random_weights().items()}
    with pytest.raises(ModelError, match="has dtype F64; supported are F32, F16, BF16"):
        HuggingFaceWeights(write_hf(tmp_path / "m", weights))


def test_split_and_foreign_gguf_are_refused(tmp_path):
    weights = random_weights()
    cases = {
        "architecture 'bloom'": {"architecture": "bloom"},
        "one part of a split model": {"split__count": 2},
        "'llama.expert_used_count' is missing": {"llama__expert_count": 8},
        "'rope.dimension_count' is 18; expects an even": {"llama__rope__dimension_count": 18},
        "rope scaling 'ntk'": {"llama__rope__scaling__type": "ntk"},
        "'llama.block_count' is 'two'": {"llama__block_count": "two"},
        "6 heads and 4 key-value heads": {"llama__attention__head_count_kv": 4},
    }
    for number, (message, changes) in enumerate(cases.items()):
        path = tiny_models.write_gguf(tmp_path / f"{number}.gguf", weights, **changes)
        with pytest.raises(ModelError, match=message):
            open_gguf(path)
    key = "llama.feed_forward_length"
    path = write_gguf(tmp_path / "m.gguf", weights, drop=(key,))
    with pytest.raises(ModelError, match=f"'{key}' is missing"):
        open_gguf(path)
