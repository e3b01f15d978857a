"""Small modules at every level, and interpreted, against NumPy in double precision."""

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from levels import LEVELS

from relax_mlir.compiler import compile
from relax_mlir.errors import ExecutionError
from relax_mlir.executable import Executable
from relax_mlir.interpreter import interpret

pytestmark = pytest.mark.usefixtures("llvm_turns")

MODULES = Path(__file__).parents[2] / "Integration"
SIZES = (0, 1, 2, 7, 16, 33)
INTERPRETED = -1


@pytest.fixture(
    params=[*LEVELS, INTERPRETED],
    ids=lambda level: "interpreted" if level == INTERPRETED else f"O{level}",
)
def level(request: pytest.FixtureRequest) -> int:
    return request.param


def build(name: str, level: int) -> Executable:
    return make(MODULES / f"{name}.mlir", level)


def make(source: Path | str, level: int) -> Executable:
    return interpret(source) if level == INTERPRETED else compile(source, opt_level=level)


def numbers(*shape: int, dtype: str = "float32") -> np.ndarray:
    """Normal numbers that depend on the shape only."""
    return np.random.default_rng(shape).standard_normal(shape).astype(dtype)


def laid_out(exe: Executable, *parameters: np.ndarray) -> Sequence[np.ndarray]:
    """The parameters as `main` takes them: -O3 lays them out for its kernels."""
    return exe["main_params"](*parameters) if "main_params" in exe.functions else parameters


def close(got: np.ndarray, want: np.ndarray, tolerance: float = 2e-6) -> None:
    """Compares with absolute tolerance for values of magnitude 1 or less, relative above."""
    assert got.shape == want.shape
    error = np.abs(got.astype(np.float64) - want)
    assert np.all(error <= tolerance * np.maximum(1.0, np.abs(want)))


def softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def test_mlp(level: int) -> None:
    exe = build("mlp", level)
    weights = [numbers(13, 31), numbers(31), numbers(31, 10), numbers(10)]
    w1, b1, w2, b2 = (w.astype(np.float64) for w in weights)
    erf = np.vectorize(math.erf, otypes=[float])
    for n in SIZES:
        x = numbers(n, 13)
        hidden = x.astype(np.float64) @ w1 + b1
        hidden *= 0.5 * (1 + erf(hidden / math.sqrt(2)))
        close(exe["main"](x, *laid_out(exe, *weights)), softmax(hidden @ w2 + b2), 1e-5)


def attention(q: np.ndarray, keys: np.ndarray, values: np.ndarray, past: int) -> np.ndarray:
    """Causal attention of `q` [n, 6, 8] over caches [2, c, 8] that hold `past + n` tokens."""
    out = np.empty(q.shape)
    for i, h in np.ndindex(q.shape[:2]):
        seen = past + i + 1
        weights = softmax(0.35 * keys[h // 3, :seen] @ q[i, h])
        out[i, h] = weights @ values[h // 3, :seen]
    return out


def test_decode_step_updates_its_caches(level: int) -> None:
    exe = build("decode_step", level)
    capacity, rng = 37, np.random.default_rng(0)
    keys, values = np.zeros((2, 2, capacity, 8), np.float32)
    mirror = np.zeros((2, 2, capacity, 8))
    past = 0
    for n in (5, 1, 0, 1, 17, 1):
        q, k, v = (rng.standard_normal((n, h, 8)).astype(np.float32) for h in (6, 2, 2))
        mirror[0][:, past : past + n] = k.swapaxes(0, 1)
        mirror[1][:, past : past + n] = v.swapaxes(0, 1)
        result, new_keys, new_values = exe["main"](q, k, v, past, keys, values)
        assert new_keys is keys
        assert new_values is values
        assert np.array_equal(keys, mirror[0])
        assert np.array_equal(values, mirror[1])
        close(result, attention(q.astype(np.float64), *mirror, past), 1e-5)
        past += n


def test_decode_step_refuses_a_full_cache(level: int) -> None:
    exe = build("decode_step", level)
    keys, values = np.zeros((2, 2, 4, 8), np.float32)
    before = keys.copy()
    q, kv = numbers(2, 6, 8), numbers(2, 2, 8)
    with pytest.raises(ExecutionError) as error:
        exe["main"](q, kv, kv, 3, keys, values)
    assert "requires m + n <= c" in str(error.value)
    assert "m = 3 from argument 3 'past'" in str(error.value)
    assert np.array_equal(keys, before)


def test_shapes(level: int) -> None:
    exe = build("shapes", level)
    for n in SIZES:
        for m in (0, 1, 5):
            a, b = numbers(n, 6), numbers(m, 6, dtype="float32")
            flat, exponentials, tail = exe["main"](a, b)
            joined = np.concatenate([a, b])
            assert np.array_equal(flat, joined.reshape(-1))
            close(exponentials, np.exp(joined.T.astype(np.float64)))
            assert np.array_equal(tail, joined[m:])


def test_blocks(level: int) -> None:
    exe = build("blocks", level)
    for n in (0, 16, 48, 256):
        x = numbers(n)
        scaled, scales = exe["main"](x)
        rows = x.reshape(-1, 16).astype(np.float64)
        assert np.array_equal(scales, np.abs(rows).max(axis=1, keepdims=True, initial=0))
        close(scaled, rows / scales)


@pytest.mark.parametrize(("n", "fact"), [(8, "n mod 16 == 0"), (272, "n <= 256")])
def test_blocks_refuses_other_lengths(level: int, n: int, fact: str) -> None:
    with pytest.raises(ExecutionError, match=f"'main' requires {fact}, but n = {n} "):
        build("blocks", level)["main"](numbers(n))


def test_match_cast(level: int) -> None:
    exe = build("match_cast", level)
    for n in SIZES:
        x, y = numbers(n), numbers(n + 1)[:n]
        assert np.array_equal(exe["main"](x, y), x * y)
    with pytest.raises(ExecutionError, match=r"^match_cast: dim 0 is 4, but 'k' is 3$"):
        exe["main"](numbers(3), numbers(4))


def test_embedding(level: int) -> None:
    exe = build("embedding", level)
    table = numbers(11, 7)
    for n in SIZES:
        ids = np.random.default_rng(n).integers(0, 11, n, dtype=np.int32)
        best, mask, halfs = exe["main"](ids, table)
        rows = table[ids]
        assert np.array_equal(mask, rows > 0)
        assert np.array_equal(best, np.where(rows > 0, rows, 0).argmax(axis=-1))
        assert np.array_equal(halfs, np.where(rows > 0, rows, 0).astype(np.float16))
        assert (best.dtype, mask.dtype, halfs.dtype) == (np.int64, np.bool_, np.float16)


def test_returns(level: int) -> None:
    exe = build("returns", level)
    for n in SIZES:
        x = numbers(n, 4)
        same, constant, first, second, flat = exe["main"](x)
        assert np.array_equal(same, x)
        assert np.array_equal(constant, [3, -5])
        for result in (first, second, flat):
            assert np.array_equal(result, -x if result is not flat else -x.reshape(-1))
        arrays = (x, same, first, second, flat)
        assert not any(np.may_share_memory(a, b) for a in arrays for b in arrays if a is not b)


def test_two_functions(level: int) -> None:
    exe = build("two_functions", level)
    assert exe.functions == ("once", "twice")
    w = numbers(5, dtype="float64")
    for n in SIZES:
        x = numbers(n, 5, dtype="float64")
        assert np.array_equal(exe["once"](x, w), x * w)
        assert np.array_equal(exe["twice"](x, w), x * w * w)


def test_figure_2(level: int) -> None:
    exe = make(MODULES.parent / "Paper" / "figure_2_dataflow.mlir", level)
    w = numbers(128, 256)
    for n in SIZES:
        x = numbers(n, 128)
        want = np.maximum(x.astype(np.float64) @ w.astype(np.float64), 0)
        close(exe["main"](x, w), want, 1e-5)


ANY_N, ANY_M = (f'tensor<?xf32, #graph.shape<["{name}"]>>' for name in "nm")
SLICE = (
    '"graph.strided_slice"(%x) {axes = array<i64: 0>, begin = #graph.shape<[0]>,'
    " end = #graph.shape<[5]>, strides = array<i64: 1>}"
)


@pytest.mark.parametrize(
    ("op", "result", "good", "bad", "says"),
    [
        (f'"graph.add"(%x, %y) : ({ANY_N}, {ANY_M})', ANY_N, (4, 4), (4, 3), "n == m"),
        (f"{SLICE} : ({ANY_N})", "tensor<5xf32>", (5, 0), (4, 0), "5 <= n"),
        (
            f'"graph.reshape"(%x) {{shape = #graph.shape<[2, 2]>}} : ({ANY_N})',
            "tensor<2x2xf32>",
            (4, 0),
            (3, 0),
            "n == 4",
        ),
        (f'"graph.exp"(%x) : ({ANY_N})', ANY_M, (3, 3), (3, 4), "n == m"),
    ],
    ids=["add", "slice", "reshape", "declared"],
)
def test_kernels_never_read_beyond_their_operands(
    op: str, result: str, good: tuple[int, int], bad: tuple[int, int], says: str, level: int
) -> None:
    exe = make(
        f"func.func @main(%x: {ANY_N}, %y: {ANY_M}) -> {result} {{\n"
        f"  %0 = {op} -> {result}\n  return %0 : {result}\n}}",
        level,
    )
    exe["main"](*(numbers(n) for n in good))
    with pytest.raises(ExecutionError, match=f"'main' requires {says}, but n = {bad[0]} "):
        exe["main"](*(numbers(n) for n in bad))


def test_a_weight_of_the_wrong_extent_is_named(level: int) -> None:
    exe = build("mlp", level)
    weights = [numbers(12, 31), numbers(31), numbers(31, 10), numbers(10)]
    with pytest.raises(ExecutionError, match=r"argument \d 'w1': dim 0 is 12"):
        exe["main"](numbers(3, 13), *laid_out(exe, *weights))


def test_levels_differ_in_kernels_only() -> None:
    """Fusion leaves fewer kernels; the signature stays."""
    plain, fused = (build("mlp", level) for level in (0, 2))
    assert str(plain["main"]) == str(fused["main"])
    assert len(fused.metadata["kernels"]) < len(plain.metadata["kernels"])
