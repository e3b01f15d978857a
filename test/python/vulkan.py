"""Whether tests can run kernels by Vulkan."""

from functools import cache

import pytest

import relax_mlir
from relax_mlir.errors import ExecutionError

_TEXT = """
func.func @main(%x: tensor<1xf32>) -> tensor<1xf32> {
  %0 = "graph.add"(%x, %x) : (tensor<1xf32>, tensor<1xf32>) -> tensor<1xf32>
  return %0 : tensor<1xf32>
}
"""


def require() -> None:
    """Skips the test if they cannot."""
    if why := missing():
        pytest.skip(why)


@cache
def missing() -> str:
    """Why they cannot; "" if they can."""
    try:
        relax_mlir.compile(_TEXT, "vulkan")
    except ExecutionError as error:
        return f"needs a Vulkan driver, such as Debian's mesa-vulkan-drivers: {error}"
    return ""
