"""Elements of types without vector arithmetic are rounded and stored as vectors."""

import re

import pytest
from assembly import assembly

from relax_mlir.target import Target

MATRIX = 'tensor<?x?xf32, #graph.shape<["m", "n"]>>'
NARROW = MATRIX.replace("f32", "bf16")
ROUNDING = f"""
func.func @main(%x: {MATRIX}) -> {NARROW} {{
  %0 = "graph.astype"(%x) {{dtype = bf16}} : ({MATRIX}) -> {NARROW}
  return %0 : {NARROW}
}}"""


@pytest.mark.parametrize("name", ["x86-64-v2", "x86-64-v3", "x86-64-v4"])
def test_lanes_of_bf16_are_stored_together(name) -> None:
    """But for the last one of an odd count of lanes."""
    text = assembly(ROUNDING, Target.parse(name))
    assert re.search(r"\bv?packusdw|vpmovdw\b", text)
    assert len(re.findall(r"\bv?pextrw\b", text)) <= 1
