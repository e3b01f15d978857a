"""What makes vectors of the results of layers, in the files of `sentence-transformers`.

`modules.json` lists modules and their folders: the transformer, pooling, dense layers, and a norm.
A folder without it has the mean of all tokens.

Source: the package `sentence-transformers`, `models/`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from relax_mlir.errors import ModelError
from relax_mlir.llm.formats.fields import Fields
from relax_mlir.llm.formats.model_files import parse_json, quoted, read_model_file
from relax_mlir.llm.formats.safetensors_files import StoredTensor, read_folder
from relax_mlir.llm.modules.encoder_config import POOLINGS, Dense, EncoderConfig

MODES = {
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_cls_token": "cls",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_lasttoken": "lasttoken",
}
OTHER_MODES = ("pooling_mode_mean_sqrt_len_tokens", "pooling_mode_weightedmean_tokens")
ACTIVATIONS = {"Identity": "", "Tanh": "tanh"}
KINDS = ("Transformer", "Pooling", "Dense", "Normalize")


@dataclass(frozen=True)
class Finish:
    """The configuration with its pooling, tensors of dense layers, and how texts are given.

    Sequences have `max_tokens`; `prompts` are texts that come before others, by name.
    """

    config: EncoderConfig
    tensors: Mapping[str, StoredTensor]
    max_tokens: int
    prompts: Mapping[str, str]


def read_finish(folder: Path, config: EncoderConfig) -> Finish:
    """Reads the files next to `config.json`; raises ModelError for what is not supported."""
    tensors: dict[str, StoredTensor] = {}
    for kind, path in _modules(folder):
        if kind == "Pooling":
            config = replace(config, pooling=_pooling(folder / path / "config.json"))
        elif kind == "Dense":
            index = len(config.dense)
            for name, tensor in read_folder(folder / path).items():
                tensors[name.replace("linear.", f"dense.{index}.", 1)] = tensor
            has_bias = f"dense.{index}.bias" in tensors
            dense = _dense(folder / path / "config.json", config.size, has_bias)
            config = replace(config, dense=(*config.dense, dense))
        elif kind == "Normalize":
            config = replace(config, is_unit=True)
    own = Fields.read_json(folder / "sentence_bert_config.json", optional=True)
    longest = min(own.integer("max_seq_length", config.max_context), config.max_context)
    texts = Fields.read_json(folder / "config_sentence_transformers.json", optional=True)
    prompts = texts.table("prompts")
    named = {name: prompts.text(name, "") for name in prompts.values}
    return Finish(config, tensors, longest, named)


def _modules(folder: Path) -> list[tuple[str, str]]:
    """Kinds and folders of modules, in order."""
    path = folder / "modules.json"
    if not path.exists():
        return []
    entries = parse_json(path, read_model_file(path))
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise ModelError(f"{path}: is {quoted(entries)}; expects a list of objects")
    modules = []
    for entry in entries:
        fields = Fields(str(path), entry)
        kind, slot = fields.text("type").rpartition(".")[2], fields.text("path", "")
        if kind not in KINDS:
            raise fields.refuse(f"has module {quoted(kind)}; supported are {', '.join(KINDS)}")
        if Path(slot).name != slot:  # never read outside of the folder
            raise fields.refuse(f"'path' is {quoted(slot)}; expects the name of a folder")
        modules.append((kind, slot))
    order = [KINDS.index(kind) for kind, _ in modules]
    if order != sorted(order) or order.count(0) != 1 or order.count(1) > 1:
        kinds = ", ".join(kind for kind, _ in modules)
        expected = "Transformer, Pooling, any Dense, Normalize"
        raise ModelError(f"{path}: has modules {kinds}; expects {expected}, in this order")
    return modules


def _pooling(path: Path) -> str:
    fields = Fields.read_json(path)
    if isinstance(fields.values.get("pooling_mode"), str):
        modes = [fields.text("pooling_mode")]
    else:
        modes = [mode for key, mode in MODES.items() if fields.flag(key, False)]
        modes += [key for key in OTHER_MODES if fields.flag(key, False)]
    if len(modes) != 1 or modes[0] not in POOLINGS:
        known = ", ".join(POOLINGS)
        raise fields.refuse(f"has pooling {' and '.join(modes)}; supported are {known}")
    if fields.flag("include_prompt", True) is not True:
        raise fields.refuse("'include_prompt' is False; True is supported")
    return modes[0]


def _dense(path: Path, inputs: int, has_bias: bool) -> Dense:
    fields = Fields.read_json(path)
    stated = fields.integer("in_features")
    if stated != inputs:
        raise fields.refuse(f"'in_features' is {stated}; expects {inputs}")
    if fields.flag("bias", True) != has_bias:
        raise fields.refuse(f"'bias' is {not has_bias}, unlike its weights")
    name = fields.text("activation_function", "torch.nn.modules.activation.Tanh")
    kind = name.rpartition(".")[2]
    if kind not in ACTIVATIONS:
        known = ", ".join(ACTIVATIONS)
        raise fields.refuse(f"has activation {quoted(name)}; supported are {known}")
    return Dense(inputs, fields.integer("out_features"), has_bias, ACTIVATIONS[kind])
