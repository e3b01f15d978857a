"""Kernels for NVIDIA's devices that are assembled when they are compiled."""

import stat
import struct
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from cuda_driver import Driver, nothing_left

import relax_mlir
from relax_mlir.codegen.gpu.ptx import assembler
from relax_mlir.compiler import compile_to_file
from relax_mlir.errors import CompileError, ExecutionError
from relax_mlir.target import Device, Target, TargetError

TEXT = """
!x = tensor<?xf32, #graph.shape<["n"]>>
func.func @main(%x: !x) -> !x {
  %0 = "graph.exp"(%x) : (!x) -> !x
  return %0 : !x
}
"""
ASSEMBLER = """#!/bin/sh
# In place of ptxas: PTX after the first bytes of an ELF file, for the stand-in of a driver.
if [ "$1" = --version ]; then echo version of a test; exit; fi
echo "$@" >> "$(dirname "$0")/calls"
printf '\\177ELF' > "$5" && cat "$3" >> "$5" && printf '\\0' >> "$5"
"""


@pytest.fixture
def cuda() -> Iterator[Driver]:
    with nothing_left() as own:
        yield own


@pytest.fixture
def own_assembler(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "ptxas"
    path.write_text(ASSEMBLER)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("RELAX_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(assembler, "assembler", lambda: str(path))
    assembler.version.cache_clear()
    yield tmp_path / "calls"
    assembler.version.cache_clear()


def test_a_call(cuda: Driver, own_assembler: Path) -> None:
    module = relax_mlir.compile(TEXT, "cuda:sm_90a+cubin")
    assert "-arch=sm_90a" in own_assembler.read_text()
    x = np.linspace(-3, 3, 301, dtype=np.float32)
    np.testing.assert_allclose(module["main"](x), np.exp(x.astype(np.float64)), rtol=1e-6)


@pytest.mark.parametrize(("has", "wanted"), [(90, 80), (100, 90), (80, 86), (100, 89)])
def test_other_devices(cuda: Driver, own_assembler: Path, has: int, wanted: int) -> None:
    """Unlike PTX, it does not run on devices of the next generation."""
    cuda.library.standin_architecture(1, has)
    message = rf"of sm_{has}, .* sm_{wanted}\+cubin does not run; .*'cuda:sm_{has}\+cubin'"
    with pytest.raises(ExecutionError, match=message):
        relax_mlir.compile(TEXT, f"cuda:sm_{wanted}+cubin")


def test_devices_that_differ_in_the_last_digit(cuda: Driver, own_assembler: Path) -> None:
    cuda.library.standin_architecture(1, 89)
    module = relax_mlir.compile(TEXT, "cuda:sm_86+cubin")
    np.testing.assert_allclose(module["main"](np.ones(1, np.float32)), np.e, rtol=1e-6)


def test_without_an_assembler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(assembler, "assembler", lambda: None)
    with pytest.raises(TargetError, match=r"by ptxas, .*: pip install nvidia-cuda-nvcc, or leave"):
        relax_mlir.compile(TEXT, "cuda:sm_80+cubin")


def test_an_assembler_that_fails(own_assembler: Path) -> None:
    own_assembler.with_name("ptxas").write_text("#!/bin/sh\necho out of registers\nexit 3\n")
    with pytest.raises(CompileError, match="ptxas refuses a kernel for sm_80: out of registers"):
        assembler.assemble("", "sm_80")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("vulkan+cubin", "unknown setting 'cubin' of device 'vulkan'; accepted is none"),
        ("cuda:sm_80+fast", "unknown setting 'fast' of device 'cuda:sm_80'; accepted is 'cubin'"),
        ("cuda:sm_70+cubin", "unknown device 'cuda:sm_70'"),
    ],
)
def test_settings_of_devices(text: str, message: str) -> None:
    with pytest.raises(TargetError, match=message):
        Target.parse(text)


def test_names_of_devices() -> None:
    device = Device.parse("cuda:sm_80+cubin")
    assert str(device) == "cuda:sm_80+cubin"
    assert str(Target.parse("x86-64@cuda:sm_80+cubin")) == "x86-64@cuda:sm_80+cubin"


@pytest.mark.skipif(assembler.assembler() is None, reason="no ptxas: nvidia-cuda-nvcc has it")
def test_code_of_an_architecture() -> None:
    """A file for NVIDIA's machines, with the kernel, is in the compiled module."""
    data = compile_to_file(TEXT, "x86-64@cuda:sm_80+cubin").read_bytes()
    at = data.index(b"\x7fELF", 1)
    assert struct.unpack_from("<H", data, at + 18) == (190,)  # EM_CUDA
    assert b".text.exp_kernel" in data[at:]
