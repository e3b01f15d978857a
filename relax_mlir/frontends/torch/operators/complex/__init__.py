"""Operators of complex tensors that do more than those of their parts."""

from . import elementwise, fourier, parts, products, reductions  # noqa: F401  # register operators
