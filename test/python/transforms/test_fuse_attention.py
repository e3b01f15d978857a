"""The modules of `fuse_attention.mlir` give what NumPy gives, with the pass and without it."""

from functools import cache
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import relax_mlir

pytestmark = pytest.mark.usefixtures("llvm_turns")

MODULES = Path(__file__).parents[2].joinpath("Transforms", "fuse_attention.mlir").read_text()
SIZES = ((1, 1, 1), (2, 3, 5), (3, 17, 64), (1, 70, 33), (0, 3, 2), (2, 0, 3), (2, 5, 0))


@cache
def compiled(number: int, without: tuple[str, ...]) -> relax_mlir.Executable:
    return relax_mlir.compile(MODULES.split("// -----")[number], without=without)


@pytest.fixture(params=[(), ("fuse-attention",)], ids=["fused", "plain"])
def without(request: pytest.FixtureRequest) -> tuple[str, ...]:
    return request.param


def numbers(*shape: int) -> np.ndarray:
    return np.random.default_rng(shape).standard_normal(shape).astype(np.float32)


def attention(q: np.ndarray, k: np.ndarray, v: np.ndarray, mask: np.ndarray | float = 0.0):
    """softmax(q k + mask) v in float64; `k` has its keys last."""
    q, k, v = (x.astype(np.float64) for x in (q, k, v))
    scores = q @ k + mask
    if not scores.size:
        return np.zeros((*scores.shape[:-1], v.shape[-1]))
    powers = np.exp(scores - scores.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True) @ v


def test_encoder(without: tuple[str, ...]) -> None:
    main = compiled(0, without)["encoder"]
    for b, n, m in SIZES:
        q, k, v = numbers(b, n, 4, 8), numbers(b, m, 4, 8), numbers(b, m, 4, 8) + 1
        mask = np.where(numbers(b, 1, 1, m) > 1, np.float32(-1e4), np.float32(0))
        mask[..., :1] = 0
        heads = [x.swapaxes(1, 2) for x in (q / 2, k, v)]
        expected = attention(heads[0], heads[1].swapaxes(2, 3), heads[2], mask).swapaxes(1, 2)
        np.testing.assert_allclose(main(q, k, v, mask), expected, rtol=1e-5, atol=1e-5)


def test_rows_that_are_masked_everywhere(without: tuple[str, ...]) -> None:
    main = compiled(0, without)["encoder"]
    for masked in (np.float32(-1e4), np.finfo(np.float32).min, np.float32(-np.inf)):
        q, k, v = numbers(2, 9, 4, 8), numbers(2, 7, 4, 8), numbers(2, 7, 4, 8) + 1
        mask = np.zeros((2, 1, 1, 7), np.float32)
        mask[1] = masked
        got = main(q, k, v, mask)
        assert np.isfinite(got[0]).all()
        if np.isinf(masked):
            assert np.isnan(got[1]).all()
        elif masked < -1e5:  # scores vanish beside it
            np.testing.assert_allclose(got[1], np.tile(v[1].mean(0), (9, 1, 1)), rtol=1e-5)
        else:
            heads = [x.swapaxes(1, 2)[1] for x in (q / 2, k, v)]
            expected = attention(heads[0], heads[1].swapaxes(1, 2), heads[2]).swapaxes(0, 1)
            np.testing.assert_allclose(got[1], expected, rtol=5e-3, atol=5e-3)


def test_condition(without: tuple[str, ...]) -> None:
    main = compiled(0, without)["condition"]
    for b, n, m in SIZES:
        q, k, v = numbers(b, 4, n, 8), numbers(b, 4, 8, m), numbers(b, 4, m, 8) + 1
        seen = numbers(n, m) < 0.5
        seen[:, :1] = True
        expected = attention(q / 4, k, v, np.where(seen, 0, -np.inf))
        np.testing.assert_allclose(main(q, k, v, seen), expected, rtol=1e-5, atol=1e-5)


def test_groups_and_a_causal_mask(without: tuple[str, ...]) -> None:
    main = compiled(1, without)["grouped_causal"]
    for b, n, _ in SIZES:
        q, k, v = numbers(b, 2, 3, n, 8), numbers(b, 2, 1, 8, n), numbers(b, 2, 1, n, 8) + 1
        expected = attention(q, k, v, np.triu(np.full((n, n), -np.inf), 1))
        np.testing.assert_allclose(main(q, k, v), expected, rtol=1e-5, atol=1e-5)


def test_matrices_of_bf16(without: tuple[str, ...]) -> None:
    main = compiled(2, without)["matrices"]
    for _, n, m in SIZES:
        arrays = [
            x.astype(ml_dtypes.bfloat16) for x in (numbers(n, 8), numbers(8, m), numbers(m, 12))
        ]
        got = main(*arrays).astype(np.float64)
        np.testing.assert_allclose(got, attention(*arrays), rtol=3e-2, atol=3e-2)
