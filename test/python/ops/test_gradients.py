"""The gradient of each operator and decomposition against differences, in f64."""

from collections.abc import Sequence

import numpy as np
import pytest
from decomposed import Decomposition
from decomposition_cases import decompositions
from gradient_checks import loss_of
from harness import _CONTEXT, NUMPY, wide
from operator_cases import SIZES, Case, cases

from relax_mlir.bindings import ir
from relax_mlir.dialects import graph
from relax_mlir.dialects.graph.op import as_sequence
from relax_mlir.gradients import rule_of

WITHOUT = {
    *(graph.QuantizeOp, graph.QuantizeBlocksOp, graph.DequantizeBlocksOp),
    *(graph.PagedAttentionOp, graph.PagedKvAppendOp),
}


def _name(case: Case | Decomposition) -> str:
    return case.name


def _results(case: Case, operands: Sequence[ir.Value]) -> list[ir.Value]:
    kinds = case.op.declared_attributes()
    values = {
        name: ir.Type.parse(value) if kinds[name] is ir.TypeAttr else value
        for name, value in case.attributes.items()
    }
    return list(case.op.build(*operands, **values).operation.results)


def _rule_cases(dtype: str) -> list[Case]:
    return [c for c in cases(dtype) if rule_of(c.op) and c.op is not graph.AstypeOp]


STEPS = (graph.FloorDivideOp, graph.RemainderOp)


@pytest.mark.rotate(2)
@pytest.mark.parametrize("case", _rule_cases("f64"), ids=_name)
def test_gradient_of_operator(case: Case) -> None:
    loss = loss_of(lambda *operands: _results(case, operands), case.specs, **case.attributes)
    for sizes in SIZES:
        arrays = case.arrays(sizes)
        if case.op in STEPS:  # equal elements are at a step
            arrays[1] += 0.01
        loss.check(*arrays, **sizes)


NARROW = [(dtype, case) for dtype in ("f16", "bf16") for case in _rule_cases(dtype)]
TOLERANCE = {"f16": 4e-3, "bf16": 3e-2}


@pytest.mark.rotate(4)
@pytest.mark.parametrize(("dtype", "case"), NARROW, ids=lambda item: getattr(item, "name", item))
def test_gradient_of_narrow_floats(dtype: str, case: Case) -> None:
    """Of elements that are computed in f32 and rounded, compared with those in f64."""
    exact_case = next(c for c in _rule_cases("f64") if _kind(c) == _kind(case))
    losses = [
        loss_of(lambda *operands, c=c: _results(c, operands), c.specs, **c.attributes)
        for c in (case, exact_case)
    ]
    for sizes in ({"n": 1, "m": 1}, {"n": 7, "m": 5}):
        arrays = losses[0].arguments(case.arrays(sizes), sizes)
        results = losses[0].gradients.adjoint(*arrays)
        exact = [wide(a) if isinstance(a, np.ndarray) else a for a in arrays]
        for got, want in zip(results[1], losses[1].gradients.adjoint(*exact)[1], strict=True):
            assert got.dtype == NUMPY[dtype]
            limit = TOLERANCE[dtype]
            scale = max(1, np.abs(want).max(initial=0)) * max(1, np.sqrt(want.size) / 4)
            np.testing.assert_allclose(wide(got), want, rtol=limit, atol=limit * scale)


def _kind(case: Case) -> tuple:
    return case.op, str(case.attributes), tuple(item.dims for item in case.specs)


COMPOSED = [c for c in decompositions("f64") if any(s.dtype == "f64" for s in c.specs)]


@pytest.mark.parametrize("case", COMPOSED, ids=_name)
def test_gradient_of_decomposition(case: Decomposition) -> None:
    loss = loss_of(case.build, case.specs)
    for sizes in SIZES if loss else ():  # some make integers of floats
        loss.check(*case.case.arrays(sizes), **sizes)


def test_every_operator_from_floats_to_floats_has_a_rule() -> None:
    """What decodes or rounds weights of few bits has none, nor what serves many sequences."""
    missing = set()
    with _CONTEXT:
        for case in cases("f32"):
            kind = getattr(case.op, "op", case.op)  # of packed operands
            if rule_of(kind) is None and any(s.dtype == "f32" for s in case.specs):
                missing |= {kind} if _has_float_result(case, kind) else set()
    assert missing == WITHOUT


def _has_float_result(case: Case, kind: type) -> bool:
    operands = [graph.TensorType.make(s.dims, ir.Type.parse(s.dtype)) for s in case.specs]
    attributes = {k: ir.Type.parse(v) if k == "dtype" else v for k, v in case.attributes.items()}
    results = as_sequence(kind.infer_return_type(*operands, **attributes))
    return any(isinstance(result.element, ir.FloatType) for result in results)
