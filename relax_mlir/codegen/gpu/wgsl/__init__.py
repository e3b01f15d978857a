"""Kernels of devices as WGSL, the language of WebGPU.

Values of WGSL are of 32 bits. An index is one of them: what a launch passes is checked before, by
`index_bounds.py`, and indices that depend on data are clamped. Integers and floats of 64 bits are
pairs of words, floats of 16 bits their bits, with functions of `library/`. Memory has no elements
of less than a word: those are written by atomic operations on the word they are in.
"""

from .kernel import compile_wgsl

__all__ = ["compile_wgsl"]
