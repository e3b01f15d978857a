"""Cases of TVM's tests on types: block builder, operators, analyses (rows 1 to 8 of the list)."""

import pytest
from call_segments import segments
from reference_modules import after, find, of, results, tensor

from relax_mlir import decompositions
from relax_mlir.analysis.functions import facts_of
from relax_mlir.analysis.signatures import Unification
from relax_mlir.bindings import func, ir
from relax_mlir.dialects import graph, make_context
from relax_mlir.dialects.graph import ShapeError, TensorType
from relax_mlir.errors import CompileError
from relax_mlir.symbolic import equal, parse


@pytest.fixture(autouse=True)
def in_context():
    with make_context(), ir.Location.unknown():
        yield


def built(build, *operands: TensorType) -> TensorType:
    """The annotation of what a function of tensors builds."""
    with ir.InsertionPoint(ir.Module.create().body):
        function = func.FuncOp("f", ([operand.to_mlir() for operand in operands], []))
        with ir.InsertionPoint(function.add_entry_block()):
            return TensorType.of(build(*function.arguments))


def test_binary_shape_type_deduction() -> None:
    def half(*dims: int | str) -> TensorType:
        return of(*dims, element="f16")

    for op in (graph.AddOp, graph.MultiplyOp):
        infer = op.infer_return_type
        assert infer(half("m", 1), half("n")) == half("m", "n")
        assert infer(half("m", 1), half(5)) == half("m", 5)
        assert infer(half(5), half(5)) == half(5)
        # Not known to be equal: where the call is right, k is 1 or 5, and n is k or one is 1.
        assert infer(half(5), half("k")) == half(5)
        (dim,) = infer(half("n"), half("k")).dims
        for n, k, expected in ((3, 3, 3), (1, 4, 4), (4, 1, 4), (0, 1, 0), (1, 0, 0), (0, 0, 0)):
            assert dim.evaluate({"n": n, "k": k}) == expected
        with pytest.raises(ShapeError):
            infer(half(5), half(4))


def test_matmul_infer_ty_shape_symbolic() -> None:
    infer = graph.MatmulOp.infer_return_type
    assert infer(of("m", "k"), of("k", "n")) == of("m", "n")
    assert infer(of("a", "m", "k"), of("k", "n")) == of("a", "m", "n")
    assert infer(of("a", 1, "m", "k"), of("b", "k", "n")) == of("a", "b", "m", "n")
    assert infer(of("a", 1, "c", "m", "k"), of("b", 1, "k", "n")) == of("a", "b", "c", "m", "n")
    # Symbols of two names may be equal or not: the rank stays known, and so do other dims.
    result = infer(of("a", "b", "c", "m", "k"), of("a", "d", "c", "k", "n"))
    assert (result.dims[0], *result.dims[2:]) == of("a", "c", "m", "n").dims
    assert result.dims[1] not in of("b", "d").dims
    with pytest.raises(ShapeError, match="contracts dim k of lhs with dim k \\+ 1"):
        infer(of("m", "k"), of("k + 1", "n"))


def test_matmul_of_vectors() -> None:
    for left, right, expected in (
        (["k"], ["k"], []),
        (["k"], ["k", "n"], ["n"]),
        (["m", "k"], ["k"], ["m"]),
        (["k"], ["a", "k", "n"], ["a", "n"]),
        (["a", "m", "k"], ["k"], ["a", "m"]),
    ):
        assert built(decompositions.matmul, of(*left), of(*right)) == of(*expected)


def test_reshape_infer_ty_shape_symbolic() -> None:
    x = of("a", "b", "c", "d")
    for dims, expected in (
        (["d", "c", "b", -1], ["d", "c", "b", "a"]),
        ([1, -1, 1], [1, "a*b*c*d", 1]),
        ([2, -1, "a"], [2, "(b*c*d) floordiv 2", "a"]),
        (["c", "a*d", "b"], ["c", "a*d", "b"]),
    ):
        result = built(lambda v, dims=dims: decompositions.reshape(v, dims), x)
        assert result.dims is not None
        for got, want in zip(result.dims, of(*expected).dims, strict=True):
            assert equal(got, want).proved
    with pytest.raises(ShapeError, match="has a\\*b\\*c\\*d elements"):
        graph.ReshapeOp.infer_return_type(x, of("a*b*c*d + 1").dims)


X, OUT = tensor("n", "m"), tensor("m + c", "n")
SIGNATURE = f"""
func.func private @f(%x: {X}, %s: !graph.shape_value<["c"]>) -> {OUT} {{
  %0 = "graph.permute_dims"(%x) {{axes = array<i64: 1, 0>}} : ({X}) -> {tensor("m", "n")}
  %1 = "graph.match_cast"(%0) : ({tensor("m", "n")}) -> {OUT}
  return %1 : {OUT}
}}
"""


def caller(argument: str, shape: str, result: str = tensor(None, None)) -> str:
    return (
        SIGNATURE
        + f"""
func.func @main(%x: {argument}, %s: !graph.shape_value<[{shape}]>) -> {result} {{
  %0 = "graph.call"(%x, %s) {{callee = @f, {segments(2)}}}
      : ({argument}, !graph.shape_value<[{shape}]>) -> {result}
  return %0 : {result}
}}"""
    )


def test_derive_call_ret_type() -> None:
    for argument, shape, expected in (
        (tensor(10, 11), "1", [12, 10]),
        (tensor("k", "2*k"), '"c"', ["c + 2*k", "k"]),
        (tensor(None, None), "1", [None, None]),
        (tensor("k", None), "1", [None, "k"]),
    ):
        with after(caller(argument, shape), "relax-infer-shapes") as module:
            assert results(find(module, "main")) == [of(*expected)]


@pytest.mark.parametrize(
    ("argument", "shape", "message"),
    [
        (tensor(10, 11, 12), "1", "rank"),
        (tensor(10, 11, element="f16"), "1", "f16"),
        (tensor(10, 11), "1, 2", "2 dims instead of 1"),
    ],
)
def test_derive_call_ret_type_mismatch(argument: str, shape: str, message: str) -> None:
    with (
        pytest.raises(CompileError, match=message),
        after(caller(argument, shape), "relax-infer-shapes", "relax-verify"),
    ):
        pass


def test_derive_call_ret_type_wrong_arity() -> None:
    text = caller(tensor(10, 11), "1").replace('"graph.call"(%x, %s)', '"graph.call"(%x)')
    text = text.replace(segments(2), segments(1)).replace(
        f"({tensor(10, 11)}, !graph.shape_value<[1]>) -> {tensor(None, None)}\n  return",
        f"({tensor(10, 11)}) -> {tensor(None, None)}\n  return",
    )
    with pytest.raises(CompileError, match="1 operands"), after(text, "relax-verify"):
        pass


def test_erase_to_well_defined_tensor() -> None:
    annotation = of("m + 1", "n")
    for values, expected in (
        ({"m": "m", "n": "n"}, annotation),
        ({"m": "3", "n": "2"}, of(4, 2)),
        ({"n": "n"}, of(None, "n")),
        ({}, of(None, None)),
    ):
        scope = Unification({name: parse(value) for name, value in values.items()})
        assert scope.annotation(annotation) == expected


def test_collect_nonnegative_expressions() -> None:
    text = f"""func.func @main(%a: {tensor("m")}, %b: {tensor("n - 2")}, %c: {tensor("m + 2")},
        %s: !graph.shape_value<["m", "n"]>, %i: i64) -> {tensor("n - 2")} {{
      %0 = "graph.exp"(%b) : ({tensor("n - 2")}) -> {tensor("n - 2")}
      %1 = "graph.exp"(%c) : ({tensor("m + 2")}) -> {tensor("m + 2")}
      return %0 : {tensor("n - 2")}
    }}"""
    with after(text, "relax-name-dims", "relax-state-assumptions") as module:
        facts = facts_of(find(module, "main"))
    # Symbols are natural numbers; of the dims, n - 2 alone says more. The scalar says nothing.
    assert [str(fact) for fact in facts] == ["0 <= n - 2"]
