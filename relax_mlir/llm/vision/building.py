"""Builds what sees in a model from its folder: graphs, compilation, weights."""

from pathlib import Path

from tqdm import tqdm

from relax_mlir.compiler import compile
from relax_mlir.llm.architectures.vision_language import vision_name
from relax_mlir.llm.checkpoints.folder_weights import FolderWeights
from relax_mlir.llm.decoder.parameters import arguments_after
from relax_mlir.llm.modules.nn import Storage
from relax_mlir.llm.vision.config import read_vision
from relax_mlir.llm.vision.model import Vision
from relax_mlir.llm.vision.network import Encoder, export_encoder
from relax_mlir.llm.vision.preprocessing import export_preprocessing


def build(
    folder: Path, hidden_size: int, weights: str, threads: int | None, use_cache: bool
) -> Vision:
    """See `model.load_vision`."""
    config = read_vision(folder, hidden_size)
    source = FolderWeights(folder, vision_name)
    storage = Storage(source.halves() if weights == "native" else {}, activations="f32")
    network = Encoder(config, storage)
    parameters = list(network.parameters())
    source.check(parameters)
    with tqdm(desc="compiling the encoder", bar_format="{desc} ...", leave=False, disable=None):
        front, encoder = (
            compile(text, opt_level=3, use_cache=use_cache)
            for text in (export_preprocessing(config.preprocessing), export_encoder(network))
        )
    if threads is not None:
        front.threads = encoder.threads = threads
    return Vision(config, front, encoder, arguments_after(encoder, 1, source, parameters))
