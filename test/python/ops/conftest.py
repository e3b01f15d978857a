"""The route that a numeric test takes."""

import pytest


@pytest.fixture(params=["operator", "program", pytest.param("simt", marks=pytest.mark.rotate(12))])
def route(request: pytest.FixtureRequest) -> str:
    """What the operator means, what its tensor program computes, and what threads of a device do.

    Of tests of threads, a run takes one in twelve.
    """
    return request.param
