"""Random elements, bit by bit, against Philox in NumPy's unsigned integers and known answers."""

import numpy as np
import pytest
from decomposed import Decomposed, module_of
from harness import NUMPY, floats, spec, wide

from relax_mlir import decompositions as d
from relax_mlir.bindings import ir
from relax_mlir.decompositions.random.philox import i64
from relax_mlir.dialects import graph
from relax_mlir.dialects.graph import ShapeError

STATE = spec("i64", 2)
STATES = [(0, 0), (-1, -1), (0x123456789ABCDEF, 0xFFFFFFFE), (-(2**63), 2**63 - 2)]
M = np.array([0xD2511F53, 0xCD9E8D57], np.uint64)
WORD = np.uint64(0xFFFFFFFF)


def _philox(counter, key):
    """Rows of four words, for counters of four words [n, 4] and a key of two."""
    c, key = counter.astype(np.uint64).copy(), np.array(key, np.uint64)
    for _ in range(10):
        p0, p1 = M[0] * c[:, 0], M[1] * c[:, 2]
        c = np.stack(
            [(p1 >> np.uint64(32)) ^ c[:, 1] ^ key[0], p1 & WORD,
             (p0 >> np.uint64(32)) ^ c[:, 3] ^ key[1], p0 & WORD], 1
        )  # fmt: skip
        key = (key + np.array([0x9E3779B9, 0xBB67AE85], np.uint64)) & WORD
    return c


def _words(state, count):
    key, start = (int(v) % 2**64 for v in state)
    values = [(start + i) % 2**64 for i in range(-(-count // 4))]
    counters = np.array([[v & 0xFFFFFFFF, v >> 32, 0, 0] for v in values], np.uint64)
    line = _philox(counters.reshape(-1, 4), [key & 0xFFFFFFFF, key >> 32]).reshape(-1)
    return line[:count]


def _after(state, words):
    return [state[0], (state[1] + -(-words // 4) + 2**63) % 2**64 - 2**63]


@pytest.mark.parametrize(
    ("counter", "key", "answer"),
    [  # Random123, kat_vectors
        ([0] * 4, [0] * 2, [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]),
        ([2**32 - 1] * 4, [2**32 - 1] * 2, [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]),
        ([0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344], [0xA4093822, 0x299F31D0],
         [0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1]),
    ],
)  # fmt: skip
def test_known_answers(counter, key, answer) -> None:
    assert _philox(np.array([counter], np.uint64), key).tolist() == [answer]


def test_known_answers_of_the_operator() -> None:
    run = Decomposed(lambda s: graph.PhiloxOp.build(s, blocks=[2]).operation.results, STATE)
    found = [int(word[0]) % 2**32 for word in run(np.array([0, 0]))]
    assert found == [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]


def _drawn(build, state, **sizes):
    """What a function draws for a state, and the state after it."""
    x = np.zeros(tuple(sizes.values()), bool)
    run = Decomposed(lambda s, _: build(s), STATE, spec("i1", *sizes))
    *values, after = run(np.array(state), x)
    return values[0], after.tolist()


@pytest.mark.parametrize("state", STATES)
def test_bits(state) -> None:
    for n in (0, 1, 3, 4, 9):
        bits, after = _drawn(lambda s: d.random_bits(s, ["n", 3], _type("i32")), state, n=n)
        wanted = _words(state, 3 * n).astype(np.uint32).view(np.int32)
        np.testing.assert_array_equal(bits, wanted.reshape(n, 3))
        assert after == _after(state, 3 * n)


def _type(dtype):
    return {"i32": lambda: ir.IntegerType.get_signless(32), "i64": i64,
            "i8": lambda: ir.IntegerType.get_signless(8),
            "f16": ir.F16Type.get, "bf16": ir.BF16Type.get, "f32": ir.F32Type.get,
            "f64": ir.F64Type.get}[dtype]()  # fmt: skip


def _long(state, count):
    low, high = _words(state, 2 * count).reshape(count, 2).T
    return (high << np.uint64(32)) | low


def test_bits_of_other_widths() -> None:
    state = (7, 2**32 - 2)
    bits, after = _drawn(lambda s: d.random_bits(s, ["n"], i64()), state, n=7)
    np.testing.assert_array_equal(bits, _long(state, 7).view(np.int64))
    assert after == _after(state, 14)
    bits, after = _drawn(lambda s: d.random_bits(s, ["n"], _type("i8")), state, n=5)
    np.testing.assert_array_equal(bits, _words(state, 5).astype(np.uint8).view(np.int8))


@pytest.mark.parametrize("dtype", ["f16", "bf16", "f32", "f64"])
def test_uniform(dtype: str) -> None:
    state, n = (5, 11), 33
    values, after = _drawn(lambda s: d.random_uniform(s, ["n"], _type(dtype)), state, n=n)
    if dtype == "f64":
        wanted = (_long(state, n) >> np.uint64(11)).astype(np.float64) / 2**53
    else:
        digits = {"f16": 11, "bf16": 8, "f32": 24}[dtype]
        wanted = (_words(state, n) >> np.uint64(32 - digits)).astype(np.float64) / 2**digits
    assert values.dtype == NUMPY[dtype]
    np.testing.assert_array_equal(wide(values), wanted)
    assert after == _after(state, n * (2 if dtype == "f64" else 1))


def test_uniform_of_an_interval() -> None:
    def build(s):
        return d.random_uniform(s, ["n", 100], _type("f32"), low=-2, high=3)

    values, _ = _drawn(build, (1, 0), n=100)
    assert values.min() >= -2
    assert values.max() <= 3
    np.testing.assert_allclose(np.histogram(values, 5, (-2, 3))[0] / 1e4, 0.2, atol=0.015)


@pytest.mark.parametrize(("dtype", "tolerance"), [("f32", 2e-6), ("f64", 1e-14), ("f16", 2e-3)])
def test_normal(dtype: str, tolerance: float) -> None:
    state = (5, 11)
    for n in (1, 8, 21):
        half = -(-n // 2)
        if dtype == "f64":
            u, v = (_long(state, 2 * half).reshape(half, 2) >> np.uint64(11)).T.astype(float)
            bits = 53
        else:
            (u, v), bits = _words(state, 2 * half).reshape(half, 2).T.astype(float), 32
        length, angle = np.sqrt(-2 * np.log((u + 1) / 2**bits)), 2 * np.pi * v / 2**bits
        wanted = np.stack([length * np.cos(angle), length * np.sin(angle)], 1).reshape(-1)[:n]
        values, _ = _drawn(lambda s: d.random_normal(s, ["n"], _type(dtype)), state, n=n)
        np.testing.assert_allclose(wide(values), wanted, rtol=tolerance, atol=4 * tolerance)


def test_normal_is_normal() -> None:
    def build(s):
        return d.random_normal(s, ["n", 200], _type("f32"), mean=3, scale=2)

    values, _ = _drawn(build, (9, 0), n=100)
    scores = (wide(values).reshape(-1) - 3) / 2
    assert abs(scores.mean()) < 0.03
    assert abs(scores.std() - 1) < 0.02
    for limit, share in ((0.5, 0.3829), (1, 0.6827), (2, 0.9545), (3, 0.9973)):
        assert abs((np.abs(scores) < limit).mean() - share) < 0.015


@pytest.mark.parametrize(
    ("dtype", "low", "high"),
    [("i32", -5, 8), ("i8", -128, 128), ("i64", -(2**63), -(2**63) + 3), ("i32", -(2**31), 2**31)],
)
def test_integers(dtype: str, low: int, high: int) -> None:
    state, n = (3, 2**63 - 1), 41
    values, after = _drawn(
        lambda s: d.random_integers(s, ["n"], _type(dtype), low, high), state, n=n
    )
    wanted = [low + ((int(v) * (high - low)) >> 64) for v in _long(state, n)]
    assert values.dtype == NUMPY[dtype]
    assert values.tolist() == wanted
    assert after == _after(state, 2 * n)


def test_bernoulli() -> None:
    probability = np.array([[0, 1, 0.5, 0.25, np.nan] * 50] * 40, np.float32)
    run = Decomposed(d.bernoulli, STATE, spec("f32", "n", "m"))
    chosen, _ = run(np.array([1, 2]), probability)
    assert chosen.dtype == bool
    wanted = _words((1, 2), chosen.size).reshape(chosen.shape) >> np.uint64(8)
    np.testing.assert_array_equal(chosen, wanted / 2**24 < probability)
    means = chosen.reshape(40, 50, 5).mean((0, 1))
    np.testing.assert_allclose(means, [0, 1, 0.5, 0.25, 0], atol=0.03)


@pytest.mark.parametrize("ratio", [0, 0.3, 1])
def test_dropout(ratio: float) -> None:
    run = Decomposed(lambda s, x: d.dropout(s, x, ratio), STATE, spec("f32", "n", "m"))
    x = floats((40, 50), "f32")
    y, mask, _ = run(np.array([1, 2]), x)
    assert abs(mask.mean() - (1 - ratio)) < 0.04
    scaled = wide(x) / (1 - ratio) if ratio < 1 else 0 * wide(x)
    np.testing.assert_allclose(y, np.where(mask, scaled, 0), rtol=2e-6)


def test_multinomial() -> None:
    weights = np.array([[1, 0, 2, 1], [0, 0, 0, 5], [3, 1, 0, 0]], float)
    with np.errstate(divide="ignore"):
        logits = (np.log(weights) + 7).astype(np.float32)
    run = Decomposed(lambda s, x: d.multinomial(s, x, 1000), STATE, spec("f32", "n", "c"))
    samples, after = run(np.array([4, 0]), logits)
    assert samples.shape == (3, 1000)
    assert after.tolist() == [4, 750]
    for row, wanted in zip(samples, weights):
        shares = np.bincount(row, minlength=4) / 1000
        np.testing.assert_allclose(shares, wanted / wanted.sum(), atol=0.05)
        assert not shares[wanted == 0].any()


def test_multinomial_from_uniform() -> None:
    shares = np.array([[0.25, 0, 0.5, 0.25], [0, 0, 1, 0], [0.5, 0.5, 0, 0]], np.float32)
    drawn = np.array([0, 0.25, 0.74, 0.75, 0, 0.999, 1, 0.5, 0.49], np.float32)
    rows = np.array([0, 0, 0, 0, 1, 1, 1, 2, 2])
    run = Decomposed(
        d.multinomial_from_uniform,
        spec("f32", "n", "c"), spec("f32", "m", 1), spec("i64", "m", 1),
    )  # fmt: skip
    chosen = run(shares, drawn[:, None], rows[:, None])
    assert chosen[:, 0].tolist() == [0, 2, 2, 3, 2, 2, 3, 1, 0]


@pytest.mark.parametrize(
    ("build", "specs", "message"),
    [
        (lambda s: d.random_bits(s, [3], _type("f32")), [STATE], "expects an integer element"),
        (lambda s: d.random_bits(s, [3], i64()), [spec("i32", 2)], "expects a state of two i64"),
        (lambda s: d.random_bits(s, [3], i64()), [spec("i64", 3)], "expects a state of two i64"),
        (lambda s: d.random_uniform(s, [3], i64()), [STATE], "expects a float element type"),
        (lambda s: d.random_uniform(s, [3], _type("f32"), low=2), [STATE], "expects an interval"),
        (lambda s: d.random_uniform(s, [3], _type("f32"), high=np.inf), [STATE], "an interval"),
        (lambda s: d.random_integers(s, [3], _type("i8"), 0, 200), [STATE], "but got 0 to 200"),
        (lambda s: d.random_integers(s, [3], i64(), 0, 2**33), [STATE], "up to 2\\^32 integers"),
        (lambda s: d.random_integers(s, [3], i64(), 3, 3), [STATE], "but got 3 to 3"),
        (d.bernoulli, [STATE, spec("i32", 3)], "expects float probabilities"),
        (lambda s, x: d.dropout(s, x, 1.5), [STATE, spec("f32", 3)], "a ratio from 0 to 1"),
        (d.dropout, [STATE, spec("i8", 3)], "expects floats, but got i8"),
        (lambda s, x: d.multinomial(s, x, 3), [STATE, spec("f32", 3)], "expects floats of rank 2"),
        (d.multinomial_from_uniform, [spec("f32", 3, 4), spec("f32", 5, 1), spec("i64", 6, 1)],
         "expects 5 rows, but got 6"),
        (d.multinomial_from_uniform, [spec("f32", 3, 4), spec("f32", 5, 2), spec("i64", 5, 1)],
         "expects a column, but got dim 2"),
        (d.multinomial_from_uniform, [spec("f32", 3, 4), spec("f32", 5, 1), spec("f32", 5, 1)],
         "expects float probabilities and integer rows"),
        (d.multinomial_from_uniform, [spec("f32", 3), spec("f32", 5, 1), spec("f32", 5, 1)],
         "expects three tensors of rank 2"),
    ],
)  # fmt: skip
def test_what_is_refused(build, specs, message: str) -> None:
    with pytest.raises(ShapeError, match=message):
        module_of({"main": (build, specs)})
