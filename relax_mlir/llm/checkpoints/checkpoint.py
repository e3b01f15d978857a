"""A model on disk, opened: configuration, weights, tokenizer and chat template together."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType

from relax_mlir.errors import ModelError
from relax_mlir.llm.checkpoints.adapters import AdaptedWeights, read_adapter
from relax_mlir.llm.checkpoints.gguf_reader import GgufWeights
from relax_mlir.llm.checkpoints.hf_reader import HuggingFaceWeights
from relax_mlir.llm.checkpoints.packaged import resolve
from relax_mlir.llm.checkpoints.stacked_adapters import StackedAdapters
from relax_mlir.llm.checkpoints.weights import WeightSource
from relax_mlir.llm.formats.gguf_file import GgufFile
from relax_mlir.llm.modules.config import DecoderConfig
from relax_mlir.llm.tokenization.chat import (
    ChatTemplate,
    gguf_chat_template,
    hugging_face_chat_template,
)
from relax_mlir.llm.tokenization.tokenizer import Tokenizer


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """The parts of a model; `chat` is None if the model has no chat template.

    `folders` are others that have a part in the weights, `adapters` the names of those that
    requests choose.
    """

    path: Path
    config: DecoderConfig
    weights: WeightSource
    tokenizer: Tokenizer
    chat: ChatTemplate | None
    folders: tuple[Path, ...] = ()
    adapters: tuple[str, ...] = ()


def open_checkpoint(
    model: str, lora: str | None = None, adapters: Mapping[str, str] = MappingProxyType({})
) -> Checkpoint:
    """Opens `model`: a packaged name, a GGUF file or a Hugging Face folder (see `resolve`).

    The adapter in the folder `lora` is added to its weights, and requests choose of `adapters`,
    folders by names (see `adapters.py`, `stacked_adapters.py`). Weights stay on
    disk. Raises UsageError or ModelError, each with one line that names the file and the fault.
    """
    path = resolve(model)
    if path.is_dir():
        weights: WeightSource = HuggingFaceWeights(path)
        tokenizer = Tokenizer.from_hugging_face(path)
        source = hugging_face_chat_template(path)
    else:
        file = GgufFile.open(path)
        weights = GgufWeights(file)
        tokenizer = Tokenizer.from_gguf(file)
        source = gguf_chat_template(file)
    if tokenizer.vocab_size > weights.config.vocab_size:
        raise ModelError(
            f"{path}: the tokenizer has {tokenizer.vocab_size} tokens, "
            f"but the model {weights.config.vocab_size}"
        )
    config = weights.config
    if path.is_dir() and (end := tokenizer.id_of(tokenizer.eos_token or "")) is not None:
        # The files of a folder may differ: a tuned model may set it in its tokenizer only.
        config = replace(config, eos_ids=config.eos_ids | {end})
    folders: tuple[Path, ...] = ()
    if lora is not None:
        adapter = read_adapter(Path(lora))
        weights, folders = AdaptedWeights(weights, adapter), (adapter.folder,)
    if adapters:
        stacked = StackedAdapters(weights, [read_adapter(Path(f)) for f in adapters.values()])
        weights, folders = stacked, (*folders, *map(Path, adapters.values()))
    chat = None
    if source is not None:
        chat = ChatTemplate(source, tokenizer.bos_token, tokenizer.eos_token, str(path))
    return Checkpoint(path, config, weights, tokenizer, chat, folders, tuple(adapters))
