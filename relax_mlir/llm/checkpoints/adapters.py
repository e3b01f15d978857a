"""LoRA adapters in folders of PEFT: what they are, and one added to weights as they are read.

An adapter has for some matrices W of the model two smaller ones, A [r, in] and B [out, r]: its
model has W + scale * B A. Tensors have the names of Hugging Face's files, whatever the model is
read from.

Source: Hu et al. 2021 (LoRA); PEFT, `LoraConfig`; Kalajdzievski 2023 (rank-stabilised scales).
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from relax_mlir.errors import ModelError, UsageError
from relax_mlir.llm.architectures.architecture import Architecture
from relax_mlir.llm.architectures.vision_language import decoder_name
from relax_mlir.llm.checkpoints.weights import WeightSource
from relax_mlir.llm.formats.fields import Fields
from relax_mlir.llm.formats.model_files import quoted
from relax_mlir.llm.formats.quantization import PLAIN, RawTensor
from relax_mlir.llm.formats.safetensors_files import StoredTensor, read_table
from relax_mlir.llm.modules.config import DecoderConfig

CONFIG, TENSORS = "adapter_config.json", "adapter_model.safetensors"
PREFIX = "base_model.model."
UNSUPPORTED = (
    *("use_dora", "lora_bias", "use_bdlora", "use_qalora", "arrow_config", "velora_config"),
    *("modules_to_save", "layer_replication", "trainable_token_indices", "target_parameters"),
    *("alora_invocation_tokens", "megatron_config", "eva_config", "corda_config"),
)
"""Options that make another model, unless they are false or empty."""
INITIAL = (None, True, False, "gaussian", "orthogonal")
"""Values of `init_lora_weights` that leave the weights of the model as they are."""


@dataclass(frozen=True, eq=False)
class Adapter:
    """The matrices A and B of modules, by their names in Hugging Face's files, and the scales."""

    folder: Path
    parts: Mapping[str, tuple[StoredTensor, StoredTensor]]
    scales: Mapping[str, float]

    def change(self, module: str, rows: np.ndarray | slice) -> np.ndarray:
        """What is added to rows of a module's matrix (out, in): float32."""
        a, b = (part.view().to_f32() for part in self.parts[module])
        return np.float32(self.scales[module]) * (b[rows] @ a)


class AdaptedWeights(WeightSource):
    """The weights of `source` with those of an adapter added.

    Matrices that it changes are float32, bfloat16 or 8-bit, whichever is next to what the source
    has. Raises ModelError if the adapter is not of this model.
    """

    def __init__(self, source: WeightSource, adapter: Adapter) -> None:
        self.config, self.architecture = source.config, source.architecture
        self.where = source.where
        self._source, self._adapter = source, adapter
        self._changes = locations(adapter, self.config, self.architecture)

    def raw(self, name: str) -> RawTensor:
        """See `WeightSource.raw`."""
        raw = self._source.raw(name)
        if name not in self._changes:
            return raw
        values = raw.to_f32() + self._adapter.change(*self._changes[name])
        return RawTensor("F32", raw.shape, values)

    def format(self, name: str) -> str:
        """See `WeightSource.format`."""
        format = self._source.format(name)
        return "Q8_0" if name in self._changes and format not in PLAIN else format

    def stored(self, name: str) -> RawTensor:
        """See `WeightSource.stored`."""
        return self._source.stored(name)

    def stored_format(self, name: str) -> str:
        """See `WeightSource.stored_format`."""
        return self._source.stored_format(name)

    def release(self) -> None:
        """See `WeightSource.release`."""
        self._source.release()


def locations(
    adapter: Adapter, config: DecoderConfig, architecture: Architecture
) -> dict[str, tuple[str, np.ndarray | slice]]:
    """The module, and its rows, that an adapter has for weights of a model, by their names.

    Raises ModelError if the adapter is not of this model.
    """
    locations: dict[str, tuple[str, np.ndarray | slice]] = {}
    shapes = config.weight_shapes()
    known = {tensor.name: tensor for tensor in architecture.hf_tensors(config)}
    for module, (a, b) in adapter.parts.items():
        name: str | None = f"{module}.weight"
        if config.image_id is not None:
            name = decoder_name(f"{module}.weight")  # None for the encoder of images
        tensor = None if name is None else known.get(name)
        if tensor is None or tensor.matrices or len(shapes[tensor.parts[0]]) != 2:
            raise ModelError(
                f"{adapter.folder}: adapts {quoted(module)}, which is no matrix of a model of "
                f"architecture '{config.architecture}' with this configuration"
            )
        size = sum(shapes[part][0] for part in tensor.parts), shapes[tensor.parts[0]][1]
        if (b.shape[0], a.shape[1]) != size:
            raise ModelError(
                f"{adapter.folder}: adapts {quoted(module)} of shape "
                f"{(b.shape[0], a.shape[1])}; this model's is {size}"
            )
        if tensor.parts[0] in locations:  # folders of two layouts have names of their own for it
            other = locations[tensor.parts[0]][0]
            raise ModelError(
                f"{adapter.folder}: adapts {quoted(module)} and {quoted(other)}, the same matrix"
            )
        begin = 0
        for part in tensor.parts:
            rows = slice(begin, begin + shapes[part][0])
            begin = rows.stop
            locations[part] = (module, rows if tensor.order is None else tensor.order[rows])
    return locations


def named_adapters(texts: Sequence[str]) -> dict[str, str]:
    """Folders by names; raises UsageError for other texts, and for two of one name."""
    named: dict[str, str] = {}
    for text in texts:
        name, _, folder = text.partition("=")
        if not name or not folder:
            raise UsageError(f"an adapter is '{text}'; expects NAME=FOLDER")
        if name in named:
            raise UsageError(f"two adapters have the name '{name}'; expects names of their own")
        named[name] = folder
    return named


def read_adapter(folder: Path) -> Adapter:
    """The adapter in a folder of PEFT.

    Raises UsageError if there is none, ModelError if it is damaged or has options that are not
    supported.
    """
    for name in (CONFIG, TENSORS):
        if not (folder / name).is_file():
            raise UsageError(f"{folder}: has no '{name}'; expects a folder of PEFT with an adapter")
    fields = Fields.read_json(folder / CONFIG)
    _check_options(fields)
    parts: dict[str, dict[str, StoredTensor]] = {}
    for name, tensor in read_table(folder / TENSORS).items():
        match = re.fullmatch(rf"{re.escape(PREFIX)}(.+)\.lora_([AB])\.weight", name)
        if match is None or len(tensor.shape) != 2 or tensor.format not in PLAIN:
            raise ModelError(
                f"{folder}: has a tensor {quoted(name)} {tensor.format} {quoted(tensor.shape)}; "
                "supported are matrices lora_A and lora_B of linear modules"
            )
        parts.setdefault(match[1], {})[match[2]] = tensor
    for module, pair in parts.items():
        if len(pair) != 2 or not pair["A"].shape[0] == pair["B"].shape[1] > 0:
            shapes = {f"lora_{key}": tensor.shape for key, tensor in pair.items()}
            raise ModelError(
                f"{folder}: {quoted(module)} has {quoted(shapes)}; expects lora_A [r, in] and "
                "lora_B [out, r]"
            )
    if not parts:
        raise ModelError(f"{folder}: adapts nothing; expects matrices lora_A and lora_B")
    pairs = {module: (pair["A"], pair["B"]) for module, pair in parts.items()}
    scales = {module: _scale(fields, module, a.shape[0]) for module, (a, _) in pairs.items()}
    return Adapter(folder, pairs, scales)


def _check_options(fields: Fields) -> None:
    kind = fields.text("peft_type")
    if kind != "LORA":
        raise fields.refuse(f"'peft_type' is {quoted(kind)}; supported is 'LORA'")
    if (bias := fields.text("bias", "none")) != "none":
        raise fields.refuse(f"'bias' is {quoted(bias)}; supported is 'none'")
    for name in UNSUPPORTED:
        if value := fields.values.get(name):
            raise fields.refuse(f"'{name}' is {quoted(value)}, which is not supported")
    if not any(value is fields.values.get("init_lora_weights", True) for value in INITIAL[:3]):
        value = fields.values["init_lora_weights"]
        if value not in INITIAL[3:]:
            raise fields.refuse(
                f"'init_lora_weights' is {quoted(value)}, which changes the model's own weights; "
                "convert it to a plain adapter"
            )


def _scale(fields: Fields, module: str, rank: int) -> float:
    """The factor of a module's product."""
    fields.integer("r")  # the shapes have that of each module
    alphas = fields.table("alpha_pattern")
    pattern = _pattern_of(alphas, module)
    if pattern is None:
        alpha = fields.real("lora_alpha", 8.0)
    else:
        alpha = alphas.real(pattern)
    return alpha / (math.sqrt(rank) if fields.flag("use_rslora", False) else rank)


def _pattern_of(patterns: Fields, module: str) -> str | None:
    """The first pattern that is a module's name, or its end: a regular expression, as in PEFT."""
    for pattern in patterns.values:
        try:
            if re.match(rf"(.*\.)?({pattern})$", module):
                return pattern
        except (re.error, OverflowError, RecursionError) as error:  # `re` raises all three
            raise patterns.refuse(f"{quoted(pattern)} is no regular expression: {error}") from None
    return None
