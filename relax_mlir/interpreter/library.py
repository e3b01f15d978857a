"""The calling conventions of library functions, in NumPy."""

import ctypes
from collections.abc import Collection, Sequence

import numpy as np

from relax_mlir.dialects.lib import FunctionOp, handles_of, texts_of
from relax_mlir.interpreter.elements import PACKED, exact, round_to
from relax_mlir.interpreter.operators.convolution import nn_conv2d
from relax_mlir.runtime.callees import FUNCTION, OPAQUE
from relax_mlir.runtime.interface import INTERRUPTED
from relax_mlir.runtime.interrupts import take_raised
from relax_mlir.runtime.libraries import find_function
from relax_mlir.runtime.tensors import DLTensor, Slot, describe


class Raised(Exception):
    """What a function of Python has raised: not an error of the op that calls it."""

    def __init__(self, error: BaseException) -> None:
        super().__init__(error)
        self.error = error


def call_dlpack(
    declared: FunctionOp,
    ins: Sequence[np.ndarray],
    outs: Sequence[np.ndarray],
    elements: Sequence[str],
    handles: Collection[int] = (),
) -> None:
    """Has a function of this process fill arrays; raises Raised, or ValueError.

    `elements` are the types of operands and results, some of which are stored as bits.
    `handles` are the operands and results, in that order, that stand for objects.
    """
    name = declared.sym_name.value
    providers = [provider.value for provider in declared.libraries]
    try:
        function = FUNCTION(find_function(declared.c_symbol.value, providers))
    except LookupError as error:
        raise ValueError(f"library function '{name}': {error}") from None
    texts = [np.frombuffer(text.encode(), np.uint8) for text in texts_of(declared)]
    # Copies: NumPy's scalars have no address, and others share memory.
    copies = [np.array(array, order="C") for array in (*ins, *texts, *outs)]
    count = len(ins) + len(texts)
    tensors = (DLTensor * len(copies))()
    kinds = [*elements[: len(ins)], *("ui8" for _ in texts), *elements[len(ins) :]]
    slots = [Slot(kind if kind in PACKED else "") for kind in kinds]
    referents = [describe(*each) for each in zip(tensors, copies, slots, strict=True)]
    for index in (*handles_of(declared, len(ins)), *handles):
        array = copies[index + len(texts) * (index >= len(ins))]
        if (array.dtype, array.shape) != (np.int64, ()):
            raise ValueError(f"hands {array.dtype}{list(array.shape)} to '{name}' as an object")
        tensors[index + len(texts) * (index >= len(ins))].code = OPAQUE
    for tensor in tensors[len(ins) : count]:
        tensor.code = OPAQUE
    results = ctypes.byref(tensors, count * ctypes.sizeof(DLTensor))
    status = function(tensors, count, ctypes.cast(results, ctypes.POINTER(DLTensor)), len(outs))
    del referents
    if status == INTERRUPTED:
        raise Raised(take_raised())
    if status:
        raise ValueError(f"'{name}' failed with status {status}")
    for out, copy in zip(outs, copies[count:], strict=True):
        out[...] = copy


def cblas_sgemm_nn(lhs: np.ndarray, rhs: np.ndarray) -> np.ndarray:
    """lhs f32[rows.., k] times rhs f32[k, n]."""
    return np.matmul(lhs, rhs)


def cblas_sgemm_nt(lhs: np.ndarray, rhs: np.ndarray) -> np.ndarray:
    """lhs f32[rows.., k] times the transpose of rhs f32[n, k]."""
    return np.matmul(lhs, rhs.T)


def cblas_dgemm_nn(lhs: np.ndarray, rhs: np.ndarray) -> np.ndarray:
    """lhs f64[rows.., k] times rhs f64[k, n]."""
    return np.matmul(lhs, rhs)


def cblas_dgemm_nt(lhs: np.ndarray, rhs: np.ndarray) -> np.ndarray:
    """lhs f64[rows.., k] times the transpose of rhs f64[n, k]."""
    return np.matmul(lhs, rhs.T)


def cublas_gemm_nn(lhs: np.ndarray, rhs: np.ndarray) -> np.ndarray:
    """lhs [rows.., k] times rhs [k, n], or batches of such; bits of bf16 stand for themselves."""
    element = "bf16" if lhs.dtype == np.uint16 else f"f{8 * lhs.dtype.itemsize}"
    return round_to(np.matmul(exact(lhs, element), exact(rhs, element)), element)


def cublas_gemm_nt(lhs: np.ndarray, rhs: np.ndarray) -> np.ndarray:
    """The same of the transposed matrices rhs [n, k]."""
    return cublas_gemm_nn(lhs, rhs.swapaxes(-1, -2))


def im2col_sgemm(x: np.ndarray, weight: np.ndarray, *integers: int) -> np.ndarray:
    """Images f32[n, c, h, w] by filters f32[o, c, kh, kw]: strides, padding, dilation follow."""
    strides, padding, dilation = integers[:2], integers[2:6], integers[6:]
    images, filters = x.astype(np.float64), weight.astype(np.float64)
    attributes = {"strides": strides, "padding": padding, "dilation": dilation}
    return nn_conv2d(images, filters, **attributes, groups=1).astype(np.float32)
