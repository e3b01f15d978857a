"""Library functions that need memory while they run: results at all levels, and what is shared."""

import re

import numpy as np
import pytest

import relax_mlir
from relax_mlir.bindings import ir
from relax_mlir.diagnostics import parse_module
from relax_mlir.dialects import make_context
from relax_mlir.errors import CompileError, ExecutionError, UsageError
from relax_mlir.passes import Pipeline
from relax_mlir.patterns import register_dispatch
from relax_mlir.pipelines import OPT_LEVELS, pipeline

pytestmark = pytest.mark.usefixtures("llvm_turns")

CONVOLUTION = """
!x = tensor<?x3x?x?xf32, #graph.shape<["n", 3, "h", "w"]>>
!f = tensor<5x3x{kh}x{kw}xf32>
!y = tensor<?x5x?x?xf32>
func.func @main(%x: !x, %f: !f) -> !y {{
  %0 = "graph.nn_conv2d"(%x, %f) {{strides = array<i64: {strides}>, padding = array<i64: {padding}>,
      dilation = array<i64: {dilation}>, groups = 1 : i64}} : (!x, !f) -> !y
  %1 = "graph.negative"(%0) : (!y) -> !y
  return %1 : !y
}}
"""
WINDOWS = [
    {"kh": 1, "kw": 1, "strides": "1, 1", "padding": "0, 0, 0, 0", "dilation": "1, 1"},
    {"kh": 1, "kw": 1, "strides": "2, 1", "padding": "0, 0, 0, 0", "dilation": "1, 1"},
    {"kh": 3, "kw": 3, "strides": "1, 1", "padding": "1, 1, 1, 1", "dilation": "1, 1"},
    {"kh": 3, "kw": 2, "strides": "2, 3", "padding": "0, 7, 2, 0", "dilation": "2, 1"},
]
NO_SIZES = "{when='n >= 2'}"


def convolved(x: np.ndarray, f: np.ndarray, window: dict) -> np.ndarray:
    """The negated sums of products, one by one of the filter's elements, in float64."""
    strides, (top, left, bottom, right), dilation = (
        [int(each) for each in window[name].split(",")]
        for name in ("strides", "padding", "dilation")
    )
    padded = np.pad(x.astype(np.float64), [(0, 0), (0, 0), (top, bottom), (left, right)])
    sizes = [
        (extent - (k - 1) * d - 1) // s + 1
        for extent, k, d, s in zip(padded.shape[2:], f.shape[2:], dilation, strides, strict=True)
    ]
    total = np.zeros((x.shape[0], f.shape[0], *sizes))
    for u, v in np.ndindex(*f.shape[2:]):
        at = [
            slice(i * d, i * d + (size - 1) * s + 1, s) if size else slice(0)
            for i, d, s, size in zip((u, v), dilation, strides, sizes, strict=True)
        ]
        total += np.einsum("nchw,oc->nohw", padded[:, :, at[0], at[1]], f[:, :, u, v])
    return -total


@pytest.mark.parametrize(("opt_level", "window"), list(zip(OPT_LEVELS, WINDOWS, strict=True)))
def test_convolutions_by_products(opt_level: int, window: dict) -> None:
    text = CONVOLUTION.format(**window)
    options = NO_SIZES if opt_level == 2 else "{libraries=openblas_conv}"
    options = options.replace("{when", "{libraries=openblas_conv when")
    passes = pipeline(opt_level=opt_level, libraries=["openblas_conv"])
    main = relax_mlir.compile(text, passes=passes.replace("{libraries=openblas_conv}", options))
    with make_context(), ir.Location.unknown():
        module = parse_module(text)
        steps = f"relax-infer-shapes,relax-dispatch-library{options},relax-lift-workspace"
        Pipeline.parse(steps).run(module, verify=True)
        Pipeline.parse("relax-verify").run(module)
        assert "ui8" in str(module)
        lifted = relax_mlir.interpret(module)["main"]
    generator = np.random.default_rng(opt_level)
    f = generator.standard_normal((5, 3, window["kh"], window["kw"])).astype(np.float32)
    for n, h, w in [(0, 7, 8), (1, 5, 3), (2, 7, 8), (3, 16, 33)]:
        x = generator.standard_normal((n, 3, h, w)).astype(np.float32)
        want = convolved(x, f, window)
        for got in (main["main"](x, f), lifted(x, f)):
            np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)


CHAIN = """
!x = tensor<?x?xf32, #graph.shape<["n", "m"]>>
func.func @main(%x: !x) -> !x {
  %0 = "graph.negative"(%x) : (!x) -> !x
  %1 = "graph.cumsum"(%0) {axis = 1 : i64, exclusive = false, reverse = false} : (!x) -> !x
  %2 = "graph.negative"(%1) : (!x) -> !x
  return %2 : !x
}
"""


LATER = """
  %3 = "graph.exp"(%2) : (!x) -> !x
  %4 = "graph.multiply"(%3, %1) : (!x, !x) -> !x
  %5 = "graph.multiply"(%4, %3) : (!x, !x) -> !x
  %6 = "graph.multiply"(%5, %2) : (!x, !x) -> !x
  %7 = "graph.multiply"(%6, %1) : (!x, !x) -> !x
  return %7"""


def row(name: str, **changed) -> None:
    """A function of this process that sums along rows, with a workspace of a row."""
    given = {
        "pattern": "cumsum(%x: f32[n, m]){axis = 1}",
        "operands": ["x"],
        "c_symbol": f"test.{name}",
        "convention": "dlpack",
        "providers": ["python"],
        "workspace": ["8*m", "16"],
    }
    register_dispatch("workspaces", f"workspaces.{name}", **{**given, **changed})


@pytest.mark.parametrize("when", ["", "m >= 3"])
def test_functions_of_users(when: str) -> None:
    sizes = []

    def sums(x, out, line, more):
        sizes.append((line.dtype, line.shape, more.shape))
        line[...], more[...] = 0xFF, 0xFF
        for i in range(len(x)):
            total = line.view(np.float64)
            np.cumsum(x[i], dtype=np.float64, out=total)
            out[i] = total

    relax_mlir.register_function("test.sums", sums, writes=True)
    row("sums", **({"when": when} if when else {}))
    mains = [
        relax_mlir.compile(CHAIN, opt_level=level, libraries=["workspaces"])["main"]
        for level in OPT_LEVELS
    ]
    with make_context(), ir.Location.unknown():
        module = parse_module(CHAIN)
        Pipeline.parse("relax-dispatch-library{libraries=workspaces}").run(module, verify=True)
        mains.append(relax_mlir.interpret(module)["main"])
    for n, m in [(0, 4), (3, 0), (1, 1), (5, 2), (4, 7), (2, 33)]:
        x = np.random.default_rng(m).standard_normal((n, m)).astype(np.float32)
        want = np.cumsum(x.astype(np.float64), axis=1)
        for main in mains:
            sizes.clear()
            np.testing.assert_allclose(main(x), want, rtol=1e-6, atol=1e-6)
            called = not when or m >= 3
            assert sizes == [(np.uint8, (8 * m,), (16,))] * called


def test_a_workspace_shares_memory_with_later_tensors() -> None:
    relax_mlir.register_function("test.shares", lambda *_: None, writes=True)
    # Later, %1 to %4 are needed at a time: one more than while the function runs.
    text = CHAIN.replace("return %2", LATER)

    def planned(**changed) -> list[str]:
        row("shares", **changed)
        passes = pipeline(opt_level=1, libraries=["workspaces"])
        passes = passes.replace(",relax-to-host{target=native}", ",relax-check-memory-plan")
        with make_context(), ir.Location.unknown():
            module = parse_module(text)
            Pipeline.parse(passes).run(module)
            return re.findall(r'alloc_storage"\(\) \{size = #graph.shape<\["([^"]*)', str(module))

    assert planned(workspace=["4*n*m"]) == planned(workspace=[])


def test_a_function_must_write_to_it() -> None:
    relax_mlir.register_function("test.returns", lambda x: x)
    row("returns")
    main = relax_mlir.compile(CHAIN, opt_level=1, libraries=["workspaces"])["main"]
    with pytest.raises(ExecutionError, match=r"'test.returns' returns 1 values, but 3 are expecte"):
        main(np.ones((2, 2), np.float32))


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"workspace": ["4*m +"]}, "library function 'workspaces.wrong'"),
        (
            {"workspace": ["4"], "convention": "cblas_sgemm_nn"},
            "has workspaces of its own, which functions of the convention 'dlpack' take",
        ),
    ],
)
def test_wrong_rows_are_refused(changed: dict, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        row("wrong", **changed)


def test_sizes_are_of_what_the_pattern_names() -> None:
    row("sums", workspace=["4*k"])
    located = r":5:8: error: 'graph.cumsum' op matches 'workspaces.sums', of m, n, but '4\*k' names"
    with pytest.raises(CompileError, match=located):
        relax_mlir.compile(CHAIN, opt_level=1, libraries=["workspaces"])


def test_a_negative_size_is_refused() -> None:
    relax_mlir.register_function("test.sums", lambda x, out, more: None, writes=True)
    row("sums", workspace=["m - 3"])
    main = relax_mlir.compile(CHAIN, opt_level=1, libraries=["workspaces"])["main"]
    main(np.ones((2, 3), np.float32))
    with pytest.raises(ExecutionError, match="m - 3"):
        main(np.ones((2, 2), np.float32))
