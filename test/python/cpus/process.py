"""Compiled modules in a process of an emulated CPU: qemu, with the C library of Debian for it.

    process = Process(path, "riscv64-v")
    process.call("rx_get_threads")

It is used as a `Machine` of `emulator.py` is. What it has beyond that: any CPU of qemu, the loader
and the threads of a system. Packages: qemu-user, libc6-riscv64-cross, libc6-armhf-cross,
libc6-arm64-cross.
"""

import os
import shutil
import struct
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from emulator import Fault

VECTORS_FROM = 8
"""The version of qemu from which on it has all vector instructions of RISC-V."""
SOURCE = Path(__file__).with_name("server.c")


@dataclass(frozen=True)
class System:
    """A system as an emulator, a C compiler and Debian name it."""

    emulator: str
    compiler: tuple[str, ...]
    debian: str
    loader: str

    @property
    def root(self) -> Path:
        """The folder with its C library."""
        return Path("/usr", self.debian)

    @property
    def missing(self) -> str:
        """Why nothing can be run; empty if it can."""
        if shutil.which(self.emulator) is None:
            return f"no {self.emulator} (package qemu-user)"
        if not (self.root / "lib" / self.loader).exists():
            return f"no C library for {self.debian} (package libc6-*-cross)"
        return ""


@cache
def _version(emulator: str) -> int:
    """The major version of qemu."""
    text = subprocess.run([emulator, "--version"], capture_output=True, text=True, check=True)
    return int(text.stdout.split("version ")[1].split(".")[0])


RISCV = System(
    "qemu-riscv64",
    ("riscv64-linux-gnu.2.34",),
    "riscv64-linux-gnu",
    "ld-linux-riscv64-lp64d.so.1",
)
ARMV7 = System(
    "qemu-arm",
    ("arm-linux-gnueabihf.2.34", "-mcpu=cortex_a15", "-marm"),
    "arm-linux-gnueabihf",
    "ld-linux-armhf.so.3",
)
AARCH64 = System(
    "qemu-aarch64",
    ("aarch64-linux-gnu.2.34",),
    "aarch64-linux-gnu",
    "ld-linux-aarch64.so.1",
)
# Target -> its system, and a CPU that has little beyond the target's features.
TARGETS: Mapping[str, tuple[System, str]] = {
    "aarch64": (AARCH64, "cortex-a72"),
    "aarch64-v8.2": (AARCH64, "max,sve=off"),
    "aarch64-v8.6": (AARCH64, "max,sve=off"),
    "neoverse-v1": (AARCH64, "max,sve256=on"),
    "aarch64-v8.6+sve+vector-bytes=64": (AARCH64, "max,sve512=on"),
    "aarch64-android": (AARCH64, "cortex-a72"),
    "armv7": (ARMV7, "cortex-a7"),
    "riscv64": (RISCV, "rv64,v=false"),
    "riscv64-v": (RISCV, "rv64,v=true,vlen=128,vext_spec=v1.0"),
    "riscv64-v+vector-bytes=32": (RISCV, "rv64,v=true,vlen=256,vext_spec=v1.0"),
}


def missing(target: str) -> str:
    """Why a target's code cannot be run; empty if it can."""
    system, _ = TARGETS[target]
    if why := system.missing:
        return why
    old = target.startswith("riscv64-v") and _version(system.emulator) < VECTORS_FROM
    return f"{system.emulator} before {VECTORS_FROM} stops at `vfcvt.rtz`" if old else ""


class Process:
    """An emulated process with one module."""

    def __init__(self, path: str | os.PathLike, target: str, cpu: str = "") -> None:
        system, has = TARGETS[target]
        cpu = cpu or has
        command = [system.emulator, "-L", str(system.root), "-cpu", cpu]
        if target.endswith("-android"):
            command += ["-E", f"LD_LIBRARY_PATH={_as_android(system)}"]
        command += [server(system), str(path)]
        self.errors = tempfile.TemporaryFile()
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors
        )
        self.word = self._integer()
        self.symbols = Symbols(self)
        self._blocks = self._count()

    def close(self) -> None:
        """Ends the process."""
        self._process.kill()
        self._process.communicate()
        self.errors.close()

    def __del__(self) -> None:
        if self._process.returncode is None:
            self.close()

    def read(self, address: int, count: int) -> bytes:
        """Bytes of memory."""
        return self._ask(b"r", address, count, answer=count)

    def write(self, address: int, data: bytes) -> None:
        """Stores bytes."""
        self._ask(b"w", address, len(data), data=data)

    def text(self, address: int) -> str:
        """The string of C at an address."""
        length = self.run(self.symbols["strlen"], address)
        return self.read(address, length).decode()

    def allocate(self, count: int, alignment: int = 16) -> int:
        """The address of that much new memory; 0 if there is none."""
        self._ask(b"a", count, alignment)
        return self._integer()

    def release(self, address: int) -> None:
        """Takes allocated memory away."""
        self._ask(b"f", address)

    @property
    def allocated(self) -> list[None]:
        """An item for each block that was allocated since the module was loaded."""
        return [None] * (self._count() - self._blocks)

    def _count(self) -> int:
        self._ask(b"n")
        return self._integer()

    def call(self, name: str, *arguments: int) -> int:
        """Calls a function with up to four integers and addresses; the integer it returns."""
        return self.run(self.symbols[name], *arguments)

    def run(self, address: int, *arguments: int) -> int:
        """The same for an address."""
        self._ask(b"c", address, len(arguments), *arguments)
        return self._integer()

    def symbol(self, name: str) -> int:
        """The address of a symbol of the module, or of one that it imports."""
        self._ask(b"s", len(name), data=name.encode())
        return self._integer()

    def _ask(self, request: bytes, *integers: int, data: bytes = b"", answer: int = 0) -> bytes:
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        try:
            stdin.write(request + struct.pack(f"<{len(integers)}q", *integers) + data)
            stdin.flush()
        except BrokenPipeError:
            self._fail()
        answered = stdout.read(answer)
        if len(answered) < answer:
            self._fail()
        return answered

    def _integer(self) -> int:
        return struct.unpack("<q", self._ask(b"", answer=8))[0]

    def _fail(self) -> None:
        status = self._process.wait()
        self.errors.seek(0)
        raise Fault(f"the process ended with {status}: {self.errors.read().decode().strip()}")


class Symbols(dict):
    """The addresses of symbols, looked up when they are asked for."""

    def __init__(self, process: Process) -> None:
        super().__init__()
        self._process = process

    def __missing__(self, name: str) -> int:
        self[name] = self._process.symbol(name)
        if not self[name]:
            raise KeyError(name)
        return self[name]


@cache
def _as_android(system: System) -> str:
    """A folder with libraries of Android's names, which are those of glibc."""
    folder = Path(tempfile.mkdtemp(prefix="cpus-"))
    for name, file in (
        ("libc.so", "libc.so.6"),
        ("libm.so", "libm.so.6"),
        ("libdl.so", "libdl.so.2"),
    ):
        (folder / name).symlink_to(system.root / "lib" / file)
    return str(folder)


@cache
def server(system: System) -> str:
    """The program that the process runs; a C compiler makes an object, which is linked here."""
    folder = Path(tempfile.mkdtemp(prefix="cpus-"))
    made, program = folder / "server.o", folder / "server"
    zig = [sys.executable, "-m", "ziglang"]
    flags = ["-O1", "-fPIC", "-fno-sanitize=all", "-fno-builtin", "-fno-stack-protector"]
    compile_ = [*zig, "cc", "-target", *system.compiler, *flags, "-c", str(SOURCE), "-o", str(made)]
    library = str(system.root / "lib" / "libc.so.6")
    loader = ["--dynamic-linker", f"/lib/{system.loader}"]
    link = [*zig, "ld.lld", "-pie", "--export-dynamic", *loader, str(made), library]
    for command in (compile_, [*link, "-o", str(program)]):
        subprocess.run(command, check=True, capture_output=True, text=True)
    return str(program)
