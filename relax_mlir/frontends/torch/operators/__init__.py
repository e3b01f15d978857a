"""The operators of PyTorch by family: a function for each, or for several that are alike."""

from . import (  # noqa: F401  # each registers its operators
    creation,
    elementwise,
    indexing,
    linear_algebra,
    neural,
    pooling,
    reductions,
    shaping,
    sorting,
)
