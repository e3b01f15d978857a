"""The example for Android phones: its files are right, and they run where glibc plays bionic.

The loader of Debian loads the program, and a library named as Android's C library has what that
calls differently; the rest is glibc.
"""

import importlib.util
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from process import AARCH64

from relax_mlir.runtime.elf_format import ELF64

EXAMPLE = Path(__file__).parents[3] / "examples" / "android" / "build.py"
LIBRARY = """
#include <errno.h>
#include <stdlib.h>
int* __errno(void) { return &errno; }
void __libc_init(long* stack, void* unused, int (*main)(int, char**)) {
  exit(main((int)stack[0], (char**)(stack + 1)));
}
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("android")
    specification = importlib.util.spec_from_file_location("build", EXAMPLE)
    example = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(example)
    example.build(folder)
    return folder


@pytest.mark.parametrize("name", ["model.so", "call_module"])
def test_files(built: Path, name: str) -> None:
    """Pages of 16 KiB, and libraries that Android has."""
    data = (built / name).read_bytes()
    header = ELF64.header.unpack_from(data)
    at, count = header[5], header[10]
    segments = ELF64.segments(data[at : at + ELF64.segment_size * count])
    assert all(align % 0x4000 == 0 for type, *_, align in segments if type == 1)
    for library in (b"libc.so.6", b"libpthread", b"__errno_location", b"statx"):
        assert library not in data
    assert b"libc.so\0" in data


def test_run(built: Path, tmp_path: Path) -> None:
    if AARCH64.missing:
        pytest.skip(AARCH64.missing)
    source, made = tmp_path / "libc.c", tmp_path / "libc.o"
    source.write_text(LIBRARY)
    zig = [sys.executable, "-m", "ziglang"]
    compile_ = [*zig, "cc", "-target", *AARCH64.compiler, "-fPIC", "-fno-sanitize=all"]
    subprocess.run([*compile_, "-c", source, "-o", made], check=True)
    libraries = AARCH64.root / "lib"
    link = [*zig, "ld.lld", "-shared", "-soname", "libc.so", made, libraries / "libc.so.6"]
    subprocess.run([*link, "-o", tmp_path / "libc.so"], check=True)
    (tmp_path / "libdl.so").symlink_to(libraries / "libdl.so.2")

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        emulated = [AARCH64.emulator, "-L", AARCH64.root, "-E", f"LD_LIBRARY_PATH={tmp_path}"]
        command = [*emulated, libraries / AARCH64.loader, built / "call_module", *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    done = run(str(built / "model.so"), "3")
    assert done.returncode == 0, done.stderr
    x = np.exp((np.arange(12) % 7).reshape(3, 4).astype(float))
    actual = np.array([line.split() for line in done.stdout.splitlines()], float)
    np.testing.assert_allclose(actual, x / x.sum(axis=1, keepdims=True), atol=2e-6)
    assert run("./nothing.so", "3").stdout.startswith("cannot load './nothing.so': ")
    assert run().returncode == 2
