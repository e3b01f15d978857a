"""Numbers of bfloat that LLVM IR only moves, as integers."""

import llvmlite.binding as llvm
import pytest

from relax_mlir.codegen.llvm_bfloat import move_as_integers

MOVED = """
@table = private constant [2 x bfloat] [bfloat 0xR3F80, bfloat 0xRFF80]
@name = private constant [9 x i8] c"a bfloat\\00"

declare <8 x bfloat> @llvm.masked.load.v8bf16.p0(ptr, <8 x i1>, <8 x bfloat>)

define void @moves(ptr %p, ptr %q, <8 x i1> %m, i1 %c) {
entry:
  %0 = getelementptr bfloat, ptr %p, i64 8
  %1 = load <8 x bfloat>, ptr %p, align 2
  %2 = call <8 x bfloat> @llvm.masked.load.v8bf16.p0(ptr align 2 %0, <8 x i1> %m, <8 x bfloat> %1)
  %3 = select <8 x i1> %m, <8 x bfloat> %1, <8 x bfloat> splat (bfloat 0xR7FC0)
  br i1 %c, label %then, label %end
then:
  %4 = bitcast <8 x bfloat> %2 to <8 x i16>
  %5 = bitcast <8 x i16> %4 to <8 x bfloat>
  br label %end
end:
  %6 = phi <8 x bfloat> [ %3, %entry ], [ %5, %then ]
  %7 = phi bfloat [ 0xR0001, %entry ], [ 0xR8000, %then ]
  %8 = insertelement <8 x bfloat> %6, bfloat %7, i64 2
  store <8 x bfloat> %8, ptr %q, align 2
  ret void
}
"""


def test_all_moves():
    text = move_as_integers(MOVED)
    assert "[2 x i16] [i16 16256, i16 65408]" in text
    assert 'c"a bfloat' in text
    assert "phi i16 [ 1, %entry ], [ 32768, %then ]" in text
    assert "splat (i16 32704)" in text
    assert text.count("@llvm.masked.load.v8i16.p0") == 2
    assert text.count("bfloat") == 1
    llvm.parse_assembly(text).verify()


@pytest.mark.parametrize(
    "line",
    [
        "  %9 = fadd <8 x bfloat> %1, %2",
        "  %9 = fptrunc double %x to bfloat",
        "  %9 = call <8 x bfloat> @llvm.fabs.v8bf16(<8 x bfloat> %1)",
        "  call void @take(bfloat %7)",
        "  ret bfloat %7",
        "define bfloat @give(ptr %p) {",
        "declare void @take(bfloat)",
    ],
)
def test_what_computes_or_passes_on_stays(line):
    text = MOVED + line
    assert move_as_integers(text) == text


PAIRS, SUMS = "<vscale x 8 x bfloat>", "<vscale x 4 x float>"
PRODUCT = f"""
define <8 x bfloat> @first(<8 x bfloat> %x, {SUMS} %s, <vscale x 8 x i16> %a) {{
  %1 = bitcast <vscale x 8 x i16> %a to {PAIRS}
  %2 = call {SUMS} @llvm.aarch64.sve.bfdot({SUMS} %s, {PAIRS} %1, {PAIRS} %1)
  ret <8 x bfloat> %x
}}
declare {SUMS} @llvm.aarch64.sve.bfdot({SUMS}, {PAIRS}, {PAIRS})
"""


def test_scalable_vectors_stay() -> None:
    """They are operands of products alone, which functions do not pass."""
    text = move_as_integers(PRODUCT, calls=True)
    assert "define <8 x i16> @first(<8 x i16> %x" in text
    assert text.count(PAIRS) == PRODUCT.count(PAIRS) == 5
    assert move_as_integers(PRODUCT) == PRODUCT
    llvm.parse_assembly(text).verify()
