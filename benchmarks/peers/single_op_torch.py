"""PyTorch: each operator is a kernel of the library."""

from collections.abc import Callable, Mapping

import single_op_cases
import torch
from torch.nn import functional
from worker import Prepared


class Operators:
    """One call each, layers with their weights set."""

    version = torch.__version__

    def __init__(self, threads: int) -> None:
        torch.set_num_threads(threads)
        torch.set_num_interop_threads(1)
        torch.set_grad_enabled(False)

    def prepare(self, case: dict) -> Prepared:
        """See `worker.Program`."""
        given = {k: torch.from_numpy(v) for k, v in single_op_cases.arguments(case).items()}
        kernel, settings = case["kernel"], case["settings"]
        if kernel in ("lstm", "gru"):
            x, layer = given.pop("x"), _recurrent(kernel, **given, **settings)
            return Prepared(lambda: [layer(x)[0]], finish=lambda y: y[:, None].numpy())
        function = _FUNCTIONS[kernel]
        return Prepared(lambda: [function(**given, **settings)])


def _recurrent(kernel, w, r, bias, hidden) -> torch.nn.Module:
    """The layer; PyTorch's gates are i, f, g and o, and r, z and n."""
    order = (0, 2, 3, 1) if kernel == "lstm" else (1, 0, 2)

    def ordered(x):
        parts = x.split(hidden)
        return torch.cat([parts[i] for i in order])

    kind = torch.nn.LSTM if kernel == "lstm" else torch.nn.GRU
    layer = kind(w.shape[2], hidden).eval()
    layer.weight_ih_l0.copy_(ordered(w[0]))
    layer.weight_hh_l0.copy_(ordered(r[0]))
    for own, part in zip((layer.bias_ih_l0, layer.bias_hh_l0), bias[0].chunk(2), strict=True):
        own.copy_(ordered(part))
    return layer


def _scatter_nd(x, indices, updates, count):
    return x.index_put(tuple(indices.T), updates, accumulate=True)


def _resize(x, mode):
    if mode == "nearest":
        return functional.interpolate(x, scale_factor=2, mode="nearest")
    kind = {"linear": "bilinear", "cubic": "bicubic"}[mode]
    return functional.interpolate(x, scale_factor=2, mode=kind, align_corners=False)


def _batch_norm(x, scale, bias, mean, variance):
    return functional.batch_norm(x, mean, variance, scale, bias, eps=single_op_cases.EPSILON)


def _group_norm(x, scale, bias, groups):
    return functional.group_norm(x, groups, scale, bias, single_op_cases.EPSILON)


def _instance_norm(x, scale, bias):
    return functional.instance_norm(x, weight=scale, bias=bias, eps=single_op_cases.EPSILON)


def _layer_norm(x, scale, bias):
    return functional.layer_norm(x, scale.shape, scale, bias, single_op_cases.EPSILON)


def _depthwise(x, w, window, stride):
    return functional.conv2d(x, w, None, stride, window // 2, groups=len(w))


_FUNCTIONS: Mapping[str, Callable[..., torch.Tensor]] = {
    "sort": lambda x, axis, descending=False: torch.sort(
        x, dim=axis, descending=descending, stable=True
    )[0],
    "argsort": lambda x, axis: torch.argsort(x, dim=axis, stable=True),
    "topk": lambda x, k: torch.topk(x, k)[0],
    "unique": lambda x, values: torch.unique(x),
    "cumsum": lambda x, axis: x.cumsum(axis),
    "cumprod": lambda x, axis: x.cumprod(axis),
    "scatter_elements": lambda x, indices, updates, axis: x.scatter_add(axis, indices, updates),
    "scatter_nd": _scatter_nd,
    "gather_elements": lambda x, indices, axis: x.gather(axis, indices),
    "gather_nd": lambda x, indices, count: x[tuple(indices.T)],
    "take": lambda x, indices, count: x.index_select(0, indices),
    "resize": _resize,
    "conv_transpose": lambda x, w, out, window, stride: functional.conv_transpose2d(
        x, w, stride=stride
    ),
    "depthwise": _depthwise,
    "batch_norm": _batch_norm,
    "group_norm": _group_norm,
    "instance_norm": _instance_norm,
    "layer_norm": _layer_norm,
}
