"""Float constants of LLVM IR as bit patterns."""

import struct

import llvmlite.binding as llvm
import pytest

from relax_mlir.codegen.llvm_floats import spell_floats


@pytest.mark.parametrize(
    ("line", "spelled"),
    [
        ("  %1 = fadd float %0, 1.000000e-01", "  %1 = fadd float %0, 0x3FB99999A0000000"),
        ("splat (float f0x3FB8AA3B)", "splat (float 0x3FF7154760000000)"),
        ("  ret double f0x3FE62E42FEFA39EF", "  ret double 0x3FE62E42FEFA39EF"),
        ("<2 x half> <half 1.5, half f0x2E66>", "<2 x half> <half 0xH3E00, half 0xH2E66>"),
        ("  %1 = fadd bfloat %0, 1.000980e-01", "  %1 = fadd bfloat %0, 0xR3DCD"),
        ("select i1 %c, float +inf, float -inf", None),
        ("  %9 = fadd float %5, +qnan", "  %9 = fadd float %5, 0x7FF8000000000000"),
        ("float -nan(0x1)", "float 0xFFF8000020000000"),
        ("float +snan(0x1)", "float 0x7FF0000020000000"),
        ("float f0x00000001", "float 0x36A0000000000000"),
        ("[2 x double] [double -0.0, double 1.0e+300]", None),
        ("  %1 = add i32 %0, 1", "  %1 = add i32 %0, 1"),
        ('@s = constant [14 x i8] c"float 1.0e-01 "', '@s = constant [14 x i8] c"float 1.0e-01 "'),
    ],
)
def test_spelling(line, spelled):
    if spelled is None:
        spelled = line
        for text, number in (
            *((" +inf", float("inf")), (" -inf", float("-inf"))),
            *((" -0.0", -0.0), (" 1.0e+300", 1e300)),
        ):
            bits = struct.unpack("<Q", struct.pack("<d", number))[0]
            spelled = spelled.replace(text, f" 0x{bits:016X}")
    assert spell_floats(line) == spelled


def test_the_other_llvm_reads_it():
    text = """
define float @f(float %x, half %h, bfloat %b) {
  %1 = fadd float %x, 1.000000e-01
  %2 = fadd half %h, 9.997550e-02
  %3 = fadd bfloat %b, 1.000980e-01
  %4 = fcmp olt float %1, +inf
  %5 = select i1 %4, float f0x3FB8AA3B, float +qnan
  ret float %5
}"""
    llvm.parse_assembly(spell_floats(text)).verify()
