"""C with OpenMP, written by hand, compiled by Zig's Clang for this machine."""

import ctypes
import subprocess
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path

import dataflow_cases
import numpy as np
from worker import Prepared

FOLDER = Path(__file__).resolve().parent / "c"
FLAGS = ("-O3", "-march=native", "-fno-math-errno", "-fopenmp", "-shared", "-fPIC")
RUNTIMES = ("libomp.so", "libiomp5.so")
"""LLVM's runtime of OpenMP, which Zig lacks; the package intel-openmp has it."""
EXTENTS = {"spmv": 1, "bfs": 1}
"""How many extents a function takes, if not all."""


class Loops:
    """A function for each benchmark."""

    version = f"zig {version('ziglang')}"

    def __init__(self, threads: int) -> None:
        """Threads are those of OMP_NUM_THREADS."""
        runtimes = [Path(sys.prefix, "lib", name) for name in RUNTIMES]
        self._runtime = next((path for path in runtimes if path.exists()), None)
        if self._runtime is None:
            raise ImportError(f"no {' or '.join(RUNTIMES)} in {sys.prefix}/lib")
        self._folder = Path(tempfile.mkdtemp(prefix="relax-bench-c-"))

    def prepare(self, case: dict) -> Prepared:
        """See `worker.Program`."""
        kernel = case["kernel"]
        function = getattr(ctypes.CDLL(str(self._compiled(kernel))), kernel)
        function.restype = None
        out: np.ndarray = np.empty(
            dataflow_cases.result_shape(case), dataflow_cases.result_type(case)
        )
        arrays = [*dataflow_cases.arguments(case), out]
        extents = case["dims"][: EXTENTS.get(kernel)]
        given = [*map(ctypes.c_long, extents), *(ctypes.c_void_p(x.ctypes.data) for x in arrays)]

        def run() -> list[np.ndarray]:
            function(*given)
            return [out]

        return Prepared(run, retained=arrays)

    def _compiled(self, kernel: str) -> Path:
        library = self._folder / f"lib{kernel}.so"
        if not library.exists():
            command = [sys.executable, "-m", "ziglang", "cc", *FLAGS, str(FOLDER / f"{kernel}.c")]
            subprocess.run(
                [*command, "-o", str(library), str(self._runtime), f"-Wl,-rpath,{sys.prefix}/lib"],
                check=True,
            )
        return library
