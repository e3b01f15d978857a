"""The calling conventions of library functions, in NumPy."""

import numpy as np


def cblas_sgemm_nn(lhs: np.ndarray, rhs: np.ndarray) -> list[np.ndarray]:
    """lhs f32[rows.., k] times rhs f32[k, n]."""
    return [np.matmul(lhs, rhs)]


def cblas_sgemm_nt(lhs: np.ndarray, rhs: np.ndarray) -> list[np.ndarray]:
    """lhs f32[rows.., k] times the transpose of rhs f32[n, k]."""
    return [np.matmul(lhs, rhs.T)]


def cblas_dgemm_nn(lhs: np.ndarray, rhs: np.ndarray) -> list[np.ndarray]:
    """lhs f64[rows.., k] times rhs f64[k, n]."""
    return [np.matmul(lhs, rhs)]


def cblas_dgemm_nt(lhs: np.ndarray, rhs: np.ndarray) -> list[np.ndarray]:
    """lhs f64[rows.., k] times the transpose of rhs f64[n, k]."""
    return [np.matmul(lhs, rhs.T)]
