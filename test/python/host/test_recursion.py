"""Graph functions that call themselves, interpreted and compiled at every level, against Python."""

import threading
from typing import Any

import numpy as np
import pytest
from call_segments import segments
from levels import LEVELS

import relax_mlir
from relax_mlir.errors import CompileError, ExecutionError

N, M, MORE, LOW, HIGH = (
    f'tensor<?xf32, #graph.shape<["{dim}"]>>'
    for dim in ("n", "m", "m + 1", "n floordiv 2", "n - n floordiv 2")
)
ONE = "tensor<1xf32>"
CONSTANTS = """
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index"""


def called(name: str, operands: str, types: str, results: str) -> str:
    counts = segments(operands.count("%"), 2 if results == "index, f64" else 1)
    return f'"graph.call"({operands}) {{callee = @{name}, {counts}}} : ({types}) -> ({results})'


def added(a: str, b: str, type_: str) -> str:
    return f'"graph.add"({a}, {b}) : ({type_}, {type_}) -> {type_}'


def half(value: str, begin: str, end: str, result: str) -> str:
    return (
        f'"graph.strided_slice"({value}) {{axes = array<i64: 0>, begin = #graph.shape<[{begin}]>,'
        f" end = #graph.shape<[{end}]>, strides = array<i64: 1>}} : ({N}) -> {result}"
    )


TEXT = f"""
func.func private @even(%x: {N}, %k: index) -> {N} {{{CONSTANTS}
  %c = arith.cmpi sle, %k, %c0 : index
  %r = scf.if %c -> {N} {{
    scf.yield %x : {N}
  }} else {{
    %j = arith.subi %k, %c1 : index
    %0 = {added("%x", "%x", N)}
    %1 = {called("odd", "%0, %j", f"{N}, index", N)}
    %2 = {added("%1", "%x", N)}
    scf.yield %2 : {N}
  }}
  return %r : {N}
}}
func.func private @odd(%x: {M}, %k: index) -> {M} {{{CONSTANTS}
  %c = arith.cmpi sle, %k, %c0 : index
  %r = scf.if %c -> {M} {{
    %0 = "graph.negative"(%x) : ({M}) -> {M}
    scf.yield %0 : {M}
  }} else {{
    %j = arith.subi %k, %c1 : index
    %1 = {called("even", "%x, %j", f"{M}, index", M)}
    scf.yield %1 : {M}
  }}
  return %r : {M}
}}
func.func @mutual(%x: {N}, %k: index) -> ({N}, {N}) {{
  %0 = {called("even", "%x, %k", f"{N}, index", N)}
  %1 = {called("odd", "%0, %k", f"{N}, index", N)}
  return %0, %1 : {N}, {N}
}}
func.func private @halves(%x: {N}) -> {ONE} {{{CONSTANTS}
  %d = tensor.dim %x, %c0 : {N}
  %c = arith.cmpi slt, %d, %c2 : index
  %r = scf.if %c -> {ONE} {{
    %0 = "graph.sum"(%x) {{axes = array<i64: 0>, keepdims = true}} : ({N}) -> {ONE}
    scf.yield %0 : {ONE}
  }} else {{
    %0 = {half("%x", "0", '"n floordiv 2"', LOW)}
    %1 = {half("%x", '"n floordiv 2"', '"n"', HIGH)}
    %2 = {called("halves", "%0", LOW, ONE)}
    %3 = {called("halves", "%1", HIGH, ONE)}
    %4 = {added("%2", "%3", ONE)}
    %5 = {added("%4", "%2", ONE)}
    scf.yield %5 : {ONE}
  }}
  return %r : {ONE}
}}
func.func @conquer(%x: {N}) -> {ONE} {{
  %0 = {called("halves", "%x", N, ONE)}
  return %0 : {ONE}
}}
func.func @grow(%x: {N}, %k: index) -> {ONE} {{{CONSTANTS}
  %start = "graph.match_cast"(%x) : ({N}) -> tensor<?xf32>
  %r = scf.for %i = %c0 to %k step %c1 iter_args(%a = %start) -> tensor<?xf32> {{
    %0 = {called("grow", "%x, %i", f"{N}, index", ONE)}
    %1 = "graph.match_cast"(%a) : (tensor<?xf32>) -> {M}
    %2 = "graph.concat"(%1, %0) {{axis = 0 : i64, {segments(2, 1)}}} : ({M}, {ONE}) -> {MORE}
    %3 = "graph.match_cast"(%2) : ({MORE}) -> tensor<?xf32>
    scf.yield %3 : tensor<?xf32>
  }}
  %4 = "graph.sum"(%r) {{axes = array<i64: 0>, keepdims = true}} : (tensor<?xf32>) -> {ONE}
  return %4 : {ONE}
}}
func.func private @count(%c: {N} {{graph.inout = 0 : i64}}, %x: {N}, %k: index) -> {N} {{{CONSTANTS}
  %s = arith.cmpi sle, %k, %c0 : index
  %r = scf.if %s -> {N} {{
    scf.yield %c : {N}
  }} else {{
    %j = arith.subi %k, %c1 : index
    %0 = {added("%c", "%x", N)}
    %1 = {called("count", "%0, %c, %j", f"{N}, {N}, index", N)}
    scf.yield %1 : {N}
  }}
  return %r : {N}
}}
func.func @update(%c: {N} {{graph.inout = 0 : i64}}, %x: {N}, %k: index) -> ({N}, {N}) {{
  %0 = {called("count", "%c, %x, %k", f"{N}, {N}, index", N)}
  return %0, %c : {N}, {N}
}}
func.func private @fib(%k: index, %f: f64) -> (index, f64) {{{CONSTANTS}
  %s = arith.cmpi slt, %k, %c2 : index
  %r:2 = scf.if %s -> (index, f64) {{
    scf.yield %k, %f : index, f64
  }} else {{
    %i = arith.subi %k, %c1 : index
    %j = arith.subi %k, %c2 : index
    %a:2 = {called("fib", "%i, %f", "index, f64", "index, f64")}
    %b:2 = {called("fib", "%j, %a#1", "index, f64", "index, f64")}
    %t = arith.addi %a#0, %b#0 : index
    %g = arith.addf %b#1, %f : f64
    scf.yield %t, %g : index, f64
  }}
  return %r#0, %r#1 : index, f64
}}
func.func @fibonacci(%k: index, %f: f64) -> (index, f64) {{
  %a:2 = {called("fib", "%k, %f", "index, f64", "index, f64")}
  return %a#0, %a#1 : index, f64
}}
func.func private @not_five(%x: {N}, %y: {M}) -> {ONE}
    attributes {{graph.facts = ["n != 5"]}} {{{CONSTANTS}
  %d = tensor.dim %x, %c0 : {N}
  %c = arith.cmpi slt, %d, %c2 : index
  %r = scf.if %c -> {ONE} {{
    %0 = "graph.sum"(%x) {{axes = array<i64: 0>, keepdims = true}} : ({N}) -> {ONE}
    scf.yield %0 : {ONE}
  }} else {{
    %s = "graph.add"(%x, %y) : ({N}, {M}) -> {N}
    %0 = {half("%s", "0", '"n floordiv 2"', LOW)}
    %1 = {half("%s", '"n floordiv 2"', '"n"', HIGH)}
    %2 = {called("not_five", "%0, %1", f"{LOW}, {HIGH}", ONE)}
    scf.yield %2 : {ONE}
  }}
  return %r : {ONE}
}}
func.func @facts(%x: {N}, %y: {N}) -> {ONE} {{
  %0 = {called("not_five", "%x, %y", f"{N}, {N}", ONE)}
  return %0 : {ONE}
}}
"""


@pytest.fixture(scope="module", params=["interpreted", *LEVELS])
def exe(request: pytest.FixtureRequest) -> Any:
    if request.param == "interpreted":
        return relax_mlir.interpret(TEXT)
    return relax_mlir.compile(TEXT, opt_level=request.param)


def numbers(n: int) -> np.ndarray:
    return np.random.default_rng(n).integers(-3, 4, n).astype(np.float32)


def even(x: np.ndarray, k: int) -> np.ndarray:
    return x if k <= 0 else odd(x + x, k - 1) + x


def odd(x: np.ndarray, k: int) -> np.ndarray:
    return -x if k <= 0 else even(x, k - 1)


def halves(x: np.ndarray) -> Any:
    half = len(x) // 2
    return x.sum() if len(x) < 2 else 2 * halves(x[:half]) + halves(x[half:])


def grown(x: np.ndarray, k: int) -> Any:
    return x.sum() + sum(grown(x, i) for i in range(k))


def fib_calls(k: int, f: float) -> float:
    return f if k < 2 else fib_calls(k - 2, fib_calls(k - 1, f)) + f


def test_functions_call_each_other(exe: Any) -> None:
    for n in (0, 1, 3, 17):
        for k in (0, 1, 2, 7, 20):
            x = numbers(n)
            first = even(x, k)
            for got, want in zip(exe["mutual"](x, k), (first, odd(first, k)), strict=True):
                np.testing.assert_array_equal(got, want)


def test_sizes_change_from_call_to_call(exe: Any) -> None:
    for n in (0, 1, 2, 3, 7, 8, 9, 31):
        x = numbers(n)
        np.testing.assert_array_equal(exe["conquer"](x), [halves(x)])


def test_what_loops_carry_is_that_of_their_call(exe: Any) -> None:
    for n in (0, 1, 5):
        for k in range(5):
            x = numbers(n)
            np.testing.assert_array_equal(exe["grow"](x, k), [grown(x, k)])


def test_arguments_are_updated_at_any_depth(exe: Any) -> None:
    for n in (0, 1, 5):
        for k in (0, 1, 2, 9):
            c, x = numbers(n), numbers(n + 1)[:n]
            old, a, b = c.copy(), c.copy(), x
            for _ in range(k):
                a, b = a + b, a
            got = exe["update"](c, x, k)
            assert got[0] is c
            np.testing.assert_array_equal(c, a)
            np.testing.assert_array_equal(got[1], old)


def test_scalars_are_returned(exe: Any) -> None:
    for k, want in enumerate([0, 1, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144]):
        assert exe["fibonacci"](k, 1.0)[0] == want
    assert exe["fibonacci"](4, 1.0) == (3, fib_calls(4, 1.0))


def test_facts_hold_at_each_call(exe: Any) -> None:
    for n in (0, 1, 2, 4, 8):
        x, y = numbers(n), numbers(n)
        total = x if n < 2 else x + y
        while len(total) > 1:
            low, high = np.split(total, 2)
            total = low if len(low) < 2 else low + high
        np.testing.assert_array_equal(exe["facts"](x, y), [total.sum()])
    for n, says in ((5, "n != 5, but n = 5"), (7, "m == n|m = 4"), (10, "!= 5")):
        with pytest.raises(ExecutionError, match=says):
            exe["facts"](numbers(n), numbers(n))


def test_calls_that_are_nested_too_deep_end_with_an_error(exe: Any) -> None:
    x = numbers(3)
    exe["mutual"](np.zeros(3, np.float32), 1000)
    for k in (1001, 2**40):
        with pytest.raises(ExecutionError, match=r"^-:\d+:\d+: error: a call of '@\w+' is nested "):
            exe["mutual"](x, k)
    np.testing.assert_array_equal(exe["mutual"](x, 3)[0], even(x, 3))


def test_a_small_stack_is_enough() -> None:
    exe, outcome = relax_mlir.compile(TEXT, opt_level=2), []

    def run() -> None:
        try:
            exe["mutual"](numbers(3), 1000)
        except ExecutionError as error:
            outcome.append(str(error))
        outcome.append(exe["mutual"](numbers(3), 2)[0])

    before = threading.stack_size(1 << 16)
    thread = threading.Thread(target=run)
    thread.start()
    threading.stack_size(before)
    thread.join()
    assert "and the stack of the thread is used up" in outcome[0]
    np.testing.assert_array_equal(outcome[1], even(numbers(3), 2))


def test_calls_of_one_group_share_sites() -> None:
    exe = relax_mlir.compile(TEXT, opt_level=0)
    sites = exe.metadata["functions"]["mutual"]["sites"]
    assert [site["kernel"] for site in sites] == ["add", "add", "negative"] * 2
    exe.record(100)
    exe["mutual"](numbers(3), 2)
    assert sorted(set(exe.spans()["site"].tolist())) == [0, 1, 3, 4, 5]
    exe.record(0)


ENDLESS = f"""
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {{
  %0 = "graph.call"(%x) {{callee = @main, {segments(1, 1)}}} : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}}"""


@pytest.mark.parametrize(
    ("target", "level"), [*(("native", level) for level in LEVELS), ("wasm32", 2)]
)
def test_endless_recursion_ends(target: str, level: int) -> None:
    main = relax_mlir.compile(ENDLESS, target=target, opt_level=level)["main"]
    says = r"^-:3:8: error: a call of '@main_1' is nested 1000 calls deep"
    for _ in range(2):
        with pytest.raises(ExecutionError, match=says):
            main(np.zeros(4, np.float32))


UNKNOWN = f"""
func.func private @f(%x: {N}) -> tensor<?xf32> {{
  %0 = "graph.match_cast"(%x) : ({N}) -> tensor<?xf32>
  %1 = "graph.call"(%x) {{callee = @f, {segments(1, 1)}}} : ({N}) -> tensor<?xf32>
  return %1 : tensor<?xf32>
}}
func.func @main(%x: {N}) -> tensor<?xf32> {{
  %0 = "graph.call"(%x) {{callee = @f, {segments(1, 1)}}} : ({N}) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}}"""


@pytest.mark.parametrize("level", LEVELS)
def test_recursion_without_annotation_is_refused(level: int) -> None:
    with pytest.raises(CompileError, match=r":4:8: error: 'graph.call' op returns .* not inlined"):
        relax_mlir.compile(UNKNOWN, opt_level=level)
