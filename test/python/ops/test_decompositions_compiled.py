"""Every decomposition, compiled, against the interpreted operators that it is made of."""

import pytest
from decomposed import module_of
from decomposition_cases import decompositions
from operator_cases import SIZES

import relax_mlir
from relax_mlir import decompositions as exported

# What is computed in one way for two types is sampled.
ALL = slice(None)
SAMPLES = {"bf16": slice(0, None, 2), "f64": slice(1, None, 2), "ui8": slice(0, None, 2)}


PARTS = 8
"""Of the cases of a type; each is compiled as one module."""


@pytest.mark.rotate(16)
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("dtype", ["f32", "bf16", "f64", "i32", "ui8"])
def test_decompositions(dtype: str, part: int) -> None:
    sampled = list(decompositions(dtype))[SAMPLES.get(dtype, ALL)]
    cases = {each.name: each for each in sampled[part::PARTS]}
    text = module_of({name: (each.build, each.specs) for name, each in cases.items()})
    compiled, meant = relax_mlir.compile(text), relax_mlir.interpret(text)
    for name, each in cases.items():
        for sizes in SIZES:
            try:
                each.case.compare(compiled[name], meant[name], sizes)
            except AssertionError as error:
                raise AssertionError(f"{name}: {error}") from None


def test_every_decomposition_is_here() -> None:
    names = [each.name for each in decompositions("f32")]
    missing = [name for name in exported.__all__ if not any(n.startswith(name) for n in names)]
    assert missing == []
