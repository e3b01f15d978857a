"""Modules for WebAssembly in Python: arguments, results, memory, and what is refused."""

import importlib.util
import threading
from pathlib import Path

import numpy as np
import pytest
from cpu_modules import operator, tensor

import relax_mlir
from relax_mlir.compiler import compile_to_file
from relax_mlir.errors import CompileError, ExecutionError, OutOfMemoryError, UsageError
from relax_mlir.executable import Executable, load

MATRIX = tensor("f32", "n", 3)
ADD = operator("main", "add", [MATRIX, MATRIX], MATRIX)
MODULES = Path(__file__).parents[2] / "Integration"


def memory_of(exe: Executable) -> int:
    """The bytes of a module's memory."""
    return exe._library._memory.data_len(exe._library._store)


def test_arguments_are_checked_as_on_other_cpus() -> None:
    native, wasm = (relax_mlir.compile(ADD, target=target) for target in ("native", "wasm32"))
    x = np.zeros((2, 3), np.float32)
    for wrong in (
        (x, np.zeros((5, 3), np.float32)),
        (x, x.astype(np.float64)),
        (x, np.zeros((2, 3, 1), np.float32)),
        (x.astype(np.complex128), x),
        (x,),
        (x, "text"),
    ):
        messages = []
        for exe in (native, wasm):
            with pytest.raises(ExecutionError) as caught:
                exe["main"](*wrong)
            messages.append(str(caught.value))
        assert messages[0] == messages[1]
    np.testing.assert_array_equal(wasm["main"](x + 1, x + 2), x + 3)
    assert str(wasm["main"]) == str(native["main"])


def test_an_address_that_is_not_aligned_is_refused() -> None:
    raw = np.zeros(4 * 6 + 1, np.uint8)
    x = raw[1:].view(np.float32).reshape(2, 3)
    exe = relax_mlir.compile(ADD, target="wasm32")
    with pytest.raises(ExecutionError, match="but a multiple of 4 is expected"):
        exe["main"](x, x)


def test_bound_calls() -> None:
    """Buffers are filled, arguments exchanged; strided arrays are copied."""
    exe = relax_mlir.compile(ADD, target="wasm32")
    x, out = np.arange(21, dtype=np.float32).reshape(7, 3), np.zeros((7, 3), np.float32)
    call = exe["main"].bind(x, x, results=[out])
    assert call.run() is out
    np.testing.assert_array_equal(out, 2 * x)
    call.set(1, np.asfortranarray(x + 1))
    call.run(threads=4)
    np.testing.assert_array_equal(out, 2 * x + 1)
    with pytest.raises(ExecutionError, match="result 0: dim 0 is 6, but 7 is expected"):
        exe["main"].bind(x, x, results=[np.zeros((6, 3), np.float32)]).run()
    assert exe.threads == 1
    for empty in (np.zeros((0, 3), np.float32),):
        assert exe["main"](empty, empty).shape == (0, 3)


def test_updates_in_place() -> None:
    exe = load(compile_to_file(MODULES / "decode_step.mlir", "wasm32"))
    keys, values = np.zeros((2, 2, 11, 8), np.float32)
    new = np.random.default_rng(0).standard_normal((3, 2, 8)).astype(np.float32)
    query = np.ones((3, 6, 8), np.float32)
    results = exe["main"](query, new, 2 * new, (4,), keys, values)
    assert results[1] is keys
    assert results[2] is values
    np.testing.assert_array_equal(keys[:, 4:7], new.swapaxes(0, 1))
    np.testing.assert_array_equal(values[:, 4:7], 2 * new.swapaxes(0, 1))
    assert not keys[:, :4].any()
    assert not values[:, 7:].any()


def test_memory_that_a_kernel_lacks() -> None:
    """The call is given up in the middle of a kernel, and the next one works."""
    k, m = 2000, 300
    operands, result = [tensor("f32", "m", k), tensor("f32", k, 16)], tensor("f32", "m", 16)
    path = compile_to_file(operator("main", "matmul", operands, result), "wasm32")
    rich, exe = load(path), load(path)
    x, weight = np.ones((m, k), np.float32), np.ones((k, 16), np.float32)
    np.testing.assert_array_equal(rich["main"](x, weight), np.full((m, 16), k))
    exe._library._store.set_limits(memory_size=memory_of(rich) - (2 << 16))
    with pytest.raises(
        OutOfMemoryError, match=r"^out of memory: a kernel needs .* bytes of scratch"
    ):
        exe["main"](x, weight)
    few = np.ones((1, k), np.float32)
    np.testing.assert_array_equal(exe["main"](few, weight), np.full((1, 16), k))


def test_sizes_beyond_the_memory_are_refused() -> None:
    """No count of bytes wraps: results, temporaries and arguments of more than 2^31 and 2^32."""
    column, row = tensor("f32", "n", 1), tensor("f32", 1, "m")
    exe = relax_mlir.compile(
        operator("main", "add", [column, row], tensor("f32", "n", "m")), target="wasm32"
    )
    for n, m in ((1 << 15, 1 << 14), (1 << 15, 1 << 15), (1 << 16, 1 << 16), (1 << 20, 1 << 20)):
        x, y = np.zeros((n, 1), np.float32), np.zeros((1, m), np.float32)
        with pytest.raises(OutOfMemoryError, match="out of memory"):
            exe["main"](x, y)
    np.testing.assert_array_equal(exe["main"](x[:3] + 1, y[:, :2]), np.ones((3, 2)))


def test_calls_of_several_threads_take_turns() -> None:
    exe = relax_mlir.compile(ADD, target="wasm32")
    x, found = np.ones((100, 3), np.float32), []
    threads = [
        threading.Thread(target=lambda i=i: found.append((exe["main"](i * x, x) == i + 1).all()))
        for i in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [True] * 8


def test_memory_is_given_back() -> None:
    """The memory of a module does not grow from call to call."""
    exe = relax_mlir.compile(ADD, target="wasm32")
    x = np.zeros((1000, 3), np.float32)
    exe["main"](x, x)
    size = memory_of(exe)
    for rows in (*range(1, 1000, 37), 1000):
        exe["main"](x[:rows], x[:rows])
    assert memory_of(exe) == size


def test_spans_are_recorded() -> None:
    exe = relax_mlir.compile(ADD, target="wasm32")
    exe.record(100)
    exe["main"](np.zeros((2, 3), np.float32), np.zeros((2, 3), np.float32))
    spans = exe.spans()
    assert len(spans) == 1
    assert spans["end"][0] >= spans["begin"][0] > 0


def test_without_the_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ExecutionError, match=r"pip install 'relax-mlir\[wasm\]'$"):
        load(compile_to_file(ADD, "wasm32"))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda data: data[: len(data) // 2], "the engine refuses it"),
        (lambda data: data[:8], "is not a compiled module"),
        (lambda data: data[:4] + b"\x02" + data[5:], "the engine refuses it"),
    ],
)
def test_damaged_modules_are_refused(change, message: str, tmp_path) -> None:
    path = tmp_path / "model.wasm"
    path.write_bytes(change(compile_to_file(ADD, "wasm32").read_bytes()))
    with pytest.raises(ExecutionError, match=message):
        load(path)


def test_libraries_are_refused() -> None:
    one_in, one_out = (", ".join(["1", *["0"] * rest]) for rest in (31, 7))
    text = f""""lib.function"() {{sym_name = "mine", c_symbol = "mine", convention = "dlpack",
      libraries = ["python"]}} : () -> ()
    func.func @main(%x: tensor<3xf32>) -> tensor<3xf32> {{
      %0 = "graph.call_dps_library"(%x) {{callee = @mine, sym_args = #graph.shape<[]>,
        operandSegmentSizes = array<i32: {one_in}>, resultSegmentSizes = array<i32: {one_out}>}}
        : (tensor<3xf32>) -> tensor<3xf32>
      return %0 : tensor<3xf32>
    }}"""
    with pytest.raises(CompileError, match="code for wasm32 has no libraries"):
        relax_mlir.compile(text, target="wasm32")


def test_constants_stay_in_the_module(tmp_path) -> None:
    exe = relax_mlir.compile(ADD, target="wasm32")
    with pytest.raises(UsageError, match="not modules for WebAssembly"):
        exe.save(tmp_path / "model.wasm", external_data=True)
    exe.save(tmp_path / "model.wasm")
    x = np.ones((1, 3), np.float32)
    np.testing.assert_array_equal(load(tmp_path / "model.wasm")["main"](x, x), 2 * x)
