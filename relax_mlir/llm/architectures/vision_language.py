"""Models that read images: a decoder of any architecture, and an encoder of images.

Folders have the configuration of the decoder in `text_config`, and its tensors below a prefix.
"""

from collections.abc import Mapping
from typing import Any

from relax_mlir.llm.formats.fields import Fields
from relax_mlir.llm.modules.config import DecoderConfig

MODELS = ("LlavaForConditionalGeneration", "llava")
"""Names in `architectures` of `config.json`, then in `model_type`."""

OF_LLAMA: Mapping[str, Any] = {
    "hidden_size": 4096,
    "intermediate_size": 11008,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "vocab_size": 32000,
}
"""What `text_config` omits of Llama's sizes."""
VISION_PARTS = ("vision_tower", "multi_modal_projector")


def text_fields(fields: Fields) -> Fields:
    """The entries of the decoder."""
    text = dict(fields.table("text_config").values)
    kind = text.setdefault("model_type", "llama")
    if kind == "llama":
        text = {**OF_LLAMA, **{key: value for key, value in text.items() if value is not None}}
    for key in ("tie_word_embeddings", "eos_token_id", "bos_token_id"):
        if text.get(key) is None and fields.values.get(key) is not None:
            text[key] = fields.values[key]
    return Fields(fields.where, text, "text_config.")


def image_id(fields: Fields) -> int:
    """The token that rows of images replace."""
    for key in ("image_token_id", "image_token_index"):
        if (token := fields.id(key)) is not None:
            return token
    raise fields.refuse("'image_token_id' is missing")


def checked_image_id(fields: Fields, config: DecoderConfig) -> int:
    """That token, which must be one of the decoder's."""
    token = image_id(fields)
    if token >= config.vocab_size:
        raise fields.refuse(f"'image_token_id' is {token}; the last one is {config.vocab_size - 1}")
    return token


def decoder_name(name: str) -> str | None:
    """The name of a tensor in the folder of a decoder alone; None for one of other parts."""
    inner = name.removeprefix("model.")
    if inner.startswith(VISION_PARTS):
        return None
    if not inner.startswith("language_model."):
        return name
    inner = inner.removeprefix("language_model.")
    return inner if inner.startswith(("model.", "lm_head.")) else f"model.{inner}"


def vision_name(name: str) -> str:
    """The name of a tensor of other parts, which differs among versions of files."""
    return name.removeprefix("model.").replace("vision_tower.vision_model.", "vision_tower.", 1)
