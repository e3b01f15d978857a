"""Tests on an emulated Arm CPU share programs with the tests of schedules, and have a cache."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[1] / "schedule"))


@pytest.fixture(scope="session", autouse=True)
def cache_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """An empty cache for the session."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RELAX_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        yield
