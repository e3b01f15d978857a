"""Functions of Python and of C that modules call by the convention "dlpack"."""

import subprocess
import sys
import threading

import ml_dtypes
import numpy as np
import pytest
from call_segments import segments
from levels import LEVELS

import relax_mlir
from relax_mlir.codegen.elf import link_shared
from relax_mlir.errors import CompileError, ExecutionError, UsageError
from relax_mlir.runtime.build import SOURCES

N = 'tensor<?xf32, #graph.shape<["n"]>>'
TWICE = 'tensor<2x?xf32, #graph.shape<[2, "n"]>>'


def declared(name: str, library: str = "python", convention: str = "dlpack") -> str:
    return (
        f'"lib.function"() {{sym_name = "{name}", c_symbol = "test.{name}", '
        f'convention = "{convention}", libraries = ["{library}"]}} : () -> ()\n'
    )


def called(name: str, ins: int, outs: int, op: str = "call_dps_library") -> str:
    attributes = f"callee = @{name}, sym_args = #graph.shape<[]>, {segments(ins, outs)}"
    return f'"graph.{op}"', f"{{{attributes}}}"


def call_text(results: str, name: str, operands: str, types: str, op="call_dps_library") -> str:
    ins = len(operands.split(",")) if operands else 0
    outs = 0 if not results else int(results.partition(":")[2] or 1)
    op_name, attributes = called(name, ins, outs, op)
    return f"{results + ' = ' if results else ''}{op_name}({operands}) {attributes} : {types}\n"


MODULE = (
    declared("pair")
    + f'func.func @main(%x: {N} {{graph.name = "x"}}, %k: tensor<i64>)\n'
    + f"    -> ({TWICE}, {N}, tensor<i64>) {{\n"
    + f'  %0 = "graph.exp"(%x) : ({N}) -> {N}\n'
    + call_text("%1:2", "pair", "%0, %k", f"({N}, tensor<i64>) -> ({TWICE}, tensor<i64>)")
    + f'  %2 = "graph.sum"(%1#0) {{axes = array<i64: 0>, keepdims = false}} : ({TWICE}) -> {N}\n'
    + f"  return %1#0, %2, %1#1 : {TWICE}, {N}, tensor<i64>\n}}\n"
)


@pytest.fixture(scope="module")
def main() -> dict:
    """The function at every level, and interpreted."""
    built = {level: relax_mlir.compile(MODULE, opt_level=level)["main"] for level in LEVELS}
    return {**built, "interpreted": relax_mlir.interpret(MODULE)["main"]}


WAYS = [*LEVELS, "interpreted"]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("n", [0, 1, 7, 64])
def test_arrays_go_in_and_out(main, way, n):
    seen = []

    def pair(x, k):
        seen.append((x.copy(), k.dtype, k.shape, x.flags.writeable))
        return np.stack([x, -2 * x]), int(k) + 1

    relax_mlir.register_function("test.pair", pair)
    x = np.random.default_rng(n).standard_normal(n).astype(np.float32)
    both, total, after = main[way](x, 41)
    np.testing.assert_allclose(seen[0][0], np.exp(x), rtol=1e-6)
    assert seen[0][1:] == (np.int64, (), False)
    np.testing.assert_array_equal(both, np.stack([seen[0][0], -2 * seen[0][0]]))
    np.testing.assert_array_equal(total, both[0] + both[1])
    assert after == 42


class Odd(Exception):
    """What only a user's function raises."""


@pytest.mark.parametrize("kind", [Odd, ValueError, OverflowError, IndexError])
@pytest.mark.parametrize("way", WAYS)
def test_what_it_raises_is_raised(main, way, kind):
    error = kind("odd")

    def raises(x, k):
        raise error

    relax_mlir.register_function("test.pair", raises)
    with pytest.raises(kind) as found:
        main[way](np.zeros(3, np.float32), 1)
    assert found.value is error
    # Another function of the name is taken at once.
    relax_mlir.register_function("test.pair", lambda x, k: (np.stack([x, x]), k))
    assert main[way](np.zeros(3, np.float32), 5)[2] == 5


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        (lambda x, k: None, "'test.pair' returns 0 values, but 2 are expected"),
        (lambda x, k: x, "'test.pair' returns 1 values, but 2 are expected"),
        (lambda x, k: (x, k), r"result 0 of 'test.pair': is f32\[3\], but f32\[2, 3\] is expected"),
        (
            lambda x, k: (np.stack([x, x]).astype(float), k),
            r"result 0 of 'test.pair': is f64\[2, 3\], but f32\[2, 3\] is expected",
        ),
        (lambda x, k: (np.stack([x, x]), 1.5), "result 1 of 'test.pair': i64 is expected, but got"),
        (lambda x, k: ("text", k), "result 0 of 'test.pair': an array .* is expected, but got str"),
    ],
)
@pytest.mark.parametrize("way", [LEVELS[1], "interpreted"])
def test_wrong_results_are_refused(main, way, returned, message):
    relax_mlir.register_function("test.pair", returned)
    with pytest.raises(ExecutionError, match=message):
        main[way](np.zeros(3, np.float32), 1)


def test_a_name_that_nothing_has():
    text = MODULE.replace("test.pair", "test.nothing")
    for function in (relax_mlir.compile(text)["main"], relax_mlir.interpret(text)["main"]):
        with pytest.raises(ExecutionError, match=r"no Python function is called 'test\.nothing'"):
            function(np.zeros(3, np.float32), 1)


@pytest.mark.parametrize(("name", "function"), [("", min), (3, min), ("f", 3)])
def test_what_cannot_be_registered(name, function):
    with pytest.raises(UsageError, match="expects a"):
        relax_mlir.register_function(name, function)


def test_calls_within_calls(main):
    """The function may call the module again, but not make or change the call that it is in."""
    inner = main[LEVELS[1]]
    refused = []

    def nested(x, k):
        if k > 0:
            inner(x[: x.size // 2], int(k) - 1)
            for attempt in (call.run, lambda: call.set(0, np.zeros(1, np.float32))):
                with pytest.raises(ExecutionError, match="the call is not over") as error:
                    attempt()
                refused.append(error)
        return np.stack([x, x]), k

    relax_mlir.register_function("test.pair", nested)
    x = np.zeros(9, np.float32)
    call = inner.bind(x, 3)
    assert call.run()[2] == 3
    assert len(refused) == 6
    np.testing.assert_array_equal(call.run()[1], np.full(9, 2, np.float32))


def test_threads_have_errors_of_their_own(main):
    def raises(x, k):
        raise ValueError(int(k))

    relax_mlir.register_function("test.pair", raises)
    wrong = []

    def work(k):
        for _ in range(50):
            try:
                main[LEVELS[1]](np.zeros(3, np.float32), k)
            except ValueError as error:
                if error.args != (k,):
                    wrong.append(error)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


EFFECTS = (
    declared("log")
    + f"func.func @main(%x: {N}, %k: index) -> {N} {{\n"
    + "  %zero = arith.constant 0 : index\n  %one = arith.constant 1 : index\n"
    + call_text("", "log", "%x", f"({N}) -> ()", "call_library")
    + call_text("", "log", "%x", f"({N}) -> ()", "call_library")
    + f"  %r = scf.for %i = %zero to %k step %one iter_args(%a = %x) -> ({N}) {{\n"
    + f'    %0 = "graph.add"(%a, %x) : ({N}, {N}) -> {N}\n'
    + call_text("", "log", "%0", f"({N}) -> ()", "call_library")
    + f"    scf.yield %0 : {N}\n  }}\n"
    + f"  return %x : {N}\n}}\n"
)


@pytest.mark.parametrize("way", WAYS)
def test_effects_stay_and_keep_their_order(way):
    """Equal calls are not merged, those of unused results not erased."""
    seen = []
    relax_mlir.register_function("test.log", lambda x: seen.append(float(x[0])))
    if way == "interpreted":
        main = relax_mlir.interpret(EFFECTS)["main"]
    else:
        main = relax_mlir.compile(EFFECTS, opt_level=way)["main"]
    main(np.ones(2, np.float32), 3)
    assert seen == [1, 1, 2, 3, 4]


@pytest.mark.parametrize("element", ["i1", "i8", "i32", "i64", "f16", "bf16", "f32", "f64"])
def test_types_of_elements(element):
    type_ = f'tensor<?x{element}, #graph.shape<["n"]>>'
    text = (
        declared("same")
        + f"func.func @main(%x: {type_}) -> {type_} {{\n"
        + call_text("%0", "same", "%x", f"({type_}) -> {type_}")
        + f"  return %0 : {type_}\n}}\n"
    )
    relax_mlir.register_function("test.same", lambda x: x[::-1])
    names = {"i1": "bool", "bf16": "uint16"}
    dtype = np.dtype(names.get(element, element.replace("i", "int").replace("f", "float")))
    x = np.random.default_rng(3).integers(0, 2, 5).astype(dtype)
    for main in (relax_mlir.compile(text)["main"], relax_mlir.interpret(text)["main"]):
        np.testing.assert_array_equal(np.asarray(main(x)).view(x.dtype), x[::-1])


C_SOURCE = r"""
#include <relax_runtime.h>
int32_t scale(const DLTensor *args, int32_t num_args, DLTensor *results, int32_t num_results) {
  if (num_args != 1 || num_results != 1 || args->ndim != 1 || args->dtype.bits != 32) return 7;
  const float *x = args->data;
  float *y = results->data;
  for (int64_t i = 0; i < args->shape[0]; i++) y[i] = 3 * x[i];
  return args->shape[0] == 5 ? 9 : 0;
}
"""


def test_a_function_of_c(tmp_path):
    source, made, library = (tmp_path / f"scale.{suffix}" for suffix in ("c", "o", "so"))
    source.write_text(C_SOURCE)
    flags = ["-fno-sanitize=all", f"-I{SOURCES}", "-fPIC", "-c", source, "-o", made]
    subprocess.run([sys.executable, "-m", "ziglang", "cc", *flags], check=True)
    library.write_bytes(link_shared([made.read_bytes()], ["scale"]))
    text = (
        declared("scale", str(library)).replace("test.scale", "scale")
        + f"func.func @main(%x: {N}) -> {N} {{\n"
        + call_text("%0", "scale", "%x", f"({N}) -> {N}")
        + f"  return %0 : {N}\n}}\n"
    )
    for main in (relax_mlir.compile(text)["main"], relax_mlir.interpret(text)["main"]):
        for n in (0, 1, 4):
            x = np.arange(n, dtype=np.float32)
            np.testing.assert_array_equal(main(x), 3 * x)
        with pytest.raises(ExecutionError, match="'scale' failed with status 9"):
            main(np.zeros(5, np.float32))


def test_an_unknown_convention():
    with pytest.raises(CompileError, match="has convention 'odd'; known are dlpack, cblas_sgemm"):
        relax_mlir.compile(MODULE.replace('convention = "dlpack"', 'convention = "odd"'))


INPLACE = (
    declared("count")
    + declared("rows")
    + f"func.func @main(%x: {N} {{graph.inout = 0 : i64}}, %k: tensor<i64>)\n"
    + f"    -> ({N}, tensor<i64>) {{\n"
    + '  %0:2 = "graph.call_library_inplace"(%k, %x) {callee = @count, '
    + f"inplace_indices = array<i64: 1, -1>, sym_args = #graph.shape<[]>, {segments(2, 2)}}} "
    + f": (tensor<i64>, {N}) -> ({N}, tensor<i64>)\n"
    + f"  return %0#0, %0#1 : {N}, tensor<i64>\n}}\n"
    + f"func.func @both(%x: {N}) -> ({N}, {N}) {{\n"
    + f'  %0 = "graph.exp"(%x) : ({N}) -> {N}\n'
    + '  %1 = "graph.call_library_inplace"(%0) {callee = @rows, '
    + f"inplace_indices = array<i64: 0>, sym_args = #graph.shape<[]>, {segments(1, 1)}}} "
    + f": ({N}) -> {N}\n"
    + f'  %2 = "graph.subtract"(%1, %0) : ({N}, {N}) -> {N}\n'
    + f"  return %1, %2 : {N}, {N}\n}}\n"
)


@pytest.fixture(scope="module")
def inplace() -> dict:
    """The functions that update operands, at every level, and interpreted."""
    built = {level: relax_mlir.compile(INPLACE, opt_level=level) for level in LEVELS}
    return {**built, "interpreted": relax_mlir.interpret(INPLACE)}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("n", [0, 1, 7, 64])
def test_operands_are_updated(inplace, way, n):
    def count(k, x, total):
        assert not k.flags.writeable
        x += k
        total[...] = x.size

    relax_mlir.register_function("test.count", count, writes=True)
    x = np.random.default_rng(n).standard_normal(n).astype(np.float32)
    given = x.copy()
    after, total = inplace[way]["main"](given, 41)
    np.testing.assert_array_equal(after, x + 41)
    assert total == n
    np.testing.assert_array_equal(given, after)


@pytest.mark.parametrize("way", WAYS)
def test_old_contents_that_are_needed_are_copied(inplace, way):
    def rows(x):
        x *= 3

    relax_mlir.register_function("test.rows", rows, writes=True)
    x = np.random.default_rng(3).standard_normal(33).astype(np.float32)
    given = x.copy()
    after, rest = inplace[way]["both"](given)
    np.testing.assert_allclose(after, 3 * np.exp(x), rtol=1e-6)
    np.testing.assert_allclose(rest, 2 * np.exp(x), rtol=1e-6)
    np.testing.assert_array_equal(given, x)


@pytest.mark.parametrize("element", ["bf16", "f8E5M2", "ui8"])
def test_functions_of_python_get_numbers_not_bits(element):
    dtype = {"bf16": ml_dtypes.bfloat16, "f8E5M2": ml_dtypes.float8_e5m2, "ui8": np.uint8}[element]
    type_ = N.replace("f32", element)

    def rows(x, y):
        assert x.dtype == y.dtype == dtype
        y[...] = x[::-1]

    relax_mlir.register_function("test.rows", rows, writes=True)
    text = (
        declared("rows")
        + f"func.func @main(%x: {type_}) -> {type_} {{\n"
        + call_text("%0", "rows", "%x", f"({type_}) -> {type_}")
        + f"  return %0 : {type_}\n}}\n"
    )
    x = np.arange(6).astype(dtype)
    for main in (relax_mlir.compile(text, opt_level=0)["main"], relax_mlir.interpret(text)["main"]):
        assert (main(x) == x[::-1]).all()


@pytest.mark.parametrize("way", [LEVELS[1], "interpreted"])
def test_what_an_update_raises_is_raised(inplace, way):
    def count(k, x, total):
        raise OverflowError("too many")

    relax_mlir.register_function("test.count", count, writes=True)
    with pytest.raises(OverflowError, match="too many"):
        inplace[way]["main"](np.zeros(3, np.float32), 1)
