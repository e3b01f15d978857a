"""Functions as values, interpreted and compiled at every level."""

import numpy as np
import pytest
from call_segments import segments
from levels import LEVELS

import relax_mlir
from relax_mlir.errors import CompileError, ExecutionError

X = 'tensor<?xf32, #graph.shape<["n"]>>'
K = 'tensor<?xf32, #graph.shape<["k"]>>'
F = f"({X}) -> {X}"
G = f"({K}) -> {K}"


def make(name: str, callee: str, captured: str = "", types: str = "", type_: str = F) -> str:
    count = len(captured.split(",")) if captured else 0
    attributes = f"{{callee = @{callee}, {segments(count)}}}"
    return f'{name} = "graph.make_closure"({captured}) {attributes} : ({types}) -> ({type_})\n'


def invoke(name: str, function: str, value: str, kind: str = X) -> str:
    return (
        f'{name} = "graph.invoke_closure"({function}, {value}) {{{segments(2)}}} '
        f": (({kind}) -> {kind}, {kind}) -> {kind}\n"
    )


def call(name: str, callee: str, operands: str, types: str, result: str = X) -> str:
    count = len(operands.split(","))
    attributes = f"{{callee = @{callee}, {segments(count)}}}"
    return f'{name} = "graph.call"({operands}) {attributes} : ({types}) -> ({result})\n'


FUNCTIONS = f"""
func.func private @scaled(%w: {K}, %x: {K}) -> {K} {{
  %0 = "graph.multiply"(%w, %x) : ({K}, {K}) -> {K}
  return %0 : {K}
}}
func.func private @shifted(%w: tensor<f32>, %x: {K}) -> {K} {{
  %0 = "graph.add"(%w, %x) : (tensor<f32>, {K}) -> {K}
  return %0 : {K}
}}
func.func private @exp(%x: {K}) -> {K} {{
  %0 = "graph.exp"(%x) : ({K}) -> {K}
  return %0 : {K}
}}
func.func private @composed(%f: {G}, %g: {G}, %x: {K}) -> {K} attributes {{graph.noinline}} {{
  {invoke("%0", "%g", "%x", K)}
  {invoke("%1", "%f", "%0", K)}
  return %1 : {K}
}}
func.func private @curried(%w: tensor<f32>) -> ({F}) {{
  {make("%f", "shifted", "%w", "tensor<f32>")}
  return %f : {F}
}}
func.func private @repeated(%f: {F}, %k: index, %x: {X}) -> {X} {{
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %c = arith.cmpi sgt, %k, %zero : index
  %r = scf.if %c -> ({X}) {{
    %rest = arith.subi %k, %one : index
    {invoke("%0", "%f", "%x")}
    {call("%1", "repeated", "%f, %rest, %0", f"{F}, index, {X}")}
    scf.yield %1 : {X}
  }} else {{
    scf.yield %x : {X}
  }}
  return %r : {X}
}}
"""
BODIES = {
    "recursion": (
        make("%f", "scaled", "%w", X) + call("%0", "repeated", "%f, %k, %x", f"{F}, index, {X}"),
        lambda x, w, s, k, c: w**k * x,
    ),
    "composition": (
        make("%f", "scaled", "%w", X)
        + make("%g", "shifted", "%s", "tensor<f32>")
        + make("%h", "composed", "%f, %g", f"{F}, {F}")
        + make("%i", "composed", "%h, %h", f"{F}, {F}")
        + call("%0", "repeated", "%i, %k, %x", f"{F}, index, {X}"),
        lambda x, w, s, k, c: _repeated(lambda v: w * (s + w * (s + v)), k, x),
    ),
    "currying": (
        call("%f", "curried", "%s", "tensor<f32>", F) + invoke("%0", "%f", "%x"),
        lambda x, w, s, k, c: s + x,
    ),
    "branches": (
        make("%f", "exp")
        + f"%h = scf.if %c -> ({F}) {{\n"
        + make("%g", "scaled", "%w", X)
        + f"scf.yield %g : {F}\n}} else {{\n"
        + f"%i = scf.if %c -> ({F}) {{ scf.yield %f : {F} }} else {{\n"
        + call("%j", "curried", "%s", "tensor<f32>", F)
        + f"scf.yield %j : {F}\n}}\n scf.yield %i : {F}\n}}\n"
        + call("%0", "repeated", "%h, %k, %x", f"{F}, index, {X}"),
        lambda x, w, s, k, c: w**k * x if c else x + k * s,
    ),
    "tuples": (
        make("%f", "scaled", "%w", X)
        + make("%g", "shifted", "%s", "tensor<f32>")
        + f'%t = "graph.tuple"(%f, %g) {{{segments(2)}}} : ({F}, {F}) -> tuple<{F}, {F}>\n'
        + f'%h = "graph.tuple_get"(%t) {{index = 1 : i64}} : (tuple<{F}, {F}>) -> ({F})\n'
        + invoke("%0", "%h", "%x"),
        lambda x, w, s, k, c: s + x,
    ),
}


def _repeated(function, count, value):
    for _ in range(count):
        value = function(value)
    return value


def module(body: str) -> str:
    signature = f"%x: {X}, %w: {X}, %s: tensor<f32>, %k: index, %c: i1"
    return f"{FUNCTIONS}func.func @main({signature}) -> {X} {{\n{body}  return %0 : {X}\n}}\n"


@pytest.mark.parametrize("way", [*LEVELS, "interpreted"])
@pytest.mark.parametrize("name", BODIES)
def test_functions_are_called(name, way):
    body, reference = BODIES[name]
    if way == "interpreted":
        main = relax_mlir.interpret(module(body))["main"]
    else:
        main = relax_mlir.compile(module(body), opt_level=way)["main"]
    random = np.random.default_rng(7)
    for n, k, c in ((5, 3, True), (0, 2, False), (1, 0, True), (33, 4, False)):
        x, w = random.uniform(0.5, 1.5, (2, n)).astype(np.float32)
        s = np.float32(0.75)
        expected = reference(x.astype(float), w.astype(float), float(s), k, c)
        np.testing.assert_allclose(main(x, w, s, k, c), expected, rtol=1e-5)


def test_captured_dims_are_checked():
    """A captured value of other dims than the operand is refused as at any call."""
    body = make("%f", "scaled", "%w", K) + call("%0", "repeated", "%f, %k, %x", f"{F}, index, {X}")
    text = module(body).replace(f"%w: {X}, %s", f"%w: {K}, %s")
    x, w = np.ones(3, np.float32), np.ones(4, np.float32)
    for level in LEVELS:
        main = relax_mlir.compile(text, opt_level=level)["main"]
        np.testing.assert_array_equal(main(x, x, np.float32(1), 2, True), x)
        with pytest.raises(ExecutionError, match=r"3.* 4|4.* 3"):
            main(x, w, np.float32(1), 2, True)


def test_a_call_that_does_not_fit():
    called = invoke("%0", "%f", "%y").replace(f": ({F}, {X})", f": ({F}, tensor<3x3xf32>)")
    text = module(make("%f", "scaled", "%w", X) + called)
    text = text.replace(f"%w: {X}, %s", f"%w: {X}, %y: tensor<3x3xf32>, %s")
    with pytest.raises(CompileError, match="rank"):
        relax_mlir.compile(text)


def test_functions_in_functions_are_bounded():
    """Each of 1200 functions captures the one before."""
    body = make("%f0", "exp") + "".join(
        make(f"%f{i + 1}", "called", f"%f{i}", F) for i in range(1200)
    )
    text = f"""{FUNCTIONS}
func.func private @called(%f: {F}, %x: {X}) -> {X} {{
  {invoke("%0", "%f", "%x")}
  return %0 : {X}
}}
func.func @main(%x: {X}) -> {X} {{
  {body}
  {invoke("%0", "%f1200", "%x")}
  return %0 : {X}
}}"""
    with pytest.raises(CompileError, match="a function of more than 500 functions"):
        relax_mlir.compile(text)


def test_a_function_is_cast_many_times():
    casts = "".join(
        f'%f{i + 1} = "graph.match_cast"(%f{i}) : (!graph.callable) -> !graph.callable\n'
        for i in range(1200)
    )
    text = f"""{FUNCTIONS}
func.func @main(%x: {X}) -> {X} {{
  {make("%f0", "exp", type_="!graph.callable")}
  {casts}
  {invoke("%0", "%f1200", "%x").replace(f"({F}, ", "(!graph.callable, ")}
  return %0 : {X}
}}"""
    x = np.linspace(-1, 1, 5, dtype=np.float32)
    np.testing.assert_allclose(relax_mlir.compile(text)["main"](x), np.exp(x), rtol=1e-6)
