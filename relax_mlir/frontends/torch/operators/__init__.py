"""The operators of PyTorch by family: a function for each, or for several that are alike."""

from . import (  # noqa: F401  # each registers its operators
    complex,
    control_flow,
    counting,
    creation,
    elementwise,
    factorizations,
    indexing,
    linear_algebra,
    neural,
    normalization,
    polynomials,
    pooling,
    reductions,
    scattering,
    segments,
    shaping,
    sorting,
    special,
    unique,
)
