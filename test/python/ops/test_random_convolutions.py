"""Random convolutions, whose filters and pixels devices multiply by tiles, against exact sums."""

import numpy as np
import pytest
from harness import run
from random_convolutions import RandomConvolution


@pytest.mark.parametrize(
    "seed", [*range(4), *(pytest.param(seed, marks=pytest.mark.sweep) for seed in range(4, 100))]
)
def test_random_convolution(seed: int, route: str) -> None:
    convolution = RandomConvolution(seed)
    main = run(convolution.text, route)
    for sizes in convolution.calls():
        arrays = convolution.arrays(sizes)
        exact, actual = convolution.exact(*arrays), main(*arrays)
        np.testing.assert_array_equal(actual, exact.astype(actual.dtype), str(sizes))
