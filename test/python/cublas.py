"""The stand-in for cuBLAS, on the stand-in for NVIDIA's driver."""

import ctypes
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

from cuda_driver import driver

SOURCE = Path(__file__).parents[1] / "lib" / "cublas.c"


@cache
def cublas() -> ctypes.CDLL:
    """The library, loaded: whoever asks for `libcublas.so.12` gets it."""
    driver()
    path = Path(tempfile.mkdtemp(prefix="cublas-")) / "libcublas.so.12"
    command = [sys.executable, "-m", "ziglang", "cc", "-std=c11", "-O1", "-Wall", "-Werror"]
    command += ["-shared", "-fPIC", "-fvisibility=hidden", "-Wl,-soname,libcublas.so.12"]
    command += [str(SOURCE), "-o", str(path)]
    subprocess.run(command, check=True, timeout=120)
    library = ctypes.CDLL(str(path))
    library.fake_products.restype = ctypes.c_int64
    return library
