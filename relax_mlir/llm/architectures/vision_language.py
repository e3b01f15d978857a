"""Models that read images: a decoder of any architecture, and an encoder of images.

Folders have the configuration of the decoder in `text_config`, and its tensors below a prefix.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from relax_mlir.llm.formats.fields import Fields
from relax_mlir.llm.modules.config import DecoderConfig

LLAVA, QWEN2, QWEN2_5 = "llava", "qwen2_vl", "qwen2_5_vl"
IDEFICS3, SMOLVLM = "idefics3", "smolvlm"
MODELS = {
    "LlavaForConditionalGeneration": LLAVA,
    "Qwen2VLForConditionalGeneration": QWEN2,
    "Qwen2_5_VLForConditionalGeneration": QWEN2_5,
    "Idefics3ForConditionalGeneration": IDEFICS3,
    "SmolVLMForConditionalGeneration": SMOLVLM,
}
"""Names in `architectures` of `config.json`, and in `model_type`."""

OF_LLAMA: Mapping[str, Any] = {
    "hidden_size": 4096,
    "intermediate_size": 11008,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "vocab_size": 32000,
}
"""What `text_config` omits of Llama's sizes."""
FRAME = ("vision_start_token_id", "vision_end_token_id")
VISION_PARTS = ("vision_tower", "multi_modal_projector", "visual.", "vision_model.", "connector.")
TEXT_PARTS = ("language_model.", "text_model.")


def family_of(fields: Fields) -> str | None:
    """The `model_type` of a model that reads images; None for others."""
    names = fields.texts("architectures") if fields.values.get("architectures") else []
    known = {MODELS.get(name, name) for name in names or [fields.text("model_type")]}
    return known.pop() if len(known) == 1 and known <= {*MODELS.values()} else None


def text_fields(fields: Fields) -> Fields:
    """The entries of the decoder."""
    family = family_of(fields)
    if family in (QWEN2, QWEN2_5):
        return _qwen_text_fields(fields)
    text = dict(fields.table("text_config").values)
    if family != LLAVA:
        text.pop("architectures", None)  # which are of classes of the training
        text.setdefault("rms_norm_eps", 1e-5)
    kind = text.setdefault("model_type", "llama")
    if kind == "llama":
        text = {**OF_LLAMA, **{key: value for key, value in text.items() if value is not None}}
    return _completed(text, fields)


def _qwen_text_fields(fields: Fields) -> Fields:
    """Those of Qwen's models, which are also among the others."""
    nested = fields.table("text_config").values
    text = dict(nested or fields.values)
    text.pop("architectures", None)
    text["model_type"] = f"{family_of(fields)}_text"
    text["tie_word_embeddings"] = bool(
        text.get("tie_word_embeddings") or fields.values.get("tie_word_embeddings")
    )
    return _completed(text, fields) if nested else Fields(fields.where, text)


def _completed(text: dict[str, Any], fields: Fields) -> Fields:
    """The entries of a decoder, with tokens that stand outside of them."""
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


def reading_images(fields: Fields, config: DecoderConfig) -> DecoderConfig:
    """The decoder with the tokens of images, which must be among its own."""
    ids = {"image_token_id": image_id(fields)}
    if family_of(fields) in (QWEN2, QWEN2_5):
        ids |= {key: fields.integer(key) for key in FRAME}
    for key, token in ids.items():
        if token >= config.vocab_size:
            raise fields.refuse(f"'{key}' is {token}; the last one is {config.vocab_size - 1}")
    image, *frame = ids.values()
    return replace(config, image_id=image, image_frame=tuple(frame))


def decoder_name(name: str) -> str | None:
    """The name of a tensor in the folder of a decoder alone; None for one of other parts."""
    inner = name.removeprefix("model.")
    if inner.startswith(VISION_PARTS):
        return None
    if not inner.startswith(TEXT_PARTS):
        return name
    _, _, inner = inner.partition(".")
    return inner if inner.startswith(("model.", "lm_head.")) else f"model.{inner}"


def vision_name(name: str) -> str:
    """The name of a tensor of other parts, which differs among versions of files."""
    inner = name.removeprefix("model.").removeprefix("vision_tower.")
    if inner.startswith("vision_model."):
        return inner.replace("vision_model.", "vision_tower.", 1)
    return name.removeprefix("model.")
