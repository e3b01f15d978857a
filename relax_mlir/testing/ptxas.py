"""What NVIDIA's assembler says of PTX, where it is installed: `pip install nvidia-cuda-nvcc`.

if assembler():
    usage = assemble(text, "sm_90a")
    usage.registers, usage.spilled_bytes
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

_SECONDS = 120


@dataclass(frozen=True)
class Usage:
    """What a thread of a kernel takes: registers, and bytes that do not fit into them."""

    registers: int
    spilled_bytes: int


@cache
def assembler() -> str | None:
    """The path of ptxas, of a package or on the path; None if there is none."""
    packages = (Path(folder) / "nvidia" for folder in sys.path)
    packaged = (path for folder in packages for path in folder.glob("**/bin/ptxas"))
    return next(map(str, packaged), None) or shutil.which("ptxas")


def assemble(text: str, arch: str) -> Usage:
    """Assembles a module of one kernel for an architecture; CompileError if that fails."""
    path = assembler()
    assert path is not None, "there is an assembler"
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "kernel.ptx")
        source.write_text(text)
        command = [path, "-v", f"-arch={arch}", str(source), "-o", str(Path(folder, "cubin"))]
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=_SECONDS, check=False
        )
    said = done.stdout + done.stderr
    if done.returncode:
        raise CompileError(f"ptxas refuses a kernel for {arch}: {said.strip()}")
    registers = re.search(r"Used (\d+) registers", said)
    spills = re.findall(r"(\d+) bytes spill", said)
    return Usage(int(registers[1]) if registers else 0, sum(map(int, spills)))
