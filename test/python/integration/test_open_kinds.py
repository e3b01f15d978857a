"""Open annotations, interpreted and compiled: any tuple, any function, tensors of any element."""

from typing import Any

import numpy as np
import pytest
from call_segments import segments
from levels import LEVELS

import relax_mlir
from relax_mlir.errors import CompileError, ExecutionError

X = 'tensor<?xf32, #graph.shape<["n"]>>'
K = 'tensor<?xf32, #graph.shape<["k"]>>'
OBJECT, CALLABLE, TUPLE = "!graph.object", "!graph.callable", "!graph.any_tuple"
ANY, ANY_RANK = "tensor<?x!graph.any_element>", "tensor<*x!graph.any_element>"
F = f"({K}) -> {K}"
PAIR, OBJECTS = f"tuple<{X}, index>", f"tuple<{OBJECT}, {OBJECT}>"
LOOP = "%zero = arith.constant 0 : index\n%one = arith.constant 1 : index\n"
WAYS = [*LEVELS, "interpreted"]


def cast(name: str, value: str, source: str, target: str) -> str:
    return f'{name} = "graph.match_cast"({value}) : ({source}) -> ({target})\n'


def tuple_of(name: str, values: str, types: str, result: str = "") -> str:
    count = segments(len(values.split(",")))
    return f'{name} = "graph.tuple"({values}) {{{count}}} : ({types}) -> {result or types}\n'


def get(name: str, value: str, index: int, source: str, target: str) -> str:
    return (
        f'{name} = "graph.tuple_get"({value}) {{index = {index} : i64}} : ({source}) -> {target}\n'
    )


def make(name: str, callee: str, captured: str = "", types: str = "", type_: str = F) -> str:
    count = len(captured.split(",")) if captured else 0
    attributes = f"{{callee = @{callee}, {segments(count)}}}"
    return f'{name} = "graph.make_closure"({captured}) {attributes} : ({types}) -> ({type_})\n'


def invoke(name: str, values: str, types: str, result: str) -> str:
    count = segments(len(values.split(",")))
    return f'{name} = "graph.invoke_closure"({values}) {{{count}}} : ({types}) -> ({result})\n'


def call(name: str, callee: str, operands: str, types: str, result: str = X) -> str:
    attributes = f"{{callee = @{callee}, {segments(len(operands.split(',')))}}}"
    return f'{name} = "graph.call"({operands}) {attributes} : ({types}) -> ({result})\n'


FUNCTIONS = f"""
func.func private @exp(%x: {K}) -> {K} {{
  %0 = "graph.exp"(%x) : ({K}) -> {K}
  return %0 : {K}
}}
func.func private @scaled(%w: {K}, %x: {K}) -> {K} {{
  %0 = "graph.multiply"(%w, %x) : ({K}, {K}) -> {K}
  return %0 : {K}
}}
func.func private @joined(%x: {K}, %y: {K}) -> {K} {{
  %0 = "graph.add"(%x, %y) : ({K}, {K}) -> {K}
  return %0 : {K}
}}
func.func private @swapped(%t: {TUPLE}) -> {TUPLE} {{
  {cast("%p", "%t", TUPLE, OBJECTS)}
  {get("%a", "%p", 0, OBJECTS, OBJECT)}
  {get("%b", "%t", 1, TUPLE, OBJECT)}
  {tuple_of("%0", "%b, %a", f"{OBJECT}, {OBJECT}", OBJECTS)}
  {cast("%1", "%0", OBJECTS, TUPLE)}
  return %1 : {TUPLE}
}}
func.func private @applied(%f: {CALLABLE}, %x: {OBJECT}) -> {OBJECT}
    attributes {{graph.noinline}} {{
  {invoke("%0", "%f, %x", f"{CALLABLE}, {OBJECT}", OBJECT)}
  return %0 : {OBJECT}
}}
func.func private @chosen(%w: {K}, %c: i1) -> {CALLABLE} {{
  {make("%f", "exp", type_=CALLABLE)}
  {make("%g", "scaled", "%w", K, type_=CALLABLE)}
  %0 = scf.if %c -> ({CALLABLE}) {{
    scf.yield %f : {CALLABLE}
  }} else {{
    scf.yield %g : {CALLABLE}
  }}
  return %0 : {CALLABLE}
}}
func.func private @repeated(%f: {CALLABLE}, %k: index, %x: {K}) -> {K} {{
  {LOOP}
  %c = arith.cmpi sgt, %k, %zero : index
  %r = scf.if %c -> ({K}) {{
    %rest = arith.subi %k, %one : index
    {invoke("%o", "%f, %x", f"{CALLABLE}, {K}", OBJECT)}
    {cast("%0", "%o", OBJECT, K)}
    {call("%1", "repeated", "%f, %rest, %0", f"{CALLABLE}, index, {K}", K)}
    scf.yield %1 : {K}
  }} else {{
    scf.yield %x : {K}
  }}
  return %r : {K}
}}
func.func private @second(%t: tuple<tensor<?x!graph.any_element>, {K}>) -> {K} {{
  {get("%0", "%t", 1, f"tuple<tensor<?x!graph.any_element>, {K}>", K)}
  return %0 : {K}
}}
func.func private @same(%x: {ANY_RANK}) -> {ANY_RANK} {{
  return %x : {ANY_RANK}
}}
func.func private @twice(%x: {ANY}) -> {OBJECT} {{
  {cast("%f", "%x", ANY, "tensor<?xf32>")}
  %0 = "graph.add"(%f, %f) : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
  {cast("%1", "%0", "tensor<?xf32>", OBJECT)}
  return %1 : {OBJECT}
}}
"""
BODIES = {
    "tuple": (
        tuple_of("%t", "%x, %k", f"{X}, index", PAIR)
        + call("%s", "swapped", "%t", PAIR, TUPLE)
        + cast("%r", "%s", TUPLE, f"tuple<index, {X}>")
        + get("%0", "%r", 1, f"tuple<index, {X}>", X),
        lambda x, w, k, c: x,
    ),
    "tuple in a branch": (
        tuple_of("%t", "%x, %k", f"{X}, index", PAIR)
        + tuple_of("%u", "%w, %k", f"{X}, index", PAIR)
        + f"%b = scf.if %c -> {TUPLE} {{\n"
        + cast("%d", "%t", PAIR, TUPLE)
        + f"scf.yield %d : {TUPLE}\n}} else {{\n"
        + cast("%e", "%u", PAIR, TUPLE)
        + f"scf.yield %e : {TUPLE}\n}}\n"
        + get("%g", "%b", 0, TUPLE, OBJECT)
        + cast("%0", "%g", OBJECT, X),
        lambda x, w, k, c: x if c else w,
    ),
    "tuple in a loop": (
        tuple_of("%t", "%x, %w", f"{X}, {X}", f"tuple<{X}, {X}>")
        + cast("%i", "%t", f"tuple<{X}, {X}>", TUPLE)
        + f"{LOOP}%l = scf.for %j = %zero to %k step %one iter_args(%s = %i) -> {TUPLE} {{\n"
        + call("%n", "swapped", "%s", TUPLE, TUPLE)
        + f"scf.yield %n : {TUPLE}\n}}\n"
        + cast("%r", "%l", TUPLE, f"tuple<{X}, tensor<?xf32>>")
        + get("%0", "%r", 0, f"tuple<{X}, tensor<?xf32>>", X),
        lambda x, w, k, c: w if k % 2 else x,
    ),
    "tuple of other names of dims": (
        tuple_of("%t", "%x, %w", f"{X}, {X}", f"tuple<{X}, {X}>")
        + call("%0", "second", "%t", f"tuple<{X}, {X}>", X),
        lambda x, w, k, c: w,
    ),
    "callable": (
        make("%f", "scaled", "%w", X, CALLABLE)
        + call("%o", "applied", "%f, %x", f"{CALLABLE}, {X}", OBJECT)
        + cast("%0", "%o", OBJECT, X),
        lambda x, w, k, c: w * x,
    ),
    "callable that a branch selects": (
        call("%f", "chosen", "%w, %c", f"{X}, i1", CALLABLE)
        + call("%o", "applied", "%f, %x", f"{CALLABLE}, {X}", OBJECT)
        + call("%p", "applied", "%f, %o", f"{CALLABLE}, {OBJECT}", OBJECT)
        + cast("%0", "%p", OBJECT, X),
        lambda x, w, k, c: np.exp(np.exp(x)) if c else w * w * x,
    ),
    "callables that a loop exchanges": (
        make("%f", "exp", type_=CALLABLE)
        + make("%g", "scaled", "%w", X, CALLABLE)
        + f"{LOOP}%l:3 = scf.for %j = %zero to %k step %one "
        + f"iter_args(%p = %f, %q = %g, %s = %x) -> ({CALLABLE}, {CALLABLE}, {X}) {{\n"
        + call("%o", "applied", "%p, %s", f"{CALLABLE}, {X}", OBJECT)
        + cast("%n", "%o", OBJECT, X)
        + f"scf.yield %q, %p, %n : {CALLABLE}, {CALLABLE}, {X}\n}}\n"
        + cast("%0", "%l#2", X, X),
        lambda x, w, k, c: _exchanged(x, w, k),
    ),
    "callable in a while loop": (
        make("%f", "exp", type_=CALLABLE)
        + f"{LOOP}%l:3 = scf.while (%p = %f, %s = %x, %j = %zero) "
        + f": ({CALLABLE}, {X}, index) -> ({CALLABLE}, {X}, index) {{\n"
        + "%m = arith.cmpi slt, %j, %k : index\n"
        + f"scf.condition(%m) %p, %s, %j : {CALLABLE}, {X}, index\n}} do {{\n"
        + f"^body(%p: {CALLABLE}, %s: {X}, %j: index):\n"
        + invoke("%o", "%p, %s", f"{CALLABLE}, {X}", OBJECT)
        + cast("%n", "%o", OBJECT, X)
        + call("%g", "chosen", "%w, %c", f"{X}, i1", CALLABLE)
        + "%i = arith.addi %j, %one : index\n"
        + f"scf.yield %g, %n, %i : {CALLABLE}, {X}, index\n}}\n"
        + cast("%0", "%l#1", X, X),
        lambda x, w, k, c: _repeated(x, w, k, c),
    ),
    "callable in a recursion": (
        make("%f", "scaled", "%w", X, CALLABLE)
        + call("%0", "repeated", "%f, %k, %x", f"{CALLABLE}, index, {X}"),
        lambda x, w, k, c: w**k * x,
    ),
    "callable as an object in a tuple": (
        make("%f", "exp")
        + cast("%c0", "%f", F, CALLABLE)
        + cast("%c1", "%c0", CALLABLE, OBJECT)
        + tuple_of("%t", "%c1, %x", f"{OBJECT}, {X}", f"tuple<{OBJECT}, {X}>")
        + cast("%u", "%t", f"tuple<{OBJECT}, {X}>", TUPLE)
        + get("%g", "%u", 0, TUPLE, OBJECT)
        + cast("%h", "%g", OBJECT, CALLABLE)
        + cast("%i", "%h", CALLABLE, F)
        + invoke("%0", "%i, %x", f"{F}, {X}", X),
        lambda x, w, k, c: np.exp(x),
    ),
    "function that takes a callable": (
        make("%f", "exp", type_=CALLABLE)
        + make("%a", "applied", "%f", CALLABLE, CALLABLE)
        + invoke("%o", "%a, %x", f"{CALLABLE}, {X}", OBJECT)
        + cast("%0", "%o", OBJECT, X),
        lambda x, w, k, c: np.exp(x),
    ),
    "elements": (
        cast("%a", "%x", X, ANY)
        + call("%s", "same", "%a", ANY, ANY_RANK)
        + call("%i", "same", "%k0", "tensor<3xi32>", ANY_RANK)
        + cast("%i0", "%i", ANY_RANK, "tensor<3xi32>")
        + cast("%b", "%s", ANY_RANK, "tensor<?xf32>")
        + call("%o", "twice", "%b", "tensor<?xf32>", OBJECT)
        + cast("%0", "%o", OBJECT, X),
        lambda x, w, k, c: 2 * x,
    ),
    "elements in a loop": (
        cast("%a", "%x", X, ANY_RANK)
        + f"{LOOP}%l = scf.for %j = %zero to %k step %one iter_args(%s = %a) -> {ANY_RANK} {{\n"
        + cast("%r", "%s", ANY_RANK, ANY)
        + call("%n", "twice", "%r", ANY, OBJECT)
        + cast("%m", "%n", OBJECT, ANY_RANK)
        + f"scf.yield %m : {ANY_RANK}\n}}\n"
        + cast("%0", "%l", ANY_RANK, X),
        lambda x, w, k, c: 2.0**k * x,
    ),
}


def _exchanged(x: np.ndarray, w: np.ndarray, k: int) -> np.ndarray:
    for round in range(k):
        x = w * x if round % 2 else np.exp(x)
    return x


def _repeated(x: np.ndarray, w: np.ndarray, k: int, c: bool) -> np.ndarray:
    for round in range(k):
        x = w * x if round and not c else np.exp(x)
    return x


def module(body: str, result: str = X) -> str:
    signature = f"%x: {X}, %w: {X}, %k: index, %c: i1, %k0: tensor<3xi32>"
    main = f"func.func @main({signature}) -> {result} {{\n{body}  return %0 : {result}\n}}\n"
    return FUNCTIONS + main


def built(way: Any, text: str) -> Any:
    return (
        relax_mlir.interpret(text)
        if way == "interpreted"
        else relax_mlir.compile(text, opt_level=way)
    )


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", BODIES)
def test_what_open_values_hold(name: str, way: Any) -> None:
    body, reference = BODIES[name]
    main = built(way, module(body))["main"]
    random = np.random.default_rng(3)
    for n, k, c in ((5, 2, True), (0, 2, False), (1, 0, True), (33, 2, False)):
        x, w = random.uniform(0.5, 1.5, (2, n)).astype(np.float32)
        expected = reference(x.astype(float), w.astype(float), k, c)
        np.testing.assert_allclose(main(x, w, k, c, np.zeros(3, np.int32)), expected, rtol=1e-5)


WRONG = {
    "arity": (
        tuple_of("%t", "%x, %k", f"{X}, index", PAIR)
        + cast("%a", "%t", PAIR, TUPLE)
        + cast("%b", "%a", TUPLE, f"tuple<{X}, index, index>")
        + get("%0", "%b", 0, f"tuple<{X}, index, index>", X),
        "'graph.match_cast' op asserts 'tuple<.*, index, index>', ",
    ),
    "element of a tuple": (
        tuple_of("%t", "%x, %k", f"{X}, index", PAIR)
        + cast("%a", "%t", PAIR, OBJECT)
        + cast("%b", "%a", OBJECT, "tuple<tensor<?xf64>, index>")
        + get("%e", "%b", 0, "tuple<tensor<?xf64>, index>", "tensor<?xf64>")
        + cast("%0", "%x", X, X),
        "'graph.match_cast' op asserts '",
    ),
    "tuple that is a tensor": (
        cast("%a", "%x", X, OBJECT) + cast("%b", "%a", OBJECT, TUPLE) + cast("%0", "%x", X, X),
        "'graph.match_cast' op asserts '!graph.any_tuple', ",
    ),
    "index beyond a tuple": (
        tuple_of("%t", "%x, %k", f"{X}, index", PAIR)
        + cast("%a", "%t", PAIR, TUPLE)
        + get("%e", "%a", 2, TUPLE, OBJECT)
        + cast("%0", "%e", OBJECT, X),
        "'graph.tuple_get' op (has index 2, but the tuple has 2|tuple index out of range)",
    ),
    "function that is a tensor": (
        cast("%a", "%x", X, OBJECT) + cast("%b", "%a", OBJECT, CALLABLE) + cast("%0", "%x", X, X),
        "'graph.match_cast' op asserts '!graph.callable', ",
    ),
    "function of other parameters": (
        make("%f", "exp", type_=CALLABLE)
        + cast("%g", "%f", CALLABLE, f"({K}, {K}) -> {K}")
        + invoke("%0", "%g, %x, %x", f"({K}, {K}) -> {K}, {X}, {X}", X),
        "'graph.match_cast' op asserts '",
    ),
    "function that a call expects": (
        cast("%a", "%x", X, OBJECT)
        + call("%o", "applied", "%a, %x", f"{OBJECT}, {X}", OBJECT)
        + cast("%0", "%o", OBJECT, X),
        "'graph.call' op (passes operand 0, which is .* instead of '!graph.callable'"
        "|asserts '!graph.callable', but the value is no function)",
    ),
    "tuples of two kinds": (
        tuple_of("%t", "%x, %k", f"{X}, index", PAIR)
        + tuple_of("%u", "%k", "index", "tuple<index>")
        + f"%b = scf.if %c -> {TUPLE} {{\n"
        + cast("%d", "%t", PAIR, TUPLE)
        + f"scf.yield %d : {TUPLE}\n}} else {{\n"
        + cast("%e", "%u", "tuple<index>", TUPLE)
        + f"scf.yield %e : {TUPLE}\n}}\n"
        + cast("%f", "%b", TUPLE, "tuple<index>")
        + cast("%0", "%x", X, X),
        "'graph.match_cast' op (has '!graph.any_tuple', which compiled code cannot hold"
        "|asserts 'tuple<index>', but the value is no such tuple)",
    ),
    "too many arguments": (
        make("%f", "exp", type_=CALLABLE)
        + invoke("%o", "%f, %x, %x", f"{CALLABLE}, {X}, {X}", OBJECT)
        + cast("%0", "%o", OBJECT, X),
        "'graph.invoke_closure' op has 2 operands and 1 results, but ('@exp'|the function) takes 1",
    ),
    "argument of another kind": (
        make("%f", "exp", type_=CALLABLE)
        + invoke("%o", "%f, %k0", f"{CALLABLE}, tensor<3xi32>", OBJECT)
        + cast("%0", "%o", OBJECT, X),
        "'graph.invoke_closure' op (passes operand 0, which has elements of i32 instead of f32"
        "|asserts '.*f32.*', but the value has other elements)",
    ),
    "other elements": (
        cast("%a", "%x", X, ANY) + cast("%b", "%a", ANY, "tensor<?xf64>") + cast("%0", "%x", X, X),
        "'graph.match_cast' op asserts 'tensor<.xf64>', ",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_does_not_fit_is_refused(name: str) -> None:
    body, told = WRONG[name]
    text = module(body)
    with pytest.raises(CompileError, match=rf":\d+:\d+: error: {told}"):
        relax_mlir.compile(text)
    x = np.ones(3, np.float32)
    with pytest.raises(ExecutionError, match=rf":\d+:\d+: error: {told}"):
        relax_mlir.interpret(text)["main"](x, x, 1, True, np.zeros(3, np.int32))


def test_dims_of_arguments_are_checked_against_the_function() -> None:
    body = (
        make("%f", "joined", type_=CALLABLE)
        + cast("%y", "%w", "tensor<?xf32>", OBJECT)
        + invoke("%o", "%f, %x, %y", f"{CALLABLE}, {X}, {OBJECT}", OBJECT)
        + cast("%0", "%o", OBJECT, X)
    )
    text = module(body).replace(f"%w: {X}, %k", "%w: tensor<?xf32>, %k")
    for way in WAYS:
        main = built(way, text)["main"]
        x = np.ones(3, np.float32)
        np.testing.assert_array_equal(main(x, x, 1, True, np.zeros(3, np.int32)), x + x)
        with pytest.raises(ExecutionError, match=r"3.*4|4.*3"):
            main(x, np.ones(4, np.float32), 1, True, np.zeros(3, np.int32))


def test_operators_want_known_elements() -> None:
    body = cast("%a", "%x", X, ANY) + call(
        "%o", "added", "%a, %k0", f"{ANY}, tensor<3xi32>", OBJECT
    )
    added = f"""
    func.func private @added(%x: {ANY}, %y: {ANY_RANK}) -> {OBJECT} {{
      %0 = "graph.add"(%x, %x) : ({ANY}, {ANY}) -> {ANY}
      {cast("%1", "%0", ANY, OBJECT)}
      return %1 : {OBJECT}
    }}"""
    body += cast("%0", "%o", OBJECT, X)
    x = np.ones(3, np.float32)
    result = relax_mlir.compile(added + module(body))["main"](x, x, 1, True, np.zeros(3, np.int32))
    np.testing.assert_array_equal(result, 2 * x)


@pytest.mark.parametrize("way", WAYS)
def test_exported_arguments_are_what_casts_say(way: Any) -> None:
    text = f"""
    func.func @main(%a: {ANY}, %t: {OBJECTS}) -> (tensor<?xf64>, index) {{
      {cast("%0", "%a", ANY, "tensor<?xf64>")}
      {cast("%1", "%t", OBJECTS, "tuple<index, tensor<4xi32>>")}
      {get("%2", "%1", 0, "tuple<index, tensor<4xi32>>", "index")}
      return %0, %2 : tensor<?xf64>, index
    }}"""
    main = built(way, text)["main"]
    x, y = np.arange(3.0), np.zeros(4, np.int32)
    result = main(x, (5, y))
    np.testing.assert_array_equal(result[0], x)
    assert result[1] == 5
    with pytest.raises(ExecutionError, match=r"float32|other elements"):
        main(x.astype(np.float32), (5, y))


def test_open_results_are_what_they_hold() -> None:
    text = f"""
    func.func @main(%x: {X}, %k: index) -> {OBJECT} {{
      {tuple_of("%t", "%x, %k", f"{X}, index", PAIR)}
      {cast("%a", "%t", PAIR, OBJECT)}
      return %a : {OBJECT}
    }}"""
    x = np.arange(3, dtype=np.float32)
    for way in WAYS:
        first, second = built(way, text)["main"](x, 7)
        np.testing.assert_array_equal(first, x)
        assert second == 7
