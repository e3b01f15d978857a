"""The route that a numeric test takes."""

import pytest


@pytest.fixture(params=["operator", "program"])
def route(request: pytest.FixtureRequest) -> str:
    """What the operator means, and what the tensor program computes that it is legalised to."""
    return request.param
