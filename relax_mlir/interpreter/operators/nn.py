"""Operators of neural networks: activations and normalisations."""

import numpy as np

from relax_mlir.interpreter.elements import exact as read
from relax_mlir.interpreter.elements import inexact

from .unary import erfc_of, sigmoid

__all__ = ["read", "softmax_of"]


def nn_relu(x: np.ndarray) -> np.ndarray:
    """The element, or 0 if it is negative."""
    return np.maximum(x, 0)


def nn_silu(x: np.ndarray) -> np.ndarray:
    """x * sigmoid(x); its limit at -infinity."""
    return _product(x, sigmoid(x))


def nn_gelu(x: np.ndarray) -> np.ndarray:
    """x times the normal distribution function, by erfc, so that nothing cancels."""
    return _product(x, erfc_of(x * -(0.5**0.5)) / 2)


def nn_gelu_tanh(x: np.ndarray) -> np.ndarray:
    """x * (1 + tanh(a)) / 2, which is x * sigmoid(2 * a)."""
    return _product(x, sigmoid(2 * (2 / np.pi) ** 0.5 * (x + 0.044715 * x**3)))


def _product(x: np.ndarray, share: np.ndarray) -> np.ndarray:
    """x * share, where share goes to 0 faster than x goes to -infinity."""
    return np.where(x == -np.inf, -0.0, x * share)


def nn_softmax(x: np.ndarray, *, axis: int) -> np.ndarray:
    """exp(x - max) / sum(exp(x - max))."""
    return softmax_of(x, axis)


def nn_log_softmax(x: np.ndarray, *, axis: int) -> np.ndarray:
    """The logarithm of the softmax, of which nothing underflows."""
    with np.errstate(all="ignore"):
        moved = x - np.max(x, axis, keepdims=True, initial=-np.inf)
        return moved - np.log(np.sum(np.exp(moved), axis, keepdims=True))


def softmax_of(x: np.ndarray, axis: int) -> np.ndarray:
    """The softmax in the precision of x."""
    powers = np.exp(x - np.max(x, axis, keepdims=True, initial=-np.inf))
    return powers / np.sum(powers, axis, keepdims=True)


def nn_rms_norm(x: np.ndarray, weight: np.ndarray, *, epsilon: float) -> np.ndarray:
    """x / sqrt(mean(x^2) + epsilon) * weight."""
    return x / np.sqrt(_mean(x * x) + epsilon) * weight


def nn_layer_norm(
    x: np.ndarray, weight: np.ndarray, bias: np.ndarray, *, epsilon: float, element: str
) -> np.ndarray:
    """(x - mean) / sqrt(variance + epsilon) * weight + bias."""
    centred = x - inexact(_mean(x), element)
    return centred / np.sqrt(_mean(centred * centred) + epsilon) * weight + bias


def _mean(x: np.ndarray) -> np.ndarray:
    return (
        np.sum(x, -1, keepdims=True) / x.shape[-1] if x.shape[-1] else np.sum(x, -1, keepdims=True)
    )
