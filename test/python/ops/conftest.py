"""The routes that every numeric test takes."""

import pytest
from harness import ROUTES


@pytest.fixture(params=ROUTES)
def route(request: pytest.FixtureRequest) -> str:
    return request.param
