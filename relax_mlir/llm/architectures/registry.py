"""The architecture of a model file, by the name that the file states."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from gguf.constants import TokenType

from relax_mlir.llm.architectures.architecture import Architecture
from relax_mlir.llm.architectures.bamba import Bamba
from relax_mlir.llm.architectures.bert import Bert
from relax_mlir.llm.architectures.cohere import Cohere
from relax_mlir.llm.architectures.deepseek2 import DeepSeek2
from relax_mlir.llm.architectures.deepseek3 import DeepSeek3
from relax_mlir.llm.architectures.embedding_gemma import EmbeddingGemma
from relax_mlir.llm.architectures.falcon import Falcon
from relax_mlir.llm.architectures.gemma import Gemma
from relax_mlir.llm.architectures.gemma2 import Gemma2
from relax_mlir.llm.architectures.gemma3 import Gemma3
from relax_mlir.llm.architectures.gpt2 import Gpt2
from relax_mlir.llm.architectures.gpt_neox import GptNeoX
from relax_mlir.llm.architectures.granite import Granite
from relax_mlir.llm.architectures.llama import Llama
from relax_mlir.llm.architectures.mamba2 import Mamba2
from relax_mlir.llm.architectures.mistral import Mistral
from relax_mlir.llm.architectures.mixtral import Mixtral
from relax_mlir.llm.architectures.nomic_bert import NomicBert
from relax_mlir.llm.architectures.olmo2 import Olmo2
from relax_mlir.llm.architectures.olmoe import Olmoe
from relax_mlir.llm.architectures.phi import Phi
from relax_mlir.llm.architectures.phi3 import Phi3
from relax_mlir.llm.architectures.qwen2 import Qwen2
from relax_mlir.llm.architectures.qwen2_moe import Qwen2Moe
from relax_mlir.llm.architectures.qwen2_vl import Qwen2Vl
from relax_mlir.llm.architectures.qwen3 import Qwen3
from relax_mlir.llm.architectures.qwen3_moe import Qwen3Moe
from relax_mlir.llm.architectures.smollm3 import SmolLm3
from relax_mlir.llm.architectures.stablelm import StableLm
from relax_mlir.llm.architectures.starcoder2 import StarCoder2
from relax_mlir.llm.architectures.vision_language import (
    MODELS,
    family_of,
    reading_images,
    text_fields,
)
from relax_mlir.llm.formats.fields import Fields
from relax_mlir.llm.formats.gguf_file import GgufFile
from relax_mlir.llm.formats.model_files import quoted
from relax_mlir.llm.modules.config import DecoderConfig

ARCHITECTURES: tuple[Architecture, ...] = (
    *(Llama(), Mistral(), Mixtral(), Qwen2(), Qwen2Moe(), Qwen3(), Qwen3Moe()),
    *(Gemma(), Gemma2(), Gemma3(), Phi(), Phi3(), Gpt2(), GptNeoX(), StableLm()),
    *(Falcon(), Olmo2(), Olmoe(), Granite(), Cohere(), SmolLm3(), StarCoder2()),
    *(DeepSeek2(), DeepSeek3(), Mamba2(), Bamba()),
)
OF_IMAGES: tuple[Architecture, ...] = (Qwen2Vl(),)
"""Decoders that only models that read images have."""
ENCODERS: tuple[Architecture, ...] = (Bert(), NomicBert(), EmbeddingGemma())
IN_GGUF = {a.gguf: a for a in ARCHITECTURES if not a.gguf_of}
"""Architectures of GGUF files."""

# Texts of tokens that end a turn or a document, whatever the file says.
END_TOKENS = (
    *("<|im_end|>", "<|eot_id|>", "<|eom_id|>", "<|endoftext|>", "<|end_of_text|>"),
    *("<end_of_turn>", "<|end|>", "<|END_OF_TURN_TOKEN|>", "<|return|>"),
)


def of_folder(
    folder: Path, architectures: Sequence[Architecture] = ARCHITECTURES
) -> tuple[Architecture, DecoderConfig]:
    """Reads `config.json` (and `generation_config.json`, where there is one) of `folder`.

    Raises ModelError if a file is missing or damaged, or the model is none of `architectures`.
    """
    fields = Fields.read_json(folder / "config.json")
    generation = Fields.read_json(folder / "generation_config.json", optional=True)
    if architectures is not ARCHITECTURES or family_of(fields) is None:
        architecture = _named(fields, architectures)
        return architecture, architecture.from_hugging_face(fields, generation)
    text = text_fields(fields)
    architecture = _named(text, (*architectures, *OF_IMAGES))
    config = architecture.from_hugging_face(text, generation)
    return architecture, reading_images(fields, config)


def _named(fields: Fields, architectures: Sequence[Architecture]) -> Architecture:
    names = _names(fields)
    for architecture in architectures:
        if set(names) <= set(architecture.hugging_face):
            return architecture
    listed = ", ".join(map(quoted, names[:3]))
    known = _listed(architecture.hugging_face[0] for architecture in architectures)
    seeing = _listed(MODELS) if architectures is ARCHITECTURES else ""
    raise fields.refuse(
        f"has architecture {listed}; supported are {known}{', ' * bool(seeing)}{seeing}"
    )


def is_encoder(folder: Path) -> bool:
    """Whether a folder has an encoder; raises ModelError for a damaged `config.json`."""
    names = set(_names(Fields.read_json(folder / "config.json")))
    return any(names <= set(architecture.hugging_face) for architecture in ENCODERS)


def _names(fields: Fields) -> list[str]:
    names = fields.texts("architectures") if fields.values.get("architectures") else []
    return names or [fields.text("model_type")]


def of_gguf(file: GgufFile) -> tuple[Architecture, DecoderConfig]:
    """Reads the metadata of `file`; raises ModelError if the model is not supported."""
    fields = Fields(str(file.path), file.metadata)
    name = fields.text("general.architecture")
    if name not in IN_GGUF:
        raise fields.refuse(f"has architecture {quoted(name)}; supported are {_listed(IN_GGUF)}")
    if file.metadata.get("split.count", 1) != 1:
        raise fields.refuse("is one part of a split model; merge the parts into one file")
    embedding = file.tensors.get("token_embd.weight")
    if embedding is None or len(embedding.shape) != 2:
        raise fields.refuse("has no matrix 'token_embd.weight'")
    end_ids = _gguf_end_tokens(fields)
    config = IN_GGUF[name].from_gguf(file, fields)
    return IN_GGUF[name], config.ending_at(end_ids)


def _listed(names: Iterable[str]) -> str:
    return ", ".join(sorted(names))


def _gguf_end_tokens(fields: Fields) -> frozenset[int]:
    ids: set[int] = set()
    for key in ("eos_token_id", "eot_token_id", "eom_token_id"):
        ids.update(fields.ids(f"tokenizer.ggml.{key}"))
    tokens = fields.texts("tokenizer.ggml.tokens")
    kinds = fields.ids("tokenizer.ggml.token_type")
    for i, (token, kind) in enumerate(zip(tokens, kinds, strict=False)):
        if kind == TokenType.CONTROL and token in END_TOKENS:
            ids.add(i)
    return frozenset(ids)
