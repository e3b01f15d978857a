"""The multiply-adds of float products on each machine, counted in its assembly."""

import re
from dataclasses import dataclass

import pytest
from assembly import assembly, operands_in_memory

from relax_mlir.target import Target

# The instruction of a target, and what there must be none of.
CASES = [
    ("f32", "aarch64", r"\bfmla\s+v\d+\.4s", r"\bfmadd\b|\bbl\s+fmaf?\b"),
    ("bf16", "aarch64", r"\bfmla\s+v\d+\.4s", r"\bfmadd\b|\bbl\s+(fmaf?|__\w*bf\w*)\b"),
    ("bf16", "aarch64-v8.6", r"\bbfdot\s+v\d+\.4s, v\d+\.8h", r"\bfmla\b|\bbl\s+__\w*bf\w*\b"),
    ("f32", "neoverse-v1", r"\bfmla\s+z\d+\.s", r"\bbl\s+fmaf?\b"),
    ("bf16", "neoverse-v1", r"\bbfdot\s+z\d+\.s, z\d+\.h", r"\bfmla\b|\bbl\s+__\w*bf\w*\b"),
    ("f32", "riscv64-v+vector-bytes=32", r"\bvfmacc\.v[fv]\s+v\d+", r"\bfmadd\.s\b"),
    ("f32", "x86-64-v4", r"\bvfmadd231ps\b.*%zmm", r"\bvfmadd231ss\b"),
    ("bf16", "x86-64-v4+avx512bf16", r"\bvdpbf16ps\b.*%zmm", r"\bvfmadd231ss\b"),
    ("bf16", "sapphirerapids+-amx-tile", r"\bvfmadd231ps\b.*%zmm", r"\bvfmadd231ss\b"),
    ("f32", "x86-64-v3", r"\bvfmadd231ps\b.*%ymm", r"%zmm|\bvfmadd231ss\b"),
    ("bf16", "x86-64-v3", r"\bvfmadd231ps\b.*%ymm", r"%zmm|\bvdpbf16ps\b|\bvfmadd231ss\b"),
]


@dataclass(frozen=True)
class Program:
    """x[m, k] times the transpose of weights [n, k], which stay as they are."""

    element: str

    def text(self) -> str:
        """The module."""
        k, n = 100, 40
        x, y = (f'tensor<?x{d}xf32, #graph.shape<["m", {d}]>>' for d in (k, n))
        stored, w = f"tensor<{n}x{k}x{self.element}>", f"tensor<{n}x{k}xf32>"
        transposed = f"tensor<{k}x{n}xf32>"
        half = x.replace("xf32", "xbf16")
        casts = f"""
          %half = "graph.astype"(%x) {{dtype = bf16}} : ({x}) -> {half}
          %left = "graph.astype"(%half) {{dtype = f32}} : ({half}) -> {x}
          %widened = "graph.astype"(%w) {{dtype = f32}} : ({stored}) -> {w}"""
        left, widened = ("%x", "%w") if self.element == "f32" else ("%left", "%widened")
        return f"""
        func.func @main(%x: {x}, %w: {stored}) -> {y} {{{"" if self.element == "f32" else casts}
          %t = "graph.permute_dims"({widened}) {{axes = array<i64: 1, 0>}} : ({w}) -> {transposed}
          %y = "graph.matmul"({left}, %t) : ({x}, {transposed}) -> {y}
          return %y : {y}
        }}"""


@pytest.mark.parametrize(("element", "name", "wanted", "unwanted"), CASES)
def test_instructions_of_targets(element: str, name: str, wanted: str, unwanted: str) -> None:
    target = Target.parse(name)
    text = assembly(Program(element).text(), target)
    sums = {r for line in text.splitlines() if re.search(wanted, line) for r in _result(line)}
    assert len(sums) >= target.host.registers // 2, "sums stay in registers"
    assert not re.search(unwanted, text)
    assert not re.search(r"(call|bl)\s+llvm\.", text), "an intrinsic that LLVM does not know"


@pytest.mark.parametrize("element", ["f32", "bf16"])
def test_operands_in_memory(element: str) -> None:
    text = assembly(Program(element).text(), Target.parse("sapphirerapids+-amx-tile"))
    assert operands_in_memory(text, "vfmadd231ps") >= 2 * 11, "of 14 rows, and both vectors"
    text = assembly(Program(element).text(), Target.parse("x86-64-v4"))
    assert not operands_in_memory(text, "vfmadd231ps")


def test_products_in_tile_registers() -> None:
    target = Target.parse("x86-64-v4+avx512bf16+amx-tile+amx-bf16")
    text = assembly(Program("bf16").text(), target)
    instructions = re.findall(r"\b(?:ldtilecfg|tilerelease|tdpbf16ps|tileloadd|tilestored)\b", text)
    # Two by two, and one where there are few rows, few columns, or both.
    tiles = {"tdpbf16ps": 9, "tileloadd": 8 + 4, "tilestored": 9}
    for name, least in {"ldtilecfg": 1, "tilerelease": 1, **tiles}.items():
        assert instructions.count(name) >= least, name


def _result(line: str) -> list[str]:
    """The register that an instruction writes: the last operand on x86, the first on others."""
    registers = re.findall(r"%[yz]mm\d+|\b[vz]\d+\b(?=\.|, )", line)
    return [registers[-1] if registers[0].startswith("%") else registers[0]]
