"""NVIDIA's assembler, where it is installed: PTX as code of one architecture (a cubin).

if assembler():
    made = assemble(text, "sm_90a")
    made.code, made.registers, made.spilled_bytes
"""

import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from relax_mlir.errors import CompileError

PACKAGE = "nvidia-cuda-nvcc"
_SECONDS = 120


@dataclass(frozen=True)
class Assembled:
    """A kernel as a cubin, and what a thread takes: registers, bytes that do not fit into them.

    It may have products of warpgroups wait for each other, where it does not see what others wait
    for.
    """

    code: bytes
    registers: int
    spilled_bytes: int
    serializes_products: bool


@cache
def assembler() -> str | None:
    """The path of ptxas, of a package or on the path; None if there is none."""
    packages = (Path(folder) / "nvidia" for folder in sys.path)
    packaged = (path for folder in packages for path in folder.glob("**/bin/ptxas"))
    return next(map(str, packaged), None) or shutil.which("ptxas")


@cache
def version() -> str:
    """What the assembler says of its version; empty if there is none."""
    path = assembler()
    return _run([path, "--version"])[1] if path else ""


def assemble(text: str, arch: str) -> Assembled:
    """Assembles a module of one kernel for an architecture; CompileError if that fails."""
    path = assembler()
    if path is None:
        raise CompileError(f"cannot assemble for {arch}: there is no ptxas, which {PACKAGE} has")
    with tempfile.TemporaryDirectory() as folder:
        source, made = Path(folder, "kernel.ptx"), Path(folder, "cubin")
        source.write_text(text)
        status, said = _run([path, "-v", f"-arch={arch}", str(source), "-o", str(made)])
        if status or not made.exists():
            raise CompileError(f"ptxas refuses a kernel for {arch}: {said.strip()}")
        code = made.read_bytes()
    registers = re.search(r"Used (\d+) registers", said)
    spills = re.findall(r"(\d+) bytes spill", said)
    serializes = re.search(r"wgmma\S* instructions are serialized", said) is not None
    count = int(registers[1]) if registers else 0
    return Assembled(code, count, sum(map(int, spills)), serializes)


def _run(command: list[str]) -> tuple[int, str]:
    """The exit status of a command, and what it says; CompileError if it cannot run, or hangs."""
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise CompileError(f"cannot run '{command[0]}': {error}") from error
    return done.returncode, done.stdout + done.stderr
