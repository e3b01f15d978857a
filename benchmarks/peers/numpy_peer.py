"""NumPy, for the kernels that it has."""

import numpy as np
from worker import Prepared


class Kernels:
    """Matrix products by NumPy's BLAS; the rest by its array expressions."""

    version = np.__version__

    def __init__(self, threads: int) -> None:
        """The number of threads of NumPy's BLAS is set by the environment, before it is loaded."""

    def prepare(self, case: dict) -> Prepared:
        """See `worker.Program`."""
        if case["kernel"] != "matmul":
            raise NotImplementedError(case["kernel"])
        generator = np.random.default_rng(case["seed"])
        x = generator.standard_normal((case["m"], case["k"]), dtype=np.float32)
        w = generator.standard_normal((case["n"], case["k"]), dtype=np.float32)
        out = np.empty((case["m"], case["n"]), np.float32)
        return Prepared(lambda: [np.matmul(x, w.T, out=out)])
