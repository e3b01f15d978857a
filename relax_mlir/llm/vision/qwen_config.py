"""The configuration of what sees in Qwen2-VL and Qwen2.5-VL: images of any size, in patches.

Source: arXiv 2409.12191, 2502.13923, as Hugging Face reads it.
"""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from relax_mlir.errors import UsageError
from relax_mlir.llm.architectures.vision_language import QWEN2_5, family_of, image_id
from relax_mlir.llm.formats.fields import Fields
from relax_mlir.llm.modules.config import MAX_LAYERS
from relax_mlir.llm.vision.config import (
    CLIP_DEVIATION,
    CLIP_MEAN,
    Encode,
    Normalisation,
    activation_of,
    fields_below,
    preprocessing_fields,
    read_normalisation,
)

MAX_PIXELS = 64 << 20
"""Of an image after it is resized."""
MAX_WEIGHTS = 1 << 28
"""Elements of an axis before and after it is resized, multiplied."""
MAX_WINDOW = 64
"""Rows of a window: those of models are 4."""
MAX_RATIO = 200
"""Of the longer edge to the shorter."""


@dataclass(frozen=True)
class PatchPreprocessing:
    """How an image becomes patches: both edges are resized to multiples of `unit`.

    Its area is from `least` to `most` pixels then. A unit has `merge` x `merge` patches, each of
    `patch` x `patch` pixels, which become one row.
    """

    patch: int
    merge: int
    least: int
    most: int
    resample: int
    normalisation: Normalisation

    @property
    def unit(self) -> int:
        """The edge of what becomes a row, in pixels."""
        return self.patch * self.merge

    def grid_of(self, height: int, width: int) -> tuple[int, int]:
        """Rows and columns of units; raises UsageError for sizes that are not supported."""
        if max(height, width) > MAX_RATIO * min(height, width):
            raise UsageError(
                f"an image has {height} x {width} pixels; expects an edge at most {MAX_RATIO} "
                "times as long as the other"
            )
        edges = (height, width)
        grid = [round(edge / self.unit) for edge in edges]
        area = math.prod(grid) * self.unit**2
        if area > self.most:
            shrink = math.sqrt(height * width / self.most)
            grid = [max(1, math.floor(edge / shrink / self.unit)) for edge in edges]
        elif area < self.least:
            grow = math.sqrt(self.least / (height * width))
            grid = [math.ceil(edge * grow / self.unit) for edge in edges]
        if any(count * self.unit * edge > MAX_WEIGHTS for count, edge in zip(grid, edges)):
            raise UsageError(
                f"an image of {height} x {width} pixels is resized to {grid[0] * self.unit} x "
                f"{grid[1] * self.unit}; expects edges before and after whose product is at most "
                f"{MAX_WEIGHTS}"
            )
        return grid[0], grid[1]


@dataclass(frozen=True)
class QwenVisionConfig:
    """A transformer over the patches of an image; units become rows of `hidden_size`.

    `frames` equal patches follow one another in the filters. With `window` > 0, patches attend
    within windows of so many units a side, but in `full_layers`; layers have RMS norms then, and a
    gate.
    """

    preprocessing: PatchPreprocessing
    size: int
    inner: int
    layers: int
    heads: int
    frames: int
    activation: str
    hidden_size: int
    image_id: int
    theta: float = 10000.0
    epsilon: float = 1e-6
    window: int = 0
    full_layers: frozenset[int] = frozenset()

    @property
    def head_dim(self) -> int:
        """Elements of a head."""
        return self.size // self.heads

    def shapes_of(self, height: int, width: int) -> tuple[tuple[int, ...], ...]:
        """What preprocessing takes after an image: rows and columns of units."""
        return (self.grid_of(height, width),)

    def grid_of(self, height: int, width: int) -> tuple[int, int]:
        """Rows and columns of units, which have coordinates in the decoder."""
        return self.preprocessing.grid_of(height, width)

    def tokens_of(self, height: int, width: int, encode: Encode) -> list[int]:
        """The tokens of an image, all of which stand for rows."""
        return [self.image_id] * math.prod(self.grid_of(height, width))

    def arguments_of(self, height: int, width: int) -> tuple[Any, ...]:
        """What the encoder takes after patches: the grid, and with windows what is in them."""
        grid = self.grid_of(height, width)
        return (grid, *windows_of(*grid, self.window)) if self.window else (grid,)


def windows_of(rows: int, columns: int, side: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Windows of a grid: the unit in each slot, int32[w, side^2], the slot of each unit, int32[u].

    Also the count of units of each window, int32[w], whose other slots follow and have unit 0.
    """
    units = np.arange(rows * columns).reshape(rows, columns)
    tiles = [
        units[top : top + side, left : left + side].reshape(-1)
        for top in range(0, rows, side)
        for left in range(0, columns, side)
    ]
    table = np.zeros((len(tiles), side**2), np.int32)
    slots = np.zeros(rows * columns, np.int32)
    for i, tile in enumerate(tiles):
        table[i, : len(tile)] = tile
        slots[tile] = i * side**2 + np.arange(len(tile))
    return table, slots, np.array([len(tile) for tile in tiles], np.int32)


def read_qwen_vision(folder: Path, hidden_size: int) -> QwenVisionConfig:
    """Reads the files of a folder; raises ModelError for what is missing, or not supported."""
    fields = Fields.read_json(folder / "config.json")
    own = fields_below(fields, "vision_config")
    preprocessing = _read_preprocessing(folder)
    patch, merge = own.integer("patch_size", 14), own.integer("spatial_merge_size", 2)
    if (patch, merge) != (preprocessing.patch, preprocessing.merge):
        raise own.refuse(
            f"has patches of {patch}, and {merge} x {merge} of them in a row; preprocessing makes "
            f"{preprocessing.patch}, and {preprocessing.merge} x {preprocessing.merge}"
        )
    if own.integer("in_channels", own.integer("in_chans", 3)) != 3:
        raise own.refuse("'in_channels' expects 3")
    is_later = family_of(fields) == QWEN2_5
    options = _later_options(own, patch * merge) if is_later else _first_options(own)
    config = QwenVisionConfig(
        preprocessing=preprocessing,
        layers=own.integer("depth", 32),
        heads=own.integer("num_heads", 16),
        frames=own.integer("temporal_patch_size", 2),
        activation=activation_of(own, "hidden_act", "silu" if is_later else "quick_gelu"),
        hidden_size=hidden_size,
        image_id=image_id(fields),
        theta=fields_below(own, "rope_parameters").real("rope_theta", 10000.0),
        **options,
    )
    _check(config, own, "out_hidden_size" if is_later else "hidden_size")
    return config


def _first_options(fields: Fields) -> dict[str, Any]:
    """Sizes of Qwen2-VL."""
    size = fields.integer("embed_dim", 1280)
    return {"size": size, "inner": size * fields.integer("mlp_ratio", 4)}


def _later_options(fields: Fields, unit: int) -> dict[str, Any]:
    """Sizes and windows of Qwen2.5-VL."""
    side = fields.integer("window_size", 112) // unit
    if not 1 <= side <= MAX_WINDOW:
        raise fields.refuse(
            f"'window_size' is {fields.integer('window_size', 112)}; expects 1 to {MAX_WINDOW} "
            f"times {unit}, the edge of a row in pixels"
        )
    listed = fields.values.get("fullatt_block_indexes")
    full = (7, 15, 23, 31) if listed is None else fields.counts("fullatt_block_indexes")
    return {
        "size": fields.integer("hidden_size", 3584),
        "inner": fields.integer("intermediate_size", 3420),
        "window": side,
        "full_layers": frozenset(full),
    }


def _check(config: QwenVisionConfig, fields: Fields, key: str) -> None:
    if config.size % (4 * config.heads):
        raise fields.refuse(
            f"has {config.size} elements in {config.heads} heads; expects a multiple of 4 in each"
        )
    if config.layers > MAX_LAYERS:
        raise fields.refuse(f"has {config.layers} layers; expects at most {MAX_LAYERS}")
    if fields.integer(key, config.hidden_size) != config.hidden_size:
        raise fields.refuse(
            f"'{key}' is {fields.values[key]}; the decoder expects {config.hidden_size}"
        )


def _read_preprocessing(folder: Path) -> PatchPreprocessing:
    fields = preprocessing_fields(folder)
    size = fields.table("size")
    least = fields.integer("min_pixels", size.integer("shortest_edge", 56 * 56))
    most = fields.integer("max_pixels", size.integer("longest_edge", 28 * 28 * 1280))
    if not least <= most <= MAX_PIXELS:
        raise fields.refuse(
            f"has images of {least} to {most} pixels; expects at most {MAX_PIXELS}, and no less "
            "than the first"
        )
    resample, normalisation = read_normalisation(fields, CLIP_MEAN, CLIP_DEVIATION)
    return PatchPreprocessing(
        fields.integer("patch_size", 14),
        fields.integer("merge_size", 2),
        least,
        most,
        resample,
        normalisation,
    )
