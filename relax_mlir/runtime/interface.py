"""The C interface of compiled modules, `csrc/relax_runtime.h`, for `ctypes`."""

import ctypes
from typing import Any

import numpy as np

from relax_mlir.runtime.tensors import DLTensor

COUNTERS = ("allocations", "kernels", "parallel_regions", "arena_bytes")
MAX_THREADS = 256
OUT_OF_MEMORY, INTERRUPTED = 2, 3  # RX_OUT_OF_MEMORY, RX_INTERRUPTED

# One recorded kernel call: RxSpan.
SPAN = np.dtype([("site", "<i4"), ("call", "<i4"), ("begin", "<i8"), ("end", "<i8")])


class Call(ctypes.Structure):
    """RxCall."""

    _fields_ = (
        ("context", ctypes.c_void_p),
        ("entry", ctypes.c_void_p),
        ("args", ctypes.c_void_p),
        ("results", ctypes.c_void_p),
        ("num_args", ctypes.c_int32),
        ("num_results", ctypes.c_int32),
        ("known", ctypes.c_int32),
        ("lock", ctypes.c_uint32),
        ("symbols", ctypes.c_int64 * 6),
        ("changing", ctypes.c_int32),
        ("before", DLTensor),
    )


def entry_of(library: Any, name: str) -> int | None:
    """What a call of a function of a module has for its entry."""
    if isinstance(library, ctypes.CDLL):
        return ctypes.cast(getattr(library, f"rx_fn_{name}"), ctypes.c_void_p).value
    return library.entry(name)


def declare(library: ctypes.CDLL) -> ctypes.CDLL:
    """Gives the runtime's functions their C types; AttributeError if one is missing."""
    pointer, int32, int64 = ctypes.c_void_p, ctypes.c_int32, ctypes.c_int64
    for name, result, arguments in (
        ("rx_create", pointer, ()),
        ("rx_destroy", None, (pointer,)),
        ("rx_last_error", ctypes.c_char_p, (pointer,)),
        # Pointers to structures are passed unconverted, which takes half the time.
        ("rx_call", int32, None),
        ("rx_call_on", int32, None),
        ("rx_release", None, None),
        ("rx_exchange_argument", int32, (pointer, int32, pointer)),
        ("rx_set_context_threads", None, (pointer, int32)),
        ("rx_set_poll", None, (pointer,)),
        ("rx_get_threads", int32, ()),
        ("rx_counter", int64, (int32,)),
        ("rx_metadata", ctypes.c_char_p, ()),
        ("rx_profile", int32, (int64,)),
        ("rx_spans", int64, (pointer, int64)),
    ):
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library
