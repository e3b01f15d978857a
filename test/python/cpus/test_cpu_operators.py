"""Every operator, compiled for other CPUs, against what it means: see `ops/test_compiled.py`."""

import pytest
from cpu_modules import LONG, run
from harness import FLOATS, INTEGERS, SMALL_FLOATS, UNSIGNED
from operator_cases import cases
from test_compiled import module_of

import relax_mlir
from relax_mlir.compiler import compile_to_file

TARGETS = ("aarch64-v8.2", "aarch64-v8.6", "armv7", "riscv64", "riscv64-v", *LONG)
TYPES = (*FLOATS, *INTEGERS, *UNSIGNED, *SMALL_FLOATS, "i1")
SIZES = ({"n": 0, "m": 3}, {"n": 7, "m": 5}, {"n": 17, "m": 16})
PART = 8
"""A module has every eighth operator: all together take minutes."""
ONE_A_DAY = len(TARGETS) * len(TYPES) * PART


@pytest.mark.rotate(ONE_A_DAY // 3)
@pytest.mark.parametrize("part", range(PART))
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("target", TARGETS)
def test_operators(target: str, dtype: str, part: int) -> None:
    found = list(cases(dtype))[part::PART]
    text = module_of(found)
    meant = relax_mlir.interpret(text)
    compiled = run(compile_to_file(text, target), target, by_qemu=True)
    wrong = []
    for case in found:
        for sizes in SIZES:
            try:
                case.compare(compiled[case.name], meant[case.name], sizes)
            except AssertionError as error:
                wrong.append(str(error))
    assert not wrong, "\n".join(wrong)
