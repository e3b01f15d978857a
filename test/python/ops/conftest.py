"""The routes that every numeric test takes."""

import os

import pytest


@pytest.fixture(params=["operator", "program"])
def route(request: pytest.FixtureRequest) -> str:
    """What the operator means, and what the tensor program computes that it is legalised to."""
    return request.param


@pytest.fixture(autouse=True, scope="session")
def _cache_of_the_run(tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:  # processes share what they compile
        folder = folder.parent
    os.environ.setdefault("RELAX_CACHE_DIR", str(folder / "cache"))
