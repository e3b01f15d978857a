"""Builds a module for Android phones, and a program in C that calls it, without Android's NDK.

    python examples/android/build.py FOLDER
    adb push FOLDER/model.so FOLDER/call_module /data/local/tmp
    adb shell "cd /data/local/tmp && ./call_module ./model.so 3"

The C compiler is `ziglang` of PyPI. It has no C library of Android's: the program is linked with
libraries that have the names of the functions that it calls, but no code.
"""

import subprocess
import sys
from pathlib import Path

from relax_mlir.compiler import compile_to_file

HERE = Path(__file__).resolve().parent
HEADERS = HERE.parents[1] / "relax_mlir" / "runtime" / "csrc"
TARGET = "aarch64-android"
NAMES = ("start", "call_module")
CALLED = {"libc.so": ("__libc_init", "atoi", "printf"), "libdl.so": ("dlerror", "dlopen", "dlsym")}


def zig(*arguments: object) -> None:
    """Runs a tool of ziglang."""
    subprocess.run([sys.executable, "-m", "ziglang", *map(str, arguments)], check=True)


def compile_c(source: Path, made: Path) -> Path:
    """Compiles a file for 64-bit Arm; the declarations of C are the same on all of its systems."""
    flags = ("-O2", "-fPIE", "-fno-builtin", "-fno-stack-protector", "-I", HEADERS)
    zig("cc", "-target", "aarch64-linux-musl", *flags, "-c", source, "-o", made)
    return made


def stand_in(folder: Path, name: str, functions: tuple[str, ...]) -> Path:
    """A library of that name, for the linker only."""
    source = folder / f"{name}.c"
    source.write_text("".join(f"void {function}(void) {{}}\n" for function in functions))
    made = folder / name
    zig("ld.lld", "-shared", "-soname", name, compile_c(source, folder / f"{name}.o"), "-o", made)
    return made


def build(folder: Path) -> None:
    """Writes `model.so` and `call_module` into a folder."""
    stubs = folder / "stubs"
    stubs.mkdir(parents=True, exist_ok=True)
    module = compile_to_file(HERE / "model.mlir", TARGET)
    (folder / "model.so").write_bytes(module.read_bytes())
    objects = [compile_c(HERE / f"{name}.c", stubs / f"{name}.o") for name in NAMES]
    libraries = [stand_in(stubs, name, functions) for name, functions in CALLED.items()]
    loader = ("--dynamic-linker", "/system/bin/linker64", "-z", "max-page-size=16384")
    zig("ld.lld", "-pie", *loader, *objects, *libraries, "-o", folder / "call_module")


if __name__ == "__main__":
    build(Path(sys.argv[1]))
