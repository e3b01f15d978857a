"""Installs the CMake package, and builds and runs a program of C that finds it."""

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

import relax_mlir

ROOT = Path(relax_mlir.__file__).parents[1]

CMAKE = """
cmake_minimum_required(VERSION 3.20)
project(consumer LANGUAGES C)
find_package(RelaxMLIR {version} REQUIRED)
if(NOT EXISTS "${{RelaxMLIR_IRDL_DIR}}/graph.mlir")
  message(FATAL_ERROR "no dialects in ${{RelaxMLIR_IRDL_DIR}}")
endif()
relax_add_module(doubled doubled.mlir -O1)
add_executable(consumer consumer.c)
target_link_libraries(consumer doubled)
"""

MODULE = """
!x = tensor<?xf32, #graph.shape<["n"]>>
func.func @main(%x: !x) -> !x {
  %0 = "graph.add"(%x, %x) : (!x, !x) -> !x
  return %0 : !x
}
"""

PROGRAM = r"""
#include <stdio.h>
#include <relax_runtime.h>

int32_t rx_fn_main(RxContext *, const DLTensor *, int32_t, DLTensor *, int32_t);

int main(void) {
  RxContext *context = rx_create();
  float x[3] = {1, 2, 3}, y[3];
  int64_t dims[1] = {3};
  DLTensor arg = {x, {1, 0}, 1, {2, 32, 1}, dims, NULL, 0};
  DLTensor result = {y, {1, 0}, 1, {2, 32, 1}, dims, NULL, 0};
  RxCall call = {.context = context, .entry = rx_fn_main, .args = &arg, .results = &result,
                 .num_args = 1, .num_results = 1};
  if (rx_call(&call)) return puts(rx_last_error(context)), 1;
  printf("%g %g %g\n", y[0], y[1], y[2]);
  rx_destroy(context);
}
"""

pytestmark = pytest.mark.skipif(
    shutil.which("cmake") is None or shutil.which("cc") is None, reason="takes CMake and cc"
)


def run(*command: str | Path, status: int = 0) -> str:
    done = subprocess.run(
        list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    assert done.returncode == status, done.stdout
    return done.stdout


@pytest.fixture(scope="module")
def prefix(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("cmake")
    run("cmake", "-S", ROOT, "-B", folder / "build", f"-DPython3_EXECUTABLE={sys.executable}")
    run("cmake", "--install", folder / "build", "--prefix", folder / "prefix")
    return folder / "prefix"


def configure(
    folder: Path,
    prefix: Path,
    version: str,
    program: str,
    status: int = 0,
    options: Sequence[str] = (),
) -> str:
    files = {"CMakeLists.txt": CMAKE.format(version=version), "doubled.mlir": MODULE}
    for name, text in {**files, "consumer.c": PROGRAM}.items():
        (folder / name).write_text(text)
    named = (f"-DCMAKE_PREFIX_PATH={prefix}", f"-DRelaxMLIR_COMPILE={program}", *options)
    return run("cmake", "-S", folder, "-B", folder / "build", *named, status=status)


def test_a_program_of_c_finds_the_package_and_links_a_module(prefix, tmp_path) -> None:
    tool = Path(sys.executable).with_name("relax-compile")
    configure(tmp_path, prefix, relax_mlir.__version__, str(tool))
    run("cmake", "--build", tmp_path / "build")
    assert run(tmp_path / "build" / "consumer") == "2 4 6\n"
    built = tmp_path / "build" / "libdoubled.so"
    before = built.stat().st_mtime_ns
    os.utime(tmp_path / "doubled.mlir")
    run("cmake", "--build", tmp_path / "build")
    assert built.stat().st_mtime_ns > before  # a module that was changed is compiled again


def test_another_version_is_not_taken(prefix, tmp_path) -> None:
    text = configure(tmp_path, prefix, "99.0", "relax-compile", status=1)
    assert "compatible with requested version" in text
    assert "99.0" in text


def test_what_is_missing_is_said(prefix, tmp_path, monkeypatch) -> None:
    tools = tmp_path / "tools"  # a PATH with what builds programs of C, and nothing else
    tools.mkdir()
    for tool in ("cmake", "cc", "make", "ninja", "ar", "as", "ld"):
        if (found := shutil.which(tool)) is not None:
            (tools / tool).symlink_to(found)
    monkeypatch.setenv("PATH", str(tools))
    missing = "RelaxMLIR_COMPILE-NOTFOUND"
    text = configure(
        tmp_path, prefix, "", missing, status=1, options=["-DCMAKE_FIND_USE_CMAKE_SYSTEM_PATH=OFF"]
    )
    assert "install the Python package or set RelaxMLIR_COMPILE" in " ".join(text.split())
