"""Random arguments of a function, from its signature and the values of its symbols."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from relax_mlir.executable import Argument
from relax_mlir.interpreter.elements import round_to, stored_dtype
from relax_mlir.symbolic import as_expr

UNKNOWN = "?"
"""The key of the size of unnamed dims."""


def dims_of(argument: Argument, sizes: Mapping[str, int]) -> list[int]:
    """The dims of an argument, or the values of a shape; one of any rank has rank 1."""
    unknown = sizes.get(UNKNOWN, 3)
    dims = (None,) if argument.dims is None else argument.dims
    return [unknown if dim is None else as_expr(dim).evaluate(sizes) for dim in dims]


def arguments(
    signature: Sequence[Argument], sizes: Mapping[str, int], random: np.random.Generator
) -> list[Any]:
    """Normally distributed floats, integers from -8 to 64 or of all bytes, and booleans.

    Of unsigned types, negative ones are the last ones of the type.
    Now and then all elements of a tensor have one sign, where a wrong start of a maximum shows.
    bf16 is represented by its bits in uint16.
    """
    return [_argument(argument, dims_of(argument, sizes), random) for argument in signature]


def _argument(argument: Argument, dims: Sequence[int], random: np.random.Generator) -> Any:
    if argument.kind == "shape":
        return list(dims)
    dtype = stored_dtype(argument.dtype)
    if dtype.kind == "b":
        return random.integers(0, 2, dims).astype(dtype)
    sign = random.choice([0, 0, 0, 1, -1])
    if argument.dtype.endswith("f16") or dtype.kind == "f":
        numbers = random.standard_normal(dims)
        return round_to(np.abs(numbers) * sign if sign else numbers, argument.dtype)
    low, high = (-128, 127) if dtype.itemsize == 1 else (-8, 64)
    low, high = {0: (low, high), 1: (1, high), -1: (-high, 0)}[sign]
    return random.integers(low, high, dims).astype(dtype)
