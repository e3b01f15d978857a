"""The rules, by dialect: importing a module of them registers them."""

from . import control, linalg, scalars, scans, tensors

__all__ = ["control", "linalg", "scalars", "scans", "tensors"]
