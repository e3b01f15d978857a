"""Every operator, compiled for other CPUs, against what it means: see `ops/test_compiled.py`."""

from collections.abc import Sequence

import pytest
from cpu_modules import LONG, run
from harness import FLOATS, INTEGERS, SMALL_FLOATS, UNSIGNED, spec
from operator_cases import Case, cases
from test_compiled import module_of

import relax_mlir
from relax_mlir.compiler import compile_to_file
from relax_mlir.dialects import graph

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
    check(target, list(cases(dtype))[part::PART], SIZES)


@pytest.mark.rotate(4)
@pytest.mark.parametrize("width", [32, 64])
@pytest.mark.parametrize("target", ["aarch64-v8.6", "neoverse-v1"])
def test_attention_to_pages_by_pairs(target: str, width: int) -> None:
    """Features of bf16 in multiples of 32 are multiplied in pairs."""
    heads, pages = spec("bf16", "n", 4, width), spec("bf16", "m", 2, 16, width)
    tables = [spec("i32", 3, "m"), spec("i32", "n"), spec("i64", "n")]
    settings = {"scale": 0.2, "window": width - 32, "cap": 2.0}
    case = Case(graph.PagedAttentionOp, [heads, pages, pages, *tables], settings)
    check(target, [case], [{"n": n, "m": m} for n, m in ((0, 3), (1, 1), (17, 7), (33, 2))])


def check(target: str, found: Sequence[Case], all_sizes: Sequence[dict[str, int]]) -> None:
    """Compares the operators on a CPU with what they mean."""
    text = module_of(found)
    meant = relax_mlir.interpret(text)
    compiled = run(compile_to_file(text, target), target, by_qemu=True)
    wrong = []
    for case in found:
        for sizes in all_sizes:
            try:
                case.compare(compiled[case.name], meant[case.name], sizes)
            except AssertionError as error:
                wrong.append(str(error))
    assert not wrong, "\n".join(wrong)
