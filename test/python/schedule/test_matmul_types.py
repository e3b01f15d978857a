"""Products of every element type against NumPy: exact integers, and floats in float64 or wider.

Sums of integers are those of Python modulo 2^bits.
"""

from functools import cache

import numpy as np
import pytest
from matmul_programs import function, product, tensor
from scheduled import Built, built, runnable

TYPES = {
    "f64": np.float64, "f32": np.float32, "i64": np.int64, "i32": np.int32, "i16": np.int16,
    "i8": np.int8,
}  # fmt: skip
SIZES = [
    (0, 3, 4), (2, 0, 3), (3, 5, 0), (1, 1, 1), (1, 33, 100), (2, 7, 9), (5, 16, 17), (12, 31, 8),
    (13, 33, 65), (15, 64, 1), (65, 17, 33), (130, 65, 70),
]  # fmt: skip
DEEP = [(1, 9, 4001), (70, 9, 3100)]
RANDOM = np.random.default_rng(7)


def body(left: str, right: str, total: str) -> str:
    """total + cast(a) * cast(b)."""
    lines = [f"^bb0(%a: {left}, %b: {right}, %s: {total}):"]
    factors = []
    for name, own in (("%a", left), ("%b", right)):
        factors.append(f"{name}w" if own != total else name)
        if own != total:
            both_float = own[0] in "fb" and total[0] in "fb"
            op = "extf" if both_float else "sitofp" if total[0] == "f" else "extsi"
            lines.append(f"%{name[1:]}w = arith.{op} {name} : {own} to {total}")
    suffix = "f" if total[0] == "f" else "i"
    lines += [
        f"%p = arith.mul{suffix} {factors[0]}, {factors[1]} : {total}",
        f"%t = arith.add{suffix} %s, %p : {total}",
        f"linalg.yield %t : {total}",
    ]
    return "\n" + "\n".join(lines)


@cache
def program(left: str, right: str, total: str, layout: str, initial: float = 0) -> str:
    """x[m, k] of one type times w[`layout`] of another, summed in a third."""
    x, w, out = (tensor(None, None, element=e) for e in (left, right, total))
    text = product(
        "%c", "mnk", ("%x", "m, k", x), ("%w", ", ".join(layout), w), ("%out", "m, n", out),
        body(left, right, total),
    )  # fmt: skip
    zero = f"{float(initial)} : {total}" if total[0] == "f" else f"{initial} : {total}"
    text = text.replace("0.0 : f32", zero).replace(": f32) outs", f": {total}) outs")
    whole = function([("%x", x), ("%w", w), ("%out", out)], 1, text, "%c")
    return whole.replace("@k(", "private @k(")


def random_values(shape: tuple[int, ...], element: str) -> np.ndarray:
    """Normal floats; integers of the whole range of the type, its ends among them."""
    kind = np.dtype(TYPES[element])
    if kind.kind == "f":
        return RANDOM.standard_normal(shape).astype(kind)
    limits = np.iinfo(kind)
    x = RANDOM.integers(limits.min, limits.max, shape, dtype=kind, endpoint=True)
    ends = RANDOM.choice(np.array([limits.min, limits.max, -1, 0], kind), shape)
    return np.where(RANDOM.random(shape) < 0.3, ends, x)


def check(kernel: Built, size, left, right, total, layout, initial=0) -> None:
    """One call, with an output of NaN or a pattern."""
    m, n, k = size
    x, w = random_values((m, k), left), random_values((n, k), right)
    out = np.full((m, n), 77, TYPES[total])
    kernel(x, w if layout == "nk" else np.ascontiguousarray(w.T), out)
    kind = np.dtype(TYPES[total])
    if kind.kind == "i":
        with np.errstate(over="ignore"):
            expected = x.astype(kind) @ w.astype(kind).T + kind.type(initial)
        np.testing.assert_array_equal(out, expected)
        return
    widened = np.longdouble if total == "f64" else np.float64
    widened_x, widened_w = x.astype(widened), w.astype(widened)
    bound = np.abs(widened_x) @ np.abs(widened_w).T + abs(initial)
    error = np.abs(out - (widened_x @ widened_w.T + initial))
    assert (error <= np.finfo(kind).eps * 4 * bound).all()


ALONE = [(element, "native") for element in ("f64", "i64", "i32", "i16", "i8")]
# Vectors of two sums, and machines that have no product of 64-bit integers.
NARROW = [
    (element, target) for target in runnable("x86-64-v3", "x86-64") for element in ("f64", "i64")
]


@pytest.mark.parametrize("layout", ["nk", "kn"])
@pytest.mark.parametrize(("element", "target"), [*ALONE, *NARROW])
def test_products_of_one_type(element, target, layout):
    kernel = built(program(element, element, element, layout), target=target)
    assert kernel.rule == "matmul"
    for size in [*SIZES, *DEEP]:
        check(kernel, size, element, element, element, layout)


MIXED = [
    ("f32", "i8", "f32"), ("i8", "f32", "f32"), ("f32", "f64", "f64"), ("i32", "f64", "f64"),
    ("i8", "i8", "i64"), ("i8", "i32", "i32"), ("i8", "i8", "i16"), ("i16", "i16", "i32"),
    ("i16", "i8", "f32"),
]  # fmt: skip


@pytest.mark.parametrize(("left", "right", "total"), MIXED)
def test_products_of_mixed_types(left, right, total):
    layout = "nk" if len(left) > len(right) else "kn"
    kernel = built(program(left, right, total, layout))
    assert kernel.rule == "matmul"
    for size in [*SIZES[:9], DEEP[1]]:
        check(kernel, size, left, right, total, layout)


@pytest.mark.parametrize("element", ["f64", "i8"])
def test_sums_with_an_initial_value(element):
    kernel = built(program(element, element, element, "nk", 3))
    for size in [(1, 5, 7), (9, 33, 20), (40, 33, 70)]:
        check(kernel, size, element, element, element, "nk", 3)


def test_predicates_are_not_numeric():
    text = program("i8", "i8", "i8", "nk").replace("i8", "i1").replace("0 : i1", "false")
    assert built(text).rule != "matmul"
