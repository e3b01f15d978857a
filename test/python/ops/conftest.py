"""The route that a numeric test takes."""

import pytest


@pytest.fixture(params=["operator", "program", pytest.param("simt", marks=pytest.mark.rotate(24))])
def route(request: pytest.FixtureRequest) -> str:
    """What the operator means, what its tensor program computes, and what threads of a device do.

    Of tests of threads, a run takes one in 24.
    """
    return request.param
