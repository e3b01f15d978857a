"""Modules of graph functions as text, compiled for another CPU and run on an emulated one."""

import os
from functools import cache
from pathlib import Path

import pytest
from emulated import Emulated
from emulator import Machine
from process import Process, missing

from relax_mlir.compiler import compile_to_file
from relax_mlir.executable import Executable, load

# Each level of AArch64 and the emulated CPU that has it and, if there is one, nothing above it.
LEVELS = {"aarch64": "base", "aarch64-v8.2": "max"}
LONG = ("neoverse-v1", "aarch64-v8.6+sve+vector-bytes=64", "riscv64-v+vector-bytes=32")
"""With vectors of a length that the machine decides."""
CPUS = (*LEVELS, "aarch64-v8.6", "armv7", "riscv64", "riscv64-v", *LONG)
WASM = ("wasm32", "wasm32-relaxed")


def run(path: str | os.PathLike, target: str, by_qemu: bool = False) -> Emulated:
    """A compiled module on its CPU: one that is emulated here if it can, else one of qemu.

    Skips the test if that is not installed.
    """
    if target in LEVELS and not by_qemu:
        return Emulated(Machine(Path(path).read_bytes(), LEVELS[target]))
    if why := missing(target):
        pytest.skip(why)
    return Emulated(Process(path, target))


@cache
def emulated(text: str, target: str, opt_level: int = 2) -> Emulated | Executable:
    """A module, compiled once for all tests."""
    path = compile_to_file(text, target, opt_level)
    return load(path) if target in WASM else run(path, target)


def tensor(element: str, *dims: int | str) -> str:
    """The type of a tensor; a dim that is text is an expression."""
    sizes = "".join("?x" if isinstance(dim, str) else f"{dim}x" for dim in dims)
    shape = ", ".join(f'"{dim}"' if isinstance(dim, str) else str(dim) for dim in dims)
    symbolic = any(isinstance(dim, str) for dim in dims)
    return f"tensor<{sizes}{element}{f', #graph.shape<[{shape}]>' if symbolic else ''}>"


def operator(
    name: str, op: str, operands: list[str], result: str, attributes: str = "", weights: int = 0
) -> str:
    """A function of that name that applies one operator; the last operands may be weights."""
    named = ", ".join(f"%{i}: {kind}" for i, kind in enumerate(operands))
    values = ", ".join(f"%{i}" for i in range(len(operands)))
    note = f" attributes {{graph.num_inputs = {len(operands) - weights} : i64}}" if weights else ""
    return f"""func.func @{name}({named}) -> {result}{note} {{
  %r = "graph.{op}"({values}) {{{attributes}}} : ({", ".join(operands)}) -> {result}
  return %r : {result}
}}
"""
