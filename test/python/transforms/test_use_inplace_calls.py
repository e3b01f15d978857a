"""Kernels that write over an operand: compiled code and plans give what the operators mean."""

from pathlib import Path

import pytest

import relax_mlir
from relax_mlir.pipelines import pipeline
from relax_mlir.testing.calls import Calls

PARTS = Path(__file__).parents[2].joinpath("Transforms", "use_inplace_calls.mlir").read_text()
FUNCTIONS = ((0, "chain"), (1, "negative_reads"), (1, "negative_nests"), (1, "negative_loop"))


@pytest.mark.parametrize("opt_level", [1, pytest.param(2, marks=pytest.mark.sweep)])
@pytest.mark.parametrize("part", [0, 1])
def test_results_with_the_pass_in_the_pipeline(part: int, opt_level: int) -> None:
    text = PARTS.split("// -----")[part]
    before = relax_mlir.interpret(text)
    passes = pipeline(opt_level=opt_level)
    assert ",symbol-dce," in passes
    passes = passes.replace(",symbol-dce,", ",relax-use-inplace-calls,symbol-dce,")
    after = relax_mlir.compile(text, passes=passes)
    for each, name in FUNCTIONS:
        if each == part:
            calls = Calls(before[name])
            assert len(calls)
            assert calls.difference(after[name]) is None
