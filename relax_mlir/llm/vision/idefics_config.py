"""The configuration of what sees in Idefics 3 and SmolVLM: images in tiles, and as a whole.

Source: arXiv 2408.12637, 2504.05299, as Hugging Face reads it.
"""

import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from relax_mlir.errors import ModelError
from relax_mlir.llm.architectures.vision_language import image_id
from relax_mlir.llm.formats.fields import Fields
from relax_mlir.llm.vision.config import (
    MAX_SIZE,
    SIGLIP,
    Encode,
    Normalisation,
    TowerConfig,
    fields_below,
    preprocessing_fields,
    read_normalisation,
    read_tower,
)

MAX_TILES = 64
"""On an edge: those of models are up to 6."""
FAKE, WHOLE = "<fake_token_around_image>", "<global-img>"
"""Texts before the rows of a tile, and of the whole."""
IMAGENET = (0.5, 0.5, 0.5)


@dataclass(frozen=True)
class TilePreprocessing:
    """How an image becomes tiles of `edge` x `edge` pixels.

    Its longer edge is resized to `longest`, then both are to multiples of `edge`, to one of it
    unless it `is_split`.
    """

    edge: int
    longest: int
    is_split: bool
    resample: int
    normalisation: Normalisation

    def resized(self, height: int, width: int) -> tuple[int, int]:
        """Height and width of an image before it is made a multiple of tiles."""
        longest, ratio = self.longest, width / height
        if width >= height:
            height, width = int(longest / ratio), longest
            height += height % 2
        else:
            height, width = longest, int(longest * ratio)
            width += width % 2
        return max(height, 1), max(width, 1)

    def grid_of(self, height: int, width: int) -> tuple[int, int]:
        """Rows and columns of tiles."""
        if not self.is_split:
            return 1, 1
        height, width = self.resized(height, width)
        edge, ratio = self.edge, width / height
        if width >= height:
            columns = math.ceil(width / edge)
            return math.ceil(int(edge * columns / ratio) / edge), columns
        rows = math.ceil(height / edge)
        return rows, math.ceil(int(edge * rows * ratio) / edge)


@dataclass(frozen=True)
class IdeficsVisionConfig:
    """Features of a SigLIP encoder; those of `factor` x `factor` patches become a row.

    Each patch has its own embedding of positions. Hugging Face rounds fractions of an edge, by
    which a few grids, such as 19 x 19, have some of them twice: no published model has such a grid.
    """

    preprocessing: TilePreprocessing
    tower: TowerConfig
    factor: int
    hidden_size: int
    image_id: int

    @property
    def rows(self) -> int:
        """Rows of a tile."""
        return (self.tower.grid // self.factor) ** 2

    def shapes_of(self, height: int, width: int) -> tuple[tuple[int, ...], ...]:
        """What preprocessing takes after an image: its size, the grid of tiles, and their count."""
        p = self.preprocessing
        grid = p.grid_of(height, width)
        count = math.prod(grid)
        # The whole alone, if that is the one tile.
        return p.resized(height, width), grid, (1 if count == 1 else count + 1,)

    def grid_of(self, height: int, width: int) -> tuple[int, int] | None:
        """Rows and columns that have coordinates in the decoder: none have."""
        return None

    def arguments_of(self, height: int, width: int) -> tuple[Any, ...]:
        """What the encoder takes after tiles."""
        return ()

    def tokens_of(self, height: int, width: int, encode: Encode) -> list[int]:
        """The tokens of an image: those of tiles, row by row, then of the whole.

        Raises ModelError if the tokenizer does not have the token between them, or has the one that
        stands for rows in their texts.
        """
        if len(encode(FAKE)) != 1:
            raise ModelError(f"the tokenizer has no token '{FAKE}', which images need")
        rows, columns = self.preprocessing.grid_of(height, width)
        texts, rest = list[str](), ""
        if rows * columns > 1:
            for row in range(rows):
                for column in range(columns):
                    texts.append(f"{rest}{FAKE}<row_{row + 1}_col_{column + 1}>")
                    rest = ""
                rest = "\n"
            rest = "\n\n"
        texts.append(f"{rest}{FAKE}{WHOLE}")
        between, own = [encode(text) for text in (*texts, FAKE)], [self.image_id] * self.rows
        if any(self.image_id in ids for ids in between):
            raise ModelError(
                f"token {self.image_id}, which stands for images, is one of the texts around them"
            )
        return [token for ids in between[:-1] for token in (*ids, *own)] + between[-1]


def read_idefics_vision(folder: Path, hidden_size: int) -> IdeficsVisionConfig:
    """Reads the files of a folder; raises ModelError for what is missing, or not supported."""
    fields = Fields.read_json(folder / "config.json")
    own = fields_below(fields, "vision_config")
    tower = read_tower(replace(own, values={**own.values, "model_type": SIGLIP}), 32)
    factor = fields.integer("scale_factor", 2)
    if tower.grid % factor:
        raise fields.refuse(
            f"'scale_factor' is {factor}; expects a divisor of {tower.grid}, the patches of a row"
        )
    preprocessing = _read_preprocessing(folder)
    if preprocessing.edge != tower.image:
        raise fields.refuse(
            f"'image_size' is {tower.image}; preprocessing makes tiles of {preprocessing.edge}"
        )
    return IdeficsVisionConfig(preprocessing, tower, factor, hidden_size, image_id(fields))


def _read_preprocessing(folder: Path) -> TilePreprocessing:
    fields = preprocessing_fields(folder)
    longest = fields.table("size").integer("longest_edge", 4 * 364)
    edge = fields.table("max_image_size").integer("longest_edge", 364)
    resample, normalisation = read_normalisation(fields, IMAGENET, IMAGENET, 1)
    if max(edge, longest) > MAX_SIZE or longest > MAX_TILES * edge:
        raise fields.refuse(
            f"has tiles of {edge} pixels in images of {longest}; expects at most {MAX_SIZE}, and "
            f"{MAX_TILES} tiles on an edge"
        )
    is_split = fields.flag("do_image_splitting", True)
    return TilePreprocessing(edge, longest, is_split, resample, normalisation)
