"""Resizing of images as compiled code, against its definition in NumPy and float64."""

from functools import cache

import numpy as np
import pytest

from relax_mlir.compiler import compile
from relax_mlir.executable import Executable
from relax_mlir.llm.vision.config import Normalisation, Preprocessing
from relax_mlir.llm.vision.preprocessing import export_preprocessing

HEIGHT, WIDTH = 13, 17
SIZES = [(1, 1), (2, 3), (13, 17), (64, 7), (5, 129), (211, 97), (12, 16), (31, 1)]


@cache
def module(resample: int) -> Executable:
    plain = Normalisation(1.0, (0.0,) * 3, (1.0,) * 3)
    config = Preprocessing(HEIGHT, WIDTH, 0, resample, plain)
    return compile(export_preprocessing(config))


def kernel(x: np.ndarray, resample: int) -> np.ndarray:
    x = np.abs(x)
    if resample == 1:
        return np.where(x < 3, np.sinc(x) * np.sinc(x / 3), 0)
    if resample == 2:
        return np.maximum(1 - x, 0)
    far = -0.5 * x**3 + 2.5 * x**2 - 4 * x + 2
    return np.where(x < 1, 1.5 * x**3 - 2.5 * x**2 + 1, np.where(x < 2, far, 0))


def mean(values: np.ndarray, target: int, resample: int) -> np.ndarray:
    """Means along the first axis, before they are rounded."""
    scale = len(values) / target
    centres = (np.arange(target) + 0.5) * scale
    distance = (np.arange(len(values)) + 0.5 - centres[:, None]) / max(scale, 1)
    weights = kernel(distance, resample)
    return np.tensordot(weights / weights.sum(1, keepdims=True), values, 1)


def rounded(x: np.ndarray) -> np.ndarray:
    return np.clip(np.floor(x + 0.5), 0, 255)


@pytest.mark.parametrize("resample", [1, 2, 3])
def test_every_size(resample: int) -> None:
    """All elements but those whose mean is between two integers, and of their rows by one."""
    rng = np.random.default_rng(resample)
    for height, width in SIZES:
        for a, b in ((HEIGHT, WIDTH), (HEIGHT, 3 * WIDTH + 1), (2 * HEIGHT + 1, WIDTH)):
            image = rng.integers(0, 256, (height, width, 3)).astype(np.uint8)
            across = rounded(mean(image.transpose(1, 0, 2), b, resample)).transpose(1, 0, 2)
            exact = mean(across, a, resample)
            top, left = (a - HEIGHT) // 2, (b - WIDTH) // 2
            crop = exact[top : top + HEIGHT, left : left + WIDTH].transpose(2, 0, 1)
            [got] = module(resample)["main"](image, (a, b))
            assert np.abs(got - rounded(crop)).max() <= 1
            assert (got != rounded(crop)).mean() < 0.06
