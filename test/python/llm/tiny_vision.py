"""Writes tiny models that read images, and images that they are tried on.

Sizes are awkward on purpose: patches do not divide images, and heads are no power of two.
"""

import json
from pathlib import Path

import numpy as np
from safetensors.numpy import save_file
from tiny_models import TOKENS, hf_tokenizer
from tokenizers import AddedToken

IMAGE = "<image>"
IMAGE_ID = len(TOKENS)
VOCABULARY = IMAGE_ID + 4
CONTEXT = 192
HIDDEN, SIDE, PATCH, LAYERS = 48, 37, 7, 3
TEMPLATE = (
    "{% for m in messages %}<|begin|>{{ m.role }}\n{% for part in m.content %}"
    "{% if part.type == 'image' %}<image>\n{% else %}{{ part.text }}{% endif %}{% endfor %}"
    "<|im_end|>{% endfor %}"
)
TEXT = {
    "vocab_size": VOCABULARY,
    "hidden_size": HIDDEN,
    "intermediate_size": 80,
    "num_hidden_layers": 2,
    "num_attention_heads": 6,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "max_position_embeddings": CONTEXT,
    "rope_theta": 5000.0,
    "bos_token_id": 0,
    "eos_token_id": 1,
    "pad_token_id": None,
    "tie_word_embeddings": False,
}
VISION = {
    "hidden_size": 40,
    "intermediate_size": 56,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": 5,
    "image_size": SIDE,
    "patch_size": PATCH,
}
NORMAL = {
    "image_mean": [0.48, 0.46, 0.41],
    "image_std": [0.27, 0.26, 0.28],
    "rescale_factor": 1 / 255,
    **{"do_resize": True, "do_rescale": True, "do_normalize": True, "do_convert_rgb": True},
}
LLAVA = {"architectures": ["LlavaForConditionalGeneration"], "model_type": "llava"}
CASES = {
    "clip": {
        "config": {
            **LLAVA,
            "image_token_index": IMAGE_ID,
            "vision_config": {**VISION, "model_type": "clip_vision_model"},
            "text_config": {**TEXT, "model_type": "llama"},
        },
        "preprocessor": {
            **NORMAL,
            "image_processor_type": "CLIPImageProcessor",
            "size": {"shortest_edge": SIDE + 4},
            "crop_size": {"height": SIDE, "width": SIDE},
            "do_center_crop": True,
            "resample": 3,
        },
    },
    "siglip": {
        "config": {
            **LLAVA,
            "image_token_id": IMAGE_ID,
            "vision_feature_layer": [-1, 1],
            "vision_feature_select_strategy": "full",
            "multimodal_projector_bias": False,
            "vision_config": {
                **VISION,
                "model_type": "siglip_vision_model",
                "vision_use_head": False,
            },
            "text_config": {**TEXT, "model_type": "qwen2"},
        },
        "preprocessor": {
            **NORMAL,
            "image_processor_type": "SiglipImageProcessor",
            "size": {"height": SIDE, "width": SIDE},
            "resample": 2,
        },
    },
}
PICTURES = {
    "wide": (53, 117),
    "tall": (211, 30),
    "small": (9, 6),
    "same": (SIDE, SIDE),
    "dot": (1, 1),
}
"""Heights and widths."""


def picture(name: str) -> np.ndarray:
    """An image of `PICTURES`, uint8[height, width, 3]: slopes, an edge, and noise."""
    height, width = PICTURES[name]
    rng = np.random.default_rng(height)
    down, across = np.mgrid[:height, :width]
    slopes = 255 * np.stack([down / height, across / width, (down + across) % 29 / 29], 2)
    slopes[:, width // 2 :, 0] = 255 - slopes[:, width // 2 :, 0]
    return np.clip(slopes + rng.normal(0, 20, slopes.shape), 0, 255).astype(np.uint8)


def normal(image: np.ndarray) -> np.ndarray:
    """Pixels float32[3, height, width] of integers 0 to 255."""
    mean, deviation = (np.array(NORMAL[f"image_{x}"])[:, None, None] for x in ("mean", "std"))
    return ((image / 255 - mean) / deviation).astype(np.float32)


def integers(pixels: np.ndarray) -> np.ndarray:
    """The integers 0 to 255, uint8[3, height, width], that became pixels."""
    mean, deviation = (np.array(NORMAL[f"image_{x}"])[:, None, None] for x in ("mean", "std"))
    exact = (pixels * deviation + mean) * 255
    assert np.abs(exact - exact.round()).max() < 1e-3
    return exact.round().astype(np.uint8)


def weights(case: str) -> dict[str, np.ndarray]:
    """Random weights by Hugging Face name: for CLIP those of earlier versions."""
    rng = np.random.default_rng(len(case))
    config = CASES[case]["config"]
    clip = case == "clip"
    made: dict[str, np.ndarray] = {}

    def put(name: str, *shape: int, spread: float = 1.0, mean: float = 0.0) -> None:
        values = rng.standard_normal(shape) * spread / np.sqrt(shape[-1] if len(shape) > 1 else 25)
        made[name] = (values + mean).astype(np.float32)

    def linear(
        name: str, outputs: int, inputs: int, bias: bool = True, spread: float = 1.5
    ) -> None:
        put(f"{name}.weight", outputs, inputs, spread=spread)
        if bias:
            put(f"{name}.bias", outputs)

    def norm(name: str) -> None:
        put(f"{name}.weight", VISION["hidden_size"], mean=1.0)
        put(f"{name}.bias", VISION["hidden_size"])

    size, inner = VISION["hidden_size"], VISION["intermediate_size"]
    tower = "vision_tower.vision_model" if clip else "model.vision_tower"
    put(f"{tower}.embeddings.patch_embedding.weight", size, 3, PATCH, PATCH, spread=0.4)
    put(f"{tower}.embeddings.position_embedding.weight", (SIDE // PATCH) ** 2 + clip, size)
    if clip:
        put(f"{tower}.embeddings.class_embedding", size)
        norm(f"{tower}.pre_layrnorm")
    else:
        put(f"{tower}.embeddings.patch_embedding.bias", size)
    for i in range(LAYERS):
        layer = f"{tower}.encoder.layers.{i}"
        for part in ("q_proj", "k_proj", "v_proj", "out_proj"):
            linear(f"{layer}.self_attn.{part}", size, size)
        linear(f"{layer}.mlp.fc1", inner, size)
        linear(f"{layer}.mlp.fc2", size, inner)
        norm(f"{layer}.layer_norm1")
        norm(f"{layer}.layer_norm2")
    norm(f"{tower}.post_layernorm")
    start = "" if clip else "model."
    features = size * (1 if clip else 2)
    linear(f"{start}multi_modal_projector.linear_1", HIDDEN, features, clip)
    linear(f"{start}multi_modal_projector.linear_2", HIDDEN, HIDDEN, clip)
    text, prefix = config["text_config"], f"{start}language_model." + ("model." if clip else "")
    put(f"{prefix}embed_tokens.weight", VOCABULARY, HIDDEN, spread=5.0)
    put(f"{prefix}norm.weight", HIDDEN, mean=1.0)
    put("language_model.lm_head.weight" if clip else "lm_head.weight", VOCABULARY, HIDDEN)
    for i in range(text["num_hidden_layers"]):
        layer = f"{prefix}layers.{i}"
        for part, heads in (("q", 6), ("k", 2), ("v", 2)):
            linear(f"{layer}.self_attn.{part}_proj", 8 * heads, HIDDEN, not clip)
        linear(f"{layer}.self_attn.o_proj", HIDDEN, HIDDEN, False)
        for part in ("gate", "up"):
            linear(f"{layer}.mlp.{part}_proj", 80, HIDDEN, False)
        linear(f"{layer}.mlp.down_proj", HIDDEN, 80, False)
        put(f"{layer}.input_layernorm.weight", HIDDEN, mean=1.0)
        put(f"{layer}.post_attention_layernorm.weight", HIDDEN, mean=1.0)
    return made


def write(folder: Path, case: str = "clip") -> Path:
    """Writes all files of a case."""
    folder.mkdir(parents=True, exist_ok=True)
    files = CASES[case]
    (folder / "config.json").write_text(json.dumps(files["config"]))
    (folder / "preprocessor_config.json").write_text(json.dumps(files["preprocessor"]))
    inner = hf_tokenizer()
    inner.add_special_tokens([AddedToken(IMAGE, special=True, normalized=False)])
    inner.save(str(folder / "tokenizer.json"))
    tokens = {"bos_token": "<|begin|>", "eos_token": "<|im_end|>", "image_token": IMAGE}
    tokens |= {"tokenizer_class": "PreTrainedTokenizerFast", "chat_template": TEMPLATE}
    (folder / "tokenizer_config.json").write_text(json.dumps(tokens))
    save_file(weights(case), folder / "model.safetensors", {"format": "pt"})
    return folder
