"""Dynamic extents: every length around those for which kernels differ."""

import numpy as np
import pytest
from scheduled import assert_guarded, built_from_graph, guarded

from relax_mlir import compile


def text(op: str, extra: str, result: str = "m, n") -> str:
    """A function of one operator on a matrix [m, n]."""

    def shaped(dims: str) -> str:
        names = [f'"{dim}"' for dim in dims.split(", ")]
        return f"tensor<{'?x' * len(names)}f32, #graph.shape<[{', '.join(names)}]>>"

    return f"""
    func.func @main(%x: {shaped("m, n")}) -> {shaped(result)} {{
      %y = "graph.{op}"(%x) {{{extra}}} : ({shaped("m, n")}) -> {shaped(result)}
      return %y : {shaped(result)}
    }}"""


COLUMNS = text("sum", "axes = array<i64: 0>, keepdims = false", "n")
ROWS = text("sum", "axes = array<i64: 1>, keepdims = false", "m")
SOFTMAX = text("nn_softmax", "axis = -1 : i64")
TRANSPOSED = text("permute_dims", "axes = array<i64: 1, 0>", "n, m")


def softmax(x: np.ndarray) -> np.ndarray:
    powers = np.exp(x.astype(np.float64) - x.max(1, keepdims=True))
    return powers / powers.sum(1, keepdims=True)


REFERENCES = {
    COLUMNS: lambda x: x.astype(np.float64).sum(0),
    ROWS: lambda x: x.astype(np.float64).sum(1),
    SOFTMAX: softmax,
    TRANSPOSED: lambda x: x.T,
}


def check(program: str, m: int, n: int) -> None:
    """Runs the kernel on m rows of n elements, with guarded memory around its output."""
    x = np.random.default_rng(m * n).standard_normal((m, n)).astype(np.float32)
    expected = REFERENCES[program](x)
    out, memory = guarded(expected.shape, np.dtype(np.float32))
    built_from_graph(program)(x, out)
    assert_guarded(memory)
    np.testing.assert_allclose(out, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("program", [COLUMNS, ROWS, SOFTMAX])
def test_every_length(program):
    for n in range(1, 530):
        check(program, 3, n)


def test_sums_of_nothing():
    check(ROWS, 5, 0)
    check(ROWS, 0, 5)
    check(COLUMNS, 5, 0)
    check(COLUMNS, 0, 300)
    check(TRANSPOSED, 0, 40)
    check(TRANSPOSED, 40, 0)


def test_transposing_every_width():
    for n in range(1, 70):
        check(TRANSPOSED, 33, n)
        check(TRANSPOSED, n, 18)
        check(TRANSPOSED, 9, n)


@pytest.mark.parametrize("is_known", [False, True])
@pytest.mark.parametrize(
    ("m", "n"), [(1, 1), (3, 40), (40, 3), (7, 50), (15, 577), (16, 15), (129, 33)]
)
def test_transposing_and_adding_along_either_axis(m, n, is_known):
    def shaped(*dims: str | int) -> str:
        sizes = [{"m": m, "n": n}.get(d, d) if is_known else d for d in dims]
        if is_known:
            return f"tensor<{'x'.join(map(str, sizes))}xf32>"
        names = ", ".join(f'"{d}"' if isinstance(d, str) else str(d) for d in sizes)
        known = "x".join("?" if isinstance(d, str) else str(d) for d in sizes)
        return f"tensor<{known}xf32, #graph.shape<[{names}]>>"

    executable = compile(f"""
    !x = {shaped("m", "n")}
    !y = {shaped("n", "m")}
    !r = {shaped("m")}
    !c = {shaped("n", 1)}
    func.func @main(%x: !x, %r: !r, %c: !c) -> !y {{
      %t = "graph.permute_dims"(%x) {{axes = array<i64: 1, 0>}} : (!x) -> !y
      %s = "graph.add"(%t, %r) : (!y, !r) -> !y
      %y = "graph.multiply"(%s, %c) : (!y, !c) -> !y
      return %y : !y
    }}""")
    rng = np.random.default_rng(m)
    x, r, c = (rng.standard_normal(s).astype(np.float32) for s in ((m, n), (m,), (n, 1)))
    np.testing.assert_allclose(executable["main"](x, r, c), (x.T + r) * c, rtol=1e-6)


@pytest.mark.parametrize("program", [COLUMNS, ROWS, SOFTMAX, TRANSPOSED])
def test_threads_share_the_work(program):
    executable = compile(program)
    for m, n in [(3, 40000), (129, 577), (1000, 100), (40000, 3), (7, 9)]:
        x = np.random.default_rng(m).standard_normal((m, n)).astype(np.float32)
        expected = REFERENCES[program](x)
        for threads in (1, 2, 3):
            executable.threads = threads
            actual = executable["main"](x)
            np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-4)
