"""ONNX's node tests, interpreted: what is not refused is right, and no more than these are."""

import fnmatch
from functools import cache
from pathlib import Path

import pytest
from node_suite import cases, outcome

PARTS = 16
COMPILED = 12
"""Cases of a part that are also compiled."""


@cache
def refused() -> list[str]:
    """Patterns of the names of cases that do not pass."""
    lines = Path(__file__).with_name("refused.txt").read_text().splitlines()
    return [line.partition("#")[0].strip() for line in lines]


def is_refused(name: str) -> bool:
    """Whether a case is among them."""
    return any(fnmatch.fnmatch(name, f"test_{pattern}") for pattern in refused() if pattern)


@pytest.mark.rotate(PARTS)
@pytest.mark.parametrize("part", range(PARTS))
def test_nodes(part):
    chosen = sorted(cases(), key=lambda case: case.name)[part::PARTS]
    assert len(chosen) > 80
    for case in chosen:
        results = {outcome(case, dynamic, compiled=False) for dynamic in (False, True)}
        assert not [r for r in results if r.startswith("wrong")] or is_refused(case.name), case.name
        assert (results == {"pass"}) != is_refused(case.name), (case.name, results)
    passing = [case for case in chosen if not is_refused(case.name)]
    for case in passing[:: len(passing) // COMPILED]:
        assert outcome(case, dynamic=True, compiled=True) == "pass", case.name


@pytest.mark.sweep
@pytest.mark.parametrize("dynamic", [False, True])
def test_all_nodes_compiled(dynamic):
    for case in cases():
        if not is_refused(case.name):
            assert outcome(case, dynamic, compiled=True) == "pass", case.name
