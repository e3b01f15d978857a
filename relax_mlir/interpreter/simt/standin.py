"""Has kernels of the stand-in for a device interpreted: `runtime/csrc/device/standin.c`."""

import ctypes
import traceback
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from relax_mlir.bindings import gpu, ir
from relax_mlir.dialects import make_context
from relax_mlir.executable import Executable
from relax_mlir.interpreter.collector import COLLECTOR
from relax_mlir.interpreter.elements import stored_dtype
from relax_mlir.interpreter.frame import Code, Frame
from relax_mlir.rewriting import walk_ops

from .launch import run_launch


class _Kernel(ctypes.Structure):
    """RxKernel."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("kinds", ctypes.c_char_p),
        ("code", ctypes.c_void_p),
        ("code_bytes", ctypes.c_int64),
        ("block", ctypes.c_int32 * 3),
        ("workgroup_bytes", ctypes.c_int32),
        ("device", ctypes.c_int32),
    )


_NO_SIGNATURE: Any = None
"""Of a kernel that no function of a graph calls."""
_Interpreter = ctypes.CFUNCTYPE(
    ctypes.c_int32, ctypes.POINTER(_Kernel), ctypes.POINTER(ctypes.c_int32),
    ctypes.POINTER(ctypes.c_int64), ctypes.c_void_p, ctypes.c_int32,
)  # fmt: skip


def simulate(executable: Executable) -> Executable:
    """Has a module that is compiled for the device "gpu" run its kernels here; returns it."""
    library: Any = executable._library

    def run(kernel: Any, grid: Any, words: Any, text: int, room: int) -> int:
        try:
            _run(library, kernel.contents, list(grid[:3]), words)
        except Exception as error:
            known = str(error) if isinstance(error, ValueError) else traceback.format_exc()
            message = known.encode()[: room - 1] + b"\0"
            ctypes.memmove(text, message, len(message))
            return 1
        return 0

    library.rx_standin_data.restype = ctypes.c_void_p
    library.rx_standin_data.argtypes = (ctypes.c_void_p, ctypes.c_int64)
    callback = _Interpreter(run)
    library.rx_standin_run_by(callback, ctypes.byref(COLLECTOR))
    library.keeps = callback  # as long as the module is loaded
    return executable


def _run(library: Any, kernel: _Kernel, grid: Sequence[int], words: Any) -> None:
    _, code, function = _parsed(ctypes.string_at(kernel.code, kernel.code_bytes))
    block = function.operation.regions[0].blocks[0]
    kinds = kernel.kinds.decode()
    arguments, at = [], 0
    for argument, role in zip(list(block.arguments), kinds[::2]):
        if role in "rw":
            kind = ir.MemRefType(argument.type)
            data = library.rx_standin_data(words[at], words[at + 1])
            if words[at + 1] and not data:
                raise ValueError("accesses memory that the device does not have")
            arguments.append(_array(data, words[at + 1], stored_dtype(kind.element_type)))
            at += 2
        else:
            arguments.append(_scalar(words[at], argument.type))
            at += 1
    shared = len(block.arguments) - len(arguments)
    run_launch(Frame(code, _NO_SIGNATURE), block, grid, list(kernel.block), arguments, shared)


@lru_cache(maxsize=256)
def _parsed(text: bytes) -> tuple[ir.Module, Code, gpu.GPUFuncOp]:
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(text.decode())
        (function,) = walk_ops(module.operation, gpu.GPUFuncOp)
        return module, Code(module.operation), function


def _array(data: int | None, size: int, dtype: np.dtype) -> np.ndarray:
    """The elements of memory, which is written to."""
    if not size:
        return np.empty(0, dtype)
    memory: Any = (ctypes.c_char * size).from_address(data or 0)
    return np.frombuffer(memory, dtype)


def _scalar(word: int, type_: ir.Type) -> Any:
    if isinstance(type_, ir.IndexType):
        return word
    dtype = stored_dtype(type_)
    return np.array([word], np.int64).view(np.uint8)[: dtype.itemsize].view(dtype)[0]
