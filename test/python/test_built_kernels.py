"""Kernels are scheduled and compiled once, and alone where others have not changed."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import relax_mlir
from relax_mlir.analysis.units import declaration, unit_of, uses_tiles, vector_length
from relax_mlir.bindings import func, ir
from relax_mlir.codegen import BuildStats
from relax_mlir.compiler import Source, compile_to_file, compile_to_parts
from relax_mlir.dialects import make_context
from relax_mlir.errors import CompileError
from relax_mlir.executable import load
from relax_mlir.passes import PassFailure, Pipeline, Timing
from relax_mlir.pipelines import pipeline
from relax_mlir.schedule.cpu.isa.instructions import tell_instructions
from relax_mlir.target import Target
from relax_mlir.transforms import build_kernels

TEXT = """
!x = tensor<?xf32, #graph.shape<["n"]>>
!s = tensor<1xf32, #graph.shape<[1]>>
func.func @main(%x: !x) -> (!x, !s) {{
  %0 = "graph.{first}"(%x) : (!x) -> !x
  %1 = "graph.{second}"(%x) {{axes = array<i64: 0>, keepdims = true}} : (!x) -> !s
  return %0, %1 : !x, !s
}}
"""
X = np.linspace(-3, 2, 37, dtype=np.float32)


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("RELAX_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def scheduled(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of kernels, as they are scheduled."""
    names: list[str] = []
    original = build_kernels.schedule_one

    def schedule_one(prim_func, *others):
        names.append(prim_func.name)
        return original(prim_func, *others)

    monkeypatch.setattr(build_kernels, "schedule_one", schedule_one)
    return names


def build(first: str, second: str, stats: BuildStats | None = None, level: int = 1) -> bytes:
    source = Source(TEXT.format(first=first, second=second), "text")
    return b"".join(compile_to_parts(source, Target.parse("native"), level, stats=stats))


def run(data: bytes, tmp_path: Path) -> list[np.ndarray]:
    path = tmp_path / "made.so"
    path.write_bytes(data)
    return load(path)["main"](X)


def test_a_second_build_schedules_nothing(scheduled: list[str], tmp_path: Path) -> None:
    first, second = BuildStats(), BuildStats()
    made = build("exp", "sum", first)
    assert sorted(scheduled) == ["exp", "sum"]
    assert (first.objects, first.cached_objects) == (4, 0)  # the runtime, two kernels, host code
    scheduled.clear()
    assert build("exp", "sum", second) == made
    assert scheduled == []
    assert (second.objects, second.cached_objects) == (4, 4)
    exponentials, total = run(made, tmp_path)
    np.testing.assert_allclose(exponentials, np.exp(X.astype(np.float64)), rtol=1e-6)
    np.testing.assert_allclose(total, [X.astype(np.float64).sum()], rtol=1e-6)


def test_what_changed_is_scheduled_alone(scheduled: list[str], tmp_path: Path) -> None:
    build("exp", "sum")
    scheduled.clear()
    exponentials, greatest = run(build("exp", "max"), tmp_path)
    assert scheduled == ["max"]
    np.testing.assert_allclose(exponentials, np.exp(X.astype(np.float64)), rtol=1e-6)
    np.testing.assert_array_equal(greatest, [X.max()])


def test_a_kernel_depends_on_target_and_options(scheduled: list[str]) -> None:
    build("exp", "sum")
    scheduled.clear()
    build("exp", "sum", level=0)  # without fusion
    assert sorted(scheduled) == ["exp", "sum"]
    scheduled.clear()
    v3 = Target.parse("x86-64-v3")
    narrow = replace(v3, host=replace(v3.host, vector_bytes=16))
    for target in (Target.parse("aarch64"), v3, narrow):
        compile_to_parts(Source(TEXT.format(first="exp", second="sum"), "t"), target, 1)
        assert sorted(scheduled) == ["exp", "sum"]
        scheduled.clear()


def test_what_fails_is_not_kept(
    scheduled: list[str], monkeypatch: pytest.MonkeyPatch, own_cache: Path
) -> None:
    original = build_kernels.schedule_one

    def fails(prim_func, *others):
        if prim_func.name == "sum":
            raise PassFailure(prim_func.op, "is not wanted")
        return original(prim_func, *others)

    with monkeypatch.context() as patch:
        patch.setattr(build_kernels, "schedule_one", fails)
        with pytest.raises(CompileError, match="is not wanted"):
            build("exp", "sum")
    assert not list(own_cache.rglob("*" + build_kernels.SUFFIX))
    scheduled.clear()
    build("exp", "sum")
    assert sorted(scheduled) == ["exp", "sum"]
    assert len(list(own_cache.rglob("*" + build_kernels.SUFFIX))) == 2


def test_timing_tells_schedules_from_code() -> None:
    timing = Timing()
    source = Source(TEXT.format(first="exp", second="sum"), "text")
    compile_to_parts(source, Target.parse("native"), 1, timing)
    lines = [line.split()[-1] for line in timing.report().splitlines() if line]
    assert lines.index("kernels)") == lines.index("relax-build-kernels") + 1


def test_host_code_knows_the_kernels_that_were_kept(tmp_path: Path) -> None:
    text = """
    !x = tensor<?x32xbf16, #graph.shape<["n", 32]>>
    func.func @main(%x: !x, %w: tensor<32x32xbf16>) -> !x {
      %0 = "graph.matmul"(%x, %w) : (!x, tensor<32x32xbf16>) -> !x
      return %0 : !x
    }
    """
    for name in ("znver4", "sapphirerapids"):
        made = [compile_to_file(text, name, use_cache=False).read_bytes() for _ in range(2)]
        assert made[0] == made[1]
        assert b'"unit": "bf16"' in made[0]


def test_a_declaration_says_what_the_kernel_is() -> None:
    text = """
    func.func @plain(%x: memref<?xf32>, %n: index {tir.sym = "n"}) attributes {tir.flops = "a0d0"} {
      return
    }
    func.func @tiles(%p: !llvm.ptr, %x: vector<64xi8>, %y: vector<16xi32>) {
      llvm.call_intrinsic "llvm.x86.ldtilecfg"(%p) : (!llvm.ptr) -> ()
      %0 = llvm.call_intrinsic "llvm.x86.avx512.vpdpbusd.512"(%y, %x, %x)
        : (vector<16xi32>, vector<64xi8>, vector<64xi8>) -> vector<16xi32>
      return
    }
    """
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        plain, tiles = module.body.operations
        for kernel, name in ((plain, "neoverse-v1"), (tiles, "sapphirerapids")):
            tell_instructions(kernel, Target.parse(name).host)
        found = [declaration(kernel) for kernel in (plain, tiles)]
        again = [ir.Operation.parse(str(kernel)) for kernel in found]
        for both in (found, again):
            assert all(isinstance(kernel, func.FuncOp) for kernel in both)
            assert [kernel.is_external for kernel in both] == [True, True]
            assert [unit_of(kernel) for kernel in both] == ["f32", "int8"]
            assert [uses_tiles(kernel) for kernel in both] == [False, True]
            assert [vector_length(kernel) for kernel in both] == [32, 0]
        assert found[0].type == plain.type
        assert str(found[0].attributes["tir.flops"]) == '"a0d0"'
        assert '{tir.sym = "n"}' in str(found[0])


def test_kernels_of_a_name_of_the_runtime() -> None:
    """What begins with `rx_` is exported, but for kernels."""
    x = 'tensor<?xf32, #graph.shape<["n"]>>'
    ins, outs = str([1] + 31 * [0])[1:-1], str([1] + 7 * [0])[1:-1]
    text = f"""
    func.func private @rx_twice(%x: {x}, %y: {x}) -> {x}
        attributes {{tir.prim_func, tir.num_outs = 1 : i64}} {{
      %0 = linalg.add ins(%x, %x : {x}, {x}) outs(%y : {x}) -> {x}
      return %0 : {x}
    }}
    func.func @main(%x: {x}) -> {x} {{
      %0 = "graph.call_tir"(%x) {{callee = @rx_twice, sym_args = #graph.shape<[]>,
          operandSegmentSizes = array<i32: {ins}>,
          resultSegmentSizes = array<i32: {outs}>}} : ({x}) -> {x}
      return %0 : {x}
    }}
    """
    np.testing.assert_array_equal(relax_mlir.compile(text)["main"](X), X + X)


def test_passes_of_a_compiled_module_can_be_run_one_by_one(scheduled: list[str]) -> None:
    """As a reproducer does: without a build, the code of kernels goes to the cache."""
    text, target = TEXT.format(first="exp", second="sum"), Target.parse("native")
    passes = pipeline(str(target), 1, builds=True)
    assert "relax-build-kernels" in passes
    assert "relax-schedule" not in passes
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        Pipeline.parse(passes).run(module)
        assert "scf.parallel" not in str(module)
        assert str(module).count("tir.scheduled") == 2
    assert sorted(scheduled) == ["exp", "sum"]
    scheduled.clear()
    compile_to_parts(Source(text, "text"), target, 1)
    assert scheduled == []
