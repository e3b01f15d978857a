"""PyTorch's compiler, Inductor: one compilation of a module for all sizes."""

from functools import cache

import frontend_cases
import torch
import torch._inductor.config
from worker import Prepared


class Compiled:
    """Weights are constants that it may lay out."""

    version = torch.__version__

    def __init__(self, threads: int) -> None:
        torch.set_num_threads(threads)
        torch.set_num_interop_threads(1)
        torch.set_grad_enabled(False)
        torch._inductor.config.freezing = True
        self._loaded = cache(lambda name: torch.compile(frontend_cases.module(name), dynamic=True))

    def prepare(self, case: dict) -> Prepared:
        """See `worker.Program`."""
        if frontend_cases.is_file(case):
            raise NotImplementedError("reads no ONNX files")
        function = self._loaded(case["model"])
        given = torch.from_numpy(frontend_cases.arguments(case)["x"])
        return Prepared(lambda: [function(given)], finish=lambda y: y.numpy())
