"""Compiled and interpreted functions refuse the same values, with the same words."""

import numpy as np
import pytest

import relax_mlir
from relax_mlir.errors import ExecutionError, UsageError

MODULE = """
!c = tensor<?xf32, #graph.shape<["n"]>>
func.func @main(%a: !c {graph.name = "a", graph.inout = 0 : i64},
                %b: !c {graph.name = "b", graph.inout = 1 : i64},
                %s: !graph.shape_value<["k"]> {graph.name = "s"}, %x: !c {graph.name = "x"})
    -> (!c, !c, !c) {
  %0 = "graph.exp"(%a) : (!c) -> !c
  %1 = "graph.negative"(%b) : (!c) -> !c
  %2 = "graph.add"(%0, %x) : (!c, !c) -> !c
  return %0, %1, %2 : !c, !c, !c
}
"""


@pytest.fixture(scope="module", params=["compiled", "interpreted"])
def function(request):
    make = relax_mlir.compile if request.param == "compiled" else relax_mlir.interpret
    return make(MODULE)["main"]


class Exporter:
    def __init__(self, export):
        self._export = export

    def __dlpack__(self, **options):
        return self._export()

    def __dlpack_device__(self):
        return 1, 0


def consumed() -> Exporter:
    capsule = ones().__dlpack__()
    exporter = Exporter(lambda: capsule)
    np.from_dlpack(exporter)
    return exporter


def raises():
    raise RuntimeError("no")


def ones(count: int = 4) -> np.ndarray:
    return np.ones(count, np.float32)


LONG = ones(8)
READ_ONLY = np.frombuffer(bytes(16), np.float32)
HUGE = np.broadcast_to(np.float32(1), (1 << 60,))
SHARES = "shares memory with argument {}, but an array that is written to needs memory of its own"
TABLE = [
    ({"a": consumed()}, "argument 0 'a': the Exporter exports no DLPack tensor, or one that was"),
    ({"x": consumed()}, "argument 3 'x': the Exporter exports no DLPack tensor, or one that was"),
    ({"x": ones().__dlpack__()}, "argument 3 'x': an array (NumPy or DLPack) is expected, but got"),
    ({"x": Exporter(raises)}, "argument 3 'x': the Exporter cannot be exported: no"),
    ({"x": HUGE}, f"argument 3 'x': no memory for a contiguous copy, of {1 << 62} bytes"),
    ({"a": READ_ONLY}, "argument 0 'a': an array that can be written to is expected, but it is "),
    ({"a": LONG[:4], "b": LONG[:4]}, "argument 1 'b': " + SHARES.format("0 'a'")),
    ({"a": LONG[:4], "b": LONG[2:6]}, "argument 1 'b': " + SHARES.format("0 'a'")),
    ({"b": LONG[:4], "x": LONG[3:7]}, "argument 3 'x': " + SHARES.format("1 'b'")),
    ({"s": [1 << 63]}, "argument 2 's': value 0 is 9223372036854775808, beyond 64 bits"),
    ({"s": [-(1 << 63) - 1]}, "argument 2 's': value 0 is -9223372036854775809, beyond 64 bits"),
    ({"s": [-1]}, "argument 2 's': value 0 is -1, but 'k' must not be negative"),
    ({"s": [1.0]}, "argument 2 's': integers are expected, but got [1.0]"),
    ({"s": [True]}, "argument 2 's': integers are expected, but got [True]"),
    ({"s": False}, "argument 2 's': integers are expected, but got False"),
    ({"s": "1"}, "argument 2 's': integers are expected, but got '1'"),
    ({"s": b"1"}, "argument 2 's': integers are expected, but got b'1'"),
    ({"s": np.array([1.0])}, "argument 2 's': dtype is float64, but int64 is expected"),
    ({"s": np.array([True])}, "argument 2 's': dtype is bool, but int64 is expected"),
]


def arguments(**values) -> list:
    return list(({"a": ones(), "b": ones(), "s": [2], "x": ones()} | values).values())


@pytest.mark.parametrize("way", ["call", "bind"])
@pytest.mark.parametrize(("values", "text"), TABLE, ids=range(len(TABLE)))
def test_arguments(function, way, values, text):
    use = function if way == "call" else lambda *arrays: function.bind(*arrays).run()
    with pytest.raises(ExecutionError) as error:
        use(*arguments(**values))
    assert str(error.value).startswith(text)
    np.testing.assert_array_equal(function(*arguments())[1], -ones())


@pytest.mark.parametrize("threads", ["2", 1.5, -1, True])
def test_threads(function, threads):
    call = function.bind(*arguments())
    for use in (call.run, lambda threads: function(*arguments(), threads=threads)):
        with pytest.raises(UsageError) as error:
            use(threads)
        assert str(error.value) == f"threads is {threads!r}; expects an integer of 0 or more"
    assert len(call.run(0)) == 3


@pytest.mark.parametrize(
    ("results", "text"),
    [
        (5, "results is of type int; expects a list: a buffer or None for each"),
        ("xyz", "results is of type str; expects a list: a buffer or None for each"),
        ([None], "'main' has 3 results, but got 1"),
        ([None, None, "x"], "result 2: an array (NumPy or DLPack) is expected, but got str"),
        ([None, None, READ_ONLY], "result 2: an array that can be written to is expected"),
        ([None, None, LONG[:4]], "result 2: " + SHARES.format("3 'x'")),
    ],
)
def test_buffers(function, results, text):
    with pytest.raises(ExecutionError) as error:
        function.bind(*arguments(x=LONG[2:6]), results=results)
    assert str(error.value).startswith(text)


def test_the_buffer_of_an_updated_argument_is_that_argument(function):
    a, other, out = ones(), ones(), ones()
    values = arguments(a=a)
    found = function.bind(*values, results=[a, None, out]).run()
    assert found[0] is a
    assert found[2] is out
    with pytest.raises(ExecutionError, match=r"^result 0: is an argument updated in place, so no"):
        function.bind(*values, results=[other, None, None]).run()
