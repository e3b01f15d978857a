"""Groups of ops by patterns, merged, called or inlined: results stay, interpreted and compiled."""

import pytest
from random_graphs import BINARY, FLOAT_UNARY, UNARY, RandomGraph

import relax_mlir
from relax_mlir.analysis.functions import COMPOSITE, NOINLINE, graph_functions
from relax_mlir.bindings import ir
from relax_mlir.dialects import make_context
from relax_mlir.errors import PipelineError, UsageError
from relax_mlir.passes import Pipeline, load_passes
from relax_mlir.patterns import register_pattern
from relax_mlir.pipelines import pipeline
from relax_mlir.testing.calls import Calls
from relax_mlir.testing.equivalence import Equivalence

SIMPLE = " | ".join(
    op.OPERATION_NAME.removeprefix("graph.") for op in (*FLOAT_UNARY, *UNARY, *BINARY)
)
MATCH = f"a.three = ({SIMPLE}) ^ ({SIMPLE}) ^ ({SIMPLE}); b.pair = _ ^ concat; a.one = {SIMPLE}"
FUSE = f'relax-fuse-ops-by-pattern{{match="{MATCH}"}}'
MERGE = "relax-merge-composite-functions"


@pytest.mark.rotate(4)
@pytest.mark.parametrize("seed", range(200, 224))
def test_groups_of_random_graphs_compute_the_same(seed: int) -> None:
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(RandomGraph(seed, "f32", 40).text)
        before = Equivalence(module, seed)
        pipeline = Pipeline.parse(f"builtin.module({FUSE},{MERGE},relax-verify)")
        pipeline.run(module, verify=True, after_each=before.check)
        composites = [f for f in graph_functions(module.operation) if COMPOSITE in f.attributes]
        assert composites
        Pipeline.parse("builtin.module(relax-inline-functions)").run(module)
        before.check("inline", module)
        assert "graph.call" not in str(module)


@pytest.mark.parametrize("opt_level", [0, pytest.param(2, marks=pytest.mark.sweep), 3])
def test_groups_are_compiled_as_functions_and_inlined(opt_level: int) -> None:
    with make_context(), ir.Location.unknown():
        text = RandomGraph(300, "f32", 24).text
        module = ir.Module.parse(text)
        Pipeline.parse(f"builtin.module({FUSE},{MERGE})").run(module)
        inlined = str(module)
        for function in graph_functions(module.operation):
            if COMPOSITE in function.attributes:
                function.attributes[NOINLINE] = ir.UnitAttr.get()
        called = str(module)
    calls = Calls(relax_mlir.interpret(text)["main"])
    assert calls.difference(relax_mlir.compile(inlined, opt_level=opt_level)["main"]) is None
    assert calls.difference(relax_mlir.compile(called, opt_level=opt_level)["main"]) is None


def test_the_pass_is_a_step_of_a_pipeline() -> None:
    passes = pipeline(opt_level=1).replace("relax-inline", f"{FUSE},{MERGE},relax-inline", 1)
    text = RandomGraph(301, "f32", 12).text
    after = relax_mlir.compile(text, passes=passes)["main"]
    assert Calls(relax_mlir.interpret(text)["main"]).difference(after) is None


def test_registered_patterns_are_part_of_what_a_module_depends_on(tmp_path) -> None:
    file = tmp_path / "own_patterns.py"
    file.write_text("import relax_mlir.patterns\n")
    with pytest.raises(UsageError, match="no class in it is a Pass"):
        load_passes(str(file))
    other = tmp_path / "registers.py"
    other.write_text(
        "from relax_mlir.patterns import register_pattern\nregister_pattern('own.exp', 'exp')\n"
    )
    assert load_passes(str(other)) == []
    parsed = Pipeline.parse("relax-fuse-ops-by-pattern{patterns=own.exp}")
    assert any("registers" in module for module in parsed.modules())
    register_pattern("here.exp", "exp")
    parsed = Pipeline.parse("relax-fuse-ops-by-pattern{patterns=here.exp}")
    assert __name__ in parsed.modules()


def test_names_that_are_wrong_are_refused() -> None:
    with pytest.raises(UsageError, match="'a b' is no name for a pattern"):
        register_pattern("a b", "exp")
    register_pattern("test.known", "exp")
    with pytest.raises(PipelineError, match=r"'test.knwn' is registered; did you mean"):
        Pipeline.parse("relax-fuse-ops-by-pattern{patterns=test.knwn}")
    assert str(Pipeline.parse(FUSE)) == f"builtin.module({FUSE})"


FORK = """
!x = tensor<?x8xf32, #graph.shape<["n", 8]>>
func.func @main(%x: !x, %w: tensor<8x8xf32>) -> (!x, !x) {
  %0 = "graph.nn_relu"(%x) : (!x) -> !x
  %1 = "graph.matmul"(%0, %w) : (!x, tensor<8x8xf32>) -> !x
  %2 = "graph.exp"(%1) : (!x) -> !x
  %3 = "graph.negative"(%0) : (!x) -> !x
  return %2, %3 : !x, !x
}
"""


def test_ops_whose_operands_a_group_changed_are_grouped_later() -> None:
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(FORK)
        before = Equivalence(module)
        match = "a.first = nn_relu ^ negative | matmul ^ exp | matmul"
        steps = f"relax-fuse-ops-by-pattern{{match='{match}'}},{MERGE}"
        Pipeline.parse(f"builtin.module({steps})").run(module, verify=True)
        before.check("fuse", module)
        assert str(module).count("graph.composite") == 2
        assert str(module).count("graph.codegen") == 1  # both are one function
