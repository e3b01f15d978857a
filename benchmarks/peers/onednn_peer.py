"""oneDNN, its C library by ctypes: the matmul primitive with weights in the layout it asks for.

Source: oneDNN 3 C API, `dnnl.h`.
"""

import ctypes
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import cases
import numpy as np
from worker import Prepared

_ANY_LAYOUT = 1
_CPU = 1
_IN_ORDER = 1
_WEIGHTS_LAYOUT = 131  # dnnl_query_weights_md
_SOURCE, _DESTINATION, _WEIGHTS = 1, 17, 33
_TYPES = {"bf16": 2, "f32": 3, "s32": 4, "s8": 5}
_KINDS = {
    "f32": ("f32", "f32", np.float32),
    "bf16": ("bf16", "bf16", np.uint16),
    "int8": ("s8", "s32", np.int32),
}

_Dims = ctypes.c_int64 * 12


class _Version(ctypes.Structure):
    _fields_ = [(name, ctypes.c_int) for name in ("major", "minor", "patch")]


class _Argument(ctypes.Structure):
    _fields_ = [("number", ctypes.c_int), ("memory", ctypes.c_void_p)]


def _load() -> ctypes.CDLL:
    folder = Path(os.environ.get("RELAX_ONEDNN", Path(sys.prefix) / "lib"))
    try:
        return ctypes.CDLL(str(folder / "libdnnl.so.3"))
    except OSError as error:
        raise ImportError(f"no libdnnl.so.3 in {folder}") from error


class Kernels:
    """Products in f32, bf16 and int8; weights are laid out once."""

    def __init__(self, threads: int) -> None:
        """The thread count is OpenMP's, which the environment sets."""
        self._library = _load()
        self._library.dnnl_version.restype = ctypes.POINTER(_Version)
        version = self._library.dnnl_version().contents
        self.version = f"{version.major}.{version.minor}.{version.patch}"
        self._engine = self._make("engine_create", _CPU, ctypes.c_size_t(0))
        self._stream = self._make("stream_create", self._engine, _IN_ORDER)

    def prepare(self, case: dict) -> Prepared:
        """See `worker.Program`."""
        if case["kernel"] != "matmul" or case["dtype"] not in _KINDS:
            raise NotImplementedError("matrix products only")
        m, n, k = case["m"], case["n"], case["k"]
        given, taken, result_type = _KINDS[case["dtype"]]
        x, w = cases.inputs(case)
        if case["dtype"] == "bf16":
            x, w = cases.bf16_bits(x), cases.bf16_bits(w)
        out = cases.empty((m, n), result_type)
        source = self._layout((m, k), given, (k, 1))
        plain = self._layout((k, n), given, (1, k))
        destination = self._layout((m, n), taken, (n, 1))
        free = ctypes.c_void_p()
        self._check(
            "memory_desc_create_with_tag", ctypes.byref(free), 2, _Dims(k, n), _TYPES[given],
            _ANY_LAYOUT,
        )  # fmt: skip
        product = self._make(
            "matmul_primitive_desc_create", self._engine, source, free, None, destination, None
        )
        query = self._library.dnnl_primitive_desc_query_md
        query.restype = ctypes.c_void_p
        layout = ctypes.c_void_p(query(product, _WEIGHTS_LAYOUT, 0))
        packed = self._reordered(w, plain, layout)
        memories = [
            (_SOURCE, self._memory(source, x)),
            (_WEIGHTS, packed),
            (_DESTINATION, self._memory(destination, out)),
        ]
        run = self._execution(self._make("primitive_create", product), memories)

        def once() -> list:
            run()
            return [out]

        finish = cases.from_bf16_bits if case["dtype"] == "bf16" else None
        return Prepared(once, finish=finish, retained=x)

    def _check(self, name: str, *arguments: object) -> None:
        status = getattr(self._library, f"dnnl_{name}")(*arguments)
        if status:
            raise NotImplementedError(f"dnnl_{name} says {status}")

    def _make(self, name: str, *arguments: object) -> ctypes.c_void_p:
        made = ctypes.c_void_p()
        self._check(name, ctypes.byref(made), *arguments)
        return made

    def _layout(self, dims: Sequence[int], kind: str, strides: Sequence[int]) -> ctypes.c_void_p:
        create = "memory_desc_create_with_strides"
        return self._make(create, len(dims), _Dims(*dims), _TYPES[kind], _Dims(*strides))

    def _memory(self, layout: ctypes.c_void_p, array: np.ndarray) -> ctypes.c_void_p:
        return self._make("memory_create", layout, self._engine, ctypes.c_void_p(array.ctypes.data))

    def _reordered(
        self, w: np.ndarray, plain: ctypes.c_void_p, layout: ctypes.c_void_p
    ) -> ctypes.c_void_p:
        """The weights in the layout, in memory that the library allocates."""
        packed = self._make(
            "memory_create", layout, self._engine, ctypes.c_void_p(2**64 - 1)
        )  # DNNL_MEMORY_ALLOCATE
        reorder = self._make(
            "reorder_primitive_desc_create", plain, self._engine, layout, self._engine, None
        )
        memories = [(_SOURCE, self._memory(plain, w)), (_DESTINATION, packed)]
        self._execution(self._make("primitive_create", reorder), memories)()
        return packed

    def _execution(self, primitive: ctypes.c_void_p, memories: Sequence[tuple]):
        arguments = (_Argument * len(memories))(*(_Argument(n, m.value) for n, m in memories))
        execute, wait = self._library.dnnl_primitive_execute, self._library.dnnl_stream_wait
        stream, count = self._stream, len(memories)

        def run() -> None:
            status = execute(primitive, stream, count, arguments) or wait(stream)
            if status:
                raise RuntimeError(f"dnnl_primitive_execute says {status}")

        return run
