"""Operators that libraries compute: results, the choice at run time, rows of users, absent ones."""

import numpy as np
import pytest

import relax_mlir
from relax_mlir.bindings import ir
from relax_mlir.dialects import make_context
from relax_mlir.errors import CompileError, PipelineError, RelaxError, UsageError
from relax_mlir.passes import Pipeline
from relax_mlir.patterns import register_dispatch, rows_of
from relax_mlir.pipelines import pipeline

pytestmark = pytest.mark.usefixtures("llvm_turns")

MODULE = """
!x = tensor<?x17x{element}, #graph.shape<["n", 17]>>
!y = tensor<?x33x{element}, #graph.shape<["n", 33]>>
!z = tensor<?x3x17x{element}, #graph.shape<["n", 3, 17]>>
!r = tensor<?x3x33x{element}, #graph.shape<["n", 3, 33]>>
!w = tensor<33x17x{element}>
!v = tensor<17x33x{element}>
func.func @main(%x: !x, %z: !z, %w: !w, %v: !v) -> (!y, !y, !r) {{
  %t = "graph.permute_dims"(%w) {{axes = array<i64: 1, 0>}} : (!w) -> !v
  %0 = "graph.matmul"(%x, %t) : (!x, !v) -> !y
  %1 = "graph.matmul"(%x, %v) : (!x, !v) -> !y
  %2 = "graph.exp"(%1) : (!y) -> !y
  %3 = "graph.matmul"(%z, %v) : (!z, !v) -> !r
  return %0, %2, %3 : !y, !y, !r
}}
"""


def dispatched(options: str, opt_level: int) -> str:
    """The default pipeline with the pass in it."""
    passes = pipeline(opt_level=opt_level, libraries=["openblas"])
    return passes.replace("{libraries=openblas}", options)


@pytest.mark.parametrize("element", ["f32", "f64"])
@pytest.mark.parametrize(
    ("options", "opt_level"), [("", 0), ("{when='m >= 16'}", 2), ("{when='m*n < k*400'}", 1)]
)
def test_results_with_a_library(element: str, options: str, opt_level: int) -> None:
    text = MODULE.format(element=element)
    exe = relax_mlir.compile(text, passes=dispatched(options, opt_level))
    meaning = relax_mlir.interpret(text)["main"]
    dtype = np.float32 if element == "f32" else np.float64
    generator = np.random.default_rng(7)
    w, v = (generator.standard_normal(shape).astype(dtype) for shape in [(33, 17), (17, 33)])
    for n in (0, 1, 5, 6, 15, 16, 17, 64):
        x, z = (generator.standard_normal((n, *dims, 17)).astype(dtype) for dims in [(), (3,)])
        arguments = [x, z / 4, w / 4, v / 4]
        want = [
            x.astype(np.float64) @ arguments[2].T.astype(np.float64),
            np.exp(x.astype(np.float64) @ arguments[3].astype(np.float64)),
            arguments[1].astype(np.float64) @ arguments[3].astype(np.float64),
        ]
        tolerance = 1e-4 if element == "f32" else 1e-12
        for got, interpreted, value in zip(exe["main"](*arguments), meaning(*arguments), want):
            np.testing.assert_allclose(got, value, rtol=tolerance, atol=tolerance)
            np.testing.assert_allclose(interpreted, value, rtol=tolerance, atol=tolerance)


def test_the_choice_is_interpreted_alike() -> None:
    text = MODULE.format(element="f32")
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        Pipeline.parse("relax-dispatch-library{when='m >= 16'}").run(module, verify=True)
        Pipeline.parse("relax-verify").run(module)
        assert str(module).count("scf.if") == 3
        after, before = relax_mlir.interpret(module)["main"], relax_mlir.interpret(text)["main"]
        for n in (0, 5, 6, 15, 16):
            arrays = [np.ones(s, np.float32) for s in [(n, 17), (n, 3, 17), (33, 17), (17, 33)]]
            for got, want in zip(after(*arrays), before(*arrays), strict=True):
                np.testing.assert_allclose(got, want, rtol=1e-5)


def register(function: str, **changed) -> None:
    """Registers a function of a library that does not exist."""
    row = {
        "pattern": "matmul(%a: f32[...m, k], %b: f32[k, n])",
        "operands": ["a", "b"],
        "c_symbol": "no_such_sgemm",
        "convention": "cblas_sgemm_nn",
        "providers": ["libnosuchlibrary.so.1"],
    }
    register_dispatch("absent", function, **{**row, **changed})


def test_a_library_that_is_not_there_is_refused() -> None:
    register("absent.sgemm", when="m >= 1")
    assert [str(row) for row in rows_of(["absent"])] == [
        "absent.sgemm(a, b) = matmul(%a: f32[...m, k], %b: f32[k, n]) when m >= 1"
    ]
    passes = pipeline(opt_level=1, libraries=["absent"])
    assert __name__ in Pipeline.parse(passes).modules()
    with pytest.raises(RelaxError, match=r"'no_such_sgemm' is in none of: libnosuchlibrary.so.1"):
        relax_mlir.compile(MODULE.format(element="f32"), passes=passes)
    required = passes.replace("{libraries=absent}", "{libraries=absent require}")
    located = (
        r"13:8: error: 'graph.matmul' op matches 'absent.sgemm', but 'no_such_sgemm' is in none"
    )
    with pytest.raises(CompileError, match=located):
        relax_mlir.compile(MODULE.format(element="f32"), passes=required)
    with pytest.raises(
        PipelineError, match=r"unknown library 'blas'; known are absent, cublas, openblas,"
    ):
        Pipeline.parse("relax-dispatch-library{libraries=blas}")


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"pattern": "matmul("}, "expects a pattern"),
        ({"when": "m >"}, "library function 'absent.wrong'"),
        ({"work": "m *"}, "library function 'absent.wrong'"),
        ({"operands": ["a", "c"]}, "'c' is no capture of"),
        ({"convention": "cblas_cgemm"}, "convention 'cblas_cgemm'; did you mean"),
    ],
)
def test_wrong_rows_are_refused(changed: dict, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        register("absent.wrong", **changed)
