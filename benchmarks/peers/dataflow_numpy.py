"""NumPy's array expressions; SciPy for sparse matrices and graphs."""

from collections.abc import Callable

import dataflow_cases
import numpy as np
import scipy
from scipy import sparse
from worker import Prepared


class Arrays:
    """The programs of `dataflow_cases` in float32, and SciPy's where it has them."""

    version = f"{np.__version__}, SciPy {scipy.__version__}"

    def __init__(self, threads: int) -> None:
        """The thread count of NumPy's BLAS is set by the environment, before it is loaded."""

    def prepare(self, case: dict) -> Prepared:
        """See `worker.Program`."""
        kernel, arrays = case["kernel"], dataflow_cases.arguments(case)
        if kernel in ("spmv", "bfs"):
            run = _multiplied(*arrays) if kernel == "spmv" else _searched(*arrays)
        else:
            program = dataflow_cases.PROGRAMS[kernel]

            def run() -> np.ndarray:
                return program(*arrays)

        return Prepared(lambda: [run()])


def _multiplied(
    starts: np.ndarray, columns: np.ndarray, values: np.ndarray, x: np.ndarray
) -> Callable[[], np.ndarray]:
    matrix = sparse.csr_array((values, columns, starts), (len(starts) - 1, len(x)))
    return lambda: matrix @ x


def _searched(starts: np.ndarray, neighbours: np.ndarray) -> Callable[[], np.ndarray]:
    """Lists are of those that a vertex is reached from, so edges are their transpose."""
    n = len(starts) - 1
    ones = np.ones(len(neighbours), np.float32)
    matrix = sparse.csr_array((ones, neighbours, starts), (n, n)).T.tocsr()

    def run() -> np.ndarray:
        order, before = sparse.csgraph.breadth_first_order(matrix, 0)
        levels = np.full(n, -1)
        levels[0] = 0
        for vertex in order[1:]:
            levels[vertex] = levels[before[vertex]] + 1
        return levels

    return run
