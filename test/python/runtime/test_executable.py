"""Loading, saving and calling compiled modules from Python."""

import _ctypes
import gc
import os
import subprocess
import sys
import threading
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from c_module import CFunction, Output, Tensor, build_module, shape

import relax_mlir
from relax_mlir.errors import ExecutionError
from relax_mlir.executable import Executable, load
from relax_mlir.runtime import bitcode_path, results, tensors
from relax_mlir.runtime.build import DEVICES, BuildError, build

SUM = """
  float *out = rx_result(context, results, 0, RX_FLOAT, 32, 0, NULL);
  if (!out) return 1;
  *out = *(const float *)args[1].data;
  for (int64_t i = 0; i < n; i++) *out += ((const float *)args[0].data)[i];
"""

ECHO = """
  void *out = rx_result(context, results, 0, RX_BFLOAT, 16, 1, &n);
  if (!out) return 1;
  memcpy(out, args[0].data, n * 2);
"""

SHAPE = """
  int64_t *out = rx_result(context, results, 0, RX_INT, 64, 1, &(int64_t){1});
  if (!out) return 1;
  *out = n + ((const int8_t *)args[1].data)[0];
"""

CALL = """
  double *out = rx_result(context, results, 0, RX_FLOAT, 64, 0, NULL);
  if (!out) return 1;
  *out = ((double (*)(double))rx_lib_m_cos)(*(const double *)args[0].data);
"""

FUNCTIONS = [
    CFunction(
        "sum",
        [Tensor("x", "f32", ["n"]), Tensor("start", "f32", [])],
        [Output("f32", [])],
        ["n <= 100000"],
        SUM,
    ),
    CFunction("echo", [Tensor("x", "bf16", ["n"])], [Output("bf16", ["n"])], body=ECHO),
    CFunction(
        "length",
        [shape("dims", ["n"]), Tensor("more", "i8", [])],
        [Output("i64", ["n"], kind="shape")],
        body=SHAPE,
    ),
    CFunction("update", [Tensor("x", "f32", ["n", None], inout=True)], [Output("f32", None, 0)]),
    CFunction("flag", [Tensor("x", "i1", [])]),
    CFunction("brain", [Tensor("x", "bf16", [])]),
    CFunction("cosine", [Tensor("x", "f64", [])], [Output("f64", [])], body=CALL),
]

COSINE = {
    "function": "m.cos",
    "c_symbol": "cos",
    "providers": ["libmissing.so.7", "no-such-package", "libm.so.6"],
    "slot": "rx_lib_m_cos",
}
PRELUDE = "RX_API void *rx_lib_m_cos;"


class Exporter:
    """An array that is known by `__dlpack__` only."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.array.__dlpack_device__()


@pytest.fixture(scope="module")
def path(tmp_path_factory) -> Path:
    return build_module(FUNCTIONS, tmp_path_factory.mktemp("exe"), PRELUDE, [COSINE])


@pytest.fixture(scope="module")
def exe(path) -> Executable:
    return load(path)


ZERO = np.float32(0)


@pytest.mark.parametrize(
    "x",
    [
        np.arange(7, dtype=np.float32),
        np.arange(0, dtype=np.float32),
        np.arange(14, dtype=np.float32)[::2],
        np.broadcast_to(np.float32(2), 5),
        Exporter(np.arange(7, dtype=np.float32)),
        Exporter(np.arange(20, dtype=np.float32)[3:10]),
        Exporter(np.arange(14, dtype=np.float32)[::2]),
        Exporter(np.zeros(0, np.float32)),
    ],
)
def test_takes_any_array(exe, x):
    array = x.array if isinstance(x, Exporter) else x
    assert exe["sum"](x, ZERO) == array.sum()


@pytest.mark.parametrize("start", [2, 2.0, np.float32(2), np.array(2, np.float32)])
def test_takes_numbers(exe, start):
    assert exe["sum"](np.ones(3, np.float32), start) == 5


@pytest.mark.parametrize(
    ("name", "arguments", "text"),
    [
        ("sum", ([1.0], 0), "argument 0 'x': an array (NumPy or DLPack) is expected, but got list"),
        ("sum", (None, 0), "(NumPy or DLPack) is expected, but got NoneType"),
        ("sum", (np.ones(3, np.float32),), "'sum' has 2 arguments, but got 1"),
        ("sum", (ZERO, True), "argument 1 'start': f32 is expected, but got the number True"),
        (
            "sum",
            (np.ones(3, ">f4"), 0),
            "argument 0 'x': native byte order is expected, but dtype is >f4",
        ),
        (
            "sum",
            (np.array(["a"]), 0),
            "argument 0 'x': an array of numbers is expected, but dtype is <U1",
        ),
        (
            "sum",
            (np.frombuffer(bytes(13), np.float32, 3, offset=1), 0),
            "a multiple of 4 is expected",
        ),
        ("sum", (np.zeros(100001, np.float32), 0), "'sum' requires n <= 100000, but n = 100001 "),
        ("sum", (Exporter(np.ones(3, np.int32)), 0), "dtype is int32, but float32 is expected"),
        ("length", ("abc", 1), "argument 0 'dims': integers are expected, but got 'abc'"),
        ("length", ((1.5,), 1), "argument 0 'dims': integers are expected, but got (1.5,)"),
        ("length", (3, 200), "argument 1 'more': 200 is out of the range of i8"),
        ("length", (3, 1.5), "argument 1 'more': i8 is expected, but got the number 1.5"),
        ("flag", (1,), "argument 0 'x': i1 is expected, but got the number 1"),
        ("brain", (1.0,), "argument 0 'x': an array of bf16 is expected, but got the number 1.0"),
        ("update", (np.zeros((3, 4), np.float32).T,), "is written to, so a contiguous"),
        ("update", (Exporter(np.zeros((3, 4), np.float32).T),), "is written to, so a contiguous"),
        ("update", (np.broadcast_to(ZERO, (1, 1)),), "is expected, but it is read-only"),
        ("echo", (Exporter(np.array(["a"])),), "argument 0 'x': the Exporter cannot be exported: "),
    ],
)  # fmt: skip
def test_refuses_what_is_no_argument(exe, name, arguments, text):
    with pytest.raises(ExecutionError) as raised:
        exe[name](*arguments)
    assert text in str(raised.value)


def test_checks_the_device(exe):
    call = exe["sum"].bind(np.ones(3, np.float32), 0)
    call._args[0].device_type = 2
    with pytest.raises(
        ExecutionError, match=r"is of a CUDA device \(DLPack type 2\), but of the CPU \(1\)"
    ):
        call.run()


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"lanes": 4}, "dtype is float32x4, but float32 is expected"),
        ({"code": 9, "bits": 4}, "dtype is DLPack type 9 of 4 bits, but float32 is expected"),
        ({"byte_offset": 16}, r"byte_offset is 16, but 0 is expected \(add it to data\)"),
        ({"data": None}, "data is null, but there are elements"),
    ],
)
def test_checks_descriptors(exe, changes, text):
    call = exe["sum"].bind(np.ones(3, np.float32), 0)
    for name, value in changes.items():
        setattr(call._args[0], name, value)
    with pytest.raises(ExecutionError, match=f"^argument 0 'x': {text}$"):
        call.run()


def test_checks_strides(exe):
    call = exe["update"].bind(np.ones((3, 4), np.float32))
    strides = (tensors.ctypes.c_int64 * 2)()
    call._args[0].strides = strides
    for wrong, dim, want in (((1, 3), 1, 1), ((4, 0), 1, 1), ((0, 1), 0, 4), ((-4, 1), 0, 4)):
        strides[:] = wrong
        with pytest.raises(
            ExecutionError, match=f"stride of dim {dim} is {wrong[dim]}, but {want} is expected"
        ):
            call.run()
    strides[:] = (4, 1)
    call.run()


def test_bfloat16(exe, path, monkeypatch):
    x = np.array([1.5, -2, 0], ml_dtypes.bfloat16)
    got = exe["echo"](x)
    assert got.dtype == ml_dtypes.bfloat16
    np.testing.assert_array_equal(got, x)
    np.testing.assert_array_equal(exe["echo"](x.view(np.uint16)), x)
    monkeypatch.setattr(results, "packed_dtype", lambda element: np.dtype(np.uint16))
    np.testing.assert_array_equal(load(path)["echo"](x), x.view(np.uint16))


@pytest.mark.parametrize("dims", [5, (5,), [5], np.int64(5), np.array([5])])
def test_shape_values(exe, dims):
    np.testing.assert_array_equal(exe["length"](dims, 3), [8])


def test_bound_call(exe):
    x = np.ones(3, np.float32)
    out = np.zeros((), np.float32)
    call = exe["sum"].bind(x, 0, results=[out])
    assert call.run() is out
    assert out == 3
    x[:] = 2
    call.run()
    assert out == 6
    call.set(0, np.ones(10, np.float32))
    call.set(1, 0.5)
    call.run()
    assert out == 10.5
    with pytest.raises(ExecutionError, match=r"^'sum' has 1 result, but got 2$"):
        exe["sum"].bind(x, 0, results=[None, None])
    with pytest.raises(ExecutionError, match=r"^argument 0 'x': an array"):
        call.set(0, "x")
    # A refused value leaves the call as it was.
    call.run()
    assert out == 10.5


def test_a_bound_call_checks_what_is_new(exe):
    """What was accepted once is not looked at again, but what replaces it is."""
    call = exe["sum"].bind(np.ones(3, np.float32), 0)
    for _ in range(2):
        assert call.run() == 3
    for array, text in (
        (np.ones(3), r"^argument 0 'x': dtype is float64, but float32 is expected$"),
        (np.ones((3, 1), np.float32), r"^argument 0 'x': rank is 2, but 1 is expected$"),
        (np.ones(100_001, np.float32), r"^'sum' requires n <= 100000, but n = 100001 from "),
        (np.ones(3, np.int32), r"^argument 0 'x': dtype is int32, but float32 is expected$"),
    ):
        call.set(0, array)
        for _ in range(2):
            with pytest.raises(ExecutionError, match=text):
                call.run()
    for length in (0, 1, 7, 100_000):
        call.set(0, np.ones(length, np.float32))
        for _ in range(2):
            assert call.run() == length
    call.set(1, np.zeros(1, np.float32))
    with pytest.raises(ExecutionError, match=r"^argument 1 'start': rank is 1, but 0 is expected"):
        call.run()


def test_a_bound_call_reads_shape_values_again(exe):
    values, more = np.array([5]), np.array(1, np.int8)
    call = exe["length"].bind(values, more)
    for value in (5, 6, 0, 1 << 40):
        values[0] = value
        np.testing.assert_array_equal(call.run(), [value + 1])
    values[0] = -1
    with pytest.raises(
        ExecutionError, match=r"^argument 0 'dims': value 0 is -1, but 'n' must not"
    ):
        call.run()
    values[0] = 2
    np.testing.assert_array_equal(call.run(), [3])


def test_arguments_are_kept_alive(exe):
    call = exe["sum"].bind(np.ones(50000, np.float32), np.array(1, np.float32))
    gc.collect()
    garbage = [np.full(50000, np.nan, np.float32) for _ in range(5)]
    assert call.run() == 50001
    del garbage


def test_describes_functions(exe):
    assert exe.functions == tuple(function.name for function in FUNCTIONS)
    assert str(exe["sum"]) == "sum(x: f32[n], start: f32[]) -> (f32[])"
    assert str(exe["length"]) == "length(dims: shape[n], more: i8[]) -> (shape[n])"
    assert str(exe["update"]) == "update(inout x: f32[n, ?]) -> (f32[...])"
    assert exe["sum"].facts == ("n <= 100000",)
    assert exe.metadata["functions"]["sum"]["facts"] == ["n <= 100000"]
    assert "sum(x: f32[n]" in repr(exe)
    with pytest.raises(KeyError, match="no function 'main', the module has 'sum', 'echo'"):
        exe["main"]


def test_calls_a_library(exe, tmp_path):
    assert exe["cosine"](0.5) == np.cos(0.5)
    missing = {**COSINE, "c_symbol": "no_such_function"}
    with pytest.raises(ExecutionError) as raised:
        load(build_module(FUNCTIONS, tmp_path, PRELUDE, [missing]))
    assert str(raised.value) == (
        "library function 'm.cos': 'no_such_function' is in none of: "
        "libmissing.so.7, no-such-package, libm.so.6"
    )


def test_saves(tmp_path):
    exe = load(build_module(FUNCTIONS, tmp_path, PRELUDE, [COSINE]))
    exe.path.unlink()
    target = tmp_path / "saved.so"
    target.write_text("old")
    exe.save(target)
    assert load(target)["sum"](np.ones(3, np.float32), 1) == 4
    assert os.access(target, os.X_OK)
    assert not list(tmp_path.glob("tmp*"))
    with pytest.raises(OSError, match="No such file"):
        exe.save(tmp_path / "missing" / "saved.so")


def test_a_file_that_was_replaced_is_loaded_anew(tmp_path):
    """The dynamic loader takes files of one name for one."""
    first, second = (relax_mlir.compile(RETURNS.format(n))["main"] for n in (1, 2))
    for function in (first, second, first):
        function.executable.save(tmp_path / "same.so")
        assert load(tmp_path / "same.so")["main"]() == function()
        assert load(tmp_path / "same.so")["main"]() == function()


RETURNS = """
func.func @main() -> tensor<i32> {{
  %0 = arith.constant dense<{}> : tensor<i32>
  return %0 : tensor<i32>
}}"""


def test_load_errors(tmp_path):
    with pytest.raises(ExecutionError, match=r"^cannot load '.*none.so': No such file"):
        load(tmp_path / "none.so")
    text = tmp_path / "text.so"
    text.write_text("no ELF")
    with pytest.raises(ExecutionError, match=r"^cannot load '.*text.so': .*"):
        load(text)
    with pytest.raises(ExecutionError, match=r"^'.*' is not a compiled module: .*rx_create"):
        load(_ctypes.__file__)


def test_threads_may_share_an_executable(exe):
    wrong = []

    def loop(length: int) -> None:
        x = np.ones(length, np.float32)
        wrong.extend(length for _ in range(200) if exe["sum"](x, 0) != length)

    threads = [threading.Thread(target=loop, args=(length,)) for length in (10, 1000, 37)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_running_needs_no_compiler(path):
    code = (
        "import sys; from relax_mlir.executable import load; load(sys.argv[1]);"
        "print(sorted({m.split('.')[0] for m in sys.modules} & {'torch_mlir', 'llvmlite'}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(path)], check=True, capture_output=True, text=True
    )
    assert done.stdout == "[]\n"


def test_bitcode(tmp_path, monkeypatch):
    assert bitcode_path("aarch64").read_bytes()[:4] == b"BC\xc0\xde"
    with pytest.raises(
        FileNotFoundError, match=r"for 'mips-linux', only for aarch64-android, aarch64-l"
    ):
        bitcode_path("mips")
    built = build(tmp_path, ["x86_64-linux"])
    parts = ("", "-device", *(f"-{device}" for device in DEVICES))
    assert [each.name for each in built] == [f"x86_64-linux{part}.bc" for part in parts]
    assert all(b"target-cpu" not in each.read_bytes() for each in built)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(BuildError, match="pip install ziglang"):
        build(tmp_path)
