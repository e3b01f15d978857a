"""The route that a numeric test takes."""

import pytest
import vulkan
from chromium import missing

ROTATED = pytest.mark.rotate(24)
ROUTES = [
    *("operator", "program"),
    *(pytest.param(name, marks=ROTATED) for name in ("simt", "ptx", "vulkan")),
    pytest.param(
        "wgsl", marks=[ROTATED, pytest.mark.skipif(missing() is not None, reason=missing() or "")]
    ),
]


@pytest.fixture(params=ROUTES)
def route(request: pytest.FixtureRequest) -> str:
    """What the operator means, what its tensor program computes, and what threads of a device do.

    Of tests of threads, of their PTX and SPIR-V, and of their WGSL in Chromium, a run takes one in
    24.
    """
    if request.param == "vulkan":
        vulkan.require()
    return request.param
