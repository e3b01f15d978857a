"""Compiles the C runtime to one LLVM bitcode file per target: `python -m relax_mlir.runtime.build`.

Needs the `ziglang` package, a C compiler from PyPI, which is a build requirement only: wheels
contain the bitcode. The file imports nothing of this package, so that `setup.py` can load it
before anything is installed.
"""

import argparse
import hashlib
import importlib.util
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

HERE = Path(__file__).resolve().parent
SOURCES = HERE / "csrc"
BITCODE = HERE / "bitcode"

# glibc 2.17 is the oldest that the wheels of this package's dependencies support; 2.27 is the first
# for RISC-V.
TARGETS = {
    "x86_64-linux": ("x86_64-linux-gnu.2.17",),
    "aarch64-linux": ("aarch64-linux-gnu.2.17",),
    "armv7-linux": ("arm-linux-gnueabihf.2.17", "-mcpu=cortex_a15", "-marm"),
    "riscv64-linux": ("riscv64-linux-gnu.2.27",),
    # The types that the runtime passes to Android's C library are no larger there than glibc's.
    "aarch64-android": ("aarch64-linux-gnu.2.17", "-DRX_ANDROID", "-D__errno_location=__errno"),
    "wasm32": ("wasm32-wasi",),  # for its headers; nothing of the system is used
}
WASM = "wasm32"
THREADS = "threads"
"""The part of modules for WebAssembly whose workers share memory."""
DEVICES = ("cuda", "standin", "vulkan")
"""The devices that modules may be linked with: files of `csrc/device`."""
DEVICE_HOSTS = ("x86_64-linux", "aarch64-linux")

FLAGS = (
    "-std=c11",
    "-O2",
    "-g0",
    "-fvisibility=hidden",
    "-fno-sanitize=all",
    "-fno-builtin-bcmp",  # what LLVM makes of memcmp; Android has no such function
    "-fno-stack-protector",
    "-fno-asynchronous-unwind-tables",
    "-fno-unwind-tables",
    "-fomit-frame-pointer",
    "-fwrapv",
    "-U_FORTIFY_SOURCE",
    "-Wall",
    "-Wextra",
    "-Werror",
    "-Wno-unused-command-line-argument",
)

# The modules of a process share a variable of this name; modules built from other versions of these
# sources have another one.
SHARED = (
    *("relax_runtime.h", "memory.c", "process.c", "thread.c", "own_thread.c", "escape.c"),
    *("scratch.c", "pool.c"),
)
PROCESS = "rx_process_"


def process_symbol() -> str:
    """The name of the variable that the modules of a process share."""
    sources = b"".join((SOURCES / name).read_bytes() for name in SHARED)
    return PROCESS + hashlib.sha256(sources).hexdigest()[:16]


# Attributes that tie a function to a CPU. Without them it is compiled for the target of the module
# that it is linked into, and can be inlined there.
CPU_ATTRIBUTE = re.compile(r' ?"(?:target-cpu|target-features|tune-cpu)"="[^"]*"')


class BuildError(Exception):
    """The runtime could not be compiled."""


def build(directory: Path = BITCODE, targets: Sequence[str] = tuple(TARGETS)) -> list[Path]:
    """Writes `<target>.bc` into `directory` for each of `targets`, replacing it atomically.

    For some there are parts of modules whose kernels run on devices too: `<target>-<part>.bc`.

    Raises:
        BuildError: `ziglang` is missing or the compiler failed; the text has the compiler's output.
    """
    if importlib.util.find_spec("ziglang") is None:
        raise BuildError(
            "the C runtime needs the package 'ziglang' to be compiled: pip install ziglang"
        )
    directory.mkdir(parents=True, exist_ok=True)
    paths = []
    for target in targets:
        paths.append(_build_one(directory, target))
        if target in DEVICE_HOSTS:
            paths.append(_build_one(directory, target, "device", "runtime_device.c"))
            paths += [_build_one(directory, target, name, f"device/{name}.c") for name in DEVICES]
        if target == WASM:
            paths.append(_build_one(directory, target, "webgpu", "runtime_wasm_webgpu.c"))
            paths.append(_build_one(directory, target, THREADS, "runtime_wasm_threads.c"))
    return paths


def _build_one(directory: Path, target: str, part: str = "", file: str = "runtime.c") -> Path:
    """Compiles the runtime for a target, or a part of that of modules for devices."""
    path = directory / (f"{target}-{part}.bc" if part else f"{target}.bc")
    # A directory next to the result, so that the final rename is within one file system.
    with tempfile.TemporaryDirectory(dir=directory) as scratch:
        text, result = Path(scratch, "runtime.ll"), Path(scratch, "runtime.bc")
        define = f"-DRX_PROCESS={process_symbol()}"
        source = str(SOURCES / ("runtime_wasm.c" if target == WASM and not part else file))
        own = ["-mbulk-memory"] if target == WASM else ["-fPIC"]
        own += ["-matomics"] if part == THREADS else []
        _compile(target, *FLAGS, *own, define, "-S", "-emit-llvm", source, "-o", str(text))
        text.write_text(CPU_ATTRIBUTE.sub("", text.read_text()))
        _compile(target, "-c", "-emit-llvm", str(text), "-o", str(result))
        result.replace(path)
    return path


def _compile(target: str, *arguments: str) -> None:
    command = [sys.executable, "-m", "ziglang", "cc", "-target", *TARGETS[target], *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise BuildError(f"'{' '.join(command)}' failed:\n{done.stderr}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="relax_mlir.runtime.build", description=__doc__.split("\n")[0]
    )
    parser.add_argument("--directory", type=Path, default=BITCODE, help="output folder")
    parser.add_argument("--target", action="append", choices=sorted(TARGETS), help="default: all")
    options = parser.parse_args(arguments)
    try:
        paths = build(options.directory, options.target or tuple(TARGETS))
    except BuildError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    for path in paths:
        print(f"{path} ({path.stat().st_size} bytes)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
