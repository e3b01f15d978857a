"""Tiny models of every architecture, as `config.json` and random weights.

Sizes are awkward on purpose: odd counts of layers, heads that are no power of two, windows that are
shorter than the text.
"""

import json
import zlib
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

import numpy as np
from safetensors.numpy import save_file
from tiny_models import write_hf_tokenizer

from relax_mlir.llm.architectures.registry import of_folder

INPUTS = Path(__file__).parent / "Inputs"
VOCABULARY = 271
TOKENS = np.random.default_rng(7).integers(0, VOCABULARY, 23)
SIZES = {
    "vocab_size": VOCABULARY,
    "hidden_size": 48,
    "intermediate_size": 80,
    "num_hidden_layers": 3,
    "num_attention_heads": 6,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "max_position_embeddings": 64,
    "rope_theta": 5000.0,
    "bos_token_id": 0,
    "eos_token_id": 1,
    "pad_token_id": None,
    "tie_word_embeddings": False,
}
LLAMA = {**SIZES, "architectures": ["LlamaForCausalLM"], "model_type": "llama"}
LLAMA3 = {
    "rope_type": "llama3",
    "factor": 4.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 16,
}
YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 16}
LONG = {
    "rope_type": "longrope",
    "short_factor": [1.0, 1.125, 1.5, 2.0],
    "long_factor": [1.5, 2.0, 4.0, 8.0],
}


def _like(architecture: str, model_type: str, **more: object) -> dict:
    return {**SIZES, "architectures": [architecture], "model_type": model_type, **more}


CASES: dict[str, dict] = {
    "llama": {**LLAMA, "attention_bias": True, "mlp_bias": True},
    "llama-linear": {**LLAMA, "rope_scaling": {"rope_type": "linear", "factor": 2.5}},
    "llama-dynamic": {**LLAMA, "rope_scaling": {"rope_type": "dynamic", "factor": 2.0}},
    "llama-llama3": {**LLAMA, "rope_scaling": LLAMA3, "tie_word_embeddings": True},
    "llama-yarn": {**LLAMA, "rope_scaling": YARN},
    "mistral": _like("MistralForCausalLM", "mistral", sliding_window=5),
    "mixtral": _like(
        "MixtralForCausalLM",
        "mixtral",
        num_local_experts=5,
        num_experts_per_tok=2,
        sliding_window=None,
    ),
    "qwen2": _like("Qwen2ForCausalLM", "qwen2"),
    "qwen2-moe": _like(
        "Qwen2MoeForCausalLM",
        "qwen2_moe",
        num_experts=7,
        num_experts_per_tok=3,
        moe_intermediate_size=24,
        shared_expert_intermediate_size=40,
        decoder_sparse_step=1,
        mlp_only_layers=[1],
        norm_topk_prob=False,
    ),
    "qwen3": _like("Qwen3ForCausalLM", "qwen3", tie_word_embeddings=True),
    "qwen3-moe": _like(
        "Qwen3MoeForCausalLM",
        "qwen3_moe",
        num_experts=6,
        num_experts_per_tok=2,
        moe_intermediate_size=24,
        norm_topk_prob=True,
        mlp_only_layers=[],
        decoder_sparse_step=1,
    ),
    "gemma": _like("GemmaForCausalLM", "gemma", tie_word_embeddings=True),
    "gemma2": _like(
        "Gemma2ForCausalLM",
        "gemma2",
        tie_word_embeddings=True,
        sliding_window=6,
        query_pre_attn_scalar=11,
        attn_logit_softcapping=2.0,
        final_logit_softcapping=3.0,
    ),
    "gemma3": _like(
        "Gemma3ForCausalLM",
        "gemma3_text",
        tie_word_embeddings=True,
        sliding_window=6,
        query_pre_attn_scalar=11,
        rope_theta=100000.0,
        rope_local_base_freq=1000.0,
        layer_types=["sliding_attention", "full_attention", "sliding_attention"],
    ),
    "phi": _like("PhiForCausalLM", "phi", partial_rotary_factor=0.5),
    "phi3": _like("Phi3ForCausalLM", "phi3", sliding_window=9, pad_token_id=0),
    "phi3-longrope": _like(
        "Phi3ForCausalLM",
        "phi3",
        sliding_window=None,
        rope_scaling=LONG,
        original_max_position_embeddings=32,
        pad_token_id=0,
    ),
    "phi3-longrope-long": _like(
        "Phi3ForCausalLM",
        "phi3",
        sliding_window=None,
        rope_scaling=LONG,
        original_max_position_embeddings=16,
        pad_token_id=0,
    ),
    "gpt2": {
        "architectures": ["GPT2LMHeadModel"],
        "model_type": "gpt2",
        "vocab_size": VOCABULARY,
        "n_embd": 48,
        "n_layer": 3,
        "n_head": 6,
        "n_positions": 64,
    },
    "gpt-neox": _like(
        "GPTNeoXForCausalLM",
        "gpt_neox",
        num_key_value_heads=None,
        rope_theta=None,
        rotary_emb_base=5000,
        rotary_pct=0.5,
        head_dim=None,
    ),
    "gpt-neox-sequential": _like(
        "GPTNeoXForCausalLM",
        "gpt_neox",
        num_key_value_heads=None,
        rope_theta=None,
        rotary_emb_base=5000,
        rotary_pct=1.0,
        head_dim=None,
        use_parallel_residual=False,
    ),
    "stablelm": _like(
        "StableLmForCausalLM", "stablelm", partial_rotary_factor=0.25, use_qkv_bias=True
    ),
    "falcon": {
        **_like(
            "FalconForCausalLM", "falcon", multi_query=True, bias=False, tie_word_embeddings=True
        ),
        "num_key_value_heads": None,
        "head_dim": None,
    },
    "falcon-new": {
        **_like("FalconForCausalLM", "falcon", new_decoder_architecture=True, num_kv_heads=2),
        "tie_word_embeddings": True,
        "num_key_value_heads": None,
        "head_dim": None,
        "bias": False,
    },
    "olmo2": _like("Olmo2ForCausalLM", "olmo2"),
    "olmoe": _like("OlmoeForCausalLM", "olmoe", num_experts=5, num_experts_per_tok=2),
    "granite": _like(
        "GraniteForCausalLM",
        "granite",
        embedding_multiplier=3.0,
        residual_multiplier=0.5,
        attention_multiplier=0.25,
        logits_scaling=2.0,
        tie_word_embeddings=True,
    ),
    "cohere": _like("CohereForCausalLM", "cohere", logit_scale=0.5, tie_word_embeddings=True),
    "smollm3": _like("SmolLM3ForCausalLM", "smollm3", no_rope_layers=[1, 0, 1], pad_token_id=0),
    "starcoder2": _like("Starcoder2ForCausalLM", "starcoder2", sliding_window=7),
}

LATENT = {
    **{"num_key_value_heads": 6, "head_dim": None, "moe_intermediate_size": 24},
    **{"kv_lora_rank": 20, "qk_nope_head_dim": 10, "qk_rope_head_dim": 6, "v_head_dim": 14},
    **{"num_experts_per_tok": 3, "first_k_dense_replace": 1},
}
MSCALE = {**YARN, "mscale": 0.707, "mscale_all_dim": 0.5, "beta_fast": 8, "beta_slow": 1}
CASES |= {
    "deepseek2": _like(
        "DeepseekV2ForCausalLM",
        "deepseek_v2",
        **LATENT,
        q_lora_rank=None,
        n_routed_experts=8,
        n_shared_experts=2,
        topk_method="greedy",
        routed_scaling_factor=1.5,
    ),
    "deepseek2-groups": _like(
        "DeepseekV2ForCausalLM",
        "deepseek_v2",
        **LATENT,
        q_lora_rank=18,
        n_routed_experts=9,
        n_shared_experts=1,
        n_group=3,
        topk_group=2,
        topk_method="group_limited_greedy",
        rope_scaling=MSCALE,
    ),
    "deepseek3": _like(
        "DeepseekV3ForCausalLM",
        "deepseek_v3",
        **LATENT,
        q_lora_rank=22,
        n_routed_experts=12,
        n_shared_experts=1,
        n_group=4,
        topk_group=2,
        num_nextn_predict_layers=0,
        rope_scaling=MSCALE,
    ),
}
CASES |= {
    "mamba2": {
        **{"architectures": ["Mamba2ForCausalLM"], "model_type": "mamba2", "pad_token_id": 0},
        **{"vocab_size": VOCABULARY, "hidden_size": 48, "num_hidden_layers": 3, "expand": 2},
        **{"num_heads": 6, "head_dim": 16, "state_size": 10, "n_groups": 2, "conv_kernel": 4},
        **{"chunk_size": 8, "use_bias": True, "bos_token_id": 0, "eos_token_id": 1},
    },
    "bamba": _like(
        "BambaForCausalLM",
        "bamba",
        attn_layer_indices=[1],
        mamba_n_heads=8,
        mamba_d_head="auto",
        mamba_n_groups=1,
        mamba_d_state=9,
        mamba_d_conv=3,
        mamba_chunk_size=8,
        time_step_limit=[0.01, 2.0],
        pad_token_id=0,
    ),
}

CASES |= {
    "qwen3-yarn": _like("Qwen3ForCausalLM", "qwen3", rope_scaling=YARN),
    "deepseek2-gguf": {
        **CASES["deepseek2-groups"],
        **{"topk_method": "greedy", "rope_scaling": {**MSCALE, "mscale_all_dim": 0.707}},
    },
    "deepseek3-gguf": {
        **CASES["deepseek3"],
        "rope_scaling": {**MSCALE, "mscale": 1.0, "mscale_all_dim": 1.0},
    },
    "mamba2-gguf": {**CASES["mamba2"], "use_bias": False},
    "bamba-gguf": {**CASES["bamba"], "time_step_limit": None},
    "gemma2-gguf": {**CASES["gemma2"], "query_pre_attn_scalar": 8},
    "gemma3-gguf": {**CASES["gemma3"], "query_pre_attn_scalar": 8},
    "qwen2-moe-gguf": {**CASES["qwen2-moe"], "mlp_only_layers": []},
    "olmoe-gguf": {**CASES["olmoe"], "num_key_value_heads": 6},
    "smollm3-gguf": {**CASES["smollm3"], "num_hidden_layers": 4, "no_rope_layers": [1, 1, 1, 0]},
}
NULLS = ("sliding_window", "q_lora_rank")
"""Entries whose null is not the default."""
UNSTATED = {
    "mistral": "max_context",
    "starcoder2": "max_context",
    "gemma2": "attention_scale",
    "gemma3": "attention_scale",
    "qwen2-moe": "experts",
    "smollm3": "ropes",
    "deepseek2-groups": "ropes",
    "deepseek3": "ropes",
    "mamba2": "states",
    "bamba": "states",
}
"""Cases that GGUF files cannot state, and why; of the first two they have a shorter context."""


WITH_STATES = frozenset({"mamba2", "mamba2-gguf", "bamba", "bamba-gguf"})
"""Cases with layers that batches do not take."""

IN_BLOCKS = {
    **{"hidden_size": 64, "n_embd": 64, "intermediate_size": 96, "moe_intermediate_size": 32},
    **{"shared_expert_intermediate_size": 64, "head_dim": 16, "query_pre_attn_scalar": 16},
    **{"num_attention_heads": 4, "n_head": 4, "num_heads": 8},
    **{"mamba_d_state": 16, "state_size": 16},
    **{"kv_lora_rank": 32, "q_lora_rank": 32, "v_head_dim": 16, "qk_nope_head_dim": 32},
}
"""Sizes that are multiples of 32, for the entries that a case has."""


def in_blocks(name: str) -> dict[str, object]:
    """Those for a case: it has as many heads of keys where it had as many as of queries.

    Long factors begin after the tokens that tests generate, as `transformers` changes the rotation
    of later tokens there, and not that of earlier ones.
    """
    case = CASES[name]
    sizes: dict[str, object] = dict(IN_BLOCKS)
    if case.get("num_key_value_heads", 0) == case.get("num_attention_heads"):
        sizes["num_key_value_heads"] = 4
    if case.get("rope_scaling") is LONG:
        factors = {n: np.repeat(LONG[n], 2).tolist() for n in ("short_factor", "long_factor")}
        sizes |= {"rope_scaling": LONG | factors, "original_max_position_embeddings": 100}
    return sizes


def write(folder: Path, name: str, sizes: Mapping[str, object] = MappingProxyType({})) -> Path:
    """Writes the model of a case, with weights that depend on its name alone.

    Entries that it has are replaced by those of `sizes`.
    """
    folder.mkdir(parents=True, exist_ok=True)
    values = {
        key: value if value is None else sizes.get(key, value)
        for key, value in CASES[name].items()
        if value is not None or key in NULLS
    }
    (folder / "config.json").write_text(json.dumps(values))
    architecture, config = of_folder(folder)
    shapes = config.weight_shapes()
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    weights = {}
    for tensor in architecture.hf_tensors(config):
        shape = tensor.shape(shapes)
        spread = 0.3 if len(shape) == 1 else 0.5
        weights[tensor.name] = (spread * rng.standard_normal(shape)).astype(np.float32)
    save_file(weights, folder / "model.safetensors", {"format": "pt"})
    write_hf_tokenizer(folder)
    return folder


def expected() -> dict[str, np.ndarray]:
    """The logits after each of `TOKENS`, by case, from `transformers` in float32."""
    with np.load(INPUTS / "architecture_logits.npz") as file:
        return dict(file)
