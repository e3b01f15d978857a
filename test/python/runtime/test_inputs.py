"""Values that are no arguments: each is refused with the name of the argument and the reason."""

import ctypes
import re
from collections.abc import Callable
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from c_module import CFunction, Output, Tensor, build_module, shape

from relax_mlir.errors import ExecutionError, OutOfMemoryError, UsageError
from relax_mlir.executable import Executable, load
from relax_mlir.runtime.tensors import DLTensor

SUM = """
  double *out = rx_result(context, results, 0, RX_FLOAT, 64, 0, NULL);
  if (!out) return 1;
  *out = 0;
  for (int64_t i = 0; i < n * m; i++) *out += ((const float *)args[0].data)[i];
"""
ECHO = """
  void *out = rx_result(context, results, 0, RX_BFLOAT, 16, 2, (int64_t[]){n, m});
  if (!out) return 1;
  memcpy(out, args[0].data, (size_t)(n * m) * 2);
"""
UPDATE = """
  for (int64_t i = 0; i < n; i++) ((float *)args[0].data)[i] += 1;
  if (rx_result_alias(context, results, 0, &args[0])) return 1;
"""
EMPTY = """
  if (!rx_result(context, results, 0, RX_FLOAT, 32, 1, &n)) return 1;
"""
FUNCTIONS = [
    CFunction("sum", [Tensor("x", "f32", ["n", "m"])], [Output("f64", [])], body=SUM),
    CFunction("echo", [Tensor("x", "bf16", ["n", "m"])], [Output("bf16", ["n", "m"])], body=ECHO),
    CFunction(
        "update", [Tensor("c", "f32", ["n"], inout=True)], [Output("f32", ["n"], 0)], body=UPDATE
    ),
    CFunction("any", [Tensor("x", "f32", None)]),
    CFunction("empty", [shape("n", ["n"])], [Output("f32", ["n"])], body=EMPTY),
    CFunction("dims", [shape("s", ["n", None])]),
]


@pytest.fixture(scope="module")
def path(tmp_path_factory) -> Path:
    return build_module(FUNCTIONS, tmp_path_factory.mktemp("inputs"))


@pytest.fixture
def exe(path) -> Executable:
    return load(path)


class Exporter:
    """Exports what a function makes."""

    def __init__(self, export: Callable) -> None:
        self._export = export

    def __dlpack__(self, **options):
        return self._export(**options)


class Managed(ctypes.Structure):
    """DLManagedTensor."""

    _fields_ = (
        ("tensor", DLTensor),
        ("manager", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
    )


_new_capsule = ctypes.pythonapi.PyCapsule_New
_new_capsule.argtypes = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
_new_capsule.restype = ctypes.py_object


def exporter(
    array: np.ndarray, strides: tuple[int, ...] | None = None, name: bytes = b"dltensor", **fields
) -> Exporter:
    """Exports an array of float32, with some fields of its descriptor replaced."""
    dims = (ctypes.c_int64 * max(array.ndim, 1))(*array.shape)
    steps = None if strides is None else (ctypes.c_int64 * len(strides))(*strides)
    tensor = DLTensor(array.ctypes.data, 1, 0, array.ndim, 2, 32, 1, dims, steps, 0)
    for field, value in fields.items():
        setattr(tensor, field, value)
    managed = Managed(tensor)
    capsule = _new_capsule(ctypes.addressof(managed), name, None)
    kept = (managed, dims, steps, array, name)

    def export():  # of a time before versions: `max_version` is a TypeError
        return capsule

    export.kept = kept
    return Exporter(export)


def raising(error: BaseException) -> Exporter:
    def export(**options):
        raise error

    return Exporter(export)


ONES = np.ones((2, 3), np.float32)
CONSUMED = ONES.__dlpack__()
np.from_dlpack(
    type(
        "Once", (), {"__dlpack__": lambda s, **o: CONSUMED, "__dlpack_device__": lambda s: (1, 0)}
    )()
)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (Exporter(lambda **o: CONSUMED), "the Exporter exports no DLPack tensor, or one that was "),
        (
            Exporter(lambda **o: None),
            "the Exporter exports no DLPack tensor, or one that was taken",
        ),
        (Exporter(lambda **o: 5), "the Exporter exports no DLPack tensor, or one that was taken"),
        (exporter(ONES, name=b"dltensor2"), "the Exporter exports no DLPack tensor, or one that"),
        (raising(RuntimeError("no")), "the Exporter cannot be exported: no"),
        (raising(KeyError("no")), "the Exporter cannot be exported: 'no'"),
        (raising(BufferError("busy")), "the Exporter cannot be exported: busy"),
        (raising(TypeError("odd")), "the Exporter cannot be exported: odd"),
        (exporter(ONES, ndim=-1), "rank is -1, but 0 to 32 are supported"),
        (exporter(ONES, ndim=33), "rank is 33, but 0 to 32 are supported"),
        (exporter(ONES, ndim=1 << 30), f"rank is {1 << 30}, but 0 to 32 are supported"),
        (exporter(ONES, shape=None), "has no dims"),
        (exporter(np.empty((0, 3), np.float32), data=None), ""),
        (exporter(ONES, data=None), "data is null, but there are elements"),
        (
            exporter(ONES, device_type=2),
            "memory is of a CUDA device (DLPack type 2), but of the CPU",
        ),
        (exporter(ONES, lanes=4), "dtype is float32x4, but float32 is expected"),
        (exporter(ONES, bits=31), "dtype is float31, but float32 is expected"),
        (exporter(ONES, byte_offset=2), "a multiple of 4 is expected"),
        (exporter(ONES.T, strides=(1, 3)), ""),
        (exporter(ONES, strides=(0, 0)), ""),
        (np.ma.masked_array(ONES, ONES > 1), "an array with a value for each element is expected"),
        (np.ones((1,) * 40, np.float32), "rank is 40, but 2 is expected"),
        (ONES.astype(">f4"), "native byte order is expected, but dtype is >f4"),
        (ONES.astype(object), "an array of numbers is expected, but dtype is object"),
        (np.frombuffer(bytes(25), np.float32, 6, 1).reshape(2, 3), "a multiple of 4 is expected"),
        (ONES.tolist(), "an array (NumPy or DLPack) is expected, but got list"),
        ("x", "an array (NumPy or DLPack) is expected, but got str"),
        (memoryview(ONES), "an array (NumPy or DLPack) is expected, but got memoryview"),
        (Exporter, "an array (NumPy or DLPack) is expected, but got type"),
        (1.0, "rank is 0, but 2 is expected"),
    ],
)
def test_arguments(exe, value, text):
    if text:
        with pytest.raises(ExecutionError) as error:
            exe["sum"](value)
        assert str(error.value).startswith("argument 0 'x': ")
        assert text in str(error.value)
    else:
        assert exe["sum"](value) in (0, 6)
    assert exe["sum"](ONES) == 6


def test_an_interrupt_of_an_exporter_is_none_of_its_errors(exe):
    with pytest.raises(KeyboardInterrupt):
        exe["sum"](raising(KeyboardInterrupt()))


def test_dims_of_exporters(exe):
    negative, huge = exporter(ONES), exporter(np.empty((0, 3), np.float32))
    negative._export.kept[1][1] = -3
    huge._export.kept[1][1] = 1 << 62
    for value, text in (
        (negative, "dim 1 is -3, but a dim must not be negative"),
        (huge, f"dims [0, {1 << 62}] of 32 bits span more than 2^63 - 1 bytes"),
    ):
        with pytest.raises(ExecutionError) as error:
            exe["sum"](value)
        assert str(error.value) == f"argument 0 'x': {text}"
    # Those that were accepted are the call's own.
    value = exporter(ONES)
    call = exe["sum"].bind(value)
    value._export.kept[1][1] = 1 << 40
    assert call.run() == 6


def test_gaps_of_exported_bfloat16(exe):
    x = np.arange(12, dtype=np.float32).astype(ml_dtypes.bfloat16).reshape(3, 4)
    value = exporter(x.view(np.uint16).T, strides=(1, 4), code=4, bits=16)
    np.testing.assert_array_equal(exe["echo"](value), x.T)


@pytest.mark.parametrize("value", [None, 1.5, "2", b"2", True, -1, np.float32(2), (2,)])
@pytest.mark.parametrize("name", ["threads of a run", "threads", "capacity"])
def test_numbers(exe, name, value):
    call = exe["sum"].bind(ONES)
    uses = {
        "threads of a run": call.run,
        "threads": lambda value: setattr(exe, "threads", value),
        "capacity": exe.record,
    }
    if (name, value) != ("threads of a run", None):  # the default
        with pytest.raises(UsageError) as error:
            uses[name](value)
        expected = f"{name.split()[0]} is {value!r}; expects an integer of 0 or more"
        assert str(error.value) == expected
    assert call.run(np.int64(2)) == 6


@pytest.mark.parametrize("index", [-1, 1, 1 << 40, "0", None, 0.5])
def test_an_argument_that_there_is_not(exe, index):
    call = exe["sum"].bind(ONES)
    with pytest.raises(ExecutionError) as error:
        call.set(index, ONES)
    assert str(error.value) == f"'sum' has 1 arguments, none is {index!r}"
    assert call.run() == 6


@pytest.mark.parametrize("results", [5, np.zeros(()), "x", iter([None])])
def test_buffers_that_are_no_list(exe, results):
    with pytest.raises(ExecutionError, match=r"^results is of type \w+; expects a list: a buffer "):
        exe["sum"].bind(ONES, results=results)


def test_many_threads_and_spans(exe):
    assert exe["sum"](ONES, threads=1 << 80) == 6
    for capacity in (1 << 43, 1 << 61, 1 << 63, 1 << 80):
        with pytest.raises(OutOfMemoryError, match=f"^out of memory: recording {capacity} spans$"):
            exe.record(capacity)
        assert exe["sum"](ONES) == 6
        assert len(exe.spans()) == 0


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ((1 << 63, 1), "value 0 is 9223372036854775808, beyond 64 bits"),
        ((1, -(1 << 63) - 1), "value 1 is -9223372036854775809, beyond 64 bits"),
        ((-1, 1), "value 0 is -1, but 'n' must not be negative"),
        ((1, 2, 3), "number of values is 3, but 2 is expected"),
        ((1.0, 2), "integers are expected, but got (1.0, 2)"),
    ],
)
def test_shape_values(exe, value, text):
    with pytest.raises(ExecutionError) as error:
        exe["dims"](value)
    assert str(error.value) == f"argument 0 's': {text}"
    exe["dims"](((1 << 63) - 1, -(1 << 63)))


def read_only() -> np.ndarray:
    array = np.zeros(4, np.float32)
    array.flags.writeable = False
    return array


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (read_only(), "an array that can be written to is expected, but it is read-only"),
        (
            Exporter(lambda **options: read_only().__dlpack__(**options)),
            "an array that can be written to is expected, but it is read-only",
        ),
        (np.zeros(8, np.float32)[::2], "is written to, so a contiguous row-major array"),
        (np.float32(0), "an array (NumPy or DLPack) is expected, but got float32"),
        (0.0, "an array (NumPy or DLPack) is expected, but got float"),
        ([0.0], "an array (NumPy or DLPack) is expected, but got list"),
    ],
)
def test_what_is_written_to(exe, value, text):
    with pytest.raises(ExecutionError) as error:
        exe["update"](value)
    assert str(error.value).startswith(f"argument 0 'c': {text}")
    with pytest.raises(ExecutionError) as error:
        exe["empty"].bind((4,), results=[value])
    assert str(error.value).startswith(f"result 0: {text}")


def test_an_exported_array_is_updated(exe):
    array = np.zeros(5, np.float32)
    value = Exporter(array.__dlpack__)
    assert exe["update"](value) is value
    np.testing.assert_array_equal(array, np.ones(5))


def test_an_exported_buffer_without_elements_or_address(exe):
    value = exporter(np.empty(0, np.float32), data=None)
    call = exe["empty"].bind((0,), results=[value])
    before = exe.counters()["allocations"]
    assert call.run() is value
    assert exe.counters()["allocations"] - before <= 1  # the thread's state


def test_any_rank(exe):
    for rank in (0, 1, 32):
        exe["any"](np.ones((1,) * rank, np.float32))
    text = "argument 0 'x': rank is 33, but 0 to 32 are supported"
    with pytest.raises(ExecutionError, match=f"^{re.escape(text)}$"):
        exe["any"](np.ones((1,) * 33, np.float32))
