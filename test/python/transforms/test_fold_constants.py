"""Constant expressions: evaluated while they are compiled, to the bits that compiled code gives."""

import platform

import numpy as np
import pytest

import relax_mlir
from relax_mlir.bindings import ir
from relax_mlir.data import attribute_of, elements_of, stored_width
from relax_mlir.dialects import make_context
from relax_mlir.passes import Pipeline

V = "tensor<37x300xf32>"
EXPRESSIONS = f"""
func.func @main() -> ({V}, tensor<37xf32>, tensor<300x37xbf16>, tensor<37x300xi1>) {{
  %c = arith.constant dense<0.0> : {V}
  %e = "graph.exp"(%c) : ({V}) -> {V}
  %s = "graph.nn_softmax"(%e) {{axis = -1 : i64}} : ({V}) -> {V}
  %m = "graph.multiply"(%c, %e) : ({V}, {V}) -> {V}
  %a = "graph.add"(%m, %c) : ({V}, {V}) -> {V}
  %r = "graph.sum"(%a) {{axes = array<i64: 1>, keepdims = false}} : ({V}) -> tensor<37xf32>
  %p = "graph.permute_dims"(%a) {{axes = array<i64: 1, 0>}} : ({V}) -> tensor<300x37xf32>
  %b = "graph.astype"(%p) {{dtype = bf16}} : (tensor<300x37xf32>) -> tensor<300x37xbf16>
  %l = "graph.less"(%c, %m) : ({V}, {V}) -> tensor<37x300xi1>
  return %s, %r, %b, %l : {V}, tensor<37xf32>, tensor<300x37xbf16>, tensor<37x300xi1>
}}"""
ELEMENTS = ("f64", "f32", "f16", "bf16", "i1", "i8", "ui16", "si32", "i64", "index")


def with_constant(text: str, values: np.ndarray) -> ir.Module:
    """The module with these elements in its first constant."""
    module = ir.Module.parse(text)
    constant = module.body.operations[0].entry_block.operations[0]
    constant.attributes["value"] = ir.DenseElementsAttr.get(values)
    return module


def test_results_have_the_bits_of_compiled_code():
    values = np.random.default_rng(0).standard_normal((37, 300)).astype(np.float32)
    with make_context(), ir.Location.unknown():
        module = with_constant(EXPRESSIONS, values)
        without = relax_mlir.compile(module, opt_level=2)
        folded = relax_mlir.compile(module, opt_level=3)
    for expected, found in zip(without["main"](), folded["main"](), strict=True):
        assert found.tobytes() == expected.tobytes()
    assert without.metadata["functions"]["main"]["calls"]
    assert not folded.metadata["functions"]["main"]["calls"]


def test_a_target_of_another_machine_keeps_its_operators(capsys: pytest.CaptureFixture[str]):
    other = "aarch64" if platform.machine() == "x86_64" else "x86-64-v3"
    with make_context(), ir.Location.unknown():
        module = with_constant(EXPRESSIONS, np.ones((37, 300), np.float32))
        before = str(module)
        Pipeline.parse(f"builtin.module(relax-fold-constants{{target={other}}})").run(module)
        assert str(module) == before
    assert "constants are not folded: this machine cannot run code for" in capsys.readouterr().err


def test_results_take_no_more_than_the_constants_do_together():
    """Each of the 40 results is as large as the constant, and all were 40 times as large."""
    lines = [f'%{i} = "graph.add"(%c, %c) : ({V}, {V}) -> {V}' for i in range(40)]
    names, types = ", ".join(f"%{i}" for i in range(40)), ", ".join([V] * 40)
    text = f"""func.func @main() -> ({types}) {{
      %c = arith.constant dense<0.0> : {V}
      {chr(10).join(lines)}
      return {names} : {types}
    }}"""
    values = np.random.default_rng(0).standard_normal((37, 300)).astype(np.float32)
    with make_context(), ir.Location.unknown():
        module = with_constant(text, values)
        Pipeline.parse("builtin.module(relax-fold-constants{max-bytes=64})").run(module)
        kept = str(module).count("arith.constant")
    assert kept == 2


def test_nothing_of_an_untrusted_module_is_run():
    with make_context(), ir.Location.unknown():
        module = with_constant(EXPRESSIONS, np.ones((37, 300), np.float32))
        exe = relax_mlir.compile(module, opt_level=3, untrusted=True)
    assert exe.metadata["functions"]["main"]["calls"]


@pytest.mark.parametrize("element", ELEMENTS)
def test_constants_of_any_bytes(element: str):
    """Bytes become an attribute, few or many, equal or not, and these bytes again."""
    rng = np.random.default_rng(0)
    with make_context(), ir.Location.unknown():
        width = stored_width(ir.Type.parse(element))
        for count in (1, 3, 1000):
            for repeats in (False, True):
                data = rng.integers(0, 2 if element == "i1" else 256, (count, width), np.uint8)
                data = np.repeat(data[:1], count, 0) if repeats else data
                type_ = ir.Type.parse(f"tensor<{count}x{element}>")
                made = attribute_of(type_, data)
                assert made.type == type_
                assert np.ascontiguousarray(elements_of(made)).tobytes() == data.tobytes()
