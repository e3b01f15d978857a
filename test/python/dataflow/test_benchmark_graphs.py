"""The graphs of `benchmarks/graphs` at small sizes, against NumPy in float64."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

FOLDER = Path(__file__).resolve().parents[3] / "benchmarks"
MODULES = ("dataflow_cases", "graphs", "peers", "worker")
SIZES = {
    "sgemm": [(17, 33, 7), (1, 1, 1), (3, 5, 0), (0, 4, 4)],
    "spmv": [(37, 5), (1, 1), (0, 3), (65, 0)],
    "stencil": [(3, 5, 37), (1, 1, 1), (2, 1, 65), (0, 3, 3), (4, 3, 16)],
    "lbm": [(3, 4, 5), (1, 1, 1), (2, 0, 3)],
    "bfs": [(101, 2), (1, 1), (33, 0)],
    "histogram": [(1003,), (0,), (1,), (15,), (17,)],
    "cutcp": [(1, 2, 3), (1, 1, 1), (0, 1, 1)],
    "edges": [(19, 37), (1, 1), (1, 33), (65, 2), (0, 3)],
    "camera": [(19, 37), (1, 1), (1, 33), (65, 2), (0, 3)],
}


@pytest.fixture
def benchmarks(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Makes the modules importable, and forgets them again."""
    before = set(sys.modules)
    monkeypatch.syspath_prepend(str(FOLDER))
    yield
    for name in set(sys.modules) - before:
        if name.partition(".")[0] in MODULES:
            del sys.modules[name]


def result_of(prepare: Callable[[dict], Any], case: dict) -> np.ndarray:
    return np.asarray(prepare(case).run()[0])


@pytest.mark.rotate(4)
@pytest.mark.usefixtures("benchmarks")
@pytest.mark.parametrize("kernel", SIZES)
def test_graphs_compute_what_numpy_does(kernel: str) -> None:
    import dataflow_cases
    from peers.dataflow_relax import bound, compiled

    executable = compiled(kernel)
    assert set(SIZES) == {case["kernel"] for case in dataflow_cases.CASES}
    for dims in SIZES[kernel]:
        seed = int(np.random.default_rng().integers(1 << 30))
        case = {"kernel": kernel, "dims": list(dims), "dtype": "f32", "seed": seed}
        run, out = bound(executable, case)
        run()
        run()  # nothing stays from the run before
        want = dataflow_cases.reference(case)
        np.testing.assert_allclose(out, want, rtol=1e-4, atol=1e-4, err_msg=f"{case}")
