"""The routes that every numeric test takes."""

import os

import pytest
from harness import ROUTES


@pytest.fixture(params=["loops", "O2"])
def route(request: pytest.FixtureRequest) -> str:
    """Two routes, for programs of one stage."""
    return request.param


@pytest.fixture(params=ROUTES)
def any_route(request: pytest.FixtureRequest) -> str:
    """Every route, for programs of several stages."""
    return request.param


@pytest.fixture(autouse=True, scope="session")
def _cache_of_the_run(tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:  # processes share what they compile
        folder = folder.parent
    os.environ.setdefault("RELAX_CACHE_DIR", str(folder / "cache"))
