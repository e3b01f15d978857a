"""What `explain` tells agrees with what compiled code does."""

import json
import math

import numpy as np
import pytest

import relax_mlir
from relax_mlir.errors import CompileError, UsageError
from relax_mlir.symbolic import parse

TWO = """
!x = tensor<?x24xf32, #graph.shape<["n", 24]>>
!h = tensor<?x40xf32, #graph.shape<["n", 40]>>
func.func @main(%x: !x {graph.name = "x"}, %w: tensor<24x40xf32>, %v: tensor<40x24xf32>) -> !x {
  %0 = "graph.matmul"(%x, %w) : (!x, tensor<24x40xf32>) -> !h
  %1 = "graph.nn_softmax"(%0) {axis = -1 : i64} : (!h) -> !h
  %2 = "graph.matmul"(%1, %v) : (!h, tensor<40x24xf32>) -> !x
  %3 = "graph.nn_softmax"(%2) {axis = -1 : i64} : (!x) -> !x
  return %3 : !x
}
"""


@pytest.mark.parametrize("opt_level", [0, 2, 3])
def test_formula_of_temporaries_is_what_a_call_takes(opt_level):
    told = relax_mlir.explain(TWO, opt_level=opt_level)
    (main,) = (each for each in told.functions if each.name == "main")
    exe = relax_mlir.compile(TWO, opt_level=opt_level)
    rng = np.random.default_rng(0)
    for n in (1, 7, 33):
        x, w, v = (rng.standard_normal(dims, np.float32) for dims in ((n, 24), (24, 40), (40, 24)))
        exe["main"](x, w, v)
        expected = parse(main.memory.temporaries).evaluate({"n": n})
        assert expected <= exe.counters()["arena_bytes"] <= max(2 * expected, 1 << 16)
        assert parse(main.memory.results).evaluate({"n": n}) == x.nbytes


def test_bytes_of_arguments_and_kernels_that_are_called():
    told = relax_mlir.explain(TWO)
    assert parse(told.functions[0].memory.arguments).evaluate({"n": 5}) == 4 * (
        5 * 24 + 2 * 24 * 40
    )
    exe = relax_mlir.compile(TWO)
    before = exe.counters()["kernels"]
    exe["main"](*(np.ones(dims, np.float32) for dims in ((5, 24), (24, 40), (40, 24))))
    assert exe.counters()["kernels"] - before == sum(kernel.calls for kernel in told.kernels)


def test_json_has_the_same():
    told = relax_mlir.explain(TWO)
    parsed = json.loads(told.as_json())
    assert parsed["functions"][0]["symbols"] == [{"name": "n", "source": "dim 0 of 'x'"}]
    assert [each["name"] for each in parsed["kernels"]] == [each.name for each in told.kernels]
    assert "dim 0 of 'x'" in str(told)


def test_libraries_are_told():
    told = relax_mlir.explain(
        """func.func @main(%x: tensor<64x64xf32>, %y: tensor<64x64xf32>) -> tensor<64x64xf32> {
          %0 = "graph.matmul"(%x, %y) : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
          return %0 : tensor<64x64xf32>
        }""",
        libraries=["openblas"],
    )
    assert [(kernel.name, kernel.schedule) for kernel in told.kernels] == [
        ("openblas.sgemm_nn", "library")
    ]


def test_constants_and_parameters():
    rng = np.random.default_rng(0)
    module = TWO.replace("%w: tensor<24x40xf32>", '%w: tensor<24x40xf32> {graph.name = "w"}')
    told = relax_mlir.explain(module, parameters={"w": rng.standard_normal((24, 40), np.float32)})
    assert told.constant_bytes == math.prod((24, 40, 4))
    assert list(told.functions[0].arguments) == ["x", "arg1"]


def test_negative_level_and_module():
    with pytest.raises(UsageError, match="unknown optimisation level 4"):
        relax_mlir.explain(TWO, opt_level=4)
    with pytest.raises(CompileError, match="contracts dim"):
        relax_mlir.explain(TWO.replace("(%x, %w) : (!x", "(%w, %w) : (tensor<24x40xf32>"))
    library = """"lib.function"() {sym_name = "f", c_symbol = "f", convention = "cblas_sgemm_nt",
                                   libraries = ["./f.so"]} : () -> ()"""
    with pytest.raises(CompileError, match="opens a library"):
        relax_mlir.explain(library, untrusted=True)
