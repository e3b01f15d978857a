"""Modules of StableHLO: how they are read, what they become, what is refused."""

import numpy as np
import pytest

import relax_mlir
from relax_mlir.bindings import ir, stablehlo
from relax_mlir.errors import CompileError, UsageError
from relax_mlir.frontends.stablehlo import from_stablehlo
from relax_mlir.interpreter import interpret

SHAPES = """
func.func @main(%x: tensor<?x4xf32>, %y: tensor<1x4xf32>) -> (tensor<?x4xf32>, tensor<i32>) {
  %n = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?x4xf32>) -> tensor<i32>
  %n1 = stablehlo.reshape %n : (tensor<i32>) -> tensor<1xi32>
  %four = stablehlo.constant dense<4> : tensor<1xi32>
  %s = stablehlo.concatenate %n1, %four, dim = 0
    : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
  %b = stablehlo.dynamic_broadcast_in_dim %y, %s, dims = [0, 1]
    : (tensor<1x4xf32>, tensor<2xi32>) -> tensor<?x4xf32>
  %r = stablehlo.add %x, %b : tensor<?x4xf32>
  %m = stablehlo.multiply %n, %n : tensor<i32>
  func.return %r, %m : tensor<?x4xf32>, tensor<i32>
}
"""


def module_of(text: str) -> ir.Module:
    """A module in a context of its own."""
    context = ir.Context()
    stablehlo.load(context)
    with context, ir.Location.unknown():
        return ir.Module.parse(text)


def check_shapes(imported) -> None:
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    y = np.ones((1, 4), np.float32)
    result, square = interpret(imported.module)["main"](x, y)
    np.testing.assert_array_equal(result, x + 1)
    assert square == 9


def test_text_has_symbols_for_dims_of_run_time():
    imported = from_stablehlo(SHAPES, dims={"arg0_0": "n"}, facts=["n <= 64"])
    assert '#graph.shape<["n", 4]>' in str(imported.module)
    assert "match_cast" not in str(imported.module)
    check_shapes(imported)


def test_portable_artifacts_are_read():
    check_shapes(from_stablehlo(stablehlo.portable(module_of(SHAPES), "1.0.0")))


def test_paths_are_read(tmp_path):
    path = tmp_path / "model.mlirbc"
    path.write_bytes(stablehlo.portable(module_of(SHAPES)))
    check_shapes(from_stablehlo(str(path)))
    check_shapes(from_stablehlo(path))


def test_sizes_that_are_known_are_results():
    text = """
func.func @main(%x: tensor<2x?xf32>) -> (tensor<i32>, tensor<i32>) {
  %0 = stablehlo.get_dimension_size %x, dim = 0 : (tensor<2x?xf32>) -> tensor<i32>
  %1 = stablehlo.get_dimension_size %x, dim = 1 : (tensor<2x?xf32>) -> tensor<i32>
  func.return %0, %1 : tensor<i32>, tensor<i32>
}
"""
    first, second = interpret(from_stablehlo(text).module)["main"](np.ones((2, 3), np.float32))
    assert (first, second, first.dtype) == (2, 3, np.int32)


def test_modules_are_compiled():
    main = relax_mlir.compile(from_stablehlo(SHAPES), opt_level=0)["main"]
    x = np.ones((5, 4), np.float32)
    assert main(x, x[:1])[1] == 25


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("%x, %b :", "%x, %y :"), "expects different type than prior uses"),
        (("stablehlo.add", "stablehlo.no_such_op"), "no_such_op"),
        (("stablehlo.add", "stablehlo.all_of_it"), "all_of_it"),
        (("func.return", "func.retur"), "error"),
    ],
)
def test_wrong_text_is_refused_where_it_is(change, message):
    with pytest.raises(CompileError, match=message) as caught:
        from_stablehlo(SHAPES.replace(*change))
    assert str(caught.value).startswith("-:")


def test_unsupported_ops_are_named_at_once():
    text = """
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %a = "stablehlo.cross-replica-sum"(%x) {replica_groups = dense<0> : tensor<1x1xi64>}
    : (tensor<4xf32>) -> tensor<4xf32>
  %b = stablehlo.custom_call @somewhere(%a) : (tensor<4xf32>) -> tensor<4xf32>
  %c = "other.op"(%b) : (tensor<4xf32>) -> tensor<4xf32>
  func.return %c : tensor<4xf32>
}
"""
    with pytest.raises(CompileError, match="operators that are not supported") as caught:
        from_stablehlo(text)
    for name in ("@somewhere", "other.op"):
        assert name in str(caught.value)


@pytest.mark.parametrize("size", [0, 4, 30, 100, -1])
def test_damaged_artifacts_are_refused(size):
    artifact = stablehlo.portable(module_of(SHAPES))
    with pytest.raises(CompileError):
        from_stablehlo(artifact[:size] if size >= 0 else artifact[:-8] + b"\xff" * 8)


def test_newer_artifacts_are_refused():
    artifact = stablehlo.portable(module_of(SHAPES))
    newer = artifact.replace(b"StableHLO_v1.", b"StableHLO_v9.")
    with pytest.raises(CompileError, match="supported"):
        from_stablehlo(newer)


def test_files_that_are_not_there_are_usage_errors():
    with pytest.raises(UsageError, match="no_such"):
        from_stablehlo("no_such.mlirbc")


def test_calls_of_themselves_are_refused():
    text = """
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %a = func.call @main(%x) : (tensor<4xf32>) -> tensor<4xf32>
  func.return %a : tensor<4xf32>
}
"""
    with pytest.raises(CompileError, match="calls itself"):
        from_stablehlo(text)


def test_long_chains_of_calls_are_refused_or_imported():
    kind = "tensor<4xf32>"

    def called(name: str, body: str) -> str:
        return f"func.func {name}(%x: {kind}) -> {kind} {{\n{body}\n}}\n"

    def next_(i: int) -> str:
        return f"%0 = call @f{i}(%x) : ({kind}) -> {kind}\n return %0 : {kind}"

    def chain(length: int) -> str:
        last = called(f"private @f{length}", f"return %x : {kind}")
        inner = "".join(called(f"private @f{i}", next_(i + 1)) for i in range(length))
        return called("public @entry", next_(0)) + inner + last

    from_stablehlo(chain(50))
    with pytest.raises(CompileError, match="nested too deeply"):
        from_stablehlo(chain(2000))


def test_results_that_are_tuples_are_refused_where_they_are():
    text = """
func.func @main(%x: tensor<4xf32>) -> tuple<tensor<4xf32>> {
  %0 = stablehlo.tuple %x : tuple<tensor<4xf32>>
  func.return %0 : tuple<tensor<4xf32>>
}
"""
    with pytest.raises(CompileError, match=r"^-:4:3: error: 'func.return': .* a tuple"):
        from_stablehlo(text)
