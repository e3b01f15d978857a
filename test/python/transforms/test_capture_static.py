"""Runs of calls as functions of their own: results, and equal layers share one."""

import re

import numpy as np
import pytest

import relax_mlir
from relax_mlir.bindings import ir
from relax_mlir.diagnostics import parse_module
from relax_mlir.dialects import make_context
from relax_mlir.errors import ExecutionError
from relax_mlir.passes import Pipeline
from relax_mlir.pipelines import pipeline
from relax_mlir.testing.calls import Calls

LAYER = """
  %a{i} = "graph.matmul"(%h{i}, %w{i}) : (!x, !w) -> !x
  %b{i} = "graph.nn_softmax"(%a{i}) {{axis = 1 : i64}} : (!x) -> !x
  %c{i} = "graph.add"(%b{i}, %h{i}) : (!x, !x) -> !x
  %h{next} = "graph.nn_relu"(%c{i}) : (!x) -> !x
"""
LAYERS = 6
CAPTURE = "relax-capture-static{symbols=n max-size=SIZE}"


def model(dim: str) -> str:
    """Equal layers, on rows of which there are as many as `dim` says."""
    weights = ", ".join(f"%w{i}: !w" for i in range(LAYERS))
    body = "".join(LAYER.format(i=i, next=i + 1) for i in range(LAYERS))
    rows = "?" if dim == '"n"' else dim
    encoding = f", #graph.shape<[{dim}, 8]>" if rows == "?" else ""
    return f"""
!x = tensor<{rows}x8xf32{encoding}>
!w = tensor<8x8xf32>
func.func @main(%h0: !x, {weights}) -> !x {{{body}  return %h{LAYERS} : !x
}}"""


def capturing(opt_level: int, size: int) -> str:
    """The default pipeline, in which runs of that many calls are captured."""
    steps = CAPTURE.replace("SIZE", str(size))
    return pipeline(opt_level=opt_level).replace("relax-lower-calls", f"{steps},relax-lower-calls")


@pytest.mark.parametrize(("opt_level", "size"), [(0, 4), (1, 3), (2, 64), (3, 2)])
@pytest.mark.parametrize("dim", ['"n"', "5"])
def test_captured_runs_compute_the_same(dim: str, opt_level: int, size: int) -> None:
    text = model(dim)
    calls = Calls(relax_mlir.interpret(text)["main"])
    compiled = relax_mlir.compile(text, passes=capturing(opt_level, size))["main"]
    assert calls.difference(compiled) is None


def test_equal_layers_are_one_function() -> None:
    with make_context(), ir.Location.unknown():
        module = parse_module(model('"n"'))
        steps = CAPTURE.replace("SIZE", "4")
        Pipeline.parse(f"builtin.module(relax-legalize-ops,{steps})").run(module, verify=True)
        calls = re.findall(r'"graph.call"\(.*callee = @(\w+)', str(module))
        assert calls == ["captured"] * LAYERS


def test_runs_state_the_facts_of_their_callers() -> None:
    text = model('"n"').replace("-> !x {", '-> !x attributes {graph.facts = ["n <= 8"]} {')
    passes = capturing(2, 64).replace("relax-plan-memory", "relax-plan-memory{static=true}")
    compiled, meant = (
        relax_mlir.compile(text, passes=passes)["main"],
        relax_mlir.interpret(text)["main"],
    )
    generator = np.random.default_rng(0)
    weights = [generator.standard_normal((8, 8), np.float32) for _ in range(LAYERS)]
    for n in (0, 1, 5, 8):
        x = generator.standard_normal((n, 8), np.float32)
        np.testing.assert_allclose(compiled(x, *weights), meant(x, *weights), rtol=1e-4, atol=1e-5)
    with pytest.raises(ExecutionError, match="n <= 8"):
        compiled(np.zeros((9, 8), np.float32), *weights)
