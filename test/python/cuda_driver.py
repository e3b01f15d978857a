"""A stand-in for NVIDIA's driver: a library built from `test/lib/cuda_driver.c`.

Its launches are interpreted, as PTX, and the message of the last failure is `fault`.
"""

import ctypes
import gc
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from relax_mlir.interpreter.collector import COLLECTOR
from relax_mlir.interpreter.ptx import Buffer, Program, PtxFault, parse, run
from relax_mlir.interpreter.ptx.kinds import KINDS
from relax_mlir.interpreter.ptx.program import MAP
from relax_mlir.interpreter.simt.tensor_maps import TensorMap

SOURCE = Path(__file__).parents[1] / "lib" / "cuda_driver.c"
MAGIC = 0x7E2504
"""The last word of a tensor map that the library has written."""
_CALLBACK = ctypes.CFUNCTYPE(
    ctypes.c_int,
    ctypes.c_char_p,
    ctypes.c_char_p,
    ctypes.POINTER(ctypes.c_uint),
    ctypes.POINTER(ctypes.c_void_p),
)


class Driver:
    """The library, whose functions for tests begin with `standin_`."""

    def __init__(self, path: Path) -> None:
        self.path, self.library = path, ctypes.CDLL(str(path))
        self.fault = ""
        for name in ("launches", "graph_launches", "changes"):
            getattr(self.library, f"standin_{name}").restype = ctypes.c_int64
        self._callback = _CALLBACK(self._launch)
        self.interpret(True)

    def interpret(self, works: bool) -> None:
        """Has launches interpreted, or else fail."""
        callback = self._callback if works else None
        self.library.standin_run_by(callback, ctypes.byref(COLLECTOR))

    def fail(self, function: str, after: int, status: int) -> None:
        """Has a function fail, by default the next time that it is called."""
        self.library.standin_fail(function.encode(), after, status)

    def bytes_at(self, address: int, size: int) -> np.ndarray:
        """What memory of the device has now: copies that are queued are not done by that."""
        words, index = (ctypes.c_uint64 * 4)(), 0
        while self.library.standin_memory(index, words):
            if words[0] <= address <= words[0] + words[2] - size:
                data = ctypes.string_at(words[1] + address - words[0], size)
                return np.frombuffer(data, np.uint8)
            index += 1
        raise ValueError(f"the device has no {size} bytes at {address:#x}")

    def _launch(self, ptx: bytes, name: bytes, dims: Any, arguments: Any) -> int:
        try:
            program, entry = _parsed(ptx), name.decode()
            kinds = [kind for _, kind in program.kernels[entry].parameters]
            values = [_argument(arguments[i], kind) for i, kind in enumerate(kinds)]
            run(program, entry, dims[:3], dims[3:6], values, self._buffers(dims[7]), dims[6])
        except PtxFault as fault:
            self.fault = str(fault)
            return 1
        return 0

    def _buffers(self, device: int) -> list[Buffer]:
        """The memory of a device."""
        words, index, buffers = (ctypes.c_uint64 * 4)(), 0, []
        while self.library.standin_memory(index, words):
            address, data, size, owner = words
            if owner == device:
                memory = (ctypes.c_uint8 * size).from_address(data)
                buffers.append(Buffer(address, np.ctypeslib.as_array(memory), True))
            index += 1
        return buffers


def _argument(address: int, kind: str) -> int | TensorMap:
    """What a launch passes: an integer, or a tensor map as the library writes one."""
    if kind != MAP:
        return int.from_bytes(ctypes.string_at(address, KINDS[kind].bits.itemsize), "little")
    first, *words, magic = (ctypes.c_uint64 * 16).from_address(address)
    if magic != MAGIC:
        raise PtxFault("an argument is no tensor map")
    sizes, strides, box = words[:5], words[5:9], words[9:]
    dims = 5 - sizes.count(0)
    parts = sizes[:dims], strides[: dims - 1], box[:dims]
    return TensorMap(first, *(tuple(reversed(part)) for part in parts))


@cache
def _parsed(ptx: bytes) -> Program:
    return parse(ptx.decode())


@contextmanager
def nothing_left() -> Iterator[Driver]:
    """The driver; afterwards nothing that was made within the block is left."""
    own = driver()
    own.library.standin_reset()
    own.interpret(True)
    gc.collect()
    before = own.library.standin_live()
    yield own
    own.library.standin_reset()
    gc.collect()
    assert own.library.standin_live() == before


@cache
def driver() -> Driver:
    """The driver, which modules that are loaded from now on use."""
    path = built()
    os.environ["RELAX_CUDA_DRIVER"] = str(path)
    return Driver(path)


def built(*options: str) -> Path:
    """Compiles the library, and returns its path."""
    folder = Path(tempfile.mkdtemp(prefix="cuda-driver-"))
    path = folder / "libcuda.so"
    command = [sys.executable, "-m", "ziglang", "cc", "-std=c11", "-O1", "-Wall", "-Werror"]
    command += ["-shared", "-fPIC", "-fvisibility=hidden", str(SOURCE), "-o", str(path)]
    subprocess.run([*command, *options], check=True, timeout=120)
    return path
