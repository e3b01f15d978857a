"""Configurations from both kinds of file; damaged and foreign ones are refused by name."""

import json
import math

import numpy as np
import pytest
from tiny_models import CONFIG, random_weights, write_gguf, write_hf

from relax_mlir.errors import ModelError
from relax_mlir.llm.architectures.registry import of_folder, of_gguf
from relax_mlir.llm.checkpoints.checkpoint import open_checkpoint
from relax_mlir.llm.formats.gguf_file import GgufFile

WRONG = [None, -1, 0, 1.5, "x", [], ["a"], [0, 5], {}, {"a": 1}, True, 2**70, 1e400, math.nan]
LLAMA3 = {
    "rope_type": "llama3",
    "factor": 32.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 8192,
}

HF_YARN = {"rope_type": "yarn", "factor": 2.0**63, "original_max_position_embeddings": 1}


@pytest.fixture(scope="module")
def weights():
    return random_weights()


def hf_config(tmp_path, **changes):
    return of_folder(write_hf(tmp_path, {}, **changes))[1]


def test_smollm2(smollm2):
    config = smollm2.config
    assert (config.vocab_size, config.hidden_size, config.intermediate_size) == (49152, 576, 1536)
    assert (config.num_layers, config.num_heads, config.num_kv_heads) == (30, 9, 3)
    assert (config.head_dim, config.ropes[0].theta, config.max_context) == (64, 100000.0, 8192)
    assert config.tie_embeddings
    assert (config.bos_id, config.eos_ids) == (1, {0, 2})
    assert sum(math.prod(shape) for shape in config.weight_shapes().values()) == 134515008


def test_defaults_of_hugging_face(tmp_path):
    folder = write_hf(tmp_path, {})
    values = json.loads((folder / "config.json").read_text())
    for key in ("num_key_value_heads", "rope_theta", "rms_norm_eps", "tie_word_embeddings"):
        del values[key]
    (folder / "config.json").write_text(json.dumps(values))
    config = of_folder(folder)[1]
    assert (config.num_kv_heads, config.ropes[0].theta, config.norm_eps) == (6, 10000.0, 1e-6)
    assert not config.tie_embeddings


def test_end_tokens_are_united(tmp_path):
    folder = write_hf(tmp_path, {}, eos_token_id=[1, 7])
    (folder / "generation_config.json").write_text(json.dumps({"eos_token_id": 9}))
    assert of_folder(folder)[1].eos_ids == {1, 7, 9}


@pytest.mark.parametrize("file", ["tokenizer_config.json", "special_tokens_map.json"])
def test_the_end_token_of_a_folder_s_tokenizer_ends_too(tmp_path, weights, file):
    folder = write_hf(tmp_path, weights, eos_token_id=7)
    (folder / "tokenizer_config.json").unlink()
    (folder / file).write_text(json.dumps({"eos_token": {"content": "<|im_end|>"}}))
    assert open_checkpoint(str(folder)).config.eos_ids == {1, 7}


def test_inverse_frequencies(tmp_path):
    plain = hf_config(tmp_path).ropes[0].inverse_frequencies()
    assert plain.dtype == np.float32
    expected = [5000.0 ** (-2 * i / 16) for i in range(8)]
    np.testing.assert_allclose(plain, expected, rtol=1e-7)
    linear = hf_config(tmp_path, rope_scaling={"type": "linear", "factor": 4.0})
    np.testing.assert_allclose(
        linear.ropes[0].inverse_frequencies(), np.array(expected) / 4, rtol=1e-7
    )


def test_llama3_frequencies(tmp_path):
    """High frequencies stay, low ones are divided by the factor, and those between lie between."""
    sizes = {"head_dim": 64, "rope_theta": 500000.0}
    plain = hf_config(tmp_path, **sizes).ropes[0].inverse_frequencies()
    scaled = hf_config(tmp_path, **sizes, rope_scaling=LLAMA3).ropes[0].inverse_frequencies()
    wavelengths = 2 * np.pi / plain
    short, long = wavelengths < 8192 / 4, wavelengths > 8192
    assert 0 < np.count_nonzero(short | long) < len(plain)
    assert short.any()
    assert long.any()
    np.testing.assert_array_equal(scaled[short], plain[short])
    np.testing.assert_allclose(scaled[long], plain[long] / 32, rtol=1e-6)
    for i in np.flatnonzero(~short & ~long):
        blend = (8192 / wavelengths[i] - 1) / (4 - 1)
        expected = (1 - blend) * plain[i] / 32 + blend * plain[i]
        assert scaled[i] == pytest.approx(expected, rel=1e-5)
    new_style = {**LLAMA3, "rope_theta": 500000.0}
    again = hf_config(tmp_path, head_dim=64, rope_theta=None, rope_parameters=new_style)
    np.testing.assert_array_equal(again.ropes[0].inverse_frequencies(), scaled)


def test_gguf_rope_factors(tmp_path, weights):
    factors = np.linspace(1, 8, CONFIG.head_dim // 2, dtype=np.float32)
    path = write_gguf(tmp_path / "m.gguf", {**weights, "rope_freqs": factors})
    config = of_gguf(GgufFile.open(path))[1]
    assert config.ropes[0].factors == tuple(factors.tolist())
    changes = {"llama__rope__scaling__type": "linear", "llama__rope__scaling__factor": 2.0}
    path = write_gguf(tmp_path / "linear.gguf", weights, **changes)
    assert of_gguf(GgufFile.open(path))[1].ropes[0].factors == (2.0,) * 8


YARN = {
    "llama__rope__scaling__type": "yarn",
    "llama__rope__scaling__factor": 4.0,
    "llama__rope__scaling__original_context_length": 16,
}


def test_gguf_yarn_is_that_of_folders(tmp_path, weights):
    """llama.cpp's logits with these keys are those of a folder with this `rope_scaling`, too."""
    [rope] = of_gguf(GgufFile.open(write_gguf(tmp_path / "m.gguf", weights, **YARN)))[1].ropes
    scaling = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 16}
    rest = {"head_dim": 16, "rope_theta": CONFIG.ropes[0].theta}
    assert rope == hf_config(tmp_path, rope_scaling=scaling, **rest).ropes[0]


@pytest.mark.parametrize("shape", [(CONFIG.head_dim // 2 + 1,), (1 << 8, 1 << 8)])
def test_gguf_rope_factors_of_a_wrong_shape_are_not_read(tmp_path, weights, monkeypatch, shape):
    stored = {**weights, "rope_freqs": np.ones(shape, np.float32)}
    file = GgufFile.open(write_gguf(tmp_path / "m.gguf", stored))
    monkeypatch.setattr(GgufFile, "raw", lambda *_: pytest.fail("was read"))
    with pytest.raises(ModelError, match=r"m.gguf.*'rope_freqs.weight' holds no 8 positive"):
        of_gguf(file)[1]


@pytest.mark.parametrize(
    ("entries", "factor"),
    [
        ({"type": "linear"}, None),
        ({"factor": 4.0}, 4.0),
        ({"factor": 0.0}, None),
        ({"type": "none", "factor": 4.0}, None),
        ({"scale_linear": 4.0}, 4.0),
        ({"scale_linear": 4.0, "factor": 2.0}, 2.0),
    ],
    ids=str,
)
@pytest.mark.parametrize("has_factors", [False, True])
def test_gguf_rope_scales_as_in_llama_cpp(tmp_path, weights, entries, factor, has_factors):
    keys = {
        "type": "llama__rope__scaling__type",
        "factor": "llama__rope__scaling__factor",
        "scale_linear": "llama__rope__scale_linear",
    }
    each = np.linspace(1, 8, CONFIG.head_dim // 2, dtype=np.float32)
    stored = {**weights, "rope_freqs": each} if has_factors else weights
    changes = {keys[name]: value for name, value in entries.items()}
    config = of_gguf(GgufFile.open(write_gguf(tmp_path / "m", stored, **changes)))[1]
    if factor is None and not has_factors:
        assert config.ropes[0].factors is None
    else:
        expected = (factor or 1.0) * (each if has_factors else np.ones(8))
        np.testing.assert_array_equal(config.ropes[0].factors, expected)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"llama__attention__causal": False}, "'llama.attention.causal' is False; True is"),
        ({"llama__rope__scaling__attn_factor": -0.5}, "'llama.rope.scaling.attn_factor' is -0.5"),
        ({"llama__rope__scaling__type": "ntk"}, "has rope scaling 'ntk'"),
        ({"llama__rope__scaling__type": "yarn"}, "'llama.rope.scaling.factor' is missing"),
        ({**YARN, "llama__rope__scaling__yarn_ext_factor": 0.5}, "ext_factor' is 0.5; 1.0 is supp"),
        ({"llama__rope__scaling__type": "longrope"}, "'longrope' without 'rope_factors_long.wei"),
        ({"llama__expert_count": 8}, "'llama.expert_used_count' is missing"),
        ({"general__architecture": "bloom"}, "architecture 'bloom'; supported are command-r, dee"),
        ({"llama__rope__scaling__factor": -2.0}, "'llama.rope.scaling.factor' is -2.0; expects"),
    ],
)
def test_gguf_refusals(tmp_path, weights, changes, message):
    with pytest.raises(ModelError, match=message):
        of_gguf(GgufFile.open(write_gguf(tmp_path / "m.gguf", weights, **changes)))[1]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"architectures": ["BloomForCausalLM"]}, "has architecture 'BloomForCausalLM'"),
        ({"architectures": None, "model_type": "mamba"}, "has architecture 'mamba'"),
        ({"hidden_act": "xielu"}, "'hidden_act' is 'xielu'; supported are 'silu', "),
        ({"is_causal": False}, "'is_causal' is False; True is supported"),
        ({"attention_bias": 1}, "'attention_bias' is 1; expects a boolean"),
        ({"quantization_config": {"bits": 4}}, "'quantization_config' has"),
        ({"rope_scaling": {"rope_type": "ntk"}}, "has rope scaling 'ntk'"),
        ({"rope_scaling": {"rope_type": "linear"}}, "'factor' is missing"),
        ({"num_hidden_layers": 2**30}, "expects at most 1024"),
        ({"head_dim": 7}, "has heads of 7 elements"),
        ({"head_dim": 2**30}, "has heads of 1073741824 elements"),
        ({"hidden_size": 3}, "'head_dim' is 0"),
        ({"hidden_size": 2**31}, "'hidden_size' is 2147483648; expects a positive integer below"),
        ({"rope_theta": 10**400}, r"'rope_theta' is 1000.*\.\.\..*000; expects a positive number"),
        ({"rope_theta": float("inf")}, "'rope_theta' is inf; expects a positive number"),
        ({"rms_norm_eps": float("nan")}, "'rms_norm_eps' is nan; expects a positive number"),
        ({"rms_norm_eps": 1e300}, r"is 1e\+300; expects a positive number in the range of float32"),
        ({"rms_norm_eps": 1e-320}, "expects a positive number in the range of float32"),
        ({"rope_theta": 1e-37}, r"rotates by .* radians per position.* expects up to 1e\+06"),
        ({"rope_theta": 1, "rope_scaling": HF_YARN}, "has theta 1 and rope scaling 'yarn'"),
        ({"rope_scaling": {"rope_type": "linear", "factor": 1e-9}}, "rotates by 1e"),
        ({"rope_scaling": {**HF_YARN, "rope_type": "longrope"}}, "is 1; expects more than 1 with"),
    ],
)
def test_refusals(tmp_path, changes, message):
    with pytest.raises(ModelError, match=message):
        hf_config(tmp_path, **changes)


@pytest.mark.parametrize("content", ["", "{", "[]", "3", b"\xff\xfe", "[" * 10**6, "9" * 5000])
def test_damaged_json(tmp_path, content):
    path = tmp_path / "config.json"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(ModelError, match=r"config\.json"):
        of_folder(tmp_path)[1]


def test_entries_of_any_type_give_a_config_or_an_error(tmp_path):
    keys = [*json.loads((write_hf(tmp_path, {}) / "config.json").read_text()), "head_dim"]
    keys += ["rope_scaling", "rope_parameters", "architectures", "model_type"]
    refused = 0
    for key in keys:
        for value in WRONG:
            try:
                config = hf_config(tmp_path, **{key: value})
            except ModelError:
                refused += 1
            else:
                assert hash(config) is not None
    assert refused > len(keys) * 5


def test_gguf_entries_of_any_type_give_a_config_or_an_error(tmp_path, weights):
    file = GgufFile.open(write_gguf(tmp_path / "m.gguf", weights))
    refused = 0
    for key in file.metadata:
        for value in WRONG:
            damaged = GgufFile(file.path, {**file.metadata, key: value}, file.tensors, file.buffer)
            try:
                of_gguf(damaged)[1]
            except ModelError:
                refused += 1
    assert refused > 100
