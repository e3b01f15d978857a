"""NumPy, for the kernels that it has."""

from collections.abc import Callable

import cases
import numpy as np
from worker import Prepared


class Kernels:
    """Matrix products by NumPy's BLAS; the rest by array expressions without needless copies."""

    version = np.__version__

    def __init__(self, threads: int) -> None:
        """The thread count of NumPy's BLAS is set by the environment, before it is loaded."""

    def prepare(self, case: dict) -> Prepared:
        """See `worker.Program`."""
        if case["dtype"] != "f32":
            raise NotImplementedError(f"no fast products of {case['dtype']}")
        x, *others = cases.inputs(case)
        if case["kernel"] == "matmul":
            out = cases.empty((case["m"], case["n"]))
            return Prepared(lambda: [np.matmul(x, others[0].T, out=out)])
        function = _FUNCTIONS[case["kernel"]]
        return Prepared(lambda: [function(x, *others)])


def _softmax(x: np.ndarray, axis: int) -> np.ndarray:
    powers = x - x.max(axis, keepdims=True)
    np.exp(powers, out=powers)
    powers /= powers.sum(axis, keepdims=True)
    return powers


def _rms_norm(x: np.ndarray, w: np.ndarray) -> np.ndarray:
    squares = np.einsum("ij,ij->i", x, x)
    factor = 1 / np.sqrt(squares / np.float32(x.shape[1]) + np.float32(cases.EPSILON))
    y = x * factor[:, None]
    y *= w
    return y


def _layer_norm(x: np.ndarray, w: np.ndarray, b: np.ndarray) -> np.ndarray:
    y = x - x.mean(1, keepdims=True)
    variance = np.einsum("ij,ij->i", y, y) / np.float32(x.shape[1])
    y *= (1 / np.sqrt(variance + np.float32(cases.EPSILON)))[:, None]
    y *= w
    y += b
    return y


def _eltwise(x: np.ndarray, u: np.ndarray) -> np.ndarray:
    y = np.exp(-x)
    y += 1
    np.divide(x, y, out=y)
    y *= u
    y += np.float32(0.5) * x
    return y


def _gelu(x: np.ndarray) -> np.ndarray:
    y = x * x
    y *= np.float32(0.044715)
    y += 1
    y *= x
    y *= np.float32((2 / np.pi) ** 0.5)
    np.tanh(y, out=y)
    y += 1
    y *= x
    y *= np.float32(0.5)
    return y


_FUNCTIONS: dict[str, Callable[..., np.ndarray]] = {
    "softmax": lambda x: _softmax(x, 1),
    "softmax_of_columns": lambda x: _softmax(x, 0),
    "rms_norm": _rms_norm,
    "layer_norm": _layer_norm,
    "eltwise": _eltwise,
    "gelu": _gelu,
    "sum_of_columns": lambda x: x.sum(0),
    "sum_of_rows": lambda x: x.sum(1),
    "argmax": lambda x: x.argmax(1),
    "transpose": lambda x: np.ascontiguousarray(x.T),
}
