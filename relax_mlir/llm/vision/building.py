"""Builds what sees in a model from its folder: graphs, compilation, weights."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tqdm import tqdm

from relax_mlir.compiler import compile
from relax_mlir.llm.architectures.vision_language import (
    IDEFICS3,
    LLAVA,
    SMOLVLM,
    family_of,
    vision_name,
)
from relax_mlir.llm.checkpoints.folder_weights import FolderWeights
from relax_mlir.llm.decoder.parameters import arguments_after
from relax_mlir.llm.formats.fields import Fields
from relax_mlir.llm.modules.nn import Parameter, Storage
from relax_mlir.llm.vision.config import Encode, VisionConfig, read_vision
from relax_mlir.llm.vision.idefics_config import IdeficsVisionConfig, read_idefics_vision
from relax_mlir.llm.vision.idefics_network import IdeficsEncoder, export_idefics_encoder
from relax_mlir.llm.vision.model import Vision
from relax_mlir.llm.vision.network import Encoder, export_encoder
from relax_mlir.llm.vision.preprocessing import export_patches, export_preprocessing, export_tiles
from relax_mlir.llm.vision.qwen_config import QwenVisionConfig, read_qwen_vision
from relax_mlir.llm.vision.qwen_network import QwenEncoder, export_qwen_encoder


def build(
    folder: Path,
    hidden_size: int,
    encode: Encode,
    weights: str,
    threads: int | None,
    use_cache: bool,
) -> Vision:
    """See `model.load_vision`."""
    source = FolderWeights(folder, vision_name)
    storage = Storage(source.halves() if weights == "native" else {}, activations="f32")
    family = family_of(Fields.read_json(folder / "config.json"))
    makers = {LLAVA: _llava, IDEFICS3: _idefics, SMOLVLM: _idefics}
    parts = makers.get(family or "", _qwen)(folder, hidden_size, storage)
    source.check(parts.parameters)
    with tqdm(desc="compiling the encoder", bar_format="{desc} ...", leave=False, disable=None):
        front, encoder = (
            compile(text, opt_level=3, use_cache=use_cache) for text in (parts.front, parts.encoder)
        )
    if threads is not None:
        front.threads = encoder.threads = threads
    arguments = arguments_after(encoder, parts.given, source, parts.parameters)
    return Vision(parts.config, front, encoder, arguments, encode)


@dataclass(frozen=True)
class _Parts:
    """The configuration, the texts of preprocessing and encoder, and what that reads.

    Parameters come after the first `given` arguments.
    """

    config: VisionConfig | QwenVisionConfig | IdeficsVisionConfig
    front: str
    encoder: str
    given: int
    parameters: Sequence[Parameter]


def _llava(folder: Path, hidden_size: int, storage: Storage) -> _Parts:
    config = read_vision(folder, hidden_size)
    network = Encoder(config, storage)
    front = export_preprocessing(config.preprocessing)
    return _Parts(config, front, export_encoder(network), 1, list(network.parameters()))


def _qwen(folder: Path, hidden_size: int, storage: Storage) -> _Parts:
    config = read_qwen_vision(folder, hidden_size)
    network = QwenEncoder(config, storage)
    front = export_patches(config.preprocessing)
    given = 5 if config.window else 2
    return _Parts(config, front, export_qwen_encoder(network), given, list(network.parameters()))


def _idefics(folder: Path, hidden_size: int, storage: Storage) -> _Parts:
    config = read_idefics_vision(folder, hidden_size)
    network = IdeficsEncoder(config, storage)
    front = export_tiles(config.preprocessing)
    return _Parts(config, front, export_idefics_encoder(network), 1, list(network.parameters()))
