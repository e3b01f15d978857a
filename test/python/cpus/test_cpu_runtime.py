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
REGIONS = 2
"""The counter of parallel regions."""
INDICES = tensor("i64", "n", "m")
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


@pytest.mark.rotate(3)
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


@pytest.mark.parametrize("target", ["armv7", "riscv64", "riscv64-v", "aarch64-android"])
def test_wrong_arguments_in_a_process(target: str) -> None:
    """Lists of values, jumps and integers of 128 bits are special on each machine."""
    exe = emulated(operator("main", "add", [MATRIX, MATRIX], MATRIX), target)
    x, y = np.ones((2, 3), np.float32), np.ones((5, 3), np.float32)
    with pytest.raises(ExecutionError, match=r"dim 0 is 5, but 'n' is 2 \(from argument 0 '.*"):
        exe["main"](x, y)
    np.testing.assert_array_equal(exe["main"](x, x), x + x)


@pytest.mark.rotate(2)
@pytest.mark.parametrize("target", ["armv7", "riscv64-v", "aarch64-android"])
def test_threads(target: str) -> None:
    """Results on three threads are those on one."""
    operands, result = [tensor("f32", "m", 512), tensor("f32", 512, 48)], tensor("f32", "m", 48)
    exe = run(compile_to_file(operator("main", "matmul", operands, result), target), target)
    random = np.random.default_rng(0)
    x, weight = (random.standard_normal(s).astype(np.float32) for s in ((301, 512), (512, 48)))
    exe.machine.call("rx_set_threads", 1)
    alone = exe["main"](x, weight)
    np.testing.assert_allclose(alone, x @ weight, atol=1e-4)
    assert exe.machine.call("rx_counter", REGIONS) == 0
    exe.machine.call("rx_set_threads", 3)
    np.testing.assert_array_equal(exe["main"](x, weight), alone)
    assert exe.machine.call("rx_counter", REGIONS) > 0


@pytest.mark.parametrize(
    "dims", [(1 << 16, 1 << 14), (1 << 32, 1), (1 << 29, 1), (46341, 46341), (1 << 40, 1 << 30)]
)
def test_sizes_beyond_32_bits(dims: tuple[int, int]) -> None:
    """No count of bytes wraps: 2^32 of them would be none."""
    x, y = tensor("f32", 1, 1), tensor("f32", "n", "m")
    text = f"""func.func @main(%x: {x}, %s: !graph.shape_value<["n", "m"]>) -> {y} {{
      %0 = "graph.broadcast_to"(%x) {{shape = #graph.shape<["n", "m"]>}} : ({x}) -> {y}
      return %0 : {y}
    }}
    func.func @sums(%x: {x}, %s: !graph.shape_value<["n", "m"]>) -> {tensor("f32", "n")} {{
      %0 = "graph.broadcast_to"(%x) {{shape = #graph.shape<["n", "m"]>}} : ({x}) -> {y}
      %1:2 = "graph.sort"(%0) {{axis = 1 : i64, descending = false}} : ({y}) -> ({y}, {INDICES})
      %2 = "graph.sum"(%1#0) {{axes = array<i64: 1>, keepdims = false}}
        : ({y}) -> {tensor("f32", "n")}
      return %2 : {tensor("f32", "n")}
    }}"""
    exe = emulated(text, "armv7")
    one = np.ones((1, 1), np.float32)
    for name in ("main", "sums"):
        with pytest.raises(ExecutionError, match="out of memory"):
            exe[name](one, np.array(dims))
    np.testing.assert_array_equal(exe["main"](one, np.array([3, 5])), np.ones((3, 5)))
    np.testing.assert_array_equal(exe["sums"](one, np.array([3, 5])), np.full(3, 5))


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
