"""LoRA adapters: weights are those of a model whose file was changed, and of PEFT."""

import json

import architecture_cases
import numpy as np
import pytest
import tiny_vision
from safetensors.numpy import load_file, save_file
from tiny_models import random_weights, write_gguf, write_hf

from relax_mlir import llm
from relax_mlir.errors import ModelError, RelaxError, UsageError
from relax_mlir.llm.checkpoints.adapters import AdaptedWeights, read_adapter
from relax_mlir.llm.checkpoints.checkpoint import open_checkpoint
from relax_mlir.llm.checkpoints.hf_reader import HuggingFaceWeights
from relax_mlir.tools.relax_llm import main

PLAIN = {"peft_type": "LORA", "r": 3, "lora_alpha": 7}
Q = "model.layers.0.self_attn.q_proj"


def write_adapter(folder, modules, seed=1, prefix="base_model.model.", **options):
    """An adapter of modules, by their shapes (out, in) and ranks."""
    rng = np.random.default_rng(seed)
    tensors = {}
    for module, (rows, columns, rank) in modules.items():
        for part, shape in (("A", (rank, columns)), ("B", (rows, rank))):
            values = rng.normal(size=shape).astype(np.float32)
            tensors[f"{prefix}{module}.lora_{part}.weight"] = values
    folder.mkdir()
    save_file(tensors, folder / "adapter_model.safetensors")
    (folder / "adapter_config.json").write_text(json.dumps({**PLAIN, **options}))
    return tensors


def changed_file(folder, tensors, scale_of):
    """Adds the products to the tensors of a model's file, (in, out) if that is their shape."""
    path = folder / "model.safetensors"
    weights = dict(load_file(path))
    for name in tensors:
        module = name.removeprefix("base_model.model.").removesuffix(".lora_A.weight")
        if name.endswith(".lora_A.weight"):
            b = tensors[name.replace("lora_A", "lora_B")].astype(np.float64)
            product = scale_of(module) * (b @ tensors[name].astype(np.float64))
            own = weights[f"{module}.weight"].astype(np.float64)
            own += product.T if module.endswith(("c_attn", "c_proj", "c_fc")) else product
            weights[f"{module}.weight"] = own.astype(np.float32)
    save_file(weights, path)


CASES = {
    "llama": ["model.layers.1.self_attn.q_proj", "model.layers.2.mlp.down_proj", "lm_head"],
    "phi3": ["model.layers.0.self_attn.qkv_proj", "model.layers.2.mlp.gate_up_proj"],
    "gpt2": ["transformer.h.0.attn.c_attn", "transformer.h.1.mlp.c_fc"],
    "gpt-neox": [
        "gpt_neox.layers.0.attention.query_key_value",
        "gpt_neox.layers.1.mlp.dense_h_to_4h",
    ],
    "qwen2-moe": ["model.layers.0.mlp.experts.1.up_proj", "model.layers.0.mlp.gate"],
}


@pytest.mark.parametrize("case", CASES)
def test_weights_are_those_of_a_changed_file(tmp_path, case):
    known = {name.replace("_", "-"): name for name in architecture_cases.CASES}
    folder = architecture_cases.write(tmp_path / "m", known[case])
    stored = {
        name: values.shape for name, values in load_file(folder / "model.safetensors").items()
    }
    modules = {}
    for rank, module in enumerate(CASES[case], 1):
        rows, columns = stored[f"{module}.weight"]
        is_transposed = case == "gpt2"
        modules[module] = (*((columns, rows) if is_transposed else (rows, columns)), rank)
    tensors = write_adapter(tmp_path / "a", modules)
    plain = HuggingFaceWeights(folder)
    before = {name: plain.load_f32(name).copy() for name in plain.names}
    adapted = AdaptedWeights(plain, read_adapter(tmp_path / "a"))
    found = {name: adapted.load_f32(name).copy() for name in plain.names}
    changed_file(folder, tensors, lambda module: 7 / modules[module][2])
    expected = HuggingFaceWeights(folder)
    differing = 0
    for name in expected.names:
        np.testing.assert_allclose(found[name], expected.load_f32(name), 1e-5, 1e-5, err_msg=name)
        differing += not np.array_equal(found[name], before[name])
    assert differing >= len(modules)


@pytest.mark.parametrize(
    ("options", "scale"),
    [
        ({"use_rslora": True}, 7 / np.sqrt(2)),
        ({"alpha_pattern": {"layers.0.self_attn.q_proj": 5}}, 5 / 2),
        ({"alpha_pattern": {"self_attn.q": 5, ".*q_proj": 4.5, "q_proj": 6}}, 4.5 / 2),
        ({"alpha_pattern": {"k_proj": 5}, "init_lora_weights": "gaussian"}, 7 / 2),
    ],
)
def test_scales(tmp_path, options, scale):
    write_adapter(tmp_path / "a", {Q: (4, 6, 2)}, **options)
    assert read_adapter(tmp_path / "a").scales == {Q: pytest.approx(scale)}


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return write_hf(tmp_path_factory.mktemp("adapted") / "m", random_weights())


def shape_of(folder, module):
    return load_file(folder / "model.safetensors")[f"{module}.weight"].shape


def test_logits(model, tmp_path):
    """Files of both kinds, loaded from the cache too, and an adapter that changes its values."""
    gguf = write_gguf(tmp_path / "m.gguf", random_weights())
    modules = {Q: (*shape_of(model, Q), 2)}
    tensors = write_adapter(tmp_path / "a", modules)
    merged = write_hf(tmp_path / "merged", random_weights())
    changed_file(merged, tensors, lambda module: 7 / 2)
    tokens = np.random.default_rng(3).integers(0, 250, 11)
    expected = llm.load(str(merged), threads=2).logits(tokens)
    for path in (model, gguf, gguf):
        logits = llm.load(str(path), threads=2, lora=str(tmp_path / "a")).logits(tokens)
        np.testing.assert_allclose(logits, expected, 1e-4, 1e-4)
    assert np.abs(llm.load(str(gguf), threads=2).logits(tokens) - expected).max() > 0.1


def test_quantised_matrices_take_8_bits(tmp_path):
    gguf = write_gguf(tmp_path / "m.gguf", random_weights(), "Q4_0")
    write_adapter(tmp_path / "a", {Q: (*random_weights()[f"{Q}.weight"].shape, 2)})
    weights = open_checkpoint(str(gguf), str(tmp_path / "a")).weights
    assert weights.format(f"{Q}.weight") == "Q8_0"
    assert weights.format(f"{Q.replace('q_', 'k_')}.weight") == "Q4_0"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"use_dora": True}, "'use_dora' is True"),
        ({"bias": "all"}, "'bias' is 'all'; supported is 'none'"),
        ({"modules_to_save": ["lm_head"]}, "'modules_to_save'"),
        ({"peft_type": "IA3"}, "supported is 'LORA'"),
        ({"init_lora_weights": "pissa"}, "changes the model's own weights"),
        ({"lora_alpha": 0}, "'lora_alpha'"),
        ({"r": "3"}, "'r'"),
        ({"alpha_pattern": {"(": 2}}, "no regular expression"),
        ({"alpha_pattern": {"a{1,99999999999}": 2}}, "no regular expression: the repetition"),
        ({"alpha_pattern": {"(" * 5000 + ")" * 5000: 2}}, "no regular expression"),
    ],
)
def test_options_that_are_refused(tmp_path, options, message):
    write_adapter(tmp_path / "a", {Q: (4, 6, 2)}, **options)
    with pytest.raises(ModelError, match=message.replace("(", r"\(")):
        read_adapter(tmp_path / "a")


@pytest.mark.parametrize(
    ("modules", "prefix", "message"),
    [
        ({"model.layers.9.self_attn.q_proj": (4, 6, 2)}, "base_model.model.", "is no matrix of"),
        ({"model.norm": (4, 6, 2)}, "base_model.model.", "is no matrix of"),
        ({Q: (4, 6, 2)}, "base_model.model.", r"of shape \(4, 6\); this model's is"),
        ({Q: (4, 6, 2)}, "model.", "has a tensor 'model.model.layers.0"),
        ({Q: (96, 96, 0)}, "base_model.model.", "expects lora_A"),
        ({}, "", "adapts nothing"),
    ],
)
def test_adapters_of_other_models(model, tmp_path, modules, prefix, message):
    write_adapter(tmp_path / "a", modules, prefix=prefix)
    with pytest.raises(ModelError, match=message):
        open_checkpoint(str(model), str(tmp_path / "a"))


def test_folders_that_are_no_adapter(model, tmp_path, capsys):
    with pytest.raises(UsageError, match="has no 'adapter_config"):
        open_checkpoint(str(model), str(tmp_path))
    assert main(["generate", str(model), "a", "--lora", str(tmp_path / "none")]) == 2
    assert "expects a folder of PEFT" in capsys.readouterr().err


def test_models_that_read_images(tmp_path):
    """The decoder's modules have names of several versions of files; the encoder has none."""
    folder = tiny_vision.write(tmp_path / "m")
    name = f"{Q}.weight"
    source = HuggingFaceWeights(folder)
    before = source.load_f32(name)
    for i, prefix in enumerate(("language_model.", "model.language_model.")):
        module = f"{prefix}{Q}" if i == 0 else f"{prefix}{Q.removeprefix('model.')}"
        tensors = write_adapter(tmp_path / str(i), {module: (*before.shape, 3)})
        a, b = tensors.values()
        after = AdaptedWeights(source, read_adapter(tmp_path / str(i))).load_f32(name)
        np.testing.assert_allclose(after, before + 7 / 3 * (b @ a), 1e-5, 1e-5)
    both = {f"{prefix}{Q}": (*before.shape, 3) for prefix in ("", "language_model.")}
    write_adapter(tmp_path / "both", both)
    with pytest.raises(ModelError, match=r"adapts 'model.* and 'language_model.*, the same matrix"):
        AdaptedWeights(source, read_adapter(tmp_path / "both"))
    write_adapter(tmp_path / "v", {"model.vision_tower.encoder.layers.0.mlp.fc1": (4, 6, 2)})
    with pytest.raises(ModelError, match=r"adapts 'model\.vision_tower.*which is no matrix"):
        AdaptedWeights(source, read_adapter(tmp_path / "v"))


@pytest.mark.parametrize("cut", [0, 7, 30, -1])
def test_files_that_are_cut_short(model, tmp_path, cut):
    write_adapter(tmp_path / "a", {Q: (*shape_of(model, Q), 2)})
    file = tmp_path / "a" / "adapter_model.safetensors"
    file.write_bytes(file.read_bytes()[:cut])
    with pytest.raises(RelaxError, match="adapter_model"):
        open_checkpoint(str(model), str(tmp_path / "a"))


def test_peft(model, tmp_path):
    """An adapter that PEFT wrote, with its own logits."""
    torch, peft = pytest.importorskip("torch"), pytest.importorskip("peft")
    transformers = pytest.importorskip("transformers")
    base = transformers.LlamaForCausalLM.from_pretrained(model, dtype=torch.float32)
    options = {"r": 3, "lora_alpha": 5, "init_lora_weights": False, "use_rslora": True}
    options |= {"rank_pattern": {"up_proj": 2}, "alpha_pattern": {"layers.1.self_attn.v_proj": 9}}
    targets = ["q_proj", "v_proj", "up_proj", "lm_head"]
    adapted = peft.get_peft_model(base, peft.LoraConfig(target_modules=targets, **options))
    adapted.save_pretrained(tmp_path / "a", save_embedding_layers=False)
    tokens = np.random.default_rng(4).integers(0, 250, 13)
    with torch.no_grad():
        expected = adapted(torch.tensor(tokens)[None]).logits[0].numpy()
    folder = str(tmp_path / "a")
    merged = llm.load(str(model), threads=2, lora=folder).logits(tokens)
    chosen = llm.load(str(model), threads=2, adapters={"a": folder}).logits(tokens, "a")
    for logits in (merged, chosen):
        assert np.abs(logits - expected).max() < 1e-4 * np.ptp(expected)
