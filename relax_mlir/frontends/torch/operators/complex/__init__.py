"""Operators of complex tensors that do more than those of their parts."""

from . import (  # noqa: F401  # each registers its operators
    elementwise,
    equations,
    fourier,
    parts,
    products,
    reductions,
)
