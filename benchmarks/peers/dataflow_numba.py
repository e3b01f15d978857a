"""Numba's parallel loops, written as in C."""

from collections.abc import Callable, Mapping

import dataflow_cases
import numba
import numpy as np
from numba import njit, prange
from worker import Prepared


class Loops:
    """A function for each benchmark."""

    version = numba.__version__

    def __init__(self, threads: int) -> None:
        numba.set_num_threads(min(threads, numba.config.NUMBA_NUM_THREADS))

    def prepare(self, case: dict) -> Prepared:
        """See `worker.Program`."""
        function = _FUNCTIONS.get(case["kernel"])
        if function is None:
            raise NotImplementedError("is written in C alone")
        out: np.ndarray = np.empty(
            dataflow_cases.result_shape(case), dataflow_cases.result_type(case)
        )
        arrays = [*dataflow_cases.arguments(case), out]

        def run() -> list[np.ndarray]:
            function(*arrays)
            return [out]

        return Prepared(run)


@njit(parallel=True)
def _sgemm(a, b, c):
    for i in prange(a.shape[0]):
        c[i] = 0
        for p in range(a.shape[1]):
            for j in range(b.shape[1]):
                c[i, j] += a[i, p] * b[p, j]


@njit(parallel=True)
def _spmv(starts, columns, values, x, y):
    for i in prange(len(y)):
        total = np.float32(0)
        for p in range(starts[i], starts[i + 1]):
            total += values[p] * x[columns[p]]
        y[i] = total


@njit(parallel=True)
def _stencil(x, y):
    d, h, w = x.shape
    for k in prange(d):
        front, back = max(k - 1, 0), min(k + 1, d - 1)
        for j in range(h):
            up, down = max(j - 1, 0), min(j + 1, h - 1)
            for i in range(w):
                left, right = max(i - 1, 0), min(i + 1, w - 1)
                near = x[front, j, i] + x[back, j, i] + x[k, up, i] + x[k, down, i]
                near += x[k, j, left] + x[k, j, right]
                y[k, j, i] = np.float32(0.4) * x[k, j, i] + np.float32(0.1) * near


@njit(parallel=True)
def _bfs(starts, neighbours, levels):
    levels[:] = -1
    levels[0] = 0
    last, reached = 0, 1
    while reached:
        reached = 0
        for v in prange(len(levels)):
            if levels[v] < 0:
                for p in range(starts[v], starts[v + 1]):
                    if levels[neighbours[p]] == last:
                        levels[v] = last + 1
                        reached += 1
                        break
        last += 1


@njit(parallel=True)
def _histogram(x, bins):
    tiles = numba.get_num_threads()
    own = np.zeros((tiles, len(bins)), np.int32)
    for tile in prange(tiles):
        for p in range(tile * len(x) // tiles, (tile + 1) * len(x) // tiles):
            own[tile, x[p]] += 1
    bins[:] = own.sum(0)


@njit(parallel=True, error_model="numpy")
def _cutcp(charges, out):
    d, h, w, count, _ = charges.shape
    for cell in prange(d * h * w):
        z, y, x = cell // (h * w), cell // w % h, cell % w
        sums = out[z, y, x]
        sums[:] = 0
        for c in range(max(z - 1, 0), min(z + 2, d)):
            for b in range(max(y - 1, 0), min(y + 2, h)):
                for a in range(max(x - 1, 0), min(x + 2, w)):
                    for q in range(count):
                        _add(charges[c, b, a, q], z, y, x, sums)


@njit(error_model="numpy")
def _add(charge, z, y, x, sums):
    for k in range(sums.shape[0]):
        dz = charge[0] - np.float32(z + k / 4)
        for j in range(sums.shape[1]):
            dy = charge[1] - np.float32(y + j / 4)
            for i in range(sums.shape[2]):
                dx = charge[2] - (np.float32(x) + np.float32(i) * np.float32(1 / 16))
                square = dz * dz + dy * dy + dx * dx
                rest = np.float32(1) - square
                value = charge[3] * rest * rest / np.sqrt(square + np.float32(1e-3))
                sums[k, j, i] += value if square < 1 else np.float32(0)


_FUNCTIONS: Mapping[str, Callable[..., None]] = {
    "sgemm": _sgemm,
    "spmv": _spmv,
    "stencil": _stencil,
    "bfs": _bfs,
    "histogram": _histogram,
    "cutcp": _cutcp,
}
