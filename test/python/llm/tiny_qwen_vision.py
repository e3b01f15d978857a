"""Writes tiny models of Qwen2-VL and Qwen2.5-VL, with awkward sizes, and prompts for them."""

import json
from pathlib import Path

import numpy as np
from safetensors.numpy import save_file
from tiny_models import TOKENS, hf_tokenizer
from tiny_vision import NORMAL, TEXT
from tokenizers import AddedToken

PAD, START, END = "<|image_pad|>", "<|vision_start|>", "<|vision_end|>"
IMAGE = f"{START}{PAD}{END}"
IMAGE_ID = len(TOKENS)
PATCH, MERGE, LAYERS, FRAMES = 3, 2, 3, 2
SIZE, INNER, HEADS, HIDDEN = 40, 60, 5, TEXT["hidden_size"]
VOCABULARY = IMAGE_ID + 5
CASES = ("qwen2_vl", "qwen2_5_vl")
STEPS = 64
PROMPTS = {
    "none": ("<|begin|>hello world", ()),
    "one": (f"<|begin|>{IMAGE} hello", ("wide",)),
    "two": (f"{IMAGE}he{IMAGE}llo 12 w", ("wide", "small")),
    "equal": (f"a{IMAGE}{IMAGE}", ("same", "same")),
}
TEMPLATE = (
    "{% for m in messages %}<|begin|>{{ m.role }}\n{% if m.content is string %}{{ m.content }}"
    "{% else %}{% for part in m.content %}{% if part.type == 'image' %}"
    f"{IMAGE}"
    "{% else %}{{ part.text }}{% endif %}{% endfor %}{% endif %}<|im_end|>{% endfor %}"
)
PREPROCESSOR = {
    **NORMAL,
    "image_processor_type": "Qwen2VLImageProcessor",
    "patch_size": PATCH,
    "merge_size": MERGE,
    "temporal_patch_size": FRAMES,
    "min_pixels": 300,
    "max_pixels": 2000,
}


def config(case: str) -> dict[str, object]:
    """The entries of `config.json`: flat for Qwen2-VL, as published, and nested for the other."""
    text = {**TEXT, "vocab_size": VOCABULARY, "use_sliding_window": False}
    outer = {
        "architectures": [
            {
                "qwen2_vl": "Qwen2VLForConditionalGeneration",
                "qwen2_5_vl": "Qwen2_5_VLForConditionalGeneration",
            }[case]
        ],
        "model_type": case,
        "image_token_id": IMAGE_ID,
        "video_token_id": IMAGE_ID + 3,
        "vision_start_token_id": IMAGE_ID + 1,
        "vision_end_token_id": IMAGE_ID + 2,
    }
    vision = {
        **{"depth": LAYERS, "num_heads": HEADS, "in_chans": 3, "in_channels": 3},
        **{"patch_size": PATCH, "spatial_merge_size": MERGE, "temporal_patch_size": FRAMES},
        "model_type": case,
    }
    if case == "qwen2_vl":
        vision |= {"embed_dim": SIZE, "hidden_size": HIDDEN, "mlp_ratio": 2}
        scaling = {"type": "mrope", "mrope_section": [2, 1, 1]}
        return {**text, **outer, "vision_config": vision, "rope_scaling": scaling}
    vision |= {"hidden_size": SIZE, "intermediate_size": INNER, "out_hidden_size": HIDDEN}
    vision |= {"window_size": 3 * PATCH * MERGE + 1, "fullatt_block_indexes": [1]}
    vision["hidden_act"] = "silu"
    text |= {"rope_parameters": {"rope_type": "default", "mrope_section": [1, 1, 2]}}
    text["rope_parameters"]["rope_theta"] = text.pop("rope_theta")
    return {**outer, "text_config": text, "vision_config": vision}


def weights(case: str) -> dict[str, np.ndarray]:
    """Random weights by Hugging Face name: for Qwen2-VL those of earlier versions."""
    rng = np.random.default_rng(len(case))
    made: dict[str, np.ndarray] = {}
    early = case == "qwen2_vl"

    def put(name: str, *shape: int, spread: float = 1.0, mean: float = 0.0) -> None:
        inputs = np.prod(shape[1:]) if len(shape) > 1 else 25
        values = rng.standard_normal(shape) * spread / np.sqrt(inputs) + mean
        made[name] = values.astype(np.float32)

    def linear(name: str, outputs: int, inputs: int, bias: bool = True) -> None:
        put(f"{name}.weight", outputs, inputs, spread=1.5)
        if bias:
            put(f"{name}.bias", outputs)

    def norm(name: str) -> None:
        put(f"{name}.weight", SIZE, mean=1.0)
        if early:
            put(f"{name}.bias", SIZE)

    tower = "visual" if early else "model.visual"
    put(f"{tower}.patch_embed.proj.weight", SIZE, 3, FRAMES, PATCH, PATCH, spread=2.0)
    for i in range(LAYERS):
        layer = f"{tower}.blocks.{i}"
        norm(f"{layer}.norm1")
        norm(f"{layer}.norm2")
        linear(f"{layer}.attn.qkv", 3 * SIZE, SIZE)
        linear(f"{layer}.attn.proj", SIZE, SIZE)
        if early:
            linear(f"{layer}.mlp.fc1", 2 * SIZE, SIZE)
            linear(f"{layer}.mlp.fc2", SIZE, 2 * SIZE)
        else:
            linear(f"{layer}.mlp.gate_proj", INNER, SIZE)
            linear(f"{layer}.mlp.up_proj", INNER, SIZE)
            linear(f"{layer}.mlp.down_proj", SIZE, INNER)
    norm(f"{tower}.merger.ln_q")
    linear(f"{tower}.merger.mlp.0", MERGE**2 * SIZE, MERGE**2 * SIZE)
    linear(f"{tower}.merger.mlp.2", HIDDEN, MERGE**2 * SIZE)
    prefix = "model." if early else "model.language_model."
    put(f"{prefix}embed_tokens.weight", VOCABULARY, HIDDEN, spread=5.0)
    put(f"{prefix}norm.weight", HIDDEN, mean=1.0)
    put("lm_head.weight", VOCABULARY, HIDDEN)
    for i in range(TEXT["num_hidden_layers"]):
        layer = f"{prefix}layers.{i}"
        for part, heads in (("q", 6), ("k", 2), ("v", 2)):
            linear(f"{layer}.self_attn.{part}_proj", 8 * heads, HIDDEN)
        linear(f"{layer}.self_attn.o_proj", HIDDEN, HIDDEN, False)
        for part in ("gate", "up"):
            linear(f"{layer}.mlp.{part}_proj", 80, HIDDEN, False)
        linear(f"{layer}.mlp.down_proj", HIDDEN, 80, False)
        put(f"{layer}.input_layernorm.weight", HIDDEN, mean=1.0)
        put(f"{layer}.post_attention_layernorm.weight", HIDDEN, mean=1.0)
    return made


def write(folder: Path, case: str = "qwen2_vl") -> Path:
    """Writes all files of a case."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config(case)))
    (folder / "preprocessor_config.json").write_text(json.dumps(PREPROCESSOR))
    inner = hf_tokenizer()
    texts = (PAD, START, END, "<|video_pad|>")
    inner.add_special_tokens([AddedToken(text, special=True, normalized=False) for text in texts])
    inner.save(str(folder / "tokenizer.json"))
    tokens = {"bos_token": "<|begin|>", "eos_token": "<|im_end|>", "chat_template": TEMPLATE}
    tokens["tokenizer_class"] = "PreTrainedTokenizerFast"
    (folder / "tokenizer_config.json").write_text(json.dumps(tokens))
    save_file(weights(case), folder / "model.safetensors", {"format": "pt"})
    return folder
