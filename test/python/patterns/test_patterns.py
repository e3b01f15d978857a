"""What patterns match, how they are written, and what is refused."""

import pytest

from relax_mlir.bindings import ir
from relax_mlir.dialects import make_context
from relax_mlir.errors import UsageError
from relax_mlir.patterns import (
    either_order,
    is_argument,
    is_const,
    is_op,
    match,
    matches,
    parse,
    parse_list,
    rewrite_matches,
    wildcard,
)
from relax_mlir.rewriting import walk_ops
from relax_mlir.symbolic import Facts

MODULE = """
!x = tensor<?x64xf32, #graph.shape<["n", 64]>>
!y = tensor<?x32xf32, #graph.shape<["n", 32]>>
!z = tensor<?x?xf32, #graph.shape<["n", "2*n"]>>
func.func @dense(%x: !x, %w: tensor<32x64xf32>, %z: !z, %o: tensor<?xf32>) -> (!y, !y, !y) {
  %b = arith.constant dense<1.0> : tensor<32xf32>
  %t = "graph.permute_dims"(%w) {axes = array<i64: 1, 0>} : (tensor<32x64xf32>) -> tensor<64x32xf32>
  %0 = "graph.matmul"(%x, %t) : (!x, tensor<64x32xf32>) -> !y
  %1 = "graph.add"(%0, %b) : (!y, tensor<32xf32>) -> !y
  %2 = "graph.nn_relu"(%1) : (!y) -> !y
  %3 = "graph.multiply"(%1, %1) : (!y, !y) -> !y
  %4 = "graph.nn_softmax"(%3) {axis = -1 : i64} : (!y) -> !y
  %5 = "graph.exp"(%z) : (!z) -> !z
  %6 = "graph.exp"(%o) : (tensor<?xf32>) -> tensor<?xf32>
  %7 = "graph.subtract"(%1, %0) : (!y, !y) -> !y
  return %2, %4, %7 : !y, !y, !y
}
"""


@pytest.fixture
def values():
    """The value that each op makes, by the name of the op; of two, the last one."""
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(MODULE)
        ops = [op.operation for op in walk_ops(module)]
        yield {op.name.removeprefix("graph."): op.results[0] for op in ops if len(op.results)}


@pytest.mark.parametrize(
    ("text", "value", "expected"),
    [
        ("nn_relu(add(matmul(%x: f32[m, k], %w: f32[k, n]), %b = const))", "nn_relu", True),
        ("nn_relu(add(matmul(%x: f32[m, k], %w: f32[n, k]), %b = const))", "nn_relu", False),
        ("nn_relu(matmul)", "nn_relu", False),
        ("nn_relu(_, _)", "nn_relu", False),
        ("add(_)", "add", False),
        ("_: f16", "nn_relu", False),
        ("_: [m, 16*k]", "nn_relu", True),
        ("_: [m, m]", "nn_relu", False),
        ("_: [m, 2*m]", "nn_relu", False),
        ("exp(_: [m, _])", "nn_relu", False),
        ("_: [..., 32]", "nn_relu", True),
        ("_: [..., n, 32]", "nn_relu", True),
        ("_: [..., a, n, 32]", "nn_relu", False),
        ("_: [...m, 32]", "nn_relu", True),
        ("nn_relu(_: [...m, j]) & _: [m, j]", "nn_relu", True),
        ("_: [...m] & _: [m, 1]", "nn_relu", False),
        ("_: [...m, _, 32] & _: [..., m * n, n*32]", "nn_relu", False),
        ("nn_softmax{axis = -1}", "nn_softmax", True),
        ("nn_softmax{axis = 1}", "nn_softmax", False),
        ("nn_softmax{axis = [1]}", "nn_softmax", False),
        ("nn_softmax{no_such = 1}", "nn_softmax", False),
        ("permute_dims(argument){axes = [1, 0]}", "permute_dims", True),
        ("permute_dims(const){axes = [1, 0]}", "permute_dims", False),
        ("matmul >> permute_dims", "permute_dims", False),
        ("matmul ^ add ^ nn_relu", "nn_relu", True),
        ("add ^ nn_relu", "nn_relu", True),
        ("add >> nn_relu", "nn_relu", False),  # the product uses the sum too
        ("multiply >> nn_softmax", "nn_softmax", True),
        ("multiply(%a, %a)", "multiply", True),
        ("subtract(%a, %a)", "subtract", False),
        ("subtract(add(%p, _), %p)", "subtract", True),
        ("~exp & nn_relu", "nn_relu", True),
        ("~nn_relu", "nn_relu", False),
        ("exp | nn_relu | nn_softmax", "nn_softmax", True),
        ("multiply#0", "multiply", True),
        ("multiply#1", "multiply", False),
        ("arith.constant", "arith.constant", True),
    ],
)
def test_what_matches(values, text, value, expected):
    assert (match(parse(text), values[value]) is not None) == expected


def test_a_match_has_values_ops_constants_and_dims(values):
    pattern = parse("nn_relu(add(%y = matmul(%x: f32[m, k], %w: f32[k, n]), const))")
    matched = match(pattern, values["nn_relu"])
    assert matched["y"] == values["matmul"]
    assert matched["x"] == values["matmul"].owner.operands[0]
    assert {name: str(dim) for name, dim in matched.dims.items()} == {
        "m": "n",
        "k": "64",
        "n": "32",
    }
    names = ["graph.nn_relu", "graph.add", "graph.matmul"]
    assert [op.name for op in matched.ops] == names
    assert [op.name for op in matched.constants] == ["arith.constant"]


def test_dims_that_are_symbolic_are_variables_of_the_pattern(values):
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(
            '!z = tensor<?x?xf32, #graph.shape<["n", "2*n"]>>\n'
            'func.func @f(%z: !z, %o: tensor<?xf32>, %p: tensor<?xf32, #graph.shape<["m"]>>) {'
            "  return }"
        )
        z, o, p = module.body.operations[0].arguments
        assert str(match(parse("_: [k, 2*k]"), z).dims["k"]) == "n"
        assert match(parse("_: [k, k]"), z) is None
        assert match(parse("_: [k]"), o) is None  # which is not known
        assert match(parse("_: [_]"), o) is not None
        assert match(parse("_: [64]"), p) is None
        assert match(parse("_: [64]"), p, Facts.parse(["m == 64"])) is not None


def test_all_ways_to_match_are_found(values):
    pattern = parse("multiply(%a | %b, %c)")
    assert [sorted(matched.captures) for matched in matches(pattern, values["multiply"])] == [
        ["a", "c"],
        ["b", "c"],
    ]
    either = either_order(is_op("add"), is_const("bias"), wildcard("y"))
    assert match(either, values["add"])["y"] == values["matmul"]
    chosen = wildcard("y").where(lambda value: value == values["matmul"])
    assert match(is_op("add")(chosen, wildcard()), values["add"]) is not None
    assert match(chosen, values["add"]) is None


def test_a_pattern_of_too_many_ways_is_refused(values):
    ways = "(_ | _ | _ | _ | _ | _ | _ | _)"
    many = parse(" & ".join([ways] * 8) + " & exp")
    with pytest.raises(UsageError, match=r"more than 16384 ways to match"):
        match(many, values["nn_relu"])
    deep = wildcard()
    for _ in range(5000):
        deep = deep | wildcard()
    with pytest.raises(UsageError, match=r"nested too deeply"):
        match(deep & is_op("exp"), values["nn_relu"])


def test_python_and_text_are_the_same():
    dense = is_op("add")(is_op("matmul")(wildcard("x"), wildcard()), is_const("b"))
    assert parse("add(matmul(%x, _), %b = const)") == dense
    assert parse("permute_dims(argument){axes = [1, 0]}") == is_op("permute_dims")(
        is_argument()
    ).has_attr(axes=(1, 0))
    assert parse("_: f32[..., n, 2*n]") != wildcard().has_dtype("f32").has_shape(["...", "n"])
    assert parse("matmul >> add >> exp") == is_op("matmul") >> is_op("add") >> is_op("exp")


TEXTS = [
    "_",
    "%x",
    "~const & %y = exp(_): f32[min(n, 4), 2*n + 1] ^ add",
    'full{shape = ["n", 3]}: []',
    "nn_rms_norm{eps = 1e-05, flag = true, other = -3}",
    "split(_)#1 | (matmul >> add)",
    "(%a_b: [...])",
    "exp | log & _",
]


@pytest.mark.parametrize("text", TEXTS)
def test_the_text_of_a_pattern_is_read_back(text):
    assert parse(str(parse(text))) == parse(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"expects a pattern at column 1, but got the end"),
        ("add(", r"expects a pattern at column 5"),
        ("matmull(_, _)", r"no op 'matmull'; did you mean 'matmul'"),
        ("add(_ _)", r"expects ',' at column 7, but got '_'"),
        ("%", r"expects a name at column 2"),
        ("_: f99", r"'f99' is not an element type"),
        ("_: f32[n, ...]", r"'...' stands for leading dims"),
        ("_: [n", r"expects '\]'"),
        ("_: [1.5]", r"'1.5'"),
        ("add#x", r"expects an index"),
        ("exp{axis = }", r"expects a value"),
        ("exp{axis = 1", r"expects ','"),
        ("_ _", r"expects the end at column 3, but got '_'"),
        ("$", r"expects a pattern at column 1, but got '\$'"),
        ("(" * 100, r"nested more than 64 deep"),
        ("~" * 100, r"nested more than 64 deep"),
        ("|".join("_" * 2000), r"more than 512 words"),
    ],
)
def test_what_is_no_pattern_is_refused(text, message):
    with pytest.raises(UsageError, match=message):
        parse(text)


def test_what_is_no_list_of_patterns_is_refused():
    assert parse_list("a = exp; b.c = %x: f32 ;") == [
        ("a", parse("exp")),
        ("b.c", parse("%x: f32")),
    ]
    with pytest.raises(UsageError, match=r"expects 'name = pattern', but got 'exp'"):
        parse_list("exp")
    with pytest.raises(UsageError, match=r"'x y' is not a name"):
        wildcard("x y")


def test_matches_are_replaced_and_what_is_unused_is_erased(values):
    module = values["nn_relu"].owner.operation.parent
    replaced = rewrite_matches(module, parse("nn_relu(add(%y = matmul, const))"), lambda f: f["y"])
    assert replaced == 1
    names = [op.operation.name for op in walk_ops(module)]
    assert "graph.nn_relu" not in names
    assert "graph.add" in names  # others use it
    assert module.verify()
    assert rewrite_matches(module, parse("nn_softmax"), lambda matched: None) == 0
    assert rewrite_matches(module, parse("nn_softmax(%x)"), lambda matched: matched["x"]) == 1
    assert module.verify()
