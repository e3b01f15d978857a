"""Rows of images in a sequence of tokens, and how a decoder takes them."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np

from relax_mlir.errors import UsageError


@dataclass(frozen=True, eq=False)
class Picture:
    """Rows of an image, float32[count, hidden], instead of the tokens from `begin` on.

    `key` is a digest of the image, and what part of it the rows are.
    """

    begin: int
    rows: np.ndarray
    key: bytes

    @property
    def end(self) -> int:
        """The token after."""
        return self.begin + len(self.rows)


def image_arguments(
    pictures: Sequence[Picture], begin: int, end: int, hidden_size: int
) -> tuple[np.ndarray, np.ndarray]:
    """What a decoder takes for the tokens `begin` to `end`: the images' rows, at least one.

    Also the row of each token, int32[end - begin], which is -1 for a token that is none.
    """
    rows = np.full(end - begin, -1, np.int32)
    parts, total = [], 0
    for picture in pictures:
        first, last = max(picture.begin, begin), min(picture.end, end)
        if first < last:
            rows[first - begin : last - begin] = np.arange(total, total + last - first)
            parts.append(picture.rows[first - picture.begin : last - picture.begin])
            total += last - first
    if not parts:
        return no_image(hidden_size), rows
    return np.concatenate(parts), rows


def no_image(hidden_size: int) -> np.ndarray:
    """A row that no token reads."""
    return np.zeros((1, hidden_size), np.float32)


@dataclass(frozen=True, eq=False)
class Seen:
    """What a prompt has of an image: `tokens`, of which some stand for rows, float32[n, hidden]."""

    tokens: Sequence[int]
    rows: np.ndarray
    key: bytes


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
                pictures.append(Picture(len(out), image.rows[used : used + len(run)], key))
                used += len(run)
            out += run
        assert used == len(image.rows)
    return out, pictures
