"""Tuples as arguments, results, state of loops and in calls, interpreted and compiled."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from call_segments import segments
from levels import LEVELS

import relax_mlir
from relax_mlir.bindings import ir
from relax_mlir.diagnostics import parse_module
from relax_mlir.dialects import make_context
from relax_mlir.errors import CompileError, ExecutionError
from relax_mlir.executable import load
from relax_mlir.passes import Pipeline
from relax_mlir.pipelines import pipeline
from relax_mlir.testing.equivalence import Equivalence

N = 'tensor<?xf32, #graph.shape<["n"]>>'
M = 'tensor<?xf32, #graph.shape<["m"]>>'
PAIR, NESTED = f"tuple<{N}, index>", f"tuple<{N}, tuple<{N}, index>>"
CACHES = "tuple<tensor<4xf32>, tuple<tensor<2xi32>>>"
W = "tensor<3x4xf32>"


def made(elements: str, types: str) -> str:
    count = elements.count("%")
    return f'"graph.tuple"({elements}) {{{segments(count)}}} : ({types}) -> tuple<{types}>'


def element(value: str, index: int, type_: str, result: str) -> str:
    return f'"graph.tuple_get"({value}) {{index = {index} : i64}} : ({type_}) -> {result}'


def called(name: str, operands: str, types: str, result: str) -> str:
    attributes = f"callee = @{name}, {segments(operands.count('%'))}"
    return f'"graph.call"({operands}) {{{attributes}}} : ({types}) -> {result}'


TEXT = f"""
func.func @state(%t: {NESTED} {{graph.name = "t"}}, %k: index) -> ({NESTED}, tuple<>) {{
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %r = scf.for %i = %zero to %k step %one iter_args(%s = %t) -> {NESTED} {{
    %x = {element("%s", 0, NESTED, N)}
    %p = {element("%s", 1, NESTED, PAIR)}
    %y = {element("%p", 0, PAIR, N)}
    %j = {element("%p", 1, PAIR, "index")}
    %z = "graph.add"(%x, %y) : ({N}, {N}) -> {N}
    %l = arith.addi %j, %i : index
    %q = {made("%x, %l", f"{N}, index")}
    %u = {made("%z, %q", f"{N}, {PAIR}")}
    scf.yield %u : {NESTED}
  }}
  %e = {made("", "")}
  return %r, %e : {NESTED}, tuple<>
}}
func.func private @swap(%t: tuple<{M}, {M}>, %c: i1) -> tuple<{M}, {M}>
    attributes {{graph.noinline}} {{
  %a = {element("%t", 0, f"tuple<{M}, {M}>", M)}
  %b = {element("%t", 1, f"tuple<{M}, {M}>", M)}
  %r = scf.if %c -> tuple<{M}, {M}> {{
    %n = "graph.negative"(%a) : ({M}) -> {M}
    %0 = {made("%b, %n", f"{M}, {M}")}
    scf.yield %0 : tuple<{M}, {M}>
  }} else {{
    scf.yield %t : tuple<{M}, {M}>
  }}
  return %r : tuple<{M}, {M}>
}}
func.func @calls(%x: {N}, %y: {N}, %c: i1) -> tuple<{N}, {N}> {{
  %0 = {made("%x, %y", f"{N}, {N}")}
  %1 = {called("swap", "%0, %c", f"tuple<{N}, {N}>, i1", f"tuple<{N}, {N}>")}
  %2 = {called("swap", "%1, %c", f"tuple<{N}, {N}>, i1", f"tuple<{N}, {N}>")}
  return %2 : tuple<{N}, {N}>
}}
func.func @while_(%t: {PAIR}, %k: index) -> {PAIR} {{
  %one = arith.constant 1 : index
  %r = scf.while (%s = %t) : ({PAIR}) -> {PAIR} {{
    %j = {element("%s", 1, PAIR, "index")}
    %c = arith.cmpi slt, %j, %k : index
    scf.condition(%c) %s : {PAIR}
  }} do {{
  ^bb(%s: {PAIR}):
    %x = {element("%s", 0, PAIR, N)}
    %j = {element("%s", 1, PAIR, "index")}
    %y = "graph.add"(%x, %x) : ({N}, {N}) -> {N}
    %l = arith.addi %j, %one : index
    %u = {made("%y, %l", f"{N}, index")}
    scf.yield %u : {PAIR}
  }}
  return %r : {PAIR}
}}
func.func @update(%x: tensor<4xf32>, %t: {CACHES} {{graph.inout = 1 : i64}}) -> (index, {CACHES}) {{
  %two = arith.constant 2 : index
  %a = {element("%t", 0, CACHES, "tensor<4xf32>")}
  %p = {element("%t", 1, CACHES, "tuple<tensor<2xi32>>")}
  %b = {element("%p", 0, "tuple<tensor<2xi32>>", "tensor<2xi32>")}
  %0 = "graph.add"(%a, %x) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %1 = "graph.add"(%b, %b) : (tensor<2xi32>, tensor<2xi32>) -> tensor<2xi32>
  %q = {made("%1", "tensor<2xi32>")}
  %u = {made("%0, %q", "tensor<4xf32>, tuple<tensor<2xi32>>")}
  return %two, %u : index, {CACHES}
}}
func.func @twice(%x: {N}) -> tuple<{N}, tuple<{N}, {N}>> {{
  %0 = {made("%x, %x", f"{N}, {N}")}
  %1 = {made("%x, %0", f"{N}, tuple<{N}, {N}>")}
  return %1 : tuple<{N}, tuple<{N}, {N}>>
}}
func.func @model(%x: tensor<?x3xf32, #graph.shape<["n", 3]>>, %p: tuple<{W}, tuple<tensor<4xf32>>>)
    -> tensor<?x4xf32, #graph.shape<["n", 4]>> attributes {{graph.num_inputs = 1 : i64}} {{
  %w = {element("%p", 0, f"tuple<{W}, tuple<tensor<4xf32>>>", W)}
  %q = {element("%p", 1, f"tuple<{W}, tuple<tensor<4xf32>>>", "tuple<tensor<4xf32>>")}
  %b = {element("%q", 0, "tuple<tensor<4xf32>>", "tensor<4xf32>")}
  %0 = "graph.matmul"(%x, %w) : (tensor<?x3xf32, #graph.shape<["n", 3]>>, {W})
      -> tensor<?x4xf32, #graph.shape<["n", 4]>>
  %1 = "graph.add"(%0, %b) : (tensor<?x4xf32, #graph.shape<["n", 4]>>, tensor<4xf32>)
      -> tensor<?x4xf32, #graph.shape<["n", 4]>>
  return %1 : tensor<?x4xf32, #graph.shape<["n", 4]>>
}}
"""


@pytest.fixture(scope="module", params=["interpreted", *LEVELS])
def exe(request: pytest.FixtureRequest) -> Any:
    if request.param == "interpreted":
        return relax_mlir.interpret(TEXT)
    return relax_mlir.compile(TEXT, opt_level=request.param)


def numbers(*dims: int) -> np.ndarray:
    return np.random.default_rng(dims).integers(-9, 10, dims).astype(np.float32)


def test_loops_carry_tuples(exe: Any) -> None:
    for n in (0, 1, 3, 17):
        for k in (0, 1, 2, 7):
            x, y, j = numbers(n), numbers(n + 1)[:n], 5
            ((a, (b, c)), empty) = exe["state"]((x, (y, j)), k)
            for i in range(k):
                x, y, j = x + y, x, j + i
            np.testing.assert_array_equal(a, x)
            np.testing.assert_array_equal(b, y)
            assert (c, empty) == (j, ())
            assert type(c) is int


def test_functions_and_branches_pass_tuples(exe: Any) -> None:
    for n in (0, 1, 5):
        x, y = numbers(n), numbers(n + 1)[:n]
        for chosen, want in ((True, (-x, -y)), (False, (x, y))):
            got = exe["calls"](x, y, chosen)
            assert type(got) is tuple
            np.testing.assert_array_equal(got, want)


def test_a_condition_passes_tuples(exe: Any) -> None:
    for n, k in ((0, 3), (1, 0), (5, 4)):
        x, j = exe["while_"]([numbers(n), 1], k)
        np.testing.assert_array_equal(x, numbers(n) * 2 ** max(0, k - 1))
        assert j == max(1, k)


def test_elements_are_updated_in_place(exe: Any) -> None:
    a, b = numbers(4), np.array([3, -5], np.int32)
    old, x = a.copy(), numbers(4)
    two, (c, (d,)) = exe["update"](x, (a, (b,)))
    assert two == 2
    assert c is a
    assert d is b
    np.testing.assert_array_equal(a, old + x)
    np.testing.assert_array_equal(b, [6, -10])
    with pytest.raises(ExecutionError, match=r"'(arg1|arg2).*': shares memory with"):
        exe["update"](a, (a, (b,)))


def test_one_value_may_be_given_twice(exe: Any) -> None:
    x = numbers(7)
    a, (b, c) = exe["twice"](x)
    a[0] = b[1] = 100
    assert (c == numbers(7)).all()
    np.testing.assert_array_equal(x, numbers(7))


def test_parameters_are_tuples(exe: Any) -> None:
    w, b = numbers(3, 4), numbers(4)
    parameters = [(w, (b,))]
    if "model_params" in exe.functions:
        parameters = exe["model_params"](*parameters)
        parameters = parameters if isinstance(parameters, tuple) else (parameters,)
    for n in (0, 1, 5):
        np.testing.assert_allclose(exe["model"](numbers(n, 3), *parameters), numbers(n, 3) @ w + b)


def test_tuples_that_are_wrong_are_refused(exe: Any) -> None:
    x = numbers(3)
    for value, says in (
        (x, "argument 0: expects a tuple of 2, but got ndarray"),
        ((x,), "argument 0: expects a tuple of 2, but got 1"),
        ((x, (x, 1, 2)), "argument 0, element 1: expects a tuple of 2, but got 3"),
        ((x, (x[:2], 1)), "'t.1.0'?: dim 0 is 2|argument 0 't', element 1, element 0: dim 0 is 2"),
        ((x, ("y", 1)), "'t.1.0': "),
    ):
        with pytest.raises(ExecutionError, match=says):
            exe["state"](value, 1)
    with pytest.raises(ExecutionError, match="'state' has 2 arguments, but got 3"):
        exe["state"]((x, (x, 1)), 1, 2)


def test_bound_calls_have_tuples(tmp_path: Path) -> None:
    relax_mlir.compile(TEXT).save(tmp_path / "module.so")
    exe = load(tmp_path / "module.so")
    x, y = numbers(3), numbers(4)[:3]
    buffers = np.empty(3, np.float32), np.empty(3, np.float32)
    call = exe["state"].bind((x, (y, 1)), 1, results=[(buffers[0], (buffers[1], None)), ()])
    (a, (b, c)), _ = call.run()
    assert a is buffers[0]
    assert b is buffers[1]
    assert c == 1
    np.testing.assert_array_equal(a, x + y)
    call.set(0, (y, (y, 2)))
    assert call.values[0] == (y, (y, 2))
    (a, _), _ = call.run()
    np.testing.assert_array_equal(a, y + y)
    with pytest.raises(ExecutionError, match=r"'t\.1\.0'"):
        call.set(0, (x, (None, 2)))
    (a, _), _ = call.run()
    np.testing.assert_array_equal(a, y + y)
    with pytest.raises(ExecutionError, match="has 2 arguments, none is 2"):
        call.set(2, x)
    assert exe["state"].bind((x, (y, 1)), 0, results=[None, None]).run()[0][1][1] == 1


def test_known_elements_are_no_arguments() -> None:
    exe = relax_mlir.compile(TEXT, parameters={"t.1.0": numbers(3)})
    (a, _), _ = exe["state"]((numbers(3), (4,)), 1)
    np.testing.assert_array_equal(a, 2 * numbers(3))


def test_each_pass_keeps_what_is_computed() -> None:
    with make_context(), ir.Location.unknown():
        module = parse_module(TEXT)
        checks = Equivalence(module)
        assert set(checks.compared) == {"state", "calls", "while_", "update", "twice", "model"}
        Pipeline.parse(pipeline(opt_level=3)).run(module, after_each=checks.check)


HUGE = "".join(f"!t{i + 1} = tuple<!t{i}, !t{i}>\n" for i in range(60))


def test_a_tuple_that_nobody_can_list_is_refused() -> None:
    text = f"!t0 = f32\n{HUGE}func.func @f(%x: !t60) {{\n  return\n}}"
    with pytest.raises(CompileError, match="a tuple of more than 16384 elements"):
        relax_mlir.compile(text)
