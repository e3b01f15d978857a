"""Arguments of exported functions that callers may leave out."""

import re

import numpy as np
import pytest
from call_segments import segments
from levels import LEVELS

import relax_mlir
from relax_mlir.errors import CompileError, ExecutionError

WAYS = [*LEVELS, "interpreted"]
X = 'tensor<?x?xf32, #graph.shape<["n", "k"]>>'
W = 'tensor<?x?xf32, #graph.shape<["k", "m"]>>'
ROW = 'tensor<?xf32, #graph.shape<["k"]>>'
S = "tensor<?xf32>"

# x @ w, or x, plus its row sums; times a scalar if there is one.
MODULE = f"""
func.func @main(%x: {X} {{graph.name = "x"}}, %w: {W} {{graph.name = "w", graph.optional}},
                %b: {ROW} {{graph.optional, graph.name = "b"}},
                %s: tensor<f32> {{graph.optional}}) -> (tensor<f32>, {X}) {{
  %has_w = "graph.is_present"(%w) : ({W}) -> i1
  %has_b = "graph.is_present"(%b) : ({ROW}) -> i1
  %has_s = "graph.is_present"(%s) : (tensor<f32>) -> i1
  %biased = scf.if %has_b -> {X} {{
    %0 = "graph.add"(%x, %b) : ({X}, {ROW}) -> {X}
    scf.yield %0 : {X}
  }} else {{
    scf.yield %x : {X}
  }}
  %total = scf.if %has_w -> tensor<f32> {{
    %0 = "graph.matmul"(%biased, %w) : ({X}, {W}) -> tensor<?x?xf32, #graph.shape<["n", "m"]>>
    %1 = "graph.sum"(%0) {{axes = array<i64: 0, 1>, keepdims = false}}
      : (tensor<?x?xf32, #graph.shape<["n", "m"]>>) -> tensor<f32>
    %2 = scf.if %has_s -> tensor<f32> {{
      %3 = "graph.sum"(%w) {{axes = array<i64: 0, 1>, keepdims = false}} : ({W}) -> tensor<f32>
      %4 = "graph.multiply"(%3, %s) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      %5 = "graph.add"(%1, %4) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      scf.yield %5 : tensor<f32>
    }} else {{
      scf.yield %1 : tensor<f32>
    }}
    scf.yield %2 : tensor<f32>
  }} else {{
    %0 = "graph.sum"(%biased) {{axes = array<i64: 0, 1>, keepdims = false}} : ({X}) -> tensor<f32>
    scf.yield %0 : tensor<f32>
  }}
  return %total, %biased : tensor<f32>, {X}
}}
"""


def expected(x, w, b, s):
    biased = x.astype(float) + (0 if b is None else b)
    if w is None:
        return biased.sum(), biased
    return (biased @ w).sum() + (0 if s is None else w.astype(float).sum() * s), biased


@pytest.fixture(scope="module")
def main() -> dict:
    """The function at every level, and interpreted."""
    built = {level: relax_mlir.compile(MODULE, opt_level=level)["main"] for level in LEVELS}
    return {**built, "interpreted": relax_mlir.interpret(MODULE)["main"]}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("n", "k", "m"), [(3, 5, 7), (0, 4, 1), (2, 0, 3), (17, 33, 65), (1, 1, 0)]
)
def test_any_may_be_left_out(main, way, n, k, m):
    random = np.random.default_rng([n, k, m])
    x, w, b = (random.standard_normal(s).astype(np.float32) for s in [(n, k), (k, m), k])
    s = np.float32(random.standard_normal())
    for mask in range(8):
        given = [value if mask >> i & 1 else None for i, value in enumerate((w, b, s))]
        want_total, want_biased = expected(x, *given)
        total, biased = main[way](x, *given)
        np.testing.assert_allclose(biased, want_biased, rtol=1e-6)
        np.testing.assert_allclose(total, want_total, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("way", WAYS)
def test_what_is_passed_is_checked(main, way):
    x = np.ones((2, 3), np.float32)
    with pytest.raises(ExecutionError, match="3"):
        main[way](x, np.ones((4, 5), np.float32), None, None)
    with pytest.raises(ExecutionError, match="w"):
        main[way](x, np.ones(4, np.float32), None, None)
    with pytest.raises(ExecutionError, match="w"):
        main[way](x, np.ones((3, 5)), None, None)
    with pytest.raises(ExecutionError, match="argument 0"):
        main[way](None, None, None, None)
    with pytest.raises(ExecutionError, match="has 4 arguments, but got 3"):
        main[way](x, None, None)


@pytest.mark.parametrize("way", [LEVELS[1], "interpreted"])
def test_by_name(main, way):
    x, b = np.ones((2, 3), np.float32), np.arange(3, dtype=np.float32)
    assert main[way](x, b=b)[0] == 12
    assert main[way](b=b, x=x)[0] == 12
    assert main[way](x=x, w=None)[0] == 6
    assert main[way].bind(x=x, b=b).run()[0] == 12
    for message, arrays, named in (
        ("'main' has no argument 'y'; it has 'x', 'w', 'b'", [x], {"y": b}),
        ("'main' is given argument 'x' twice", [x], {"x": b}),
        ("'main' is not given argument 0 'x'", [], {"b": b}),
        ("'main' has 4 arguments, but got 5", [x, None, None, None, x], {"b": b}),
    ):
        with pytest.raises(ExecutionError, match=re.escape(message)):
            main[way](*arrays, **named)


@pytest.mark.parametrize("way", LEVELS)
def test_bound_calls(main, way):
    x, b = np.ones((2, 3), np.float32), np.arange(3, dtype=np.float32)
    bound = main[way].bind(x, None, None, None)
    assert bound.run()[0] == 6
    bound.set(2, b)
    assert bound.run()[0] == 12
    assert bound.values[1:] == (None, b, None)
    bound.set(2, None)
    assert bound.run()[0] == 6
    buffers = [np.empty((), np.float32), np.empty((2, 3), np.float32)]
    main[way].bind(x, None, b, None, results=buffers).run()
    assert buffers[0] == 12


BESIDE_TUPLES = f"""
func.func @main(%t: tuple<{S}, index> {{graph.name = "t"}},
                %b: tensor<?xbf16> {{graph.optional, graph.name = "b"}},
                %u: tuple<index> {{graph.name = "u"}})
    -> tuple<i1, index> {{
  %0 = "graph.is_present"(%b) : (tensor<?xbf16>) -> i1
  %1 = "graph.tuple_get"(%u) {{index = 0 : i64}} : (tuple<index>) -> index
  %2 = "graph.tuple"(%0, %1) {{{segments(2, 1)}}} : (i1, index) -> tuple<i1, index>
  return %2 : tuple<i1, index>
}}
"""


@pytest.mark.parametrize("way", WAYS)
def test_beside_tuples(way):
    function = built(BESIDE_TUPLES, way)
    x = np.ones(3, np.float32)
    assert function((x, 4), None, (5,)) == (False, 5)
    assert function((x, 4), np.zeros(2, np.uint16), (6,)) == (True, 6)
    assert function(u=(7,), t=(x, 4)) == (False, 7)
    with pytest.raises(ExecutionError, match="argument 0"):
        function((None, 4), None, (5,))


def built(text: str, way):
    if way == "interpreted":
        return relax_mlir.interpret(text)["main"]
    return relax_mlir.compile(text, opt_level=way)["main"]


def module(body: str, more: str = "", attributes: str = "", type_: str = S) -> str:
    return (
        f'func.func @main(%x: {type_} {{graph.optional, graph.name = "x"{more}}}, %c: i1)'
        f" -> {S} {attributes} {{\n{body}\n}}"
    )


READ = f'  %0 = "graph.exp"(%x) : ({S}) -> {S}\n  return %0 : {S}'
ASKED = f"""  %p = "graph.is_present"(%x) : ({S}) -> i1
  %0 = scf.if %p -> {S} {{
    scf.yield %x : {S}
  }} else {{
    %1 = "graph.exp"(%x) : ({S}) -> {S}
    scf.yield %1 : {S}
  }}
  return %0 : {S}"""
NEGATED = f"""  %p = "graph.is_present"(%x) : ({S}) -> i1
  %0 = scf.if %c -> {S} {{
    scf.yield %x : {S}
  }} else {{
    scf.yield %x : {S}
  }}
  return %0 : {S}"""
UNBOUND = f"""  %0 = arith.constant dense<1.0> : tensor<1xf32>
  %1 = "graph.match_cast"(%0) : (tensor<1xf32>) -> {S}
  return %1 : {S}"""
M = 'tensor<?xf32, #graph.shape<["m"]>>'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (module(READ), "'graph.exp' op reads argument 0 'x', which may be absent, outside of"),
        (module(ASKED), "'graph.exp' op reads argument 0 'x', which may be absent, outside of"),
        (module(NEGATED), "'scf.yield' op reads argument 0 'x', which may be absent, outside of"),
        (module(f"  return %x : {S}"), "'func.return' op reads argument 0 'x', which may be"),
        (module(UNBOUND, ", graph.inout = 0 : i64"), "argument 0 'x', updated in place"),
        (module(UNBOUND, "", "attributes {graph.num_inputs = 0 : i64}"), "among its parameters"),
        (
            module(UNBOUND, "", 'attributes {graph.facts = ["m >= 3"]}', M),
            "states 'm >= 3', but nothing binds the symbol 'm'",
        ),
        (module(UNBOUND, type_="!graph.host_object"), "an object, which None may be"),
        (module(UNBOUND, type_="index"), "a 'index', not a tensor of known rank"),
        (module(UNBOUND, type_="tensor<*xf32>"), "not a tensor of known rank"),
        (module(UNBOUND, type_="tuple<i1>"), "has argument 0, a tuple, with 'graph.optional'"),
        (
            module(UNBOUND).replace("@main", "private @other")
            + "\nfunc.func @main() {\n  return\n}",
            "of a function that is not exported",
        ),
        (
            f"func.func @main(%x: {S} {{graph.optional}}) -> i32 {{\n"
            f'  %0 = "graph.is_present"(%x) : ({S}) -> i32\n  return %0 : i32\n}}',
            "'graph.is_present' op has a result of 'i32', but tells an 'i1'",
        ),
        (
            f'func.func @main(%x: {S}) -> i1 {{\n  %0 = "graph.is_present"(%x) : ({S}) -> i1\n'
            "  return %0 : i1\n}",
            "expects an argument of an exported function, marked 'graph.optional'",
        ),
    ],
)
@pytest.mark.parametrize("level", [0, 2])
def test_refused(text, message, level):
    with pytest.raises(CompileError, match=message):
        relax_mlir.compile(text, opt_level=level)
