"""PyTorch on NVIDIA's devices: cuBLAS, and attention by its own kernels."""

from collections.abc import Callable

import gpu_cases
import numpy as np
import torch
from torch.nn.functional import scaled_dot_product_attention
from worker import Prepared


class Kernels:
    """One call each, after which the device has finished, as ours has."""

    version = torch.__version__

    def __init__(self, threads: int) -> None:
        if not torch.cuda.is_available():
            raise ImportError("PyTorch has no device of NVIDIA's")
        torch.set_grad_enabled(False)

    def prepare(self, case: dict) -> Prepared:
        """See `worker.Program`."""
        if case["kernel"] == "decode":
            raise NotImplementedError("has no decoder of its own")
        given = [_on_device(x) for x in gpu_cases.arguments(case).values()]
        function = self._function(case, *given)

        def run() -> list:
            result = function()
            torch.cuda.synchronize()
            return [result]

        return Prepared(run, finish=lambda y: y.float().cpu().numpy())

    def _function(self, case: dict, *given: torch.Tensor) -> Callable[[], torch.Tensor]:
        if case["kernel"] == "copy":
            return lambda: torch.neg(given[0])
        if case["kernel"] == "matmul":
            return lambda: given[0] @ given[1]
        q, k, v = (x.transpose(1, 2) for x in given)
        causal = gpu_cases.is_causal(case)
        return lambda: scaled_dot_product_attention(
            q, k, v, is_causal=causal, enable_gqa=True
        ).transpose(1, 2)


def _on_device(array: np.ndarray) -> torch.Tensor:
    if array.dtype == np.uint16:
        return torch.from_numpy(array.view(np.int16)).cuda().view(torch.bfloat16)
    return torch.from_numpy(array).cuda()
