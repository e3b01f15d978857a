"""DeepSeek's caches, their bytes per token, and configurations that are refused."""

import json
import re

import numpy as np
import pytest
from architecture_cases import TOKENS, expected, write
from safetensors.numpy import load_file, save_file

from relax_mlir.errors import ModelError, UsageError
from relax_mlir.llm import load
from relax_mlir.llm.architectures.registry import of_folder
from relax_mlir.llm.checkpoints.checkpoint import open_checkpoint
from relax_mlir.llm.modules.decoder import Transformer, export
from relax_mlir.tools.relax_llm import main


@pytest.mark.parametrize("batched", [False, True])
def test_only_latent_elements_are_cached(tmp_path, batched):
    _, config = of_folder(write(tmp_path, "deepseek3"))
    text = export(Transformer(config), batched)
    kinds = re.findall(r"(?:key|value)_cache_\d+", text)
    assert len(set(kinds)) == 2 * config.num_layers
    for columns in (26, 0):
        kind = f"?x1x16x{columns}xf32" if batched else f"1x?x{columns}xf32"
        assert len(re.findall(re.escape(f"tensor<{kind}, ") + r"[^%]*inout", text)) == 3
    # The cache of keys is that of values too.
    name = "paged_attention" if batched else "attention"
    reads = re.findall(rf'"?graph\.nn_{name}"?\(?(.*)', text)
    assert len(reads) == config.num_layers
    for line in reads:
        _, keys, values = re.findall(r"%[\w#]+", line)[:3]
        assert keys == values


@pytest.mark.usefixtures("llvm_turns")
@pytest.mark.rotate(2)
@pytest.mark.parametrize(("cache", "tolerance"), [("bf16", 3e-2), ("int8", 3e-2)])
def test_narrow_caches(tmp_path, cache, tolerance):
    folder = write(tmp_path, "deepseek2", {"kv_lora_rank": 26})
    exact = load(str(folder), weights="f32").logits(TOKENS)
    logits = load(str(folder), weights="f32", cache=cache).logits(TOKENS)
    assert 0 < np.abs(logits - exact).max() < tolerance * np.ptp(exact)


def test_int8_caches_need_blocks(tmp_path):
    with pytest.raises(UsageError, match="this model's have 26; accepted are f32, bf16"):
        load(str(write(tmp_path, "deepseek2")), cache="int8")


def test_layers_behind_the_last_are_not_read(tmp_path):
    folder = write(tmp_path, "deepseek3")
    path = folder / "model.safetensors"
    extra = {"model.layers.3.eh_proj.weight": np.zeros((2, 3), np.float32)}
    save_file({**load_file(path), **extra}, path)
    assert open_checkpoint(str(folder)).config.num_layers == 3


@pytest.mark.parametrize(
    ("case", "changes", "message"),
    [
        ("deepseek2", {"qk_rope_head_dim": 5}, "'qk_rope_head_dim' is 5; expects an even number"),
        ("deepseek2", {"topk_method": "noaux_tc"}, "'topk_method' is 'noaux_tc'; supported are"),
        ("deepseek2-groups", {"n_group": 2}, "chooses 3 of 9 experts, in 2 of 2 groups"),
        ("deepseek2-groups", {"topk_group": 4}, "in 4 of 3 groups; expects"),
        ("deepseek3", {"topk_group": 1, "num_experts_per_tok": 4}, "chooses 4 of 12 experts"),
        ("deepseek3", {"n_group": 12, "topk_group": 9}, "expects two in a group"),
        ("deepseek3", {"scoring_func": "softmax"}, "'scoring_func' is 'softmax'; 'sigmoid' is"),
    ],
)
def test_refusals(tmp_path, case, changes, message):
    path = write(tmp_path, case) / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))
    with pytest.raises(ModelError, match=message):
        of_folder(tmp_path)


def test_norms_that_gguf_files_cannot_state(tmp_path, capsys):
    """They have one epsilon, for norms of latent elements too."""
    folder = write(tmp_path / "folder", "deepseek2")
    config = folder / "config.json"
    config.write_text(json.dumps({**json.loads(config.read_text()), "rms_norm_eps": 1e-5}))
    assert main(["convert", str(folder), "-o", str(tmp_path / "m.gguf")]) == 1
    message = "has latent Latent\\(.*norm_eps=1e-06\\), which GGUF files of .* cannot state"
    assert re.search(message, capsys.readouterr().err)
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


def test_cases_have_references():
    assert {"deepseek2", "deepseek2-groups", "deepseek3"} <= expected().keys()
