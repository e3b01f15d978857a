"""PyTorch: operators one by one, or compiled by Inductor for the case's size."""

import cases
import torch
from torch.nn import functional
from worker import Prepared


class Eager:
    """Each operator is a kernel of the library."""

    version = torch.__version__

    def __init__(self, threads: int) -> None:
        torch.set_num_threads(threads)
        torch.set_num_interop_threads(1)
        torch.set_grad_enabled(False)

    def prepare(self, case: dict) -> Prepared:
        """See `worker.Program`."""
        if case["kernel"] == "matmul":
            return self._matmul(case)
        arrays = [torch.from_numpy(x) for x in cases.inputs(case)]
        function = self._compiled(_FUNCTIONS[case["kernel"]])
        return Prepared(lambda: [function(*arrays)])

    def _matmul(self, case: dict) -> Prepared:
        if case["dtype"] == "q8_0":
            raise NotImplementedError("no products by blocks of 32")
        x, w = (torch.from_numpy(each) for each in cases.inputs(case))
        if case["dtype"] == "int8":
            if case["m"] <= 16:
                raise NotImplementedError("int8 takes 17 rows at least")
            right = w.t()
            product = self._compiled(lambda x: torch._int_mm(x, right))
            return Prepared(lambda: [product(x)])
        kind = torch.bfloat16 if case["dtype"] == "bf16" else torch.float32
        layer = torch.nn.Linear(case["k"], case["n"], bias=False, dtype=kind).eval()
        layer.weight.copy_(w)
        x = x.to(kind)
        function = self._compiled(layer)
        return Prepared(lambda: [function(x)], finish=lambda y: y.float().numpy())

    def _compiled(self, function):
        return function


class Compiled(Eager):
    """Inductor, for exactly this size; weights of products are constants that it may lay out."""

    def __init__(self, threads: int) -> None:
        super().__init__(threads)
        import torch._inductor.config

        torch._inductor.config.freezing = True
        torch._dynamo.config.recompile_limit = 1000

    def _compiled(self, function):
        torch._dynamo.reset()
        return torch.compile(function, dynamic=False)


def _rms_norm(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return functional.rms_norm(x, w.shape, w, cases.EPSILON)


def _layer_norm(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return functional.layer_norm(x, w.shape, w, b, cases.EPSILON)


_FUNCTIONS = {
    "softmax": lambda x: torch.softmax(x, 1),
    "softmax_of_columns": lambda x: torch.softmax(x, 0),
    "rms_norm": _rms_norm,
    "layer_norm": _layer_norm,
    "eltwise": lambda x, u: functional.silu(x) * u + 0.5 * x,
    "gelu": lambda x: functional.gelu(x, approximate="tanh"),
    "sum_of_columns": lambda x: x.sum(0),
    "sum_of_rows": lambda x: x.sum(1),
    "argmax": lambda x: x.argmax(1),
    "transpose": lambda x: x.t().contiguous(),
}
