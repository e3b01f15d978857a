"""Symbols that several dims tell together, interpreted and compiled: at entries, casts, calls."""

import itertools
from random import Random
from typing import Any

import numpy as np
import pytest
from levels import LEVELS

import relax_mlir
from relax_mlir.analysis.symbols import bound_symbols
from relax_mlir.dialects import make_context
from relax_mlir.dialects.graph import shape_value_type
from relax_mlir.errors import CompileError, ExecutionError
from relax_mlir.symbolic import Expr, SymbolicError, parse, solve_jointly

WAYS = [*LEVELS, "interpreted"]


def tensor(*dims: str) -> str:
    named = ", ".join(f'"{dim}"' for dim in dims)
    return f"tensor<{'?x' * len(dims)}f32, #graph.shape<[{named}]>>"


SUM, DIFFERENCE, GRID = tensor("m + n"), tensor("-m + n"), tensor("n", "m")
SHAPE = '!graph.shape_value<["2*m + n", "3*m - n"]>'
SEGMENTS = (
    f"operandSegmentSizes = array<i32: 1, 1{', 0' * 30}>, "
    f"resultSegmentSizes = array<i32: 1{', 0' * 7}>"
)
# The matrix of n rows i + j, so that the result depends on both symbols.
BODY = f"""
  %i = "graph.arange"() {{bounds = #graph.shape<[0, "n", 1]>, dtype = f32}} : () -> {tensor("n")}
  %j = "graph.arange"() {{bounds = #graph.shape<[0, "m", 1]>, dtype = f32}} : () -> {tensor("m")}
  %c = "graph.reshape"(%i) {{shape = #graph.shape<["n", 1]>}} : ({tensor("n")})
      -> tensor<?x1xf32, #graph.shape<["n", 1]>>
  %r = "graph.add"(%c, %j) : (tensor<?x1xf32, #graph.shape<["n", 1]>>, {tensor("m")}) -> {GRID}
  return %r : {GRID}
"""
PAIR = "tuple<tensor<?xf32>, tensor<?xf32>>"
TEXT = f"""
func.func private @inlined(%x: {SUM}, %y: {DIFFERENCE}) -> {GRID} {{{BODY}}}
func.func private @kept(%x: {SUM}, %y: {DIFFERENCE}) -> {GRID}
    attributes {{graph.noinline}} {{{BODY}}}
func.func @entry(%x: {SUM}, %y: {DIFFERENCE}) -> {GRID} {{{BODY}}}
func.func @in_order(%x: {DIFFERENCE}, %y: {tensor("m")}) -> {GRID} {{{BODY}}}
func.func @matrix(%x: {tensor("m + n", "-m + n")}) -> {GRID} {{{BODY}}}
func.func @shape(%s: {SHAPE}) -> {GRID} {{{BODY}}}
func.func @cast(%a: tensor<?x?xf32>) -> {GRID} {{
  %x = "graph.match_cast"(%a) : (tensor<?x?xf32>) -> {tensor("m + n", "-m + n")}
{BODY}}}
func.func @cast_of_tuple(%a: {PAIR}) -> {GRID} {{
  %x = "graph.match_cast"(%a) : ({PAIR}) -> tuple<{SUM}, {DIFFERENCE}>
{BODY}}}
func.func @call(%a: tensor<?xf32>, %b: {tensor("b")}) -> tensor<?x?xf32> {{
  %0 = "graph.call"(%a, %b) {{callee = @inlined, {SEGMENTS}}}
      : (tensor<?xf32>, {tensor("b")}) -> tensor<?x?xf32>
  return %0 : tensor<?x?xf32>
}}
func.func @call_kept(%a: tensor<?xf32>, %b: {tensor("b")}) -> tensor<?x?xf32> {{
  %0 = "graph.call"(%a, %b) {{callee = @kept, {SEGMENTS}}}
      : (tensor<?xf32>, {tensor("b")}) -> tensor<?x?xf32>
  return %0 : tensor<?x?xf32>
}}
func.func @call_known(%a: {tensor("2*p + q")}, %b: {tensor("q")}) -> {tensor("p + q", "p")} {{
  %0 = "graph.call"(%a, %b) {{callee = @kept, {SEGMENTS}}}
      : ({tensor("2*p + q")}, {tensor("q")}) -> {tensor("p + q", "p")}
  return %0 : {tensor("p + q", "p")}
}}
"""
TAKES_TWO = ["entry", "call", "call_kept", "call_known"]
TAKES_MATRIX = ["matrix", "cast"]


@pytest.fixture(scope="module")
def modules() -> dict[Any, Any]:
    """The module at every level, and interpreted."""
    built = {level: relax_mlir.compile(TEXT, opt_level=level) for level in LEVELS}
    return {**built, "interpreted": relax_mlir.interpret(TEXT)}


def called(modules: dict[Any, Any], way: Any, name: str, added: int, difference: int) -> Any:
    """Calls a function of dims m + n and n - m."""
    x, y = np.zeros(added, np.float32), np.zeros(difference, np.float32)
    function = modules[way][name]
    if name in TAKES_MATRIX:
        return function(np.zeros((added, difference), np.float32))
    return function((x, y)) if name == "cast_of_tuple" else function(x, y)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", [*TAKES_TWO, *TAKES_MATRIX, "cast_of_tuple"])
def test_sums_and_differences(modules: dict[Any, Any], way: Any, name: str) -> None:
    for n, m in [(0, 0), (1, 0), (1, 1), (5, 2), (17, 13), (64, 1)]:
        result = called(modules, way, name, n + m, n - m)
        np.testing.assert_array_equal(result, np.add.outer(np.arange(n), np.arange(m)))


@pytest.mark.parametrize("way", WAYS)
def test_values_of_shapes(modules: dict[Any, Any], way: Any) -> None:
    for n, m in [(0, 0), (1, 0), (0, 3), (7, 3), (2, 31)]:
        result = modules[way]["shape"]([2 * m + n, 3 * m - n])
        np.testing.assert_array_equal(result, np.add.outer(np.arange(n), np.arange(m)))
    with pytest.raises(ExecutionError, match=r"value 0 is 2, .*value 1 is 2, .*cannot be 2, 2 for"):
        modules[way]["shape"]([2, 2])
    with pytest.raises(ExecutionError, match="integer n >= 0"):
        modules[way]["shape"]([4, 11])


@pytest.mark.parametrize("way", WAYS)
def test_a_symbol_that_is_subtracted(modules: dict[Any, Any], way: Any) -> None:
    result = modules[way]["in_order"](np.zeros(3, np.float32), np.zeros(2, np.float32))
    np.testing.assert_array_equal(result, np.add.outer(np.arange(5), np.arange(2)))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", ["entry", "matrix", "cast", "cast_of_tuple", "call", "call_kept"])
@pytest.mark.parametrize(("added", "difference"), [(3, 2), (2, 5), (0, 1), (0, 2)])
def test_what_no_integers_solve_is_refused(
    modules: dict[Any, Any], way: Any, name: str, added: int, difference: int
) -> None:
    told = rf"is {added}, .*is {difference}, but .* cannot be .* for any integer \w+ >= 0"
    with pytest.raises(ExecutionError, match=told):
        called(modules, way, name, added, difference)


def test_a_message_names_dims_and_symbol(modules: dict[Any, Any]) -> None:
    told = (
        "argument 0 'arg0': dim 0 is 3, argument 1 'arg1': dim 0 is 2, "
        "but 'm + n', '-m + n' cannot be 3, 2 for any integer m >= 0"
    )
    for way in WAYS:
        with pytest.raises(ExecutionError) as raised:
            called(modules, way, "entry", 3, 2)
        assert str(raised.value) == told


PRODUCT = [tensor(dim) for dim in ("m", "m*n", "n + k", "n - k")]
PRODUCT_BODY = f"""{{
  %r = "graph.exp"(%d) : ({PRODUCT[3]}) -> {PRODUCT[3]}
  return %r : {PRODUCT[3]}
}}"""
PRODUCT_ARGUMENTS = ", ".join(f"%{name}: {type_}" for name, type_ in zip("abcd", PRODUCT))
UNKNOWN = ", ".join(["tensor<?xf32>"] * 4)
FOUR = SEGMENTS.replace(f"1, 1{', 0' * 30}", f"1, 1, 1, 1{', 0' * 28}")
PRODUCTS = f"""
func.func private @inlined({PRODUCT_ARGUMENTS}) -> {PRODUCT[3]} {PRODUCT_BODY}
func.func private @kept({PRODUCT_ARGUMENTS}) -> {PRODUCT[3]}
    attributes {{graph.noinline}} {PRODUCT_BODY}
func.func @entry({PRODUCT_ARGUMENTS}) -> {PRODUCT[3]} {PRODUCT_BODY}
""" + "".join(
    f"""
func.func @call_{callee}(%a: tensor<?xf32>, %b: tensor<?xf32>, %c: tensor<?xf32>,
                         %d: tensor<?xf32>) -> tensor<?xf32> {{
  %0 = "graph.call"(%a, %b, %c, %d) {{callee = @{callee}, {FOUR}}} : ({UNKNOWN}) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}}"""
    for callee in ("inlined", "kept")
)


def test_a_product_that_is_0_leaves_its_symbol_to_other_dims() -> None:
    built = [relax_mlir.compile(PRODUCTS), relax_mlir.interpret(PRODUCTS)]
    for module, name in itertools.product(built, ["entry", "call_inlined", "call_kept"]):
        for dims in [(2, 10, 8, 2), (0, 0, 8, 2)]:
            result = module[name](*(np.zeros(dim, np.float32) for dim in dims))
            np.testing.assert_array_equal(result, np.ones(2, np.float32))
        with pytest.raises(ExecutionError):
            module[name](*(np.zeros(dim, np.float32) for dim in (0, 0, 8, 3)))


def random_dims(random: Random) -> list[Expr]:
    """Dims of symbols a, b, c that tell them all, or none."""
    terms = ["a", "b", "c", "a*b", "a*c", "b*c", "a floordiv 2", "b floordiv c", "1"]
    sides = [
        parse(" + ".join(f"{random.choice([-2, -1, 1, 1, 2, 3])}*({term})" for term in chosen))
        for chosen in (random.choices(terms, k=random.randint(1, 3)) for _ in range(4))
    ]
    with make_context():
        told = bound_symbols([shape_value_type(sides)])
    names = frozenset[str]().union(*(side.symbols for side in sides))
    return sides if names == told else []


def test_random_dims_bind_as_interpreted() -> None:
    random = Random(0)
    cases = [dims for dims in (random_dims(random) for _ in range(300)) if dims][:30]
    assert len(cases) == 30
    shapes = [", ".join(f'"{dim}"' for dim in dims) for dims in cases]
    text = "".join(
        f"func.func @f{index}(%s: !graph.shape_value<[{shape}]>) {{ return }}\n"
        for index, shape in enumerate(shapes)
    )
    compiled, interpreted = relax_mlir.compile(text, opt_level=0), relax_mlir.interpret(text)
    accepted = 0
    for index, dims in enumerate(cases):
        for _ in range(15):
            symbols = {name: random.choice([0, 0, 1, 2, 3, 7]) for name in "abc"}
            try:
                values = [dim.evaluate(symbols) + (random.random() < 0.1) for dim in dims]
            except SymbolicError:
                values = [random.randrange(4) for _ in dims]
            outcomes = []
            for module in (compiled, interpreted):
                try:
                    module[f"f{index}"](values)
                    outcomes.append(True)
                except ExecutionError:
                    outcomes.append(False)
            assert outcomes[0] == outcomes[1], (list(map(str, dims)), values)
            accepted += outcomes[0]
    assert 100 < accepted < 400


@pytest.mark.parametrize("way", WAYS)
def test_what_is_left_of_the_dims_is_checked(way: Any) -> None:
    text = f"func.func @main(%x: {tensor('m + n', '-m + n', '2*n')}) {{ return }}"
    module = relax_mlir.interpret(text) if way == "interpreted" else relax_mlir.compile(text)
    module["main"](np.zeros((5, 1, 6), np.float32))
    with pytest.raises(ExecutionError, match=r"dim 1 is 1, but '-m \+ n' is -1"):
        module["main"](np.zeros((5, 1, 4), np.float32))


def test_large_values_do_not_wrap() -> None:
    big = 2**62
    text = 'func.func @main(%s: !graph.shape_value<["4*n - 3*m", "m - n"]>) { return }'
    module = relax_mlir.compile(text)
    with pytest.raises(ExecutionError, match=r"need m = \d{19,}, beyond 2\^63 - 1"):
        module["main"]([big, big])


def test_solutions() -> None:
    def solved(*texts: str, known: tuple[str, ...] = ()) -> dict[str, tuple[int, Any, Expr]]:
        found = solve_jointly([parse(text) for text in texts], known)
        return {each.symbol: (each.divisor, each.weights, each.offset) for each in found}

    pair = solved("m + n + k*k", "n - m + 3", known=("k",))
    assert pair["n"] == (2, ((0, 1), (1, 1)), parse("k*k + 3"))
    assert pair["m"] == (2, ((0, 1), (1, -1)), parse("k*k - 3"))
    assert solved("10 - n") == {"n": (1, ((0, -1),), parse("-10"))}
    three = solved("a + b", "b + c", "a + c", "a + d")
    assert three.keys() == {"a", "b", "c", "d"}
    assert three["a"][0] == 2
    assert solved("a + b", "a - b", "c + d").keys() == {"a", "b"}
    for texts in (["m + n"], ["m + n", "3*m + 3*n"], ["m*n", "m + n"], ["n floordiv 2", "n + m"]):
        assert not solved(*texts)
    many = [f"a{index} + a{(index + 1) % 41}" for index in range(41)]
    assert not solved(*many), "text of users is of bounded effort"


def test_a_system_with_several_solutions_is_refused() -> None:
    text = f"func.func @main(%x: {tensor('m + n', '2*m + 2*n')}) {{ return }}"
    with pytest.raises(CompileError, match="has the symbol 'm', which no argument binds"):
        relax_mlir.compile(text)


@pytest.mark.parametrize("attributes", ["", "attributes {graph.noinline}"])
def test_a_callee_has_no_negative_symbol(attributes: str) -> None:
    text = f"""
    func.func private @last(%x: {tensor("n + 3")}) -> tensor<3xf32> {attributes} {{
      %0 = "graph.strided_slice"(%x) {{axes = array<i64: 0>, begin = #graph.shape<["n"]>,
          end = #graph.shape<["n + 3"]>, strides = array<i64: 1>}}
          : ({tensor("n + 3")}) -> tensor<3xf32>
      return %0 : tensor<3xf32>
    }}
    func.func @main(%x: {tensor("k")}) -> tensor<3xf32> {{
      %0 = "graph.call"(%x) {{callee = @last, {SEGMENTS.replace("1, 1, ", "1, 0, ")}}}
          : ({tensor("k")}) -> tensor<3xf32>
      return %0 : tensor<3xf32>
    }}"""
    for module in (relax_mlir.compile(text), relax_mlir.compile(text, opt_level=0)):
        x = np.arange(5, dtype=np.float32)
        np.testing.assert_array_equal(module["main"](x), [2, 3, 4])
        for length in (0, 2):
            with pytest.raises(ExecutionError, match=r"requires (0 <= k - 3|k - 3 >= 0), but k ="):
                module["main"](x[:length])
