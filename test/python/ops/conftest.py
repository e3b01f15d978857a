"""The route that a numeric test takes."""

import pytest

ROTATED = pytest.mark.rotate(24)
ROUTES = [
    *("operator", "program"),
    *(pytest.param(name, marks=ROTATED) for name in ("simt", "ptx")),
]


@pytest.fixture(params=ROUTES)
def route(request: pytest.FixtureRequest) -> str:
    """What the operator means, what its tensor program computes, and what threads of a device do.

    Of tests of threads, and of their PTX, a run takes one in 24.
    """
    return request.param
