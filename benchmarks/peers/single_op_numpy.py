"""NumPy, for the operators that it has."""

from collections.abc import Callable, Mapping

import numpy as np
import single_op_cases
from worker import Prepared


class Operators:
    """One call each."""

    version = np.__version__

    def __init__(self, threads: int) -> None:
        """NumPy's own loops have one thread."""

    def prepare(self, case: dict) -> Prepared:
        """See `worker.Program`."""
        if case["kernel"] not in _FUNCTIONS:
            raise NotImplementedError(f"no {case['kernel']}")
        function = _FUNCTIONS[case["kernel"]]
        given = single_op_cases.arguments(case)
        return Prepared(lambda: [function(**given, **case["settings"])])


def _topk(x, k):
    greatest = np.partition(x, x.shape[-1] - k, -1)[..., -k:]
    return np.sort(greatest, -1)[..., ::-1]


def _scatter_elements(x, indices, updates, axis):
    y = x.copy()
    at = [np.arange(n).reshape([-1 if i == j else 1 for j in range(x.ndim)])
          for i, n in enumerate(x.shape)]  # fmt: skip
    at[axis] = indices
    np.add.at(y, tuple(at), updates)
    return y


def _scatter_nd(x, indices, updates, count):
    y = x.copy()
    np.add.at(y, tuple(indices.T), updates)
    return y


_FUNCTIONS: Mapping[str, Callable[..., np.ndarray]] = {
    "sort": lambda x, axis, descending=False: (
        np.flip(np.sort(x, axis), axis) if descending else np.sort(x, axis)
    ),
    "argsort": lambda x, axis: np.argsort(x, axis, stable=True),
    "topk": _topk,
    "unique": lambda x, values: np.unique(x),
    "cumsum": lambda x, axis: np.cumsum(x, axis),
    "cumprod": lambda x, axis: np.cumprod(x, axis),
    "scatter_elements": _scatter_elements,
    "scatter_nd": _scatter_nd,
    "gather_elements": lambda x, indices, axis: np.take_along_axis(x, indices, axis),
    "gather_nd": lambda x, indices, count: x[tuple(indices.T)],
    "take": lambda x, indices, count: np.take(x, indices, 0),
}
