"""Writes tiny models of Idefics 3 and SmolVLM, with awkward sizes, and prompts for them."""

import json
from pathlib import Path

import numpy as np
from safetensors.numpy import save_file
from tiny_models import TOKENS, hf_tokenizer
from tiny_vision import NORMAL, TEXT
from tokenizers import AddedToken

IMAGE, FAKE, WHOLE = "<image>", "<fake_token_around_image>", "<global-img>"
IMAGE_ID = len(TOKENS)
EDGE, PATCH, FACTOR, LAYERS = 30, 5, 2, 2
SIZE, INNER, HIDDEN = 40, 56, TEXT["hidden_size"]
VOCABULARY = IMAGE_ID + 6
STEPS = 64
PROMPTS = {
    "none": ("<|begin|>hello world", ()),
    "one": (f"<|begin|>{IMAGE} hello", ("wide",)),
    "two": (f"{IMAGE}he{IMAGE}llo 12 w", ("same", "wide")),
}
TEMPLATE = (
    "{% for m in messages %}<|begin|>{{ m.role }}:{% if m.content is string %}{{ m.content }}"
    "{% else %}{% for part in m.content %}{% if part.type == 'image' %}<image>"
    "{% else %}{{ part.text }}{% endif %}{% endfor %}{% endif %}<|im_end|>{% endfor %}"
)
PREPROCESSOR = {
    **NORMAL,
    "image_processor_type": "Idefics3ImageProcessor",
    "size": {"longest_edge": 2 * EDGE - 5},
    "max_image_size": {"longest_edge": EDGE},
    "do_image_splitting": True,
    "do_pad": True,
    "resample": 1,
}
CONFIG = {
    "architectures": ["SmolVLMForConditionalGeneration"],
    "model_type": "smolvlm",
    "image_token_id": IMAGE_ID,
    "scale_factor": FACTOR,
    "tie_word_embeddings": False,
    "vision_config": {
        **{"hidden_size": SIZE, "intermediate_size": INNER, "num_hidden_layers": LAYERS},
        **{"num_attention_heads": 5, "image_size": EDGE, "patch_size": PATCH},
        "model_type": "smolvlm_vision",
    },
    "text_config": {
        **TEXT,
        "vocab_size": VOCABULARY,
        "max_position_embeddings": 256,
        "model_type": "llama",
        "architectures": ["VLlama3ForCausalLM"],
        "rms_norm_eps": 1e-5,
    },
}


def weights() -> dict[str, np.ndarray]:
    """Random weights by Hugging Face name."""
    rng = np.random.default_rng(5)
    shapes: dict[str, tuple[int, ...]] = {}

    def linear(name: str, outputs: int, inputs: int, bias: bool = True) -> None:
        shapes[f"{name}.weight"] = (outputs, inputs)
        if bias:
            shapes[f"{name}.bias"] = (outputs,)

    tower = "model.vision_model"
    shapes[f"{tower}.embeddings.patch_embedding.weight"] = (SIZE, 3, PATCH, PATCH)
    shapes[f"{tower}.embeddings.patch_embedding.bias"] = (SIZE,)
    shapes[f"{tower}.embeddings.position_embedding.weight"] = ((EDGE // PATCH) ** 2, SIZE)
    norms = [f"{tower}.post_layernorm"]
    for i in range(LAYERS):
        layer = f"{tower}.encoder.layers.{i}"
        for part in ("q_proj", "k_proj", "v_proj", "out_proj"):
            linear(f"{layer}.self_attn.{part}", SIZE, SIZE)
        linear(f"{layer}.mlp.fc1", INNER, SIZE)
        linear(f"{layer}.mlp.fc2", SIZE, INNER)
        norms += [f"{layer}.layer_norm1", f"{layer}.layer_norm2"]
    shapes |= {f"{norm}.{part}": (SIZE,) for norm in norms for part in ("weight", "bias")}
    linear("model.connector.modality_projection.proj", HIDDEN, SIZE * FACTOR**2, False)
    shapes["model.text_model.embed_tokens.weight"] = (VOCABULARY, HIDDEN)
    shapes["model.text_model.norm.weight"] = (HIDDEN,)
    shapes["lm_head.weight"] = (VOCABULARY, HIDDEN)
    for i in range(TEXT["num_hidden_layers"]):
        layer = f"model.text_model.layers.{i}"
        for part, heads in (("q", 6), ("k", 2), ("v", 2)):
            linear(f"{layer}.self_attn.{part}_proj", 8 * heads, HIDDEN, False)
        linear(f"{layer}.self_attn.o_proj", HIDDEN, HIDDEN, False)
        for part in ("gate", "up"):
            linear(f"{layer}.mlp.{part}_proj", 80, HIDDEN, False)
        linear(f"{layer}.mlp.down_proj", HIDDEN, 80, False)
        for norm in ("input_layernorm", "post_attention_layernorm"):
            shapes[f"{layer}.{norm}.weight"] = (HIDDEN,)
    made = {}
    for name, shape in shapes.items():
        spread = 5.0 if "embed_tokens" in name else 1.5
        inputs = np.prod(shape[1:]) if len(shape) > 1 else 25
        values = rng.standard_normal(shape) * spread / np.sqrt(inputs)
        is_scale = "norm" in name and name.endswith("weight")
        made[name] = (values + is_scale).astype(np.float32)
    return made


def write(folder: Path) -> Path:
    """Writes all files."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(CONFIG))
    (folder / "preprocessor_config.json").write_text(json.dumps(PREPROCESSOR))
    inner = hf_tokenizer()
    texts = (IMAGE, FAKE, WHOLE, "<row_1_col_1>", "<row_1_col_2>")
    inner.add_special_tokens([AddedToken(text, special=True, normalized=False) for text in texts])
    inner.save(str(folder / "tokenizer.json"))
    tokens = {"bos_token": "<|begin|>", "eos_token": "<|im_end|>", "chat_template": TEMPLATE}
    tokens["tokenizer_class"] = "PreTrainedTokenizerFast"
    (folder / "tokenizer_config.json").write_text(json.dumps(tokens))
    save_file(weights(), folder / "model.safetensors", {"format": "pt"})
    return folder
