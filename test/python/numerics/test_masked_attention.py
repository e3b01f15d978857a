"""What attention must not see does not matter: NaN and infinities behind a causal mask."""

import numpy as np
import pytest
from ulps import FORMATS

import relax_mlir
from relax_mlir.target import Target, lacking

TOLERANCE = {"f32": 2e-6, "f16": 2e-3, "bf16": 2e-2}
# The program as it is written, tile registers, pairs of bf16, vectors of both widths.
WAYS = [("native", 0), ("native", 2), ("native+-amx-tile", 2), ("x86-64-v4", 2), ("x86-64-v3", 2)]
DEPTH = 32


def _tensor(*dims: int | str, dtype: str) -> str:
    extents = "x".join(str(dim) if isinstance(dim, int) else "?" for dim in dims)
    names = ", ".join(str(dim) if isinstance(dim, int) else f'"{dim}"' for dim in dims)
    return f"tensor<{extents}x{dtype}, #graph.shape<[{names}]>>"


def _modules(dtype: str, heads: int, kv_heads: int, target: str, level: int):
    """Causal attention of a batch, and over a cache of n and m tokens."""
    batch, keys = (_tensor("b", "n", h, DEPTH, dtype=dtype) for h in (heads, kv_heads))
    query = _tensor("n", heads, DEPTH, dtype=dtype)
    cache = _tensor(kv_heads, "c", DEPTH, dtype=dtype)
    scale = DEPTH**-0.5
    text = f"""
    func.func @batch(%q: {batch}, %k: {keys}, %v: {keys}) -> {batch} {{
      %r = "graph.nn_batched_attention"(%q, %k, %v) {{scale = {scale} : f64, causal = true,
        operandSegmentSizes = array<i32: 1, 1, 1, 0>}} : ({batch}, {keys}, {keys}) -> {batch}
      return %r : {batch}
    }}
    func.func @cache(%q: {query}, %k: {cache}, %v: {cache}, %p: !graph.shape_value<["m"]>)
        -> {query} {{
      %r = "graph.nn_attention"(%q, %k, %v) {{scale = {scale} : f64, causal = true,
        position = #graph.shape<["m"]>}} : ({query}, {cache}, {cache}) -> {query}
      return %r : {query}
    }}"""
    return relax_mlir.compile(text, opt_level=level, target=target)


def _reference(q: np.ndarray, k: np.ndarray, v: np.ndarray) -> np.ndarray:
    """[rows, heads, d], each row over the keys up to its own, which is the last one of the last."""
    q, k, v = (x.astype(np.float64) for x in (q, k, v))
    group = q.shape[1] // k.shape[1]
    result = np.empty(q.shape)
    for row in range(len(q)):
        seen = len(k) - len(q) + row + 1
        for head in range(q.shape[1]):
            scores = k[:seen, head // group] @ q[row, head] * DEPTH**-0.5
            powers = np.exp(scores - scores.max())
            result[row, head] = powers / powers.sum() @ v[:seen, head // group]
    return result


def _check(got: np.ndarray, q: np.ndarray, k: np.ndarray, v: np.ndarray, dtype: str) -> None:
    """Against the reference: rows before the first key that is no number, and those that see it."""
    expected = _reference(q, k, v)
    tolerance = TOLERANCE[dtype]
    np.testing.assert_allclose(got.astype(np.float64), expected, rtol=tolerance, atol=tolerance)


@pytest.mark.rotate(2)
@pytest.mark.usefixtures("llvm_turns")
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(("target", "level"), WAYS)
@pytest.mark.parametrize(
    ("dtype", "heads", "kv_heads"), [("f32", 2, 2), ("bf16", 4, 2), ("f16", 3, 1)]
)
def test_hidden_keys(dtype: str, heads: int, kv_heads: int, target: str, level: int) -> None:
    if lacking(Target.parse(target).host.needs):
        pytest.skip("this machine does not run the target's code")
    module = _modules(dtype, heads, kv_heads, target, level)
    generator = np.random.default_rng(heads)
    for n, m in ((1, 0), (3, 4), (17, 0), (50, 3), (40, 300)):
        shapes = (n, heads, DEPTH), (n + m, kv_heads, DEPTH), (n + m, kv_heads, DEPTH)
        q, k, v = (generator.normal(size=s).astype(FORMATS[dtype].dtype) for s in shapes)
        for first, key, value in (
            (n - 1, np.nan, np.nan),
            (n // 2, np.nan, np.inf),
            (n // 3, 0, -np.inf),
        ):
            k[m + first], v[m + first] = key, value
            if not m:
                got = module["batch"](*(np.stack([x, x[::-1]]) for x in (q, k, v)))
                _check(got[0], q, k, v, dtype)
            room = np.full((kv_heads, n + m + 5, DEPTH), np.nan, q.dtype)
            caches = [room.copy(), room.copy()]
            for cache, x in zip(caches, (k, v), strict=True):
                cache[:, : n + m] = np.swapaxes(x, 0, 1)
            _check(module["cache"](q, *caches, (m,)), q, k, v, dtype)
