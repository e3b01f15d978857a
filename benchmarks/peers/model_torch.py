"""PyTorch: operators one by one, or compiled by Inductor for all sizes."""

from collections.abc import Callable

import model_cases
import torch
from torch.nn import functional
from worker import Prepared


class Eager:
    """Each operator is a kernel of the library; its fused attention, its batch normalisation."""

    version = torch.__version__

    def __init__(self, threads: int) -> None:
        torch.set_num_threads(threads)
        torch.set_num_interop_threads(1)
        torch.set_grad_enabled(False)
        self._functions: dict[str, Callable] = {}

    def prepare(self, case: dict) -> Prepared:
        """See `worker.Program`."""
        kind = torch.bfloat16 if case["dtype"] == "bf16" else torch.float32
        name = model_cases.key(case)
        if name not in self._functions:
            weights = _tensors(model_cases.weights(case), kind)
            run = model_cases.model(case).run
            ops = _Torch()
            self._functions[name] = self._compiled(lambda given: run(ops, given, weights))
        function = self._functions[name]
        given = _tensors(model_cases.arguments(case), kind)
        return Prepared(lambda: [function(given)], finish=lambda y: y.float().numpy())

    def _compiled(self, function):
        return function


class Compiled(Eager):
    """Inductor, with dims that may vary; weights are constants that it may lay out."""

    def __init__(self, threads: int) -> None:
        super().__init__(threads)
        import torch._inductor.config

        torch._inductor.config.freezing = True

    def _compiled(self, function):
        return torch.compile(function, dynamic=True)


def _tensors(arrays: dict, kind: torch.dtype) -> dict[str, torch.Tensor]:
    tensors = {name: torch.from_numpy(x) for name, x in arrays.items()}
    return {name: x.to(kind) if x.is_floating_point() else x for name, x in tensors.items()}


class _Torch:
    """The operators of `model_cases`."""

    def add(self, a, b):
        return a + b

    def multiply(self, a, b):
        return a * b

    def take(self, table, ids):
        return functional.embedding(ids, table)

    def first_rows(self, table, ids):
        return table[: ids.shape[1]]

    def linear(self, x, w, bias=None):
        return functional.linear(x, w, bias)

    def layer_norm(self, x, gain, bias):
        return functional.layer_norm(x, gain.shape, gain, bias, model_cases.EPSILON)

    def rms_norm(self, x, gain):
        return functional.rms_norm(x, gain.shape, gain, model_cases.EPSILON)

    def gelu(self, x):
        return functional.gelu(x)

    def silu(self, x):
        return functional.silu(x)

    def relu(self, x):
        return functional.relu(x)

    def mask(self, mask, masked):
        return ((1 - mask) * masked)[:, None, None, :]

    def rotary(self, x, heads, cos, sin):
        b, n, width = x.shape
        x = x.view(b, n, heads, width // heads)
        first, second = x.chunk(2, -1)
        rotated = torch.cat([-second, first], -1)
        return (x * cos[:, None] + rotated * sin[:, None]).view(b, n, width)

    def attention(self, q, k, v, heads, kv_heads, d, mask):
        b, n, width = q.shape
        q = q.view(b, n, heads, d).transpose(1, 2)
        k, v = (x.view(b, n, kv_heads, d).transpose(1, 2) for x in (k, v))
        causal = isinstance(mask, str)
        mixed = functional.scaled_dot_product_attention(
            q, k, v, None if causal else mask, is_causal=causal, enable_gqa=heads > kv_heads
        )
        return mixed.transpose(1, 2).reshape(b, n, width)

    def conv(self, x, w, bias, stride, pad):
        return functional.conv2d(x, w, bias, stride, pad)

    def batch_norm(self, x, gain, bias, mean, variance):
        return functional.batch_norm(
            x, mean, variance, gain, bias, training=False, eps=model_cases.EPSILON
        )

    def max_pool(self, x):
        return functional.max_pool2d(x, 3, 2, 1)
