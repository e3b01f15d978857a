"""Pipelines as values: parsing, printing, running, timing."""

import io
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from relax_mlir.bindings import ir, passmanager
from relax_mlir.dialects import make_context
from relax_mlir.errors import CompileError, PipelineError, UsageError
from relax_mlir.passes import Pass, PassFailure, Pipeline, Timing, load_passes, own_passes
from relax_mlir.passes.elements import Nested
from relax_mlir.passes.names import pass_name
from relax_mlir.passes.upstream import UPSTREAM_DIALECTS, UPSTREAM_PASSES

MODULE = """
func.func @twice(%x: i32) -> (i32, i32) {
  %0 = arith.addi %x, %x : i32
  %1 = arith.addi %x, %x {test.fail} : i32
  return %0, %1 : i32, i32
}
"""


@pytest.fixture(autouse=True, scope="module")
def _test_passes():
    load_passes(str(Path(__file__).parents[2] / "lib" / "test_passes.py"))


@pytest.fixture
def module():
    with make_context(), ir.Location.unknown():
        yield ir.Module.parse(MODULE)


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("", "builtin.module()"),
        ("cse", "builtin.module(cse)"),
        ("builtin.module()", "builtin.module()"),
        (" builtin.module ( cse , func.func( cse ) ) ", "builtin.module(cse,func.func(cse))"),
        ("canonicalize{ max-iterations=3 }", "builtin.module(canonicalize{max-iterations=3})"),
        ("canonicalize{}", "builtin.module(canonicalize)"),
        ("cse,func.func(cse)", "builtin.module(cse,func.func(cse))"),
        ("any(cse)", "any(cse)"),
        ("test-tag{}", "builtin.module(test-tag)"),
        ("test-tag{count=8}", "builtin.module(test-tag)"),
        ("test-tag{verbose}", "builtin.module(test-tag{verbose=true})"),
        ("test-tag{names={a,b}}", "builtin.module(test-tag{names=a,b})"),
        ("test-tag{names='a b,c'}", 'builtin.module(test-tag{names="a b,c"})'),
        ("""test-tag{target='a"b'}""", """builtin.module(test-tag{target='a"b'})"""),
        ('test-tag{target="a{b}\'c"}', 'builtin.module(test-tag{target="a{b}\'c"})'),
        ("test-tag{target=''}", 'builtin.module(test-tag{target=""})'),
        ("test-tag{share=1e-3 count=-1}", "builtin.module(test-tag{count=-1 share=0.001})"),
    ],
)
def test_printed_pipeline_parses_back(text, printed):
    pipeline = Pipeline.parse(text)
    assert str(pipeline) == printed
    assert Pipeline.parse(printed) == pipeline


@pytest.mark.parametrize(
    "text", ["cse{", "(cse)", "cse cse", "cse,", "test-tag{=4}", "test-tag{a=b=c}"]
)
def test_malformed_pipeline_is_refused(text):
    with pytest.raises(PipelineError):
        Pipeline.parse(text)


def test_parsing_needs_no_context_and_leaves_none():
    Pipeline.parse("cse,func.func(canonicalize)")
    assert ir.Context.current is None


def test_failure_carries_located_diagnostics(module):
    with pytest.raises(CompileError, match="op must not be here") as caught:
        Pipeline.parse("test-fail").run(module)
    (error,) = caught.value.diagnostics
    assert (error.severity, error.file, error.line) == ("error", "-", 4)
    assert [note.message for note in error.notes] == ["in this"]
    assert str(caught.value).splitlines()[0] == "-:4:8: error: 'arith.addi' op must not be here"


def test_upstream_failure_is_cut(module):
    body = "\n".join(f"%c{i} = arith.constant {i} : index" for i in range(1000))
    big = ir.Module.parse(f"func.func @f() {{ {body}\n return }}")
    with pytest.raises(CompileError) as caught:
        Pipeline.parse("func.func(symbol-dce),cse").run(big)
    assert "does not define a symbol table" in str(caught.value)
    assert "more lines" in str(caught.value)
    assert len(str(caught.value)) < 4000


def test_emitted_errors_fail_the_pass(module):
    with pytest.raises(CompileError) as caught:
        Pipeline.parse("test-emit-errors,test-bug").run(module)
    assert [d.message for d in caught.value.diagnostics] == ["this one is wrong"]


def test_bug_keeps_its_type(module):
    with pytest.raises(ZeroDivisionError):
        Pipeline.parse("test-bug").run(module)


def test_broken_ir_is_found_after_the_pass_only_if_asked(module):
    with pytest.raises(CompileError, match="after the pass 'test-break'"):
        Pipeline.parse("test-break").run(module, verify=True)
    Pipeline.parse("test-break").run(ir.Module.parse(MODULE))


def test_nested_pass_runs_on_every_function(module):
    module = ir.Module.parse(MODULE + MODULE.replace("@twice", "@other") + "module @inner {}")
    Pipeline.parse("func.func(test-tag,cse),builtin.module(test-tag)").run(module)
    tags = {str(op.attributes["sym_name"]): "test.tag" in op.attributes for op in module.body}
    assert tags == {'"twice"': True, '"other"': True, '"inner"': True}
    assert "test.tag" not in module.operation.attributes
    assert str(module).count("arith.addi") == 2 * 2  # the second one differs by its attribute


def test_function_pipeline_runs_on_a_function_only(module):
    pipeline = Pipeline.parse("func.func(test-tag)")
    pipeline.run(module.body.operations[0].operation)
    assert "test.tag" in module.body.operations[0].attributes
    with pytest.raises(UsageError, match=r"is for 'func.func', but got 'builtin.module'"):
        pipeline.run(module)


def test_pipeline_runs_in_many_contexts():
    pipeline = Pipeline.parse("canonicalize,test-tag,func.func(cse,test-tag)")
    printed = set()
    for _ in range(3):
        with make_context(), ir.Location.unknown():
            module = ir.Module.parse(MODULE)
            pipeline.run(module)
            printed.add(str(module))
    assert len(printed) == 1


def test_same_result_alone_and_in_runs(module):
    text = "canonicalize,cse,func.func(canonicalize,cse),test-tag,symbol-dce,canonicalize"
    other = ir.Module.parse(MODULE)
    Pipeline.parse(text).run(module)
    Pipeline.parse(text).run(other, timing=Timing())
    assert str(module) == str(other)


def test_printing_goes_to_the_stream(module):
    stream = io.StringIO()
    Pipeline.parse("cse,func.func(test-tag)").run(module, print_after=["test-tag"], stream=stream)
    text = stream.getvalue()
    assert text.count("IR Dump") == 1
    assert "IR Dump After test-tag ('func.func' operation: @twice)" in text


def test_timing_adds_up(module):
    timing = Timing()
    Pipeline.parse("cse,func.func(test-tag,cse),cse").run(module, timing=timing)
    names = [span.name for span in timing.root.children.values()]
    assert names == ["cse", "'func.func' pipeline", "cse"]
    nested = list(timing.root.children.values())[1]
    inner = sum(span.seconds for span in nested.children.values())
    assert 0 < inner <= nested.seconds
    last = timing.report().splitlines()[-1]
    assert last.endswith("(100.0%)  Total")


def test_reproducer_replays(module, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with pytest.raises(CompileError, match="reproduce with: relax-opt --run-reproducer ") as caught:
        Pipeline.parse("test-tag,cse,test-fail,canonicalize").run(module, reproducer=True)
    (path,) = tmp_path.glob("relax-mlir-*/reproducer.mlir")
    assert str(path) in str(caught.value)
    # MLIR's own parser takes the file as it is.
    assert "test.tag" in str(ir.Module.parse(path.read_text()))


def test_bug_tells_its_reproducer(module, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with pytest.raises(ZeroDivisionError) as caught:
        Pipeline.parse("test-bug").run(module, reproducer=True)
    # Python 3.10 has no notes on exceptions, so the line goes to standard error there.
    told = caught.value.__notes__[0] if sys.version_info >= (3, 11) else capsys.readouterr().err
    assert told.startswith("reproduce with: relax-opt --run-reproducer ")


def test_nested_pass_manager_error_in_a_pass_is_a_failure(module):
    @dataclass(frozen=True)
    class TestNestedManager(Pass):
        def run(self, op: ir.Operation) -> None:
            passmanager.PassManager.parse("any(func.func(symbol-dce))").run(op)

    pipeline = Pipeline(Nested("builtin.module", (TestNestedManager(),)))
    with pytest.raises(CompileError, match="does not define a symbol table"):
        pipeline.run(module)


def test_failure_at_value_and_location(module):
    function = module.body.operations[0]
    value = PassFailure(function.regions[0].blocks[0].operations[1].results[0], "is odd")
    assert str(value.diagnostic) == "-:4:8: error: is odd"
    unknown = PassFailure(ir.Location.unknown(), "is nowhere")
    assert str(unknown.diagnostic) == "error: is nowhere"
    named = PassFailure(ir.Location.name("layer.3"), "is odd", [(function, "see here")])
    assert str(named.diagnostic) == "layer.3: error: is odd\n-:2:1: note: see here"
    fused = PassFailure(ir.Location.fused([ir.Location.file("a.py", 3, 4)]), "is odd")
    assert str(fused.diagnostic) == "a.py:3:4: error: is odd"


def test_names_of_our_passes_follow_from_files():
    assert pass_name("relax_mlir.transforms.fuse_ops", "FuseOps") == "relax-fuse-ops"
    assert pass_name("somewhere", "TestPrintLiveness") == "test-print-liveness"
    assert all(name.startswith("relax-") and file.is_file() for name, file in own_passes().items())


def test_every_upstream_name_is_registered():
    with ir.Context() as context:
        for name in UPSTREAM_PASSES:
            passmanager.PassManager.parse(f"any({name})")
        context.load_all_available_dialects()
        assert [name for name in UPSTREAM_DIALECTS if not context.is_dialect_loaded(name)] == []
