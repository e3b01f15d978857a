"""Rows of images in a sequence of tokens, and how a decoder takes them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby

import numpy as np

from relax_mlir.errors import UsageError
from relax_mlir.llm.modules.config import DecoderConfig


@dataclass(frozen=True, eq=False)
class Picture:
    """Rows of an image, float32[count, hidden], instead of the tokens from `begin` on.

    `key` is a digest of the image, and what part of it the rows are. With a `grid` of so many rows
    and columns, they have coordinates of their own.
    """

    begin: int
    rows: np.ndarray
    key: bytes
    grid: tuple[int, int] | None = None

    @property
    def end(self) -> int:
        """The token after."""
        return self.begin + len(self.rows)

    def until(self, end: int) -> "Picture":
        """Its rows for tokens before `end`."""
        return self if end >= self.end else replace(self, rows=self.rows[: end - self.begin])

    @property
    def saved(self) -> int:
        """How many positions less than tokens it takes: as many as its longer side."""
        return 0 if self.grid is None else len(self.rows) - max(self.grid)


def image_arguments(
    pictures: Sequence[Picture], begin: int, end: int, config: DecoderConfig
) -> list[np.ndarray]:
    """What a decoder takes for the tokens `begin` to `end` of a sequence with these images.

    The images' rows, at least one; the row of each token, int32[end - begin], which is -1 for a
    token that is none; and `coordinates`, if the decoder has them.
    """
    rows = np.full(end - begin, -1, np.int32)
    parts, total = [], 0
    for picture in pictures:
        first, last = max(picture.begin, begin), min(picture.end, end)
        if first < last:
            rows[first - begin : last - begin] = np.arange(total, total + last - first)
            parts.append(picture.rows[first - picture.begin : last - picture.begin])
            total += last - first
    # One row at least, which no token reads.
    images = np.concatenate(parts) if parts else np.zeros((1, config.hidden_size), np.float32)
    more = [coordinates(pictures, begin, end)] if config.has_coordinates else []
    return [images, rows, *more]


def coordinates(pictures: Sequence[Picture], begin: int, end: int) -> np.ndarray:
    """The time, row and column of the tokens `begin` to `end`, int32[end - begin, 3].

    They are the position of a text's token. Those of an image begin at its first position, with one
    time; the text goes on after the largest. Source: Qwen2-VL (arXiv 2409.12191), section 2.1.
    """
    out = np.repeat(np.arange(begin, end, dtype=np.int32)[:, None], 3, axis=1)
    for picture in pictures:
        if picture.grid is None:
            continue
        first, last = (min(max(i, begin), end) for i in (picture.begin, picture.end))
        if first < last:
            rows, columns = np.divmod(np.arange(first, last) - picture.begin, picture.grid[1])
            start = out[first - begin, 0] - (first - picture.begin)
            out[first - begin : last - begin] = np.stack([0 * rows, rows, columns], 1) + start
        out[last - begin :] -= picture.saved
    return out


@dataclass(frozen=True, eq=False)
class Seen:
    """What a prompt has of an image: `tokens`, of which some stand for rows, float32[n, hidden].

    `grid` is as of `Picture`.
    """

    tokens: Sequence[int]
    rows: np.ndarray
    key: bytes
    grid: tuple[int, int] | None = None


def check_count(ids: Sequence[int], image_id: int, given: int) -> None:
    """Raises UsageError unless a prompt is on as many images as are given."""
    count = sum(token == image_id for token in ids)
    if count != given:
        raise UsageError(f"the prompt is on {count} images, and {given} are given; expects as many")


def inserted(
    ids: Sequence[int], image_id: int, images: Sequence[Seen]
) -> tuple[list[int], list[Picture]]:
    """Tokens with those of each image instead of an `image_id`, and where its rows are.

    Raises UsageError unless there are as many of one as of the other.
    """
    check_count(ids, image_id, len(images))
    rest, out, pictures = iter(images), list[int](), list[Picture]()
    for token in ids:
        if token != image_id:
            out.append(token)
            continue
        image, used = next(rest), 0
        for is_row, group in groupby(image.tokens, lambda each: each == image_id):
            run = list(group)
            if is_row:
                key = image.key + used.to_bytes(8, "little")
                rows = image.rows[used : used + len(run)]
                pictures.append(Picture(len(out), rows, key, image.grid))
                used += len(run)
            out += run
        assert used == len(image.rows)
    return out, pictures
