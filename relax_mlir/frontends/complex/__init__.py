"""Complex tensors of importers: two tensors of their parts, and what is computed of them.

Arguments and results of a module have both parts along a last dim of 2.
"""

from .pair import Pair, joined, of_real, split

__all__ = ["Pair", "joined", "of_real", "split"]
