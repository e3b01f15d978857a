"""Attention on threads of devices: parts of tiles that are empty, and keys in parts."""

import numpy as np
import pytest
from device_modules import built

from relax_mlir.target import Device

CACHE = """
!q = tensor<?xHEADSxWIDTHxf32, #graph.shape<["n", HEADS, WIDTH]>>
!c = tensor<KVx?xWIDTHxf32, #graph.shape<[KV, "c", WIDTH]>>
func.func @main(%q: !q, %k: !c, %v: !c, %at: !graph.shape_value<["m"]>) -> !q {
  %0 = "graph.nn_attention"(%q, %k, %v)
      {position = #graph.shape<["m"]>, scale = 0.25 : f64, causal = CAUSAL} : (!q, !c, !c) -> !q
  return %0 : !q
}
"""
BATCH = """
!q = tensor<?x?x4x6xf32, #graph.shape<["b", "n", 4, 6]>>
!k = tensor<?x?x2x6xf32, #graph.shape<["b", "m", 2, 6]>>
!v = tensor<?x?x2x140xf32, #graph.shape<["b", "m", 2, 140]>>
!y = tensor<?x?x4x140xf32, #graph.shape<["b", "n", 4, 140]>>
!m = tensor<?x1x?x?xf32, #graph.shape<["b", 1, "n", "m"]>>
func.func @main(%q: !q, %k: !k, %v: !v, %mask: !m) -> !y {
  %0 = "graph.nn_batched_attention"(%q, %k, %v, %mask) {scale = 0.25 : f64, causal = false,
       operandSegmentSizes = array<i32: 1, 1, 1, 1>}
      : (!q, !k, !v, !m) -> !y
  return %0 : !y
}
"""


def _attended(q, k, v, position: int, causal: bool) -> np.ndarray:
    """[n, heads, width] of float64, head by head."""
    n, heads, _ = q.shape
    group, out = heads // len(k), np.zeros(q.shape)
    for h in range(heads):
        keys, values = (x[h // group, : position + n].astype(np.float64) for x in (k, v))
        scores = 0.25 * (q[:, h].astype(np.float64) @ keys.T)
        if causal:
            scores[np.arange(position + n) > position + np.arange(n)[:, None]] = -np.inf
        weights = np.exp(scores - scores.max(1, keepdims=True, initial=-np.inf))
        out[:, h] = weights / weights.sum(1, keepdims=True) @ values
    return out


@pytest.mark.rotate(3)
@pytest.mark.parametrize(
    ("target", "heads", "kv_heads", "width", "causal"),
    [
        ("gpu", 9, 3, 64, True),
        ("gpu", 32, 2, 1, False),
        ("gpu", 4, 4, 129, True),
        ("cuda:sm_80", 40, 1, 80, True),
        ("vulkan", 3, 1, 96, True),
        ("vulkan", 2, 2, 256, False),
    ],
)
def test_a_cache(target: str, heads: int, kv_heads: int, width: int, causal: bool) -> None:
    text = CACHE.replace("HEADS", str(heads)).replace("KV", str(kv_heads))
    text = text.replace("WIDTH", str(width)).replace("CAUSAL", str(causal).lower())
    module, kernels, rules = built(text, target, 2)
    assert rules == ["attention"]
    device = Device.parse(target)
    assert all(kernel.workgroup_bytes <= device.shared_bytes for kernel in kernels)
    random = np.random.default_rng(heads + width)
    for n, m in ((0, 3), (1, 0), (1, 700), (2, 127), (17, 31), (33, 5)):
        q = random.standard_normal((n, heads, width)).astype(np.float32)
        k, v = (random.standard_normal((kv_heads, n + m + 2, width)).astype(np.float32)
                for _ in range(2))  # fmt: skip
        k[:, n + m :], v[:, n + m :] = np.nan, np.inf
        got = module["main"](q, k, v, [m])
        np.testing.assert_allclose(got, _attended(q, k, v, m, causal), rtol=2e-5, atol=2e-5)


def test_memory_of_a_group_is_dealt_out_in_units() -> None:
    """Eight keys of this width have fewer bytes than a group, but in more units."""
    text = CACHE.replace("HEADS", "2").replace("KV", "1").replace("WIDTH", "225")
    _, kernels, rules = built(text.replace("CAUSAL", "true"), "vulkan", 2)
    assert rules == ["attention"]
    most = max(kernel.workgroup_bytes for kernel in kernels)
    assert most <= Device.parse("vulkan").shared_bytes


def test_what_causality_hides_does_not_matter() -> None:
    text = CACHE.replace("HEADS", "2").replace("KV", "1").replace("WIDTH", "8")
    module, _, _ = built(text.replace("CAUSAL", "true"), "gpu", 2)
    random = np.random.default_rng(3)
    q = random.standard_normal((40, 2, 8)).astype(np.float32)
    k, v = (random.standard_normal((1, 40, 8)).astype(np.float32) for _ in range(2))
    whole = module["main"](q, k, v, [0])
    k[0, 21:], v[0, 21:] = np.nan, np.inf
    np.testing.assert_array_equal(module["main"](q, k, v, [0])[:21], whole[:21])


def test_a_batch_with_a_mask() -> None:
    """Values are wider than a group has threads; a row whose keys are all masked is NaN."""
    module, _, rules = built(BATCH, "gpu", 2)
    assert rules == ["attention"]
    random = np.random.default_rng(4)
    for b, n, m in ((2, 3, 300), (1, 19, 7), (3, 1, 1), (0, 2, 2), (2, 3, 0)):
        q, k, v, mask = (
            random.standard_normal(shape).astype(np.float32)
            for shape in ((b, n, 4, 6), (b, m, 2, 6), (b, m, 2, 140), (b, 1, n, m))
        )
        mask[random.random(mask.shape) < 0.3] = -np.inf
        if mask.size:
            mask[0, 0, 0] = -np.inf
        got = module["main"](q, k, v, mask)
        wanted = np.zeros(got.shape)
        with np.errstate(invalid="ignore"):
            for z, h in np.ndindex(b, 4):
                keys, values = (x[z, :, h // 2].astype(np.float64) for x in (k, v))
                scores = 0.25 * (q[z, :, h] @ keys.T) + mask[z, 0]
                weights = np.exp(scores - scores.max(1, keepdims=True, initial=-np.inf))
                if m:
                    wanted[z, :, h] = weights / weights.sum(1, keepdims=True) @ values
        np.testing.assert_allclose(got, wanted, rtol=2e-5, atol=2e-5)
