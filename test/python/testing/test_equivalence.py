"""What holds modules against what they meant: sizes, arguments, tolerances, and what is told."""

import numpy as np
import pytest

from relax_mlir.bindings import ir
from relax_mlir.dialects import make_context
from relax_mlir.executable import Argument
from relax_mlir.passes import PassFailure, Pipeline
from relax_mlir.pipelines import pipeline
from relax_mlir.symbolic import Facts
from relax_mlir.testing.compare import Expected, perturbed
from relax_mlir.testing.equivalence import Equivalence
from relax_mlir.testing.inputs import arguments
from relax_mlir.testing.sizes import valuations


def test_sizes_satisfy_facts_and_reach_their_ends() -> None:
    facts = Facts.parse(["m <= n", "n <= 40"])
    found = valuations(["m", "n"], facts)
    assert all(facts.evaluate(values) for values in found)
    assert len({tuple(values.values()) for values in found}) == len(found)
    assert {0, 1, 7, 39, 40} <= {values[name] for values in found for name in "mn"} | {7}
    assert valuations([], Facts()) == [{}]
    assert valuations(["n"], Facts.parse(["n mod 16 == 0", "n <= 256"]))[-1] == {"n": 256}
    assert valuations(["n"], Facts.parse(["n == 2048"])) == [{"n": 2048}]
    assert valuations(["n"], Facts.parse(["n < 0"])) == []
    assert valuations(["n"], Facts(), lambda values: values["n"] % 2 == 1, count=2) == [
        {"n": 1},
        {"n": 7},
    ]


def test_many_symbols_are_sampled() -> None:
    names = [f"s{i}" for i in range(9)]
    found = valuations(names, Facts.parse(["s0 == s1", "s2 <= s3"]))
    assert found
    assert all(values["s0"] == values["s1"] for values in found)


@pytest.mark.parametrize(
    ("dtype", "kind"),
    [("f32", "f"), ("bf16", "u"), ("i8", "i"), ("i64", "i"), ("i1", "b"), ("ui16", "u")],
)
def test_arguments_follow_the_signature(dtype: str, kind: str) -> None:
    random = np.random.default_rng(0)
    argument = Argument("x", "tensor", dtype, ("n", "2*n + 1", None), False)
    (array,) = arguments([argument], {"n": 3, "?": 5}, random)
    assert array.shape == (3, 7, 5)
    assert array.dtype.kind == kind
    assert len(np.unique(array)) > 1
    shape = Argument("s", "shape", "i64", ("n", 4), False)
    assert arguments([shape], {"n": 3}, random) == [[3, 4]]


def expected(value: np.ndarray, *trials: np.ndarray) -> Expected:
    return Expected.of(value, {4: "f32", 8: "i64"}[value.dtype.itemsize], trials)


def test_floats_may_be_rounded_otherwise() -> None:
    x = np.array([1, -1000, 0, np.nan, np.inf], np.float32)
    want = expected(x, x)
    assert want.difference(x) is None
    assert want.difference(x * np.float32(1 + 2**-21)) is None
    wrong = x.copy()
    wrong[0] = 1.001
    assert want.difference(wrong) == "at [0] is 1.00100005, but was 1"
    for index, value in ((3, 0), (4, np.nan), (4, -np.inf), (1, np.nan)):
        wrong = x.copy()
        wrong[index] = value
        assert want.difference(wrong).startswith(f"at [{index}] is ")
    assert want.difference(x[:2]) == "is float32[2], but was float32[5]"


def test_elements_that_move_may_move() -> None:
    x = np.array([1, 1], np.float32)
    want = expected(x, np.array([1, 1.01], np.float32))
    assert want.difference(np.array([1, 1.05], np.float32)) is None
    assert want.difference(np.array([1.05, 1], np.float32)) == "at [0] is 1.04999995, but was 1"


def test_integers_are_the_same_or_had_moved() -> None:
    x = np.array([3, 4], np.int64)
    assert expected(x, x).difference(np.array([3, 5])) == "at [1] is 5, but was 4"
    assert expected(x, np.array([3, 9])).difference(np.array([3, 5])) is None
    both = np.array([9, 9])
    assert expected(x, x).difference(both) == "at [0] is 9, but was 3, and 1 more elements"


def test_floats_of_8_bits_are_the_same_or_had_moved() -> None:
    codes = np.array([0x38, 0x7B, 0x7C], np.uint8)  # 0.5, the greatest number, infinity
    want, other = Expected.of(codes, "f8E5M2", [codes]), np.array([0x39, 0x7B, 0x7C], np.uint8)
    assert want.difference(codes, "f32") is None
    assert want.difference(other, "f32") == "at [0] is 0.625, but was 0.5"
    assert Expected.of(codes, "f8E5M2", [other]).difference(other, "f32") is None
    assert want.difference(codes[[0, 2, 2]]) == "at [1] is inf, but was 57344"
    kept = perturbed(codes, "f8E5M2", np.random.default_rng(0), 0.1)
    np.testing.assert_array_equal(kept, codes)


def test_moved_arguments_are_near() -> None:
    random = np.random.default_rng(0)
    x = random.standard_normal(1000).astype(np.float32)
    near = perturbed(x, "f32", random, 0)
    assert 0 < (near != x).mean() < 1
    np.testing.assert_allclose(near, x, rtol=2.0**-22)
    assert perturbed([3, 4], "i64", random, 0.1) == [3, 4]


MODULE = """
!x = tensor<?x8xf32, #graph.shape<["n", 8]>>
!cache = tensor<2x?x8xf32, #graph.shape<[2, "c", 8]>>
!any = tensor<?xf32>
!k = tensor<?xf32, #graph.shape<["k"]>>
func.func @main(%x: !x, %c: !cache {graph.inout = 1 : i64}, %p: !graph.shape_value<["m"]>)
    -> (!x, !cache) attributes {graph.facts = ["m + n <= c"]} {
  %0 = "graph.nn_silu"(%x) : (!x) -> !x
  return %0, %c : !x, !cache
}
func.func @cast(%x: !any, %y: !any) -> !k {
  %0 = "graph.match_cast"(%x) : (!any) -> !k
  %1 = "graph.match_cast"(%y) : (!any) -> !k
  %2 = "graph.subtract"(%0, %1) : (!k, !k) -> !k
  return %2 : !k
}
"""


def run(text: str, *passes: str) -> None:
    """Runs passes, with a check after each."""
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        checker = Equivalence(module)
        Pipeline.parse(",".join(passes)).run(module, after_each=checker.check)


def test_functions_of_every_kind_are_compared() -> None:
    run(MODULE, "relax-infer-shapes", "relax-legalize-ops", "canonicalize")
    with make_context(), ir.Location.unknown():
        checker = Equivalence(ir.Module.parse(MODULE))
        wrong = ir.Module.parse(MODULE.replace('"graph.subtract"', '"graph.multiply"'))
        with pytest.raises(PassFailure) as failure:
            checker.check("some-pass", wrong)
    text = failure.value.diagnostic.message
    assert text.startswith("after 'some-pass', @cast differs for ? = 1: result 0 at [0] is ")


WEIGHTED = """
!x = tensor<?x64xf32, #graph.shape<["n", 64]>>
!y = tensor<?x32xf32, #graph.shape<["n", 32]>>
func.func @main(%x: !x, %w: tensor<64x32xf32>) -> !y attributes {graph.num_inputs = 1 : i64} {
  %0 = "graph.matmul"(%x, %w) : (!x, tensor<64x32xf32>) -> !y
  %1 = "graph.nn_relu"(%0) : (!y) -> !y
  return %1 : !y
}
"""


@pytest.mark.parametrize("quantize", [None, "q8_32"])
def test_parameters_are_made_for_what_takes_new_ones(
    quantize: str | None, capsys: pytest.CaptureFixture
) -> None:
    """At -O3, `@main` takes what `@main_params` returns, of weights that may be rounded before."""
    passes = pipeline("x86-64-v3", 3, quantize=quantize)
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(WEIGHTED)
        checker = Equivalence(module)
        last: dict[str, int] = {}

        def check(name: str, after: ir.Operation) -> None:
            checker.check(name, after)
            last[name] = len(checker.compared)

        Pipeline.parse(passes).run(module, after_each=check)
    assert last["relax-lift-params"] == last["relax-plan-memory"] == 1
    assert ("@main is compared anew" in capsys.readouterr().err) == (quantize is not None)


def test_a_function_that_is_gone_is_told() -> None:
    with make_context(), ir.Location.unknown():
        checker = Equivalence(ir.Module.parse(MODULE))
        rest = ir.Module.parse(MODULE.replace("@cast", "@other"))
        with pytest.raises(PassFailure, match="the pass 'some-pass' drops the function @cast"):
            checker.check("some-pass", rest)


def test_what_cannot_be_interpreted_is_told(capsys: pytest.CaptureFixture) -> None:
    text = "func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {\n  %0 = index.constant 3\n"
    with make_context(), ir.Location.unknown():
        Equivalence(ir.Module.parse(f"{text}  return %x : tensor<4xf32>\n}}"))
    assert "remark: @main is not compared any more: -:2:8: error" in capsys.readouterr().err
