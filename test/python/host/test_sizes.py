"""Integers of host code: exact, or an error that says which expression is too large."""

import random
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest
from host_module import KERNEL, allocate, build, call

import relax_mlir
from relax_mlir.errors import ExecutionError, OutOfMemoryError
from relax_mlir.executable import Executable
from relax_mlir.host.tables import program
from relax_mlir.symbolic import Expr, SymbolicError, maximum, minimum, sym

SYMBOLS = ("a", "b", "c")
EXPRESSIONS = 40
FACTS = '["a <= 1000", "b >= 3", "b + c <= 5000"]'
HOSTILE = (
    *(0, 1, 2, 3, 5, 7, 64, 2**16, 2**31 - 1, 2**31, 2**32, 2**33 - 1, 3037000499, 3037000500),
    *(2**61 + 1, 2**62 - 1, 2**62, 2**62 + 1, 2**63 - 2, 2**63 - 1),
)


def expression(rng: random.Random, depth: int) -> Expr:
    """A random expression, some of which have no value for some symbols."""
    if depth == 0 or rng.random() < 0.15:
        leaf = rng.choice([*SYMBOLS, *SYMBOLS, 1, 2, 3, 4, 64, 2**31, 2**62, 2**63 - 1])
        return sym(leaf) if isinstance(leaf, str) else sym("a") * 0 + leaf
    lhs, rhs = expression(rng, depth - 1), expression(rng, depth - 1)
    kind = rng.choice(["+", "+", "-", "*", "*", "//", "%", "min", "max"])
    try:
        return {
            "+": lambda: lhs + rhs,
            "-": lambda: lhs - rhs,
            "*": lambda: lhs * rhs,
            "//": lambda: lhs // rhs,
            "%": lambda: lhs % rhs,
            "min": lambda: minimum(lhs, rhs),
            "max": lambda: maximum(lhs, rhs),
        }[kind]()
    except SymbolicError:
        return lhs


def steps(expr: Expr, values: dict[str, int]) -> Iterator[int]:
    """The values on the way to that of an expression; raises ZeroDivisionError for bad divisors."""
    stack: list[int] = []
    code = program(expr, SYMBOLS)
    for opcode, operand in zip(code[::2], code[1::2], strict=True):
        if opcode < 2:
            stack.append(values[SYMBOLS[operand]] if opcode else operand)
        else:
            y, x = stack.pop(), stack.pop()
            if opcode in (5, 6) and y <= 0:
                raise ZeroDivisionError
            stack.append({2: x + y, 4: x * y, 7: min(x, y), 8: max(x, y)}.get(opcode, 0))
            if opcode in (5, 6):
                stack[-1] = x // y if opcode == 5 else x % y
        yield stack[-1]


def expected(expr: Expr, values: dict[str, int]) -> int | None:
    """The value of an expression, or None if host code has to refuse it."""
    try:
        every = list(steps(expr, values))
    except ZeroDivisionError:
        return None
    assert every[-1] == expr.evaluate(values)
    return every[-1] if all(-(2**63) <= step < 2**63 for step in every) else None


def function(index: int, expr: Expr) -> str:
    """A function that returns the value of an expression, under facts if its index is odd."""
    facts = f" attributes {{graph.facts = {FACTS}}}" if index % 2 else ""
    symbols = ", ".join(f'"{name}"' for name in SYMBOLS)
    argument = expr.value if expr.value is not None else f'"{expr}"'
    return f"""
func.func @f{index}(%s: !graph.shape_value<[{symbols}]>) -> tensor<1xi64>{facts} {{
  %0 = {allocate("tensor<1xi64>")}
  {call("store", ["%0"], ["tensor<1xi64>"], str(argument))}
  return %0 : tensor<1xi64>
}}"""


STORE = f"""
func.func private @store(%out: memref<1xi64>, %value: index) {KERNEL} {{
  %zero = arith.constant 0 : index
  %0 = arith.index_cast %value : index to i64
  memref.store %0, %out[%zero] : memref<1xi64>
  return
}}"""


def evaluate(exe: Executable, index: int, values: Sequence[int]) -> int | str:
    """What a function returns, or the text of its refusal."""
    try:
        return int(exe[f"f{index}"](list(values))[0])
    except ExecutionError as error:
        return str(error)


@pytest.mark.parametrize("seed", range(2))
def test_random_expressions_are_exact_or_refused(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    exprs: list[Expr] = []
    while len(exprs) < EXPRESSIONS:
        expr = expression(rng, 4)
        code = program(expr, SYMBOLS)
        if all(-(2**63) <= n < 2**63 for n in code):
            exprs.append(expr)
    exe = build(STORE + "".join(function(i, expr) for i, expr in enumerate(exprs)), tmp_path)
    refused = 0
    for index, expr in enumerate(exprs):
        for _ in range(60):
            values = [rng.choice(HOSTILE) for _ in SYMBOLS]
            if index % 2:
                a, b = rng.randrange(1001), rng.randrange(3, 5001)
                values = [a, b, rng.randrange(5001 - b)]
            named = dict(zip(SYMBOLS, values, strict=True))
            want, got = expected(expr, named), evaluate(exe, index, values)
            if want is None:
                assert isinstance(got, str), (expr, named)
                assert f"'f{index}' needs '" in got
                refused += 1
            else:
                assert got == want, (expr, named)
    assert refused > 100


def cast(index: int, dim: Expr) -> str:
    """A function that returns the `k` for which a dim is that of its second argument."""
    wanted = f'tensor<?xi8, #graph.shape<["{dim}"]>>'
    return f"""
func.func @f{index}(%s: !graph.shape_value<["a", "b"]>, %x: tensor<?xi8>) -> tensor<1xi64> {{
  %0 = "graph.match_cast"(%x) : (tensor<?xi8>) -> {wanted}
  %1 = {allocate("tensor<1xi64>")}
  {call("store", ["%1"], ["tensor<1xi64>"], '"k"')}
  return %1 : tensor<1xi64>
}}"""


def test_random_casts_bind_what_solves_them(tmp_path: Path) -> None:
    rng = random.Random(0)
    dims: list[tuple[int, Expr]] = []
    while len(dims) < 24:
        offset = expression(rng, 3)
        factor = rng.choice((1, 2, 3, 7))
        if offset.symbols <= {"a", "b"} and all(abs(n) < 2**63 for n in program(offset, SYMBOLS)):
            dims.append((factor, offset))
    texts = [cast(i, factor * sym("k") + offset) for i, (factor, offset) in enumerate(dims)]
    exe = build(STORE + "".join(texts), tmp_path)
    solved = 0
    for index, (factor, offset) in enumerate(dims):
        for _ in range(60):
            values = [rng.choice([*range(9), *HOSTILE]) for _ in range(2)]
            extent = rng.randrange(40)
            try:
                rest = extent - offset.evaluate(dict(zip("ab", values, strict=True)))
            except SymbolicError:
                rest = -1
            x = np.zeros(extent, np.int8)
            if rest < 0 or rest % factor or rest // factor >= 2**63:
                with pytest.raises(ExecutionError, match=r"^match_cast: dim 0 is \d+, but '"):
                    exe[f"f{index}"](values, x)
            else:
                assert exe[f"f{index}"](values, x)[0] == rest // factor
                solved += 1
    assert solved > 100


TEMPORARIES = """
!t = tensor<?x?xf32, #graph.shape<["n", "m"]>>
func.func @main(%s: !graph.shape_value<["n", "m"]> {graph.name = "s"}) -> tensor<f32> {
  %c = arith.constant dense<1.0> : tensor<f32>
  %0 = "graph.full"(%c) {shape = #graph.shape<["n", "m"]>} : (tensor<f32>) -> !t
  %1 = "graph.nn_softmax"(%0) {axis = 1 : i64} : (!t) -> !t
  %2 = "graph.sum"(%1) {axes = array<i64>, keepdims = false} : (!t) -> tensor<f32>
  return %2 : tensor<f32>
}
"""


def test_temporaries_beyond_63_bits() -> None:
    main = relax_mlir.compile(TEMPORARIES)["main"]
    assert main([3, 5]) == pytest.approx(3, rel=1e-5)
    for n, m, needs in (
        (
            2**31,
            2**31,
            r"bytes, which is 18446744073709551616 \(m = 2147483648, n = 2147483648\), ",
        ),
        (2**32, 2**32, r"73786976294838206464"),
        (2**33, 2**31, r"73786976294838206464"),
        (2**40, 2**20, r"the function needs 4611686018427387904 bytes"),
        (2**62, 2**62, r"beyond 2\^63 - 1"),
    ):
        with pytest.raises(OutOfMemoryError, match=needs):
            main([n, m])
    assert main([3, 5]) == pytest.approx(3, rel=1e-5)


def test_dims_are_not_negative(tmp_path: Path) -> None:
    rest = 'tensor<?xf32, #graph.shape<["n - m"]>>'
    exe = build(
        f"""
func.func private @touch(%out: memref<1xi64>) {KERNEL} {{
  %zero = arith.constant 0 : index
  %0 = arith.constant 7 : i64
  memref.store %0, %out[%zero] : memref<1xi64>
  return
}}
func.func @main(%s: !graph.shape_value<["n", "m"]>) -> tensor<1xi64> {{
  %storage = "graph.alloc_storage"() {{size = #graph.shape<["4*n - 4*m + 8"]>}}
      : () -> !graph.storage
  %0 = {allocate(rest, "%storage")}
  %1 = {allocate("tensor<1xi64>", "%storage", '"4*n - 4*m"')}
  {call("touch", ["%1"], ["tensor<1xi64>"])}
  return %1 : tensor<1xi64>
}}""",
        tmp_path,
    )
    for n, m in ((3, 3), (10, 2)):
        assert exe["main"]([n, m])[0] == 7
    message = r"^'main' needs a dim of '-m \+ n', which is -5 \(m = 8, n = 3\)$"
    with pytest.raises(ExecutionError, match=message):
        exe["main"]([3, 8])


@pytest.mark.parametrize("level", [0, 2])
def test_a_kernel_without_elements_ends(level: int) -> None:
    matrix = 'tensor<?x?xf32, #graph.shape<["n", "m"]>>'
    body = "".join(
        f'  %{axis} = "graph.nn_softmax"(%x) {{axis = {axis} : i64}} : ({matrix}) -> {matrix}\n'
        for axis in (0, 1)
    )
    text = f"""func.func @main(%x: {matrix}) -> ({matrix}, {matrix}) {{
{body}  return %0, %1 : {matrix}, {matrix}
}}"""
    main = relax_mlir.compile(text, opt_level=level)["main"]
    for dims in ((2**45, 0), (0, 2**45), (0, 0)):
        assert [result.shape for result in main(np.zeros(dims, np.float32))] == [dims, dims]
