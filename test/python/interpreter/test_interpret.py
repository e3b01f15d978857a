"""Interpreted modules are called as compiled ones are, and refuse what these refuse."""

import os
import subprocess
import sys
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import relax_mlir
from relax_mlir.bindings import ir
from relax_mlir.dialects import graph, make_context
from relax_mlir.errors import CompileError, ExecutionError, UsageError
from relax_mlir.interpreter import interpret
from relax_mlir.interpreter.lookup import find_operator

MODULES = Path(__file__).parents[2] / "Integration"
CACHE = MODULES / "decode_step.mlir"
SCALED = """
!x = tensor<?x3xf32, #graph.shape<["n", 3]>>
!half = tensor<?xbf16, #graph.shape<["2*n"]>>
func.func @main(%x: !x {graph.name = "x"}, %y: !half, %s: !graph.shape_value<["n", "m"]>)
    -> (!x, !half, !graph.shape_value<["m", "n"]>, !x) attributes {graph.facts = ["m <= 4"]} {
  %0 = "graph.add"(%x, %x) : (!x, !x) -> !x
  %1 = "graph.negative"(%y) : (!half) -> !half
  %2 = "graph.make_shape"() {dims = #graph.shape<["m", "n"]>} : () -> !graph.shape_value<["m", "n"]>
  return %0, %1, %2, %x : !x, !half, !graph.shape_value<["m", "n"]>, !x
}
func.func private @hidden(%x: tensor<2xf32>) -> tensor<2xf32> {
  return %x : tensor<2xf32>
}
"""


def operators() -> list[type]:
    return [
        kind
        for kind in vars(graph).values()
        if isinstance(kind, type)
        and issubclass(kind, graph.GraphOp)
        and "OPERATION_NAME" in vars(kind)
        and kind.has_rule()
    ]


@pytest.mark.parametrize("op", operators(), ids=lambda op: op.OPERATION_NAME)
def test_every_operator_has_a_meaning(op: type) -> None:
    assert find_operator(op) is not None


def test_an_operator_from_outside_has_its_meaning_beside_it(tmp_path: Path) -> None:
    (tmp_path / "own_ops.py").write_text("""
from typing import Any
import numpy as np
from relax_mlir.bindings import ext, ir
from relax_mlir.dialects.graph import InferredOp

class ScaleOp(InferredOp, name="own_scale"):
    result: ext.Result[Any]
    input: ext.Operand[Any]
    factor: ir.FloatAttr

    @staticmethod
    def infer_return_type(input, factor):
        return input

def own_scale(x, *, factor):
    return x * factor
""")
    code = """
import numpy as np, own_ops, relax_mlir
text = 'func.func @main(%x: tensor<3xbf16>) -> tensor<3xbf16> {'
text += ' %0 = "graph.own_scale"(%x) {factor = 0.5 : f64} : (tensor<3xbf16>) -> tensor<3xbf16>'
main = relax_mlir.interpret(text + ' return %0 : tensor<3xbf16> }')["main"]
assert main(np.full(3, 0x4000, np.uint16)).astype(np.float32).tolist() == [1, 1, 1]
"""
    paths = [str(tmp_path), str(Path(relax_mlir.__file__).parents[1])]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    # An operator that is declared stays so, hence a process of its own.
    subprocess.run([sys.executable, "-c", code], env=env, check=True)


def test_results_have_the_types_and_memory_of_compiled_ones() -> None:
    main = interpret(SCALED)["main"]
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    y = np.arange(4).astype(ml_dtypes.bfloat16)
    doubled, negated, shape, same = main(x, y, (2, 4))
    np.testing.assert_array_equal(doubled, 2 * x)
    assert negated.dtype == ml_dtypes.bfloat16
    np.testing.assert_array_equal(negated, -y)
    assert shape == (4, 2)
    np.testing.assert_array_equal(same, x)
    assert not np.may_share_memory(same, x)
    assert all(result.flags.writeable for result in (doubled, negated, same))


def test_signatures_read_as_those_of_executables() -> None:
    module = interpret(CACHE)
    compiled = relax_mlir.compile(CACHE, opt_level=0)["main"]
    assert str(module["main"]) == str(compiled)
    assert module["main"].arguments == compiled.arguments
    assert module["main"].results == compiled.results
    assert module["main"].facts == compiled.facts


def test_private_functions_cannot_be_called() -> None:
    module = interpret(SCALED)
    assert module.functions == ("main",)
    with pytest.raises(KeyError, match="no function 'hidden', the module has 'main'"):
        module["hidden"]


X, Y = np.ones((2, 3), np.float32), np.ones(4, np.uint16)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ((X, Y), "'main' has 3 arguments, but got 2"),
        ((X.astype(np.float64), Y, (2, 1)), "argument 0 'x': dtype is float64, but float32"),
        ((X[0], Y, (2, 1)), "argument 0 'x': rank is 1, but 2 is expected"),
        ((X[:, :2], Y, (2, 1)), "argument 0 'x': dim 1 is 2, but 3 is expected"),
        ((X, Y[:3], (2, 1)), "argument 1 'arg1': dim 0 is 3, but '2\\*n' is 4 \\(n = 2 from"),
        ((X, Y, (3, 1)), "argument 2 'arg2': value 0 is 3, but 'n' is 2"),
        ((X, Y, (2, 5)), "'main' requires m <= 4, but m = 5 from argument 2 'arg2', value 1"),
        ((X, Y, (2, -1)), "argument 2 'arg2': value 1 is -1, but 'm' must not be negative"),
        ((X, Y, (2, 1, 1)), "argument 2 'arg2': number of values is 3, but 2 is expected"),
        ((None, Y, (2, 1)), "argument 0 'x': an array"),
        ((X, Y, ("a", 1)), "argument 2 'arg2': integers are expected"),
    ],
)
def test_wrong_arguments_are_refused(arrays: tuple, message: str) -> None:
    with pytest.raises(ExecutionError, match=message):
        interpret(SCALED)["main"](*arrays)


def test_any_layout_and_package_of_arrays_will_do() -> None:
    module = interpret(SCALED)
    columns = np.asfortranarray(np.arange(6, dtype=np.float32).reshape(2, 3))
    np.testing.assert_array_equal(module["main"](columns, Y, (2, 0))[0], 2 * columns)
    buffers = [np.empty((2, 3), np.float32), None, None, None]
    call = module["main"].bind(X, Y, (2, 0), results=buffers)
    assert call.run()[0] is buffers[0]
    np.testing.assert_array_equal(buffers[0], 2 * X)
    with pytest.raises(ExecutionError, match=r"result 0: dims are \[1, 3\], but \[2, 3\] are"):
        module["main"].bind(X, Y, (2, 0), results=[buffers[0][:1], None, None, None]).run()


def test_updated_arguments_are_results() -> None:
    keys, values = np.zeros((2, 2, 5, 8), np.float32)
    q, kv = np.ones((1, 6, 8), np.float32), np.ones((1, 2, 8), np.float32)
    main = interpret(CACHE)["main"]
    _, new_keys, new_values = main(q, kv, 2 * kv, 3, keys, values)
    assert new_keys is keys
    assert new_values is values
    assert (keys[:, 3] == 1).all()
    assert values.sum() == 2 * 16
    keys.flags.writeable = False
    with pytest.raises(ExecutionError, match="argument 4 'key_cache': an array that can be"):
        main(q, kv, kv, 4, keys, values)


def test_a_module_is_copied() -> None:
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(SCALED)
        interpreted = interpret(module)
        module.body.operations[0].erase()
        del module
    assert interpreted["main"](X, Y, (2, 1))[0][0, 0] == 2


def test_library_functions_are_called_by_their_convention() -> None:
    random = np.random.default_rng(0)
    x, w = random.standard_normal((3, 64)), random.standard_normal((64, 32))
    found = interpret(MODULES.parent / "Paper" / "figure_5_calls.mlir")["main"](
        x.astype(np.float32), w.astype(np.float32)
    )
    np.testing.assert_allclose(found, -(x @ w), rtol=1e-4, atol=1e-4)


def test_what_is_wrong_is_located() -> None:
    add = '"graph.add"(%x, %y) : (tensor<2xf32>, tensor<3xf32>) -> tensor<2xf32>'
    head = "func.func @main(%x: tensor<2xf32>, %y: tensor<3xf32>) -> tensor<2xf32> {\n"
    module = interpret(f"{head}  %0 = {add}\n  return %0 : tensor<2xf32>\n}}")
    with pytest.raises(CompileError, match=r"2:8: error: 'graph.add' op cannot broadcast dim 2"):
        module["main"](np.zeros(2, np.float32), np.zeros(3, np.float32))
    with pytest.raises(CompileError, match="error"):
        interpret("func.func @main(")
    with pytest.raises(CompileError, match="has the type"):
        interpret('func.func @main(%x: tensor<?xf32, #graph.shape<["n +"]>>) { return }')
    with pytest.raises(UsageError, match="cannot read 'missing"):
        interpret("missing.mlir")


def test_ops_that_nothing_interprets_are_refused() -> None:
    text = "func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {\n  %0 = index.constant 3\n"
    module = interpret(f"{text}  return %x : tensor<4xf32>\n}}")
    with pytest.raises(CompileError, match=r"2:8: error: 'index.constant' op is unknown to the"):
        module["main"](np.zeros(4, np.float32))


BRANCHES = """
!any = tensor<?xf32>
!k = tensor<?xf32, #graph.shape<["k"]>>
func.func @main(%x: !any, %y: !any, %which: tensor<i1>, %times: tensor<i64>) -> !any {
  %flag = tensor.extract %which[] : tensor<i1>
  %chosen = scf.if %flag -> !any {
    %a = "graph.match_cast"(%x) : (!any) -> !k
    %b = "graph.negative"(%a) : (!k) -> !k
    %c = tensor.cast %b : !k to !any
    scf.yield %c : !any
  } else {
    %a = "graph.match_cast"(%y) : (!any) -> !k
    %c = tensor.cast %a : !k to !any
    scf.yield %c : !any
  }
  %n = tensor.extract %times[] : tensor<i64>
  %count = arith.index_cast %n : i64 to index
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %sum = scf.for %i = %c0 to %count step %c1 iter_args(%t = %chosen) -> !any {
    %next = "graph.add"(%t, %t) : (!any, !any) -> !any
    scf.yield %next : !any
  }
  return %sum : !any
}
"""


@pytest.mark.parametrize("element", ["f32", "bf16", "i64"])
def test_results_of_rank_0_can_be_updated(element: str) -> None:
    module = interpret(f"""
func.func @main(%x: tensor<3x{element}>) -> tensor<{element}> {{
  %c = arith.constant 2 : index
  %0 = "graph.sum"(%x) {{axes = array<i64: 0>, keepdims = false}}
      : (tensor<3x{element}>) -> tensor<{element}>
  %1 = tensor.extract %x[%c] : tensor<3x{element}>
  %2 = tensor.insert %1 into %0[] : tensor<{element}>
  return %2 : tensor<{element}>
}}""")
    dtype = {"f32": np.float32, "bf16": ml_dtypes.bfloat16, "i64": np.int64}[element]
    assert module["main"](np.arange(3).astype(dtype)) == 2


def test_graphs_have_control_flow() -> None:
    """Each branch binds a symbol of its own; a loop carries a tensor."""
    main = interpret(BRANCHES)["main"]
    x, y = np.arange(3, dtype=np.float32), np.arange(5, dtype=np.float32)
    np.testing.assert_array_equal(main(x, y, np.bool_(True), np.int64(2)), -4 * x)
    np.testing.assert_array_equal(main(x, y, np.bool_(False), np.int64(0)), y)


@pytest.mark.parametrize(
    ("signature", "values"),
    [
        ('(%s: !graph.shape_value<["m", "n", "n floordiv m + k"]>)', [0, 4, 6]),
        (
            '(%s: !graph.shape_value<["m", "n"]>) attributes {graph.facts = ["n floordiv m < 3"]}',
            [0, 4],
        ),
    ],
)
def test_dims_and_facts_that_divide_by_0_are_refused(signature: str, values: list[int]) -> None:
    text = f"func.func @main{signature} {{ return }}"
    relax_mlir.interpret(text)["main"]([2, *values[1:]])
    for module in (relax_mlir.interpret(text), relax_mlir.compile(text, opt_level=0)):
        with pytest.raises(ExecutionError, match=r"floordiv m.*not positive"):
            module["main"](values)
