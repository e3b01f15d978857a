"""The system's leave to use tile registers, which the runtime asks for."""

import subprocess
import sys

import pytest

from relax_mlir.target import host_flags

# Linux refuses where a thread's stack for signals has no room for what the registers hold.
PROGRAM = """
import ctypes
import numpy as np
import relax_mlir

class Stack(ctypes.Structure):
    _fields_ = [("begin", ctypes.c_void_p), ("flags", ctypes.c_int), ("size", ctypes.c_size_t)]

x, w = 'tensor<?x64xbf16, #graph.shape<["m", 64]>>', "tensor<64x64xbf16>"
executable = relax_mlir.compile(f'''
  func.func @main(%x: {x}, %w: {w}) -> {x} {{
    %y = "graph.matmul"(%x, %w) : ({x}, {w}) -> {x}
    return %y : {x}
  }}''', "TARGET")
memory = ctypes.create_string_buffer(4096)
stack = Stack(ctypes.addressof(memory), 0, SIZE)
assert ctypes.CDLL(None).sigaltstack(ctypes.byref(stack), None) == 0
ones = np.full((64, 64), 0x3F80, np.uint16)
print(executable["main"](ones[:20], ones)[19, 63])
"""
SMALL = 2048


def run(target: str) -> subprocess.CompletedProcess:
    """What the program does with a small stack for signals, in a process of its own."""
    text = PROGRAM.replace("TARGET", target).replace("SIZE", str(SMALL))
    command = [sys.executable, "-c", text]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.skipif("amx_bf16" not in host_flags(), reason="the machine has no tile registers")
def test_a_refusal_is_an_error_of_the_call() -> None:
    refused = run("native")
    assert "ExecutionError: the system does not let this process use the tile" in refused.stderr
    assert "'+-amx-tile'" in refused.stderr
    without = run("native+-amx-tile")
    assert without.returncode == 0, without.stderr
    assert float(without.stdout) == 64
