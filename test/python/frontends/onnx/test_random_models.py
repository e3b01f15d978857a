"""Random models, interpreted: what is not refused is as the reference says."""

import pytest
from random_models import outcome

PARTS, SEEDS = 6, 14


@pytest.mark.rotate(PARTS)
@pytest.mark.parametrize("part", range(PARTS))
def test_models(part):
    results = [(seed, outcome(seed)) for seed in range(part * SEEDS, (part + 1) * SEEDS)]
    assert [each for each in results if each[1].startswith("wrong")] == []
    assert sum(result == "pass" for _, result in results) > SEEDS // 2


@pytest.mark.sweep
@pytest.mark.parametrize("part", range(50))
def test_many_models(part):
    results = [(seed, outcome(seed)) for seed in range(1000 + part * 100, 1100 + part * 100)]
    assert [each for each in results if each[1].startswith("wrong")] == []


@pytest.mark.sweep
@pytest.mark.parametrize("seed", range(2000, 2040))
def test_compiled_models(seed):
    assert not outcome(seed, compiled=True).startswith("wrong")
