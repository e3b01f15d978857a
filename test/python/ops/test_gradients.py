"""The gradient of each operator and decomposition against differences, in f64."""

from collections.abc import Sequence

import pytest
from decomposition_cases import Decomposition, decompositions
from gradient_checks import loss_of
from operator_cases import SIZES, Case, cases

from relax_mlir.bindings import ir
from relax_mlir.dialects import graph
from relax_mlir.gradients import rule_of

QUANTISED = {
    *(graph.QuantizeOp, graph.QuantizeBlocksOp),
    *(graph.DequantizeOp, graph.DequantizeBlocksOp, graph.DequantizeRowsOp),
}
TO_INTEGERS = {
    *(graph.EqualOp, graph.NotEqualOp, graph.LessOp, graph.LessEqualOp),
    *(graph.GreaterOp, graph.GreaterEqualOp, graph.SignbitOp),
    *(graph.IsfiniteOp, graph.IsinfOp, graph.IsnanOp),
    *(graph.ArgmaxOp, graph.ArgminOp, graph.SearchsortedOp, graph.BitcastOp),
}
INTEGERS = ("bucketize",)


def _name(case: Case | Decomposition) -> str:
    return case.name


def _results(case: Case, operands: Sequence[ir.Value]) -> list[ir.Value]:
    kinds = case.op.declared_attributes()
    values = {
        name: ir.Type.parse(value) if kinds[name] is ir.TypeAttr else value
        for name, value in case.attributes.items()
    }
    return list(case.op.build(*operands, **values).operation.results)


STEPS = (graph.FloorDivideOp, graph.RemainderOp)
OPERATORS = [case for case in cases("f64") if rule_of(case.op) and case.op is not graph.AstypeOp]


@pytest.mark.parametrize("case", OPERATORS, ids=_name)
def test_gradient_of_operator(case: Case) -> None:
    loss = loss_of(lambda *operands: _results(case, operands), case.specs, **case.attributes)
    for sizes in SIZES:
        arrays = case.arrays(sizes)
        if case.op in STEPS:  # equal elements are at a step
            arrays[1] += 0.01
        loss.check(*arrays, **sizes)


COMPOSED = [case for case in decompositions("f64") if case.name not in INTEGERS]


@pytest.mark.parametrize("case", COMPOSED, ids=_name)
def test_gradient_of_decomposition(case: Decomposition) -> None:
    loss = loss_of(case.build, case.specs)
    for sizes in SIZES:
        loss.check(*case.case.arrays(sizes), **sizes)


def test_every_operator_from_floats_to_floats_has_a_rule() -> None:
    """What decodes or rounds weights of few bits has none."""
    missing = set()
    for case in cases("f32"):
        kind = getattr(case.op, "op", case.op)  # of packed operands
        if rule_of(kind) is None and any(s.dtype == "f32" for s in case.specs):
            missing.add(kind)
    assert missing - QUANTISED == TO_INTEGERS
