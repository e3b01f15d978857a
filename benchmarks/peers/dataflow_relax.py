"""This compiler: dataflow graphs, all extents of which are symbols."""

from collections.abc import Callable
from importlib import import_module

import dataflow_cases
import numpy as np
from worker import Prepared

import relax_mlir
from relax_mlir.dataflow import module
from relax_mlir.executable import Executable, Function


class Graphs:
    """Each graph is compiled once for all sizes."""

    version = relax_mlir.__version__

    def __init__(self, threads: int) -> None:
        self._threads = threads

    def prepare(self, case: dict) -> Prepared:
        """See `worker.Program`."""
        executable = compiled(case["kernel"])
        executable.threads = self._threads
        run, out = bound(executable, case)

        def once() -> list[np.ndarray]:
            run()
            return [out]

        return Prepared(once)


def compiled(kernel: str) -> Executable:
    """The graph of a benchmark."""
    graph = getattr(import_module(f"graphs.{kernel}"), kernel)
    return relax_mlir.compile(module(graph), opt_level=3)


def bound(executable: Executable, case: dict) -> tuple[Callable[[], object], np.ndarray]:
    """A run of a case, and the array that has the result after it."""
    out: np.ndarray = np.empty(dataflow_cases.result_shape(case), dataflow_cases.result_type(case))
    arrays, main = dataflow_cases.arguments(case), executable[case["kernel"]]
    if case["kernel"] == "bfs":
        return _searched(main, arrays, out), out
    results = list(out) if case["kernel"] == "camera" else [out]
    return main.bind(*arrays, results=results).run, out


def _searched(main: Function, arrays: list[np.ndarray], out: np.ndarray) -> Callable[[], object]:
    """A level after the other, until one has no vertex; levels alternate between two arrays."""
    last, count = np.zeros((), np.int32), np.zeros((), np.int32)
    levels = [np.empty_like(out), out]
    calls = [main.bind(*arrays, levels[i], last, results=[levels[1 - i], count]) for i in range(2)]

    def run() -> None:
        levels[0].fill(-1)
        levels[0][:1] = 0
        at = 0
        for last[...] in range(len(out) + 1):
            calls[at].run()
            at = 1 - at
            if not count:
                break
        if at == 0:
            np.copyto(out, levels[0])

    return run
