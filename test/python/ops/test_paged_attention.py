"""Attention over pages and their updates against loops in float64, token by token."""

import numpy as np
import pytest
from harness import NUMPY, Program, Spec, floats, numbers, spec, wide

from relax_mlir.dialects import graph

TOLERANCE = {"f64": 1e-12, "f32": 3e-6, "f16": 2e-3, "bf16": 1.5e-2}
CASES = [  # tokens, sequences, pages of a table, pages
    (1, 1, 1, 1),
    (5, 3, 2, 9),
    (7, 2, 5, 11),
    (17, 7, 3, 24),
    (0, 2, 1, 3),
    (3, 0, 2, 4),
    (3, 2, 0, 4),
    (2, 2, 2, 0),
]
FEW = [CASES[0], *CASES[4:]]
"""For threads that are interpreted one by one."""
COMPILED = ("operator", "program", "O2")
LONG = {False: [], True: [(1, 1, 40, 41), (4, 2, 33, 70)]}
"""Lengths at which keys are split into parts, too long for interpreters."""


def _tables(n: int, sequences: int, slots: int, pages: int, size: int, random) -> list:
    """Tables of distinct pages, and tokens at any positions; some indices out of range."""
    count = max(sequences * slots, 1)
    table = random.permutation(max(pages, count))[: sequences * slots] % max(pages, 1)
    at = random.integers(0, max(slots * size, 1), n)
    if n > 2:
        at[-1] = slots * size + 3
    sequence = random.integers(0, max(sequences, 1), n)
    return [table.reshape(sequences, slots).astype("i4"), sequence.astype("i4"), at.astype("i4")]


def _expected(query, keys, values, tables, sequences, positions, scale, window, cap) -> np.ndarray:
    pages, groups, size, _ = keys.shape
    result = np.zeros_like(query)
    if not tables.size or not pages:
        return result
    for i, h in np.ndindex(query.shape[:2]):
        table = tables[np.clip(sequences[i], 0, len(tables) - 1)]
        last = int(np.clip(positions[i], 0, tables.shape[1] * size - 1))
        seen = [t for t in range(last + 1) if not window or last - t < window]
        places = [(int(np.clip(table[t // size], 0, pages - 1)), t % size) for t in seen]
        g = h // (query.shape[1] // groups)
        scores = np.array([scale * (keys[page, g, row] @ query[i, h]) for page, row in places])
        scores = cap * np.tanh(scores / cap) if cap else scores
        weights = np.exp(scores - scores.max())
        total = np.array([values[page, g, row] for page, row in places])
        result[i, h] = weights / weights.sum() @ total
    return result


def _specs(query: str, pages: str, heads: int, groups: int, size: int, d: int) -> list[Spec]:
    cache = spec(pages, "p", groups, size, d)
    tables = [spec("i32", "b", "s"), spec("i32", "n"), spec("i32", "n")]
    return [spec(query, "n", heads, d), cache, cache, *tables]


SETTINGS = [  # elements of queries and pages, heads, kv heads, size of pages, d, window, cap
    ("f32", "f32", 4, 2, 16, 16, 0, 0.0),
    ("f32", "f32", 3, 3, 4, 5, 0, 0.0),
    ("f32", "f32", 9, 3, 16, 64, 7, 0.0),
    ("f32", "bf16", 6, 1, 16, 32, 0, 2.5),
    ("bf16", "bf16", 4, 2, 16, 32, 0, 0.0),
    ("bf16", "bf16", 4, 2, 16, 32, 20, 1.5),
    ("f16", "f16", 2, 1, 3, 8, 5, 3.0),
    ("f64", "f64", 2, 2, 2, 3, 0, 1.0),
    ("f32", "f32", 20, 2, 16, 16, 0, 0.0),
]


@pytest.mark.parametrize("settings", SETTINGS)
def test_attention(settings, route: str) -> None:
    _check(*settings, route=route)


@pytest.mark.parametrize("settings", SETTINGS)
def test_compiled_attention(settings) -> None:
    _check(*settings, route="O2")


@pytest.mark.parametrize("settings", SETTINGS[2:4])
def test_attention_without_schedules(settings) -> None:
    _check(*settings, route="O0")


def _check(dtype, pages, heads, groups, size, d, window, cap, route: str) -> None:
    specs = _specs(dtype, pages, heads, groups, size, d)
    settings = {"scale": d**-0.5, "window": window, "cap": cap}
    program = Program(graph.PagedAttentionOp, *specs, **settings, route=route)
    random = np.random.default_rng(heads + d)
    sizes = FEW if route == "ptx" else [*CASES, *LONG[route == "O2"]]
    for n, sequences, slots, count in sizes:
        query = floats((n, heads, d), dtype)
        keys, values = (numbers((count, groups, size, d), pages) for _ in range(2))
        tables, sequence, position = _tables(n, sequences, slots, count, size, random)
        tokens = (tables, sequence, position)
        expected = _expected(wide(query), wide(keys), wide(values), *tokens, *settings.values())
        actual = program(query, keys, values, *tokens)
        assert actual.dtype == NUMPY[dtype]
        tolerance = TOLERANCE[dtype]
        np.testing.assert_allclose(wide(actual), expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("route", COMPILED)
def test_what_is_hidden_does_not_matter(route: str) -> None:
    """NaN after the last position, before the window, and in pages of others."""
    specs = _specs("f32", "f32", 4, 2, 16, 16)
    settings = {"scale": 0.25, "window": 18, "cap": 0.0}
    program = Program(graph.PagedAttentionOp, *specs, **settings, route=route)
    keys, values = (numbers((7, 2, 16, 16), "f32") for _ in range(2))
    tables = np.array([[5, 2, 0, 3]], np.int32)
    for last in (0, 15, 16, 37, 63):
        hidden_keys, hidden_values = np.full_like(keys, np.nan), np.full_like(values, np.inf)
        for t in range(max(0, last - 17), last + 1):
            at = (tables[0, t // 16], slice(None), t % 16)
            hidden_keys[at], hidden_values[at] = keys[at], values[at]
        query, zero = floats((1, 4, 16), "f32"), np.zeros(1, np.int32)
        tokens = (tables, zero, np.array([last], np.int32))
        expected = _expected(wide(query), wide(keys), wide(values), *tokens, *settings.values())
        actual = program(query, hidden_keys, hidden_values, *tokens)
        np.testing.assert_allclose(actual, expected, rtol=3e-6, atol=3e-6)


@pytest.mark.parametrize("dtype", ["f32", "bf16"])
def test_same_bits_in_any_batch(dtype: str) -> None:
    """A token has the result of itself alone; 2,560 keys have more parts than 2,720 have."""
    heads, groups, size, d, slots = 6, 3, 16, 32, 170
    specs = _specs(dtype, dtype, heads, groups, size, d)
    settings = {"scale": 0.25, "window": 0, "cap": 0.0}
    program = Program(graph.PagedAttentionOp, *specs, **settings, route="O2")
    positions = np.array([2719, 2559, 511, 256, 255, 127, 0], "i4")
    n = len(positions)
    query = floats((n, heads, d), dtype)
    keys, values = (numbers((slots + 5, groups, size, d), dtype) for _ in range(2))
    tables = np.random.default_rng().permutation(slots + 5)[None, :slots].astype("i4")
    tokens = (tables, np.zeros(n, "i4"), positions)
    many = program(query, keys, values, *tokens)
    expected = _expected(wide(query), wide(keys), wide(values), *tokens, *settings.values())
    tolerance = TOLERANCE[dtype]
    np.testing.assert_allclose(wide(many), expected, rtol=tolerance, atol=tolerance)
    for i in range(n):
        own = slice(i, i + 1)
        alone = program(query[own], keys, values, tables, tokens[1][own], positions[own])
        np.testing.assert_array_equal(many[own], alone)


@pytest.mark.parametrize("route", COMPILED)
def test_attention_over_8_bits(route: str) -> None:
    specs = _specs("f32", "i8", 6, 3, 16, 64)
    specs += [spec("f32", "p", 3, 16, 2)] * 2
    settings = {"scale": 0.125, "window": 0, "cap": 0.0}
    program = Program(graph.PagedAttentionOp, *specs, **settings, route=route)
    random = np.random.default_rng(5)
    query = floats((5, 6, 64), "f32")
    keys, values = (random.integers(-127, 128, (9, 3, 16, 64)).astype("i1") for _ in range(2))
    scales = [random.uniform(0.001, 0.02, (9, 3, 16, 2)).astype("f4") for _ in range(2)]
    tokens = _tables(5, 3, 2, 9, 16, random)
    decoded = [x * np.repeat(wide(s), 32, 3) for x, s in zip((keys, values), scales)]
    expected = _expected(wide(query), *decoded, *tokens, *settings.values())
    actual = program(query, keys, values, *tokens, *scales)
    np.testing.assert_allclose(actual, expected, rtol=5e-6, atol=5e-6)


@pytest.mark.parametrize("route", COMPILED)
@pytest.mark.parametrize(
    ("dtype", "size", "widths"),
    [("f32", 16, (8, 8)), ("bf16", 3, (8, 5)), ("i8", 4, (8, 8)), ("f32", 5, (6, 0))],
)
def test_append(dtype: str, size: int, widths: tuple[int, int], route: str) -> None:
    """Out of range are a sequence, positions and pages; of equal places the last token stays."""
    pages = [spec(dtype, "p", 2, size, width) for width in widths]
    new = [spec(dtype, "n", 2, width) for width in widths]
    tables = [spec("i32", "b", "s"), spec("i32", "n"), spec("i32", "n")]
    program = Program(graph.PagedKvAppendOp, *pages, *new, *tables, route=route)
    random = np.random.default_rng(size)
    for n, sequences, slots, count in CASES:
        before = [numbers((count, 2, size, width), dtype) for width in widths]
        tokens = [numbers((n, 2, width), dtype) for width in widths]
        tables, sequence, position = _tables(n, sequences, slots, count, size, random)
        if n > 4:
            sequence[0], position[1], tables[-1, -1] = sequences, -1, count + 5
            sequence[3], position[3] = sequence[2], position[2]
        expected = [x.copy() for x in before]
        for i in range(n):
            s, p = int(sequence[i]), int(position[i])
            if 0 <= s < sequences and 0 <= p < slots * size and 0 <= tables[s, p // size] < count:
                for pages, rows in zip(expected, tokens):
                    pages[tables[s, p // size], :, p % size] = rows[i]
        actual = program(*before, *tokens, tables, sequence, position)
        for x, y in zip(actual, expected):
            assert x.tobytes() == y.tobytes()
