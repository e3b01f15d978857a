"""One row times weights in panels, read in one or more streams, against float64.

Panels have 16 or 32 columns; the column counts decide how many are read in each stream, and how
many are left over.
"""

import numpy as np
import pytest
from quantized_programs import Matrix, Product
from scheduled import HERE, ZEN5, runnable
from test_bf16_matmul import bits_of, compiled, random_bf16, rounded
from test_quantized_matmul import check, normal

import relax_mlir

EARLY_ZEN = [] if "zen" in HERE.host.traits else runnable("znver3")
TARGETS = ["native", *EARLY_ZEN, *([] if "zen5" in HERE.host.traits else ZEN5)]


@pytest.mark.parametrize("rounds", [True, False])
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("n", "k"), [(64, 2), (63, 63), (65, 130), (129, 1), (201, 64)])
def test_bf16(n: int, k: int, target: str, rounds: bool) -> None:
    executable, rng = compiled(n, k, rounds, target), np.random.default_rng(n)
    weights = random_bf16(rng, n, k)
    packed = executable["main_params"](bits_of(weights))
    for m in (1, 2):
        x, residual = normal(m, k), normal(m, n)
        left = rounded(x) if rounds else x.astype(np.float64)
        expected = left @ weights.astype(np.float64).T + residual
        bound = np.abs(left) @ np.abs(weights).T.astype(np.float64) + np.abs(residual)
        actual = executable["main"](x, residual, packed)
        assert (np.abs(actual - expected) <= 2.0**-20 * bound).all()


def gated(n: int, k: int) -> str:
    """(x[b, 1, k] times one matrix) * (x times another one), for each of b rows."""
    x, y = (f'tensor<?x1x{d}xf32, #graph.shape<["b", 1, {d}]>>' for d in (k, n))
    w, t = f"tensor<{n}x{k}xf32>", f"tensor<{k}x{n}xf32>"
    return f"""
    func.func @main(%x: {x}, %v: {w}, %w: {w}) -> {y} attributes {{graph.num_inputs = 1 : i64}} {{
      %s = "graph.permute_dims"(%v) {{axes = array<i64: 1, 0>}} : ({w}) -> {t}
      %t = "graph.permute_dims"(%w) {{axes = array<i64: 1, 0>}} : ({w}) -> {t}
      %0 = "graph.matmul"(%x, %s) : ({x}, {t}) -> {y}
      %1 = "graph.matmul"(%x, %t) : ({x}, {t}) -> {y}
      %2 = "graph.multiply"(%0, %1) : ({y}, {y}) -> {y}
      return %2 : {y}
    }}"""


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("n", "k"), [(15, 40), (64, 1), (100, 37), (144, 2000)])
def test_products_that_share_a_row(n: int, k: int, target: str) -> None:
    executable = relax_mlir.compile(gated(n, k), target, opt_level=3)
    matrices = [normal(n, k), normal(n, k)]
    packed = executable["main_params"](*matrices)
    for b in (0, 1, 3):
        x = normal(b, 1, k)
        first, second = (x.astype(np.float64) @ w.astype(np.float64).T for w in matrices)
        bounds = [np.abs(x).astype(np.float64) @ np.abs(w).T for w in matrices]
        bound = np.abs(first) * bounds[1] + np.abs(second) * bounds[0]
        actual = executable["main"](x, *packed)
        assert (np.abs(actual - first * second) <= 2.0**-19 * bound).all()


@pytest.mark.rotate(4)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("scheme", ["q4_0", "q4_1", "q5_1", "q8_0", "q6_k"])
@pytest.mark.parametrize(("rows", "sliced"), [(32, 17), (48, 48), (64, 49), (112, 112)])
def test_quantised(rows: int, sliced: int, scheme: str, target: str) -> None:
    k = 512 if scheme == "q6_k" else 96
    product = Product(scheme, rows, k, "int8", sliced=sliced, bias=True)
    check(product, Matrix.random(scheme, rows, k), normal(1, k), target, normal(sliced))
