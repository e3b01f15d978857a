"""Random ops of StableHLO agree with its own interpreter."""

import pytest
import random_modules


@pytest.mark.rotate(4)
@pytest.mark.parametrize("seed", range(40))
def test_random_op(seed):
    random_modules.check(seed)


@pytest.mark.sweep
@pytest.mark.parametrize("first", range(0, 2000, 50))
def test_many_random_ops(first):
    assert sum(random_modules.check(seed) for seed in range(first, first + 50)) > 25
