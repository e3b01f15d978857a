"""The runtime on emulated CPUs: arguments, errors, results, memory."""

import platform
from pathlib import Path

import numpy as np
import pytest
from cpu_modules import CPUS, emulated, operator, run, tensor
from emulated import Emulated

from relax_mlir.compiler import compile_to_file
from relax_mlir.errors import ExecutionError
from relax_mlir.executable import load

MODULES = Path(__file__).parents[2] / "Integration"
MATRIX = tensor("f32", "n", 3)


def add() -> Emulated:
    """A module that adds two matrices."""
    return emulated(operator("main", "add", [MATRIX, MATRIX], MATRIX), "aarch64")


def test_wrong_arguments_are_named() -> None:
    """Texts are put together by variadic functions, whose lists of values are special on Arm."""
    x, y = np.zeros((2, 3), np.float32), np.zeros((5, 3), np.float32)
    with pytest.raises(ExecutionError, match=r"dim 0 is 5, but 'n' is 2 \(from argument 0 '.*"):
        add()["main"](x, y)
    with pytest.raises(ExecutionError, match="dtype is float64, but float32 is expected"):
        add()["main"](x, x.astype(np.float64))
    np.testing.assert_array_equal(add()["main"](x + 1, x + 2), x + 3)


def test_results_in_given_memory() -> None:
    x = np.arange(21, dtype=np.float32).reshape(7, 3)
    np.testing.assert_array_equal(add()["main"](x, x, results=[np.zeros_like(x)]), 2 * x)
    with pytest.raises(ExecutionError, match="result 0: dim 0 is 6, but 7 is expected"):
        add()["main"](x, x, results=[np.zeros((6, 3), np.float32)])


@pytest.mark.parametrize("target", CPUS)
def test_caches_updated_in_place(target: str) -> None:
    exe = run(compile_to_file(MODULES / "decode_step.mlir", target), target)
    keys, values = np.zeros((2, 2, 11, 8), np.float32)
    new = np.random.default_rng(0).standard_normal((3, 2, 8)).astype(np.float32)
    query = np.ones((3, 6, 8), np.float32)
    exe["main"](query, new, 2 * new, np.array([4]), keys, values)
    np.testing.assert_array_equal(keys[:, 4:7], new.swapaxes(0, 1))
    np.testing.assert_array_equal(values[:, 4:7], 2 * new.swapaxes(0, 1))
    assert not keys[:, :4].any()
    assert not values[:, 7:].any()
    exe.close()


def test_memory_that_a_kernel_lacks() -> None:
    """The call is given up in the middle of a kernel, and leaves registers and memory as before."""
    k, m = 2000, 300
    operands, result = [tensor("f32", "m", k), tensor("f32", k, 16)], tensor("f32", "m", 16)
    exe = run(compile_to_file(operator("main", "matmul", operands, result), "aarch64"), "aarch64")
    x, weight = np.ones((m, k), np.float32), np.ones((k, 16), np.float32)
    exe.machine.memory = x.nbytes + weight.nbytes + 50_000
    with pytest.raises(ExecutionError, match=r"^out of memory: .* bytes of scratch memory$"):
        exe["main"](x, weight)
    exe.machine.memory = 1 << 30
    np.testing.assert_array_equal(exe["main"](x, weight), np.full((m, 16), k))
    exe.close()


def test_code_for_another_architecture_is_refused() -> None:
    """Each on the other; the system's loader would say that the file does not exist."""
    here = platform.machine()
    other = "x86-64" if here == "aarch64" else "aarch64"
    path = compile_to_file(operator("main", "add", [MATRIX, MATRIX], MATRIX), other)
    message = f"it is compiled for {other.replace('-', '_')}, but this machine is {here}$"
    with pytest.raises(ExecutionError, match=message):
        load(path)
