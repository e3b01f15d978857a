"""The routes that every numeric test takes."""

import os

import pytest
from harness import ROUTES


@pytest.fixture(params=ROUTES)
def route(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(autouse=True, scope="session")
def _cache_of_its_own(tmp_path_factory: pytest.TempPathFactory) -> None:
    os.environ.setdefault("RELAX_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
