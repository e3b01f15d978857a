"""Conversions between element types: every result is the exact value, rounded once."""

from collections.abc import Iterator

import exact
import numpy as np
import pytest
from ulps import FORMATS, Format, numbers, rounded

import relax_mlir

INTEGERS: dict[str, type[np.integer]] = {
    **{f"i{bits}": getattr(np, f"int{bits}") for bits in (8, 16, 32, 64)},
    **{f"ui{bits}": getattr(np, f"uint{bits}") for bits in (8, 16, 32, 64)},
}
DTYPES = {**{name: kind.dtype for name, kind in FORMATS.items()}, **INTEGERS, "i1": np.bool_}

pytestmark = [
    pytest.mark.skipif(not exact.is_wide(), reason="long doubles are doubles here"),
    pytest.mark.filterwarnings("ignore::RuntimeWarning"),
]


@pytest.fixture(scope="module")
def module() -> relax_mlir.Executable:
    """A function for each pair of different element types."""

    def vector(dtype: str) -> str:
        return f'tensor<?x{dtype}, #graph.shape<["n"]>>'

    functions = [
        f"""
        func.func @{a}_to_{b}(%x: {vector(a)}) -> {vector(b)} {{
          %y = "graph.astype"(%x) {{dtype = {b}}} : ({vector(a)}) -> {vector(b)}
          return %y : {vector(b)}
        }}"""
        for a, b in _pairs()
    ]
    return relax_mlir.compile("\n".join(functions))


def _pairs() -> Iterator[tuple[str, str]]:
    return ((a, b) for a in DTYPES for b in DTYPES if a != b)


def _operand(dtype: str, generator: np.random.Generator) -> np.ndarray:
    """Floats of all kinds, or integers of all lengths and next to what lies between two floats."""
    if dtype in FORMATS:
        return numbers(FORMATS[dtype], 100, generator)
    if dtype == "i1":
        return generator.integers(0, 1, 37, endpoint=True).astype(bool)
    limits = np.iinfo(INTEGERS[dtype])
    found = [int(limits.min), int(limits.max), 0]
    for length in range(1, limits.bits + 1):
        below = generator.integers(0, (1 << length) - 1, 20, np.uint64, endpoint=True)
        found += [1 << (length - 1), *map(int, below)]
        for places in (8, 11, 24, 53):  # of the formats' mantissas
            if length > places + 1:
                middle = (1 << (length - 1)) + (1 << (length - places - 2))
                found += [middle - 1, middle, middle + 1, middle + (1 << (length - places - 1))]
    found = [x for y in found for x in (y, -y) if limits.min <= x <= limits.max]
    return np.array(found, INTEGERS[dtype])


def _expected(x: np.ndarray, target: str) -> np.ndarray:
    """What the operator's text says, as long doubles or integers."""
    if target == "i1":
        return x.astype(exact.Wide) != 0
    if target in FORMATS:
        return rounded(x.astype(exact.Wide), FORMATS[target])
    if x.dtype.kind in "iub":
        return x.astype(INTEGERS[target])
    limits = np.iinfo(INTEGERS[target])
    inside = np.where(np.isnan(x), 0, np.trunc(x.astype(exact.Wide)))
    return np.clip(inside, exact.Wide(limits.min), exact.Wide(limits.max)).astype(limits.dtype)


@pytest.mark.parametrize("source", DTYPES)
def test_conversions(source: str, module: relax_mlir.Executable) -> None:
    generator = np.random.default_rng(11)
    x = _operand(source, generator)
    for a, target in _pairs():
        if a != source:
            continue
        got, expected = module[f"{a}_to_{target}"](x), _expected(x, target)
        assert got.dtype == DTYPES[target]
        wide = got.astype(exact.Wide) if target in FORMATS else got
        np.testing.assert_array_equal(wide, expected, err_msg=f"{a} to {target}")
        if target in FORMATS and source in FORMATS:
            number = ~np.isnan(x)
            np.testing.assert_array_equal(np.signbit(wide)[number], np.signbit(x)[number])


def test_reference_rounds_to_even() -> None:
    kind: Format = FORMATS["bf16"]
    values = np.array([259, 257, 2**24 + 2**16 + 1, 2**24 + 2**16, 3.4e38, 2.0**-134])
    expected = [260, 256, 16908288, 2**24, np.inf, 0]
    assert rounded(values.astype(exact.Wide), kind).tolist() == expected
