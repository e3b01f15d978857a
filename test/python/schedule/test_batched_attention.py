"""Attention of batches, with masks, against a float64 reference of the plain form."""

import ml_dtypes
import numpy as np
import pytest
from scheduled import assert_guarded, built_from_graph, guarded

DTYPES = {"f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16}
TOLERANCE = {"f32": 1e-5, "f16": 2e-3, "bf16": 1.6e-2}


def tensor(dims, dtype):
    extents = "x".join(str(dim) if isinstance(dim, int) else "?" for dim in dims)
    names = ", ".join(str(dim) if isinstance(dim, int) else f'"{dim}"' for dim in dims)
    return f"tensor<{extents}x{dtype}, #graph.shape<[{names}]>>"


def graph(dtype, heads, kv_heads, depth, width, causal=False, mask=None):
    query, key, value, out = (
        tensor(dims, dtype)
        for dims in (
            ("b", "n", heads, depth), ("b", "m", kv_heads, depth), ("b", "m", kv_heads, width),
            ("b", "n", heads, width),
        )
    )  # fmt: skip
    types = [query, key, value] + ([tensor(mask, dtype)] if mask else [])
    names = [f"%{i}" for i in range(len(types))]
    arguments = ", ".join(f"{name}: {kind}" for name, kind in zip(names, types, strict=True))
    return f"""func.func @main({arguments}) -> {out} {{
      %r = "graph.nn_batched_attention"({", ".join(names)}) {{scale = {depth**-0.5} : f64,
        causal = {str(causal).lower()},
        operandSegmentSizes = array<i32: 1, 1, 1, {int(mask is not None)}>}}
        : ({", ".join(types)}) -> {out}
      return %r : {out}
    }}"""


def reference(q, k, v, causal, mask):
    q, k, v = (x.astype(np.float64) for x in (q, k, v))
    group = q.shape[2] // k.shape[2]
    k, v = (np.repeat(x, group, axis=2) for x in (k, v))
    scores = np.einsum("bihd,bthd->bhit", q, k) * q.shape[3] ** -0.5
    if mask is not None:
        scores = scores + mask.astype(np.float64)
        scores = np.maximum(scores, np.where(np.isinf(mask), -np.inf, np.finfo(np.float32).min))
    if causal:
        scores = np.where(np.tri(*scores.shape[2:], dtype=bool), scores, -np.inf)
    if not scores.size:
        return np.zeros((*q.shape[:3], v.shape[3]))
    with np.errstate(invalid="ignore"):
        powers = np.exp(scores - scores.max(-1, keepdims=True))
    return np.einsum("bhit,bthd->bihd", powers / powers.sum(-1, keepdims=True), v)


def check(kernel, dtype, heads, kv_heads, depth, width, sizes, causal=False, mask=None):
    """`mask` is an array, or its dims."""
    b, n, m = sizes
    rng = np.random.default_rng(b * 10000 + n * 100 + m)
    shapes = (b, n, heads, depth), (b, m, kv_heads, depth), (b, m, kv_heads, width)
    arrays = [rng.standard_normal(shape).astype(DTYPES[dtype]) for shape in shapes]
    if isinstance(mask, tuple):
        dims = [{"b": b, "n": n, "m": m}.get(dim, dim) for dim in mask]
        mask = (3 * rng.standard_normal(dims)).astype(DTYPES[dtype])
        mask[rng.random(dims) < 0.2] = -30
        mask[..., 1::3] = -np.inf
    masks = [] if mask is None else [mask]
    out, memory = guarded((b, n, heads, width), arrays[0].dtype)
    kernel(*arrays, *masks, out)
    assert_guarded(memory)
    tolerance = TOLERANCE[dtype]
    np.testing.assert_allclose(
        out.astype(np.float64), reference(*arrays, causal, mask), rtol=tolerance, atol=tolerance
    )


SIZES = (
    (1, 1, 1), (2, 3, 7), (1, 8, 64), (3, 17, 31), (2, 47, 65), (2, 64, 64), (1, 100, 129),
    (1, 5, 513), (1, 50, 300), (0, 3, 4), (2, 0, 5), (2, 9, 0), (2, 1, 0),
)  # fmt: skip


@pytest.mark.rotate(4)
@pytest.mark.parametrize(
    ("dtype", "heads", "kv_heads", "depth", "width"),
    [("f32", 3, 3, 32, 32), ("f32", 4, 2, 16, 48), ("bf16", 4, 2, 64, 32), ("f16", 2, 1, 8, 80)],
)
@pytest.mark.parametrize("causal", [False, True])
def test_attention_without_a_mask(dtype, heads, kv_heads, depth, width, causal):
    kernel = built_from_graph(graph(dtype, heads, kv_heads, depth, width, causal))
    assert kernel.rule == "attention"
    for sizes in SIZES:
        check(kernel, dtype, heads, kv_heads, depth, width, sizes, causal)


@pytest.mark.rotate(4)
@pytest.mark.parametrize(
    ("mask", "kv_heads", "dtype", "causal"),
    [
        (("b", 1, 1, "m"), 4, "f32", False),
        (("b", 1, 1, "m"), 2, "bf16", True),
        ((1, 4, 1, "m"), 4, "f32", True),
        ((1, 4, 1, "m"), 2, "f32", False),
        ((1, 1, "n", "m"), 4, "bf16", False),
        ((1, 1, "n", "m"), 2, "f32", False),
        (("b", 4, "n", "m"), 2, "f32", True),
        (("b", 4, "n", "m"), 1, "f16", False),
    ],
)
def test_masks(mask, kv_heads, dtype, causal):
    kernel = built_from_graph(graph(dtype, 4, kv_heads, 32, 32, causal, mask))
    assert kernel.rule == "attention"
    for sizes in SIZES:
        check(kernel, dtype, 4, kv_heads, 32, 32, sizes, causal, mask)


@pytest.mark.parametrize("dtype", ["f32", "bf16"])
def test_fully_masked_rows(dtype):
    kernel = built_from_graph(graph(dtype, 2, 2, 32, 32, False, ("b", 1, "n", "m")))
    shared = built_from_graph(graph(dtype, 2, 2, 32, 32, False, ("b", 1, 1, "m")))
    lowest = float(ml_dtypes.finfo(DTYPES[dtype]).min)
    for b, n, m in ((2, 3, 40), (2, 50, 67), (1, 10, 600)):
        for masked in (-np.inf, lowest, -64.0):
            mask = np.zeros((b, 1, n, m), DTYPES[dtype])
            mask[0, 0, ::2] = masked
            check(kernel, dtype, 2, 2, 32, 32, (b, n, m), mask=mask)
            mask = np.zeros((b, 1, 1, m), DTYPES[dtype])
            mask[0] = masked
            check(shared, dtype, 2, 2, 32, 32, (b, n, m), mask=mask)


def test_batches_on_narrower_vectors():
    mask = (1, 4, "n", "m")
    for target in ("x86-64-v3", "x86-64-v2"):
        kernel = built_from_graph(graph("f32", 4, 2, 32, 16, True, mask), target=target)
        assert kernel.rule == "attention"
        for sizes in SIZES:
            check(kernel, "f32", 4, 2, 32, 16, sizes, True, mask)


@pytest.mark.parametrize(("width", "mask"), [(18, None), (32, ("b", 1, "n", 1))])
def test_what_other_rules_take(width, mask):
    kernel = built_from_graph(graph("f32", 2, 1, 32, width, False, mask))
    assert kernel.rule != "attention"
    for sizes in SIZES[:5]:
        shown = None if mask is None else np.ones((sizes[0], 1, sizes[1], 1), np.float32)
        check(kernel, "f32", 2, 1, 32, width, sizes, mask=shown)


@pytest.mark.parametrize(("dtype", "causal"), [("f32", True), ("bf16", False)])
def test_the_program_without_fusion(dtype, causal):
    mask = ("b", 4, 1, "m")
    kernel = built_from_graph(graph(dtype, 4, 2, 8, 12, causal, mask), False)
    assert kernel.rule == "fallback"
    for sizes in SIZES:
        check(kernel, dtype, 4, 2, 8, 12, sizes, causal, mask)
