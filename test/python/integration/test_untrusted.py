"""Modules of others: operators compile, whatever else there is does not."""

import numpy as np
import pytest

import relax_mlir
from relax_mlir.bindings import ir
from relax_mlir.dialects import make_context
from relax_mlir.errors import CompileError, UsageError

SEGMENTS = (
    f"operandSegmentSizes = array<i32: 1{', 0' * 31}>, "
    f"resultSegmentSizes = array<i32: 1{', 0' * 7}>"
)
CALLEE = f"{{callee = @wild, sym_args = #graph.shape<[]>, {SEGMENTS}}}"
INPLACE = f"{{inplace_indices = array<i64: 0>, {CALLEE[1:]}"
GOOD = f"""
!x = tensor<?xf32, #graph.shape<["n"]>>
func.func private @twice(%x: !x) -> !x attributes {{graph.facts = ["n <= 4"]}} {{
  %0 = "graph.add"(%x, %x) : (!x, !x) -> !x
  return %0 : !x
}}
func.func @main(%x: !x) -> !x {{
  %0 = scf.execute_region -> !x {{
    %1 = "graph.call"(%x) {{callee = @twice, {SEGMENTS}}} : (!x) -> !x
    scf.yield %1 : !x
  }} {{graph.dataflow}}
  return %0 : !x
}}
"""
BAD = """
!x = tensor<4xf32>
func.func private @wild(%x: !x, %out: !x) -> !x attributes {{
    tir.prim_func, tir.num_outs = 1 : i64}} {{
  return %out : !x
}}
func.func @main(%x: !x) -> !x {{
  {}
  return %0 : !x
}}
"""
OPS = {
    "graph.call_tir": f'"graph.call_tir"(%x) {CALLEE} : (!x) -> !x',
    "graph.view": '"graph.view"(%x) : (!x) -> !x',
    "tensor.extract_slice": "tensor.extract_slice %x[%i] [4] [1] : !x to !x",
    "graph.store": """"graph.store"(%c, %x, %i) {operandSegmentSizes = array<i32: 1, 1, 1>} :
      (f32, !x, index) -> ()
  %0 = "graph.negative"(%x) : (!x) -> !x""",
    "graph.call_dps_library": f'"graph.call_dps_library"(%x) {CALLEE} : (!x) -> !x',
    "graph.call_library_inplace": f'"graph.call_library_inplace"(%x) {INPLACE} : (!x) -> !x',
}


def test_operators_are_compiled_and_facts_of_others_are_checked() -> None:
    exe = relax_mlir.compile(GOOD, untrusted=True)
    np.testing.assert_array_equal(exe["main"](np.ones(3, np.float32)), np.full(3, 2))
    with pytest.raises(relax_mlir.errors.ExecutionError, match="n <= 4"):
        exe["main"](np.ones(5, np.float32))


@pytest.mark.parametrize("name", OPS)
def test_what_may_address_memory_is_refused(name: str) -> None:
    setup = "%c = arith.constant 1.0 : f32\n  %i = arith.constant 99 : index\n  "
    text = BAD.format(f"{setup}{'' if name == 'graph.store' else '%0 = '}{OPS[name]}")
    with pytest.raises(CompileError) as error:
        relax_mlir.compile(text, untrusted=True)
    wild, op = error.value.diagnostics
    assert wild.message.startswith("'func.func' op 'wild' is a tensor program, which may address")
    assert op.message.startswith(f"'{name}' op ")
    assert name in text.splitlines()[op.line - 1]


def test_what_is_only_declared_is_refused() -> None:
    declared = "func.func private @abort(tensor<?xf32>) -> tensor<?xf32>\n"
    with pytest.raises(CompileError, match=r"'func.func' op 'abort' has no body; untrusted"):
        relax_mlir.compile(declared + GOOD, untrusted=True)


def test_elements_outside_of_tensors_are_errors_of_the_call() -> None:
    exe = relax_mlir.compile(
        """
        func.func @main(%x: tensor<4xf32>, %i: index) -> tensor<4xf32> {
          %0 = tensor.extract %x[%i] : tensor<4xf32>
          %1 = arith.addi %i, %i : index
          %2 = tensor.insert %0 into %x[%1] : tensor<4xf32>
          return %2 : tensor<4xf32>
        }""",
        untrusted=True,
    )
    np.testing.assert_array_equal(exe["main"](np.arange(4, dtype=np.float32), 1), [0, 1, 1, 3])
    for index, name in ((-1, "extract"), (4, "extract"), (2, "insert"), (3, "insert")):
        with pytest.raises(relax_mlir.errors.ExecutionError, match=f"tensor.{name}|graph.store"):
            exe["main"](np.ones(4, np.float32), index)


def test_what_was_compiled_before_is_refused_too() -> None:
    text = BAD.format(f"%0 = {OPS['graph.call_tir']}")
    relax_mlir.compile(text)
    with pytest.raises(CompileError, match="untrusted modules have operators only"):
        relax_mlir.compile(text, untrusted=True)
    with make_context():
        module = ir.Module.parse(text)
    with pytest.raises(CompileError, match="untrusted modules have operators only"):
        relax_mlir.compile(module, untrusted=True)


@pytest.mark.parametrize(
    "chosen", [{"passes": "builtin.module()"}, {"without": ["relax-state-assumptions"]}]
)
def test_passes_are_not_chosen(chosen: dict) -> None:
    with pytest.raises(UsageError, match="an untrusted module takes no choice of passes"):
        relax_mlir.compile(GOOD, untrusted=True, **chosen)
