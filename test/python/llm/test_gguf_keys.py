"""GGUF files of DeepSeek, Mamba-2 and Bamba as others write them, and as they are refused."""

import functools

import numpy as np
import pytest
from architecture_cases import write
from gguf import GGUFWriter
from safetensors.numpy import load_file
from tiny_models import add_key

from relax_mlir.errors import ModelError
from relax_mlir.llm.checkpoints.checkpoint import open_checkpoint
from relax_mlir.llm.checkpoints.convert import convert
from relax_mlir.llm.formats.gguf_file import GgufFile

BOTH = "self_attn.kv_b_proj.weight"
KINDS = {"deepseek3-gguf": "deepseek2", "mamba2-gguf": "mamba2", "bamba-gguf": "granitehybrid"}


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """The GGUF file of a case, in float32, written once."""

    @functools.cache
    def of(name):
        folder = tmp_path_factory.mktemp(name)
        convert(str(write(folder / "folder", name)), folder / "m.gguf", "f32")
        return folder / "m.gguf"

    return of


def rewritten(path, source, tensors, changes):
    """A file with these tensors (float32), and changed keys; those of None are left out."""
    metadata = {**GgufFile.open(source).metadata, **changes}
    writer = GGUFWriter(path, metadata.pop("general.architecture"))
    for key, value in metadata.items():
        if value not in (None, []):
            add_key(writer, key, value)
    for name, values in tensors.items():
        writer.add_tensor(name, values)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def tensors_of(path):
    file = GgufFile.open(path)
    return {name: file.raw(name).to_f32() for name in file.tensors}


def test_older_files_of_deepseek(tmp_path):
    """They have the keys and values of heads in one matrix, and fewer keys."""
    name = "deepseek2-gguf"
    folder, new = write(tmp_path / "folder", name), tmp_path / "new.gguf"
    convert(str(folder), new, "f32")
    stored = load_file(folder / "model.safetensors")
    both = {f"blk.{i}.attn_kv_b.weight": stored[f"model.layers.{i}.{BOTH}"] for i in range(3)}
    apart = ("attn_k_b.weight", "attn_v_b.weight")
    kept = {name: v for name, v in tensors_of(new).items() if not name.endswith(apart)}
    keys = {f"{kind}_length_mla": None for kind in ("key", "value")}
    keys |= {"key_length": 16, "value_length": 14}
    changes = {f"deepseek2.attention.{key}": value for key, value in keys.items()}
    changes |= {"deepseek2.expert_gating_func": None, "deepseek2.expert_group_count": None}
    old = rewritten(tmp_path / "old.gguf", new, kept | both, changes)
    a, b = open_checkpoint(str(new)), open_checkpoint(str(old))
    assert a.config == b.config
    for weight in a.weights.names:
        np.testing.assert_array_equal(a.weights.load_f32(weight), b.weights.load_f32(weight))


@pytest.mark.parametrize(
    ("name", "key", "value", "message"),
    [
        ("deepseek3-gguf", "expert_gating_func", 3, "is 3; supported are 1 .'softmax'., 2"),
        ("deepseek3-gguf", "expert_group_count", 5, "chooses 3 of 12 experts, in 2 of 5 groups"),
        ("deepseek3-gguf", "expert_group_used_count", 5, "in 5 of 4 groups"),
        ("deepseek3-gguf", "rope.scaling.yarn_log_multiplier", None, "multiplier' is missing"),
        ("deepseek3-gguf", "rope.scaling.attn_factor", 1.5, "attn_factor'; expects none"),
        ("deepseek3-gguf", "rope.scaling.type", "linear", "supported is 'yarn'"),
        ("deepseek3-gguf", "rope.dimension_count", 16, "is 16; expects an even integer below 16"),
        ("deepseek3-gguf", "leading_dense_block_count", 2**31 - 1, "has no weight 'blk.1.ffn_g"),
        ("mamba2-gguf", "ssm.time_step_rank", 7, "7 heads of states of 96 elements"),
        ("mamba2-gguf", "ssm.group_count", 5, "6 heads of states in 5 groups"),
        ("mamba2-gguf", "block_count", 2**31 - 1, "has 2147483647 layers; expects at most"),
        ("bamba-gguf", "attention.head_count_kv", [0, 2], r"is \(0, 2\); expects one count for"),
        ("bamba-gguf", "attention.head_count_kv", [2, 2, 2], "equal ones or 0, which some"),
        ("bamba-gguf", "rope.scaling.finetuned", False, "has no rotary positions"),
        ("bamba-gguf", "residual_scale", 0.5, "residual_scale', which is not supported"),
    ],
)
def test_keys_that_are_refused(tmp_path, written, name, key, value, message):
    path = written(name)
    changes = {f"{KINDS[name]}.{key}": value}
    changed = rewritten(tmp_path / "m.gguf", path, tensors_of(path), changes)
    with pytest.raises(ModelError, match=message):
        open_checkpoint(str(changed))


def test_rates_that_are_not_negative(tmp_path, written):
    path = written("mamba2-gguf")
    tensors = tensors_of(path)
    tensors["blk.1.ssm_a"][2] = 0.5
    source = open_checkpoint(str(rewritten(tmp_path / "m.gguf", path, tensors, {}))).weights
    with pytest.raises(ModelError, match=r"'blk\.1\.ssm_a' has rates of states that are not < 0"):
        source.raw("model.layers.1.mamba.a_log.weight")
