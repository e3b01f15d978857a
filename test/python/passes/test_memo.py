"""What a pipeline remembers of types and rules changes nothing but how often rules are applied."""

from collections import Counter
from collections.abc import Iterator

import pytest

from relax_mlir.bindings import ir
from relax_mlir.dialects import make_context
from relax_mlir.dialects.graph import (
    AddOp,
    ExpOp,
    GraphOp,
    ShapeError,
    SoftmaxOp,
    annotation_of,
    assumptions,
    remembering,
    to_mlir,
)
from relax_mlir.passes import Pipeline
from relax_mlir.rewriting import walk_ops

N = 'tensor<?x4xf32, #graph.shape<["n", 4]>>'
M = 'tensor<?x4xf32, #graph.shape<["m", 4]>>'
ADDS = f"""
func.func @main(%x: {N}, %y: {M}) -> {N} {{
  %0 = "graph.add"(%x, %y) : ({N}, {M}) -> {N}
  %1 = "graph.add"(%0, %y) : ({N}, {M}) -> {N}
  return %1 : {N}
}}
"""
WRONG = f"""
func.func @main(%x: {N}) -> tensor<5x5xf32> {{
  %0 = "graph.exp"(%x) : ({N}) -> {N}
  %1 = "graph.exp"(%0) : ({N}) -> tensor<5x5xf32>
  return %1 : tensor<5x5xf32>
}}
"""
SOFTMAX = f"""
func.func @main(%x: {N}) -> {N} {{
  %0 = "graph.nn_softmax"(%x) {{axis = 0 : i64}} : ({N}) -> {N}
  %1 = "graph.nn_softmax"(%0) {{axis = AXIS : i64}} : ({N}) -> {N}
  return %1 : {N}
}}
"""


@pytest.fixture(autouse=True)
def context() -> Iterator[None]:
    with make_context(), ir.Location.unknown():
        yield


@pytest.fixture
def applied(monkeypatch: pytest.MonkeyPatch) -> Counter[type[GraphOp]]:
    """How often the rule of each class was applied."""
    counts: Counter[type[GraphOp]] = Counter()
    apply_rule = GraphOp.apply_rule.__func__  # type: ignore[attr-defined]

    def counted(cls: type[GraphOp], *arguments: object) -> object:
        counts[cls] += 1
        return apply_rule(cls, *arguments)

    monkeypatch.setattr(GraphOp, "apply_rule", classmethod(counted))
    return counts


def test_a_remembered_rule_notes_what_it_takes_for_granted(applied: Counter[type[GraphOp]]) -> None:
    module = ir.Module.parse(ADDS)
    first, second = walk_ops(module, AddOp)
    with assumptions() as expected:
        first.check()
    assert [str(fact) for fact in expected] == ["n == m"]
    applied.clear()
    with remembering():
        for op in (first, second, first):
            with assumptions() as assumed:
                op.check()
            assert assumed == expected
    assert applied == {AddOp: 1}


def test_attributes_tell_rules_apart() -> None:
    module = ir.Module.parse(SOFTMAX.replace("AXIS", "7"))
    first, second = walk_ops(module, SoftmaxOp)
    with remembering():
        first.check()
        for _ in range(2):
            with pytest.raises(ShapeError, match="axis"):
                second.check()
        first.check()


def test_declared_results_tell_checks_apart() -> None:
    module = ir.Module.parse(WRONG)
    first, second = walk_ops(module, ExpOp)
    with remembering():
        first.check()
        with pytest.raises(ShapeError, match="infers result type"):
            second.check()


def test_operands_tell_rules_apart() -> None:
    module = ir.Module.parse(ADDS)
    (add, _), main = walk_ops(module, AddOp), module.body.operations[0]
    x, y = main.arguments
    with remembering(), ir.InsertionPoint(add):
        types = [to_mlir(annotation_of(ExpOp.build(value).result)) for value in (x, y, x)]
        assert [*map(str, types)] == [N, M, N]
        assert ExpOp.build(y).infer() == [annotation_of(y)]
        assert ExpOp.build(x).infer() == [annotation_of(x)]


def test_annotations_are_those_of_their_context() -> None:
    with remembering():
        here = ir.Type.parse(N)
        with make_context(), ir.Location.unknown():
            there = ir.Type.parse(N)
            assert to_mlir(annotation_of(there)) == there
        assert to_mlir(annotation_of(here)) == here
        assert here.context != there.context


def test_alike_ops_are_inferred_once(applied: Counter[type[GraphOp]]) -> None:
    """Four passes apply the rule of fifty alike ops once altogether."""
    lines = [f'%{i + 1} = "graph.add"(%{i}, %y) : ({N}, {N}) -> {N}' for i in range(50)]
    text = f"func.func @main(%0: {N}, %y: {N}) -> {N} {{\n" + "\n".join(lines)
    module = ir.Module.parse(text + f"\nreturn %50 : {N}\n}}")
    passes = "relax-infer-shapes,relax-verify,relax-name-dims,relax-state-assumptions"
    Pipeline.parse(f"builtin.module({passes})").run(module)
    assert applied[AddOp] == 1
