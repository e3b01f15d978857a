"""What holds of all operators: each has a legalization; one without is refused or left alone."""

import pytest

from relax_mlir.bindings import ir
from relax_mlir.dialects import graph, make_context
from relax_mlir.errors import CompileError
from relax_mlir.legalize import Legalization, legalization_of, legalizations
from relax_mlir.passes import Pipeline
from relax_mlir.transforms import legalize_ops

MODULE = """
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "graph.exp"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = "graph.tanh"(%0) : (tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}
"""


def test_every_operator_has_a_legalization() -> None:
    operators = {
        kind
        for kind in vars(graph).values()
        if isinstance(kind, type)
        and issubclass(kind, graph.GraphOp)
        and "OPERATION_NAME" in vars(kind)
        and kind.has_rule()
        and not issubclass(kind, graph.DataDependentOp)  # these are expanded
    }
    assert len(operators) > 100
    shapes = {graph.MakeShapeOp, graph.ShapeOfOp, graph.TensorToShapeOp}
    devices = {graph.ToDeviceOp, graph.HintOnDeviceOp}
    assert operators - shapes - devices == set(legalizations())


@pytest.fixture
def _without_exp(monkeypatch: pytest.MonkeyPatch) -> None:
    def without(kind: type[graph.GraphOp]) -> Legalization | None:
        return None if kind is graph.ExpOp else legalization_of(kind)

    monkeypatch.setattr(legalize_ops, "legalization_of", without)


@pytest.mark.usefixtures("_without_exp")
def test_an_operator_without_one_is_refused() -> None:
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(MODULE)
        with pytest.raises(CompileError, match=r"3:8: error: 'graph.exp' op has no legalization"):
            Pipeline.parse("relax-legalize-ops").run(module)


@pytest.mark.usefixtures("_without_exp")
def test_an_operator_without_one_may_stay() -> None:
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(MODULE)
        Pipeline.parse("relax-legalize-ops{allow-unknown}").run(module, verify=True)
        names = [op.operation.name for op in module.body.operations[0].entry_block]
        assert names == ["graph.exp", "graph.call_tir", "func.return"]
