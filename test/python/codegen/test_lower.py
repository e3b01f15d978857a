"""Lowering reaches the LLVM dialect, or says at which op it stopped."""

import re

import pytest

from relax_mlir.bindings import ir
from relax_mlir.codegen.lower import allow_contraction, lower_to_llvm, to_llvm_ir
from relax_mlir.errors import CompileError
from relax_mlir.schedule.build.loops import LOOP_ANNOTATION, UNROLLED
from relax_mlir.target import Target


def lowered(text: str, target: str = "x86-64-v4") -> str:
    with ir.Context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        allow_contraction(module)
        lower_to_llvm(module, Target.parse(target).host)
        return to_llvm_ir(module)


TWO_BUFFERS = "func.func @f(%x: memref<4xf32>, %n: index, %y: memref<2x2xf32>)"


def test_scheduled_buffers_do_not_overlap() -> None:
    define = re.search(
        r"define.*@f\((.*)\)", lowered(f"{TWO_BUFFERS} attributes {{tir.scheduled}} {{ return }}")
    )
    arguments = define[1].split(", ")
    assert [i for i, a in enumerate(arguments) if "noalias" in a] == [1, 7]
    assert "noalias" not in lowered(f"{TWO_BUFFERS} {{ return }}")


def test_places_in_a_flat_view_are_not_divided() -> None:
    text = lowered("""func.func @f(%x: memref<28x63xf32>, %i: index, %j: index) -> vector<16xf32> {
      %stride = arith.constant 63 : index
      %row = arith.muli %i, %stride : index
      %place = arith.addi %row, %j : index
      %flat = memref.collapse_shape %x [[0, 1]] : memref<28x63xf32> into memref<1764xf32>
      %v = vector.load %flat[%place] : memref<1764xf32>, vector<16xf32>
      return %v : vector<16xf32>
    }""")
    assert not re.search(r"[su](div|rem)", text)


@pytest.mark.parametrize(("target", "bits"), [("x86-64-v3", 256), ("x86-64-v4", 512)])
def test_vector_width_is_the_target_s(target: str, bits: int) -> None:
    text = lowered("func.func @f() { return }", target)
    assert f'"prefer-vector-width"="{bits}"' in text
    assert f"alignstack={bits // 8}" in text
    assert "nounwind" in text


@pytest.mark.parametrize("annotation", ["", LOOP_ANNOTATION])
def test_what_is_said_of_a_loop_reaches_llvm(annotation: str) -> None:
    said = f"{{{annotation} = {UNROLLED.format(3)}}}" if annotation else ""
    text = lowered(f"""func.func @f(%n: index, %a: f32) -> f32 {{
      %zero = arith.constant 0 : index
      %one = arith.constant 1 : index
      %r = scf.for %i = %zero to %n step %one iter_args(%x = %a) -> f32 {{
        %y = arith.addf %x, %a : f32
        scf.yield %y : f32
      }} {said}
      return %r : f32
    }}""")
    assert text.count('!"llvm.loop.unroll.count", i32 3') == bool(annotation)


def test_only_scheduled_kernels_contract() -> None:
    body = "(%a: f32) -> f32 { %0 = arith.mulf %a, %a : f32  %1 = arith.addf %0, %a : f32 "
    body += "return %1 : f32 }"
    assert lowered(f"func.func @f{body}").count(" contract ") == 0
    scheduled = body.replace("{", "attributes {tir.scheduled} {", 1)
    assert lowered(f"func.func @f{scheduled}").count(" contract ") == 2


def test_flags_that_are_given_stay() -> None:
    text = lowered(
        "func.func @f(%a: f32) -> f32 attributes {tir.scheduled} {"
        " %0 = arith.mulf %a, %a fastmath<nnan> : f32 return %0 : f32 }"
    )
    assert "fmul nnan float" in text


def test_allocations_call_the_scratch_stack() -> None:
    text = lowered(
        "func.func @f(%n: index) { %0 = memref.alloc(%n) : memref<?xf32>"
        " memref.dealloc %0 : memref<?xf32> return }"
    )
    assert "@_mlir_memref_to_llvm_alloc" in text
    assert "@_mlir_memref_to_llvm_free" in text


@pytest.mark.parametrize("type", ["f32", "vector<4xf32>", "vector<2x4xf16>", "bf16"])
def test_machines_without_fused_multiply_add_need_no_library(type: str) -> None:
    text = f"func.func @f(%a: {type}, %b: {type}) -> {type} {{"
    text += f" %0 = math.fma %a, %b, %a : {type}  return %0 : {type} }}"
    assert "llvm.fma" not in lowered(text, "x86-64-v2")
    assert "llvm.fma" in lowered(text, "x86-64-v3")


@pytest.mark.parametrize(
    ("op", "name"),
    [
        (
            "%0 = tensor.empty() : tensor<i64>  %1 = tensor.extract %0[] : tensor<i64>",
            "tensor.empty",
        ),
        ("%1 = math.ipowi %n, %n : i64", "math.ipowi"),
        (
            "linalg.fill ins(%n : i64) outs(%x : memref<i64>)  %1 = arith.constant 0 : i64",
            "linalg.fill",
        ),
    ],
)
def test_op_without_lowering_is_named(op: str, name: str) -> None:
    text = f"func.func @f(%n: i64, %x: memref<i64>) {{\n  {op}\n"
    text += "  memref.store %1, %x[] : memref<i64>\n  return\n}"
    with pytest.raises(CompileError, match=rf"2:\d+: error: '{name}' op has no lowering to LLVM"):
        lowered(text)


def test_translation_refuses_what_is_not_llvm() -> None:
    with ir.Context(), ir.Location.unknown():
        module = ir.Module.parse("func.func @f() { return }")
        with pytest.raises(CompileError, match=r"'func.func' op has no lowering"):
            to_llvm_ir(module)
