"""The configuration of what sees in a model: preprocessing, encoder, projector."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import floor
from pathlib import Path
from typing import Any

from relax_mlir.llm.architectures.vision_language import image_id
from relax_mlir.llm.formats.fields import Fields
from relax_mlir.llm.formats.model_files import quoted
from relax_mlir.llm.modules.config import MAX_LAYERS

MAX_SIZE = 4096
"""The greatest height and width of what an encoder takes."""
RESAMPLINGS = (1, 2, 3)
CLIP, SIGLIP = "clip_vision_model", "siglip_vision_model"
Triple = tuple[float, float, float]
CLIP_MEAN: Triple = (0.48145466, 0.4578275, 0.40821073)
CLIP_DEVIATION: Triple = (0.26862954, 0.26130258, 0.27577711)
ACTIVATIONS = {
    "quick_gelu": "quick_gelu",
    "gelu": "gelu",
    "gelu_pytorch_tanh": "gelu_tanh",
    "gelu_new": "gelu_tanh",
    "silu": "silu",
}
"""Activations of `config.json`."""


Encode = Callable[[str], list[int]]
"""The tokens of a text that is within another."""


@dataclass(frozen=True)
class Normalisation:
    """Elements are multiplied by `scale`; `mean` is subtracted; `deviation` divides them."""

    scale: float
    mean: tuple[float, ...]
    deviation: tuple[float, ...]


@dataclass(frozen=True)
class Preprocessing:
    """How an image becomes pixels [3, height, width].

    It is resized to that size, or, if it `is_cropped`, its shorter edge is to `shortest`, and the
    middle is taken. `resample` is Pillow's constant of a kernel.
    """

    height: int
    width: int
    shortest: int
    resample: int
    normalisation: Normalisation

    def resized(self, height: int, width: int) -> tuple[int, int]:
        """Height and width of an image of this size, before it is cropped."""
        if not self.shortest:
            return self.height, self.width
        short, long = sorted((height, width))
        longer = floor(self.shortest * long / short)
        return (self.shortest, longer) if height <= width else (longer, self.shortest)


@dataclass(frozen=True)
class TowerConfig:
    """A transformer over patches of images; the defaults are SigLIP's, others CLIP's.

    With a `class_token`, an embedding comes before those of patches, which have no bias then, and
    a norm before the first layer.
    """

    size: int
    inner: int
    layers: int
    heads: int
    image: int
    patch: int
    epsilon: float
    activation: str
    class_token: bool = False

    @property
    def grid(self) -> int:
        """Patches of a row, and rows."""
        return self.image // self.patch

    @property
    def tokens(self) -> int:
        """Rows of an image."""
        return self.grid**2 + self.class_token


@dataclass(frozen=True)
class VisionConfig:
    """Features after `layers` of the encoder, joined, and projected to rows of a decoder's input.

    The class token's is no row if `drops_first`. Source: LLaVA 1.5 (arXiv 2310.03744).
    """

    preprocessing: Preprocessing
    tower: TowerConfig
    layers: tuple[int, ...]
    drops_first: bool
    hidden_size: int
    bias: bool
    activation: str
    image_id: int

    @property
    def rows(self) -> int:
        """Rows of an image."""
        return self.tower.tokens - self.drops_first

    def shapes_of(self, height: int, width: int) -> tuple[tuple[int, ...], ...]:
        """What preprocessing takes after an image: the size that it is resized to."""
        return (self.preprocessing.resized(height, width),)

    def grid_of(self, height: int, width: int) -> tuple[int, int] | None:
        """Rows and columns that have coordinates in the decoder: none have."""
        return None

    def tokens_of(self, height: int, width: int, encode: Encode) -> list[int]:
        """The tokens of an image, all of which stand for rows."""
        return [self.image_id] * self.rows

    def arguments_of(self, height: int, width: int) -> tuple[Any, ...]:
        """What the encoder takes after pixels."""
        return ()


def read_vision(folder: Path, hidden_size: int) -> VisionConfig:
    """Reads the files of a folder; raises ModelError for what is missing, or not supported."""
    fields = Fields.read_json(folder / "config.json")
    tower = read_tower(fields_below(fields, "vision_config"))
    strategy = fields.text("vision_feature_select_strategy", "default")
    if strategy not in ("default", "full"):
        raise fields.refuse(
            f"'vision_feature_select_strategy' is {quoted(strategy)}; expects 'default' or 'full'"
        )
    config = VisionConfig(
        preprocessing=read_preprocessing(folder),
        tower=tower,
        layers=_feature_layers(fields, tower.layers),
        drops_first=strategy == "default",
        hidden_size=hidden_size,
        bias=fields.flag("multimodal_projector_bias", True),
        activation=activation_of(fields, "projector_hidden_act", "gelu"),
        image_id=image_id(fields),
    )
    size = (config.preprocessing.height, config.preprocessing.width)
    if size != (tower.image, tower.image):
        raise fields.refuse(
            f"'image_size' is {tower.image}; preprocessing makes images of {size[0]} x {size[1]}"
        )
    return config


def fields_below(fields: Fields, key: str) -> Fields:
    """The entries of an object, whose keys are named with it."""
    return Fields(fields.where, fields.table(key).values, f"{key}.")


def _feature_layers(fields: Fields, count: int) -> tuple[int, ...]:
    """How many layers come before each of the features."""
    value = fields.values.get("vision_feature_layer", -2)
    layers = value if isinstance(value, list) else [value]
    holds = all(isinstance(i, int) and not isinstance(i, bool) for i in layers)
    if not layers or not holds or not all(-count - 1 <= i <= count for i in layers):
        raise fields.refuse(
            f"'vision_feature_layer' is {quoted(value)}; expects layers of {count}, or negative "
            "ones, from the last"
        )
    return tuple(i if i >= 0 else count + 1 + i for i in layers)


_DEFAULTS: Mapping[str, Mapping[str, Any]] = {
    CLIP: {"patch": 32, "epsilon": 1e-5, "activation": "quick_gelu", "class_token": True},
    SIGLIP: {"patch": 16, "epsilon": 1e-6, "activation": "gelu_pytorch_tanh", "class_token": False},
}


def read_tower(fields: Fields, patch: int | None = None) -> TowerConfig:
    """Reads an encoder of CLIP or SigLIP, with patches of this size unless it says otherwise."""
    kind = fields.text("model_type", CLIP)
    if kind not in _DEFAULTS:
        known = ", ".join(map(repr, _DEFAULTS))
        raise fields.refuse(f"has an encoder of type {quoted(kind)}; supported are {known}")
    defaults = _DEFAULTS[kind]
    if fields.integer("num_channels", 3) != 3:
        raise fields.refuse(f"'num_channels' is {fields.values['num_channels']}; expects 3")
    tower = TowerConfig(
        size=fields.integer("hidden_size", 768),
        inner=fields.integer("intermediate_size", 3072),
        layers=fields.integer("num_hidden_layers", 12),
        heads=fields.integer("num_attention_heads", 12),
        image=fields.integer("image_size", 224),
        patch=fields.integer("patch_size", patch or defaults["patch"]),
        epsilon=fields.real("layer_norm_eps", defaults["epsilon"]),
        activation=activation_of(fields, "hidden_act", defaults["activation"]),
        class_token=defaults["class_token"],
    )
    if tower.size % tower.heads:
        raise fields.refuse(
            f"'hidden_size' is {tower.size}; expects a multiple of {tower.heads} heads"
        )
    if tower.layers > MAX_LAYERS or not tower.patch <= tower.image <= MAX_SIZE:
        raise fields.refuse(
            f"has {tower.layers} layers, patches of {tower.patch} and images of {tower.image}; "
            f"expects at most {MAX_LAYERS} layers, and images of a patch to {MAX_SIZE}"
        )
    return tower


def activation_of(fields: Fields, key: str, default: str) -> str:
    """An activation by its name of `activated`."""
    name = fields.text(key, default)
    if name not in ACTIVATIONS:
        known = ", ".join(map(repr, ACTIVATIONS))
        raise fields.refuse(f"'{key}' is {quoted(name)}; supported are {known}")
    return ACTIVATIONS[name]


def read_preprocessing(folder: Path) -> Preprocessing:
    """Reads how images become pixels."""
    fields = preprocessing_fields(folder)
    height, width, shortest = _sizes(fields)
    return Preprocessing(height, width, shortest, *read_normalisation(fields))


def preprocessing_fields(folder: Path) -> Fields:
    """The entries of `preprocessor_config.json`, or what `processor_config.json` has of them."""
    path = folder / "preprocessor_config.json"
    if path.exists():
        return Fields.read_json(path)
    return fields_below(Fields.read_json(folder / "processor_config.json"), "image_processor")


def read_normalisation(
    fields: Fields,
    mean: Triple | None = None,
    deviation: Triple | None = None,
    resample: int = 3,
) -> tuple[int, Normalisation]:
    """The kernel that resizes images, and what follows; raises ModelError for other steps."""
    for key in ("do_resize", "do_rescale", "do_normalize"):
        if not fields.flag(key, True):
            raise fields.refuse(f"'{key}' is false; true is supported")
    resample = fields.integer("resample", resample)
    if resample not in RESAMPLINGS:
        raise fields.refuse(
            f"'resample' is {resample}; supported are 1 (Lanczos), 2 (bilinear) and 3 (bicubic)"
        )
    means, deviations = (
        default if default and fields.values.get(key) is None else fields.reals(key)
        for key, default in (("image_mean", mean), ("image_std", deviation))
    )
    if len(means) != 3 or len(deviations) != 3:
        raise fields.refuse("'image_mean' and 'image_std' expect a value for each of 3 channels")
    scale = fields.real("rescale_factor", 1 / 255)
    return resample, Normalisation(scale, means, deviations)


def _sizes(fields: Fields) -> tuple[int, int, int]:
    """Height and width, and the shortest edge before they are cropped, or 0."""
    size, crop = _edges(fields, "size"), _edges(fields, "crop_size")
    if not fields.flag("do_center_crop", bool(crop.values)):
        if "height" not in size.values or "width" not in size.values:
            raise fields.refuse(f"'size' is {quoted(dict(size.values))}; expects height and width")
        return _bounded(size, size.integer("height"), size.integer("width"), 0)
    height, width = crop.integer("height"), crop.integer("width")
    shortest = size.integer("shortest_edge")
    if shortest < max(height, width):
        raise fields.refuse(f"'crop_size' is {height} x {width}; expects at most {shortest}")
    return _bounded(crop, height, width, shortest)


def _bounded(fields: Fields, height: int, width: int, shortest: int) -> tuple[int, int, int]:
    if max(height, width, shortest) > MAX_SIZE:
        raise fields.refuse(f"is {height} x {width}; expects at most {MAX_SIZE}")
    return height, width, shortest


def _edges(fields: Fields, key: str) -> Fields:
    """An object of sizes, which older files have as one integer."""
    value = fields.values.get(key)
    if isinstance(value, int):
        edges = {"height": value, "width": value, "shortest_edge": value}
        return Fields(fields.where, edges, f"{key}.")
    return fields_below(fields, key)
