"""Cases of TVM's tests on bindings of symbols (rows 10 to 13 of the list)."""

import pytest
from reference_modules import after, find, of, operations, results, tensor

from relax_mlir.dialects.graph import TensorType
from relax_mlir.errors import CompileError


def test_replace_symbolic_variable_and_remove_match_cast() -> None:
    mn, op = tensor("m", "n"), tensor("o", "p")
    text = f"""func.func @main(%x: {mn}) -> ({mn}, {op}) {{
      %z = "graph.match_cast"(%x) : ({mn}) -> {op}
      %w = "graph.add"(%z, %z) : ({op}, {op}) -> {op}
      %q = "graph.exp"(%x) : ({mn}) -> {mn}
      return %q, %w : {mn}, {op}
    }}"""
    with after(text, "relax-canonicalize-bindings") as module:
        main = find(module, "main")
        assert operations(main) == ["add", "exp"]
        assert results(main) == [of("m", "n")] * 2
        add = main.entry_block.operations[0]
        assert list(add.operands) == [main.arguments[0]] * 2


def test_inconsistent_match_cast_raises_error() -> None:
    m = tensor("m")
    text = f"""func.func @main(%x: {m}, %y: {m}) -> {tensor(32)} {{
      %0 = "graph.match_cast"(%x) : ({m}) -> {tensor(16)}
      %1 = "graph.match_cast"(%y) : ({m}) -> {tensor(32)}
      return %1 : {tensor(32)}
    }}"""
    with (
        pytest.raises(CompileError, match=r"inconsistent match_cast: asserts 32 .* m == 16"),
        after(text, "relax-canonicalize-bindings"),
    ):
        pass


def test_arith() -> None:
    x, y, z = tensor("batch", "m - 1"), tensor("m", "n"), tensor("batch", "k*m")
    k, out = tensor("k"), tensor("m + n")
    text = f"""
    func.func @main(%x: {x}, %y: {y}, %z: {z}, %v: tensor<f32>, %k: {k}) -> {out} {{
      %0 = "graph.full"(%v) {{shape = #graph.shape<["m + n"]>}} : (tensor<f32>) -> {out}
      return %0 : {out}
    }}"""
    with after(text, "relax-bind-symbols{symbols=batch=1,k=2,m=3}") as module:
        main = find(module, "main")
        arguments = [TensorType.of(argument) for argument in main.arguments]
        assert arguments == [of(1, 2), of(3, "n"), of(1, 6), of(), of(2)]
        assert TensorType.of(main.entry_block.operations[0].results[0]) == of("n + 3")
        assert results(main) == [of("n + 3")]
