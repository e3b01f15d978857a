"""Passes on graph functions: the modules of their tests compute the same before and after.

Each module is interpreted on sizes that its facts allow: 0, 1, primes, neighbours of powers of two.
"""

import re
from pathlib import Path

import numpy as np
import pytest

import relax_mlir
from relax_mlir.bindings import ir
from relax_mlir.diagnostics import parse_module
from relax_mlir.dialects import make_context
from relax_mlir.errors import ExecutionError, PipelineError
from relax_mlir.passes import Pipeline
from relax_mlir.testing.equivalence import Equivalence

TESTS = Path(__file__).parents[2] / "Transforms"
PASSES = (
    "adjust-matmul-order",
    "combine-parallel-matmul",
    "convert-to-dataflow",
    "dead-code-elimination",
    "eliminate-common-subexpr",
    "expand-matmul-of-sum",
    "fold-batch-norm",
    "remove-redundant-reshape",
    "remove-unused-parameters",
    "remove-unused-results",
    "reorder-permute-dims-after-concat",
    "reorder-take-after-matmul",
    "sink-permute-dims",
    "to-non-dataflow",
    "topological-sort",
)
REPEATABLE = ("combine-parallel-matmul",)
"""Passes that may find more in what they made: products of eight can be combined again."""
EVERY = f"builtin.module({','.join(f'relax-{name}' for name in PASSES)})"


def modules(name: str) -> list[str]:
    """The parts of the pass's test file."""
    text = TESTS.joinpath(f"{name.replace('-', '_')}.mlir").read_text(encoding="utf-8")
    return re.split(r"^// -----.*$", text, flags=re.MULTILINE)


CASES = [(name, part) for name in PASSES for part in range(len(modules(name)))]


@pytest.mark.parametrize(("name", "part"), CASES)
def test_a_pass_changes_no_result(name: str, part: int) -> None:
    """Nor does the second run of a pass change its first one's module."""
    with make_context(), ir.Location.unknown():
        module = parse_module(modules(name)[part])
        before = Equivalence(module)
        assert before.compared
        pipeline = Pipeline.parse(f"builtin.module(relax-{name})")
        pipeline.run(module, verify=True)
        before.check(name, module)
        Pipeline.parse("builtin.module(relax-infer-shapes,relax-verify)").run(module)
        once = str(module)
        pipeline.run(module)
        assert str(module) == once or name in REPEATABLE


@pytest.mark.parametrize(("name", "part"), CASES)
def test_all_passes_together_change_no_result(name: str, part: int) -> None:
    with make_context(), ir.Location.unknown():
        module = parse_module(modules(name)[part])
        before = Equivalence(module)
        Pipeline.parse(EVERY).run(module, verify=True)
        before.check("all", module)


def test_an_argument_updated_in_place_is_told_the_number_of_its_result() -> None:
    with make_context(), ir.Location.unknown():
        module = parse_module(modules("remove-unused-results")[2])
        assert "graph.inout = 1" in str(module)
        Pipeline.parse("builtin.module(relax-remove-unused-results)").run(module)
        assert "graph.inout = 0" in str(module)


BOUND = """
func.func @main(%x: tensor<?x?xf32, #graph.shape<["n", "m"]>>,
    %y: tensor<?xf32, #graph.shape<["k"]>>)
    -> tensor<?xf32> attributes {graph.facts = ["n*m <= k", "k mod 2 == 0"]} {
  %0 = "graph.reshape"(%x) {shape = #graph.shape<["n*m"]>}
    : (tensor<?x?xf32, #graph.shape<["n", "m"]>>) -> tensor<?xf32, #graph.shape<["n*m"]>>
  %1 = "graph.strided_slice"(%y) {axes = array<i64: 0>, begin = #graph.shape<["k - n*m"]>,
      end = #graph.shape<["k"]>, strides = array<i64: 1>}
    : (tensor<?xf32, #graph.shape<["k"]>>) -> tensor<?xf32, #graph.shape<["n*m"]>>
  %2 = "graph.add"(%0, %1) : (tensor<?xf32, #graph.shape<["n*m"]>>,
    tensor<?xf32, #graph.shape<["n*m"]>>) -> tensor<?xf32>
  return %2 : tensor<?xf32>
}"""


@pytest.mark.parametrize(
    ("symbols", "sizes"),
    [("n=0", (0, 3, 8)), ("n=1,k=2*m", (1, 5, 10)), ("m=n,n=3", (3, 3, 12)), ("k=6", (2, 3, 6))],
)
def test_symbols_with_values(symbols: str, sizes: tuple[int, int, int]) -> None:
    """The module gives what it gave for these sizes, and refuses others."""
    n, m, k = sizes
    x = np.arange(n * m, dtype=np.float32).reshape(n, m)
    y = np.linspace(-1, 1, k, dtype=np.float32)
    before = relax_mlir.interpret(BOUND)["main"]
    with make_context(), ir.Location.unknown():
        module = parse_module(BOUND)
        Pipeline.parse(f"builtin.module(relax-bind-symbols{{symbols={symbols}}})").run(module)
        assert "tensor<?xf32>" not in str(module)
        after = relax_mlir.interpret(module)["main"]
        np.testing.assert_array_equal(after(x, y), before(x, y))
        with pytest.raises(ExecutionError):
            after(np.zeros((n + 1, m + 1), np.float32), y[:-1])


@pytest.mark.parametrize("text", ["", "n", "n=", "2=3", "n=4,n=5", "n==4"])
def test_symbols_without_values(text: str) -> None:
    with pytest.raises(PipelineError, match="symbol"):
        Pipeline.parse(f"builtin.module(relax-bind-symbols{{symbols={text}}})")
