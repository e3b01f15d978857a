"""Kernels for devices: tensor programs as launches of grids of threads, for any sizes."""
