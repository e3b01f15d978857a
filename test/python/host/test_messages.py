"""What functions print and assert."""

import re

import ml_dtypes
import numpy as np
import pytest
from call_segments import segments
from levels import LEVELS

import relax_mlir
from relax_mlir.errors import ExecutionError

WAYS = [*LEVELS, "interpreted"]


def function(text: str, way: int | str):
    """The function main of the text at a level, or interpreted."""
    if way == "interpreted":
        return relax_mlir.interpret(text)["main"]
    return relax_mlir.compile(text, opt_level=way)["main"]


def printed(format_: str, values: str, types: str) -> str:
    counts = segments(len(values.split(",")) if values else 0, 0)
    return f'"graph.print"({values}) {{format = "{format_}", {counts}}} : ({types}) -> ()\n'


X = 'tensor<?x3xf32, #graph.shape<["n", 3]>>'
SHAPE = '!graph.shape_value<["n", "2 * n"]>'
TYPES = f"{X}, index, {SHAPE}, f64, i1, f16"
MODULE = f"""
func.func @main(%x: {X}, %k: index, %f: f64, %b: i1, %h: f16) -> {X} {{
  %s = "graph.make_shape"() {{dims = #graph.shape<["n", "2 * n"]>}} : () -> {SHAPE}
  %0 = "graph.add"(%x, %x) : ({X}, {X}) -> {X}
  {printed("start", "", "")}
  {printed("{{{}}} of {}, {}: {} {} {}", "%0, %k, %s, %f, %b, %h", TYPES)}
  {printed("twice", "", "")}
  {printed("twice", "", "")}
  return %x : {X}
}}
"""


@pytest.fixture(scope="module", params=WAYS)
def main(request):
    return function(MODULE, request.param)


def test_lines_and_values(main, capfd):
    x = np.array([[1, 0.1, -2e-9], [np.nan, np.inf, -np.inf]], np.float32)
    main(x, -7, 1 / 3, True, np.float16(0.1))
    out, err = capfd.readouterr()
    assert err == ""
    assert out.splitlines() == [
        "start",
        "{[[2, 0.2, -4e-09], [nan, inf, -inf]]} of -7, [2, 4]: 0.3333333333333333 true 0.0999756",
        "twice",
        "twice",
    ]


@pytest.mark.parametrize("n", [0, 1, 333, 334, 1000])
def test_long_tensors_are_shortened(main, capfd, n):
    x = np.arange(3 * n, dtype=np.float32).reshape(n, 3) / 2
    main(x, 0, 0.0, False, np.float16(0))
    rows = [f"[{3 * i}, {3 * i + 1}, {3 * i + 2}]" for i in range(n)]
    if 3 * n > 1000:
        rows = [*rows[:3], "...", *rows[-3:]]
    line = capfd.readouterr().out.splitlines()[1]
    assert line.startswith(f"{{[{', '.join(rows)}]}} of 0, [{n}, {2 * n}]: 0 false 0")


@pytest.mark.parametrize("way", [LEVELS[0], "interpreted"])
def test_bfloat16(capfd, way):
    text = f"func.func @main(%x: tensor<3xbf16>) {{\n{printed('{}', '%x', 'tensor<3xbf16>')}"
    x = np.array([1.5, -2, np.nan], ml_dtypes.bfloat16)
    function(text + "  return\n}\n", way)(x)
    assert capfd.readouterr().out == "[1.5, -2, nan]\n"


FLOATS = np.random.default_rng(5).integers(0, 2**64, 300, np.uint64, endpoint=False)


@pytest.mark.parametrize(
    ("element", "dtype"),
    [
        ("f64", "f8"),
        ("f32", "f4"),
        ("i8", "i1"),
        ("i16", "i2"),
        ("i32", "i4"),
        ("i64", "i8"),
        ("ui32", "u4"),
        ("i1", "?"),
    ],
)
def test_numbers_are_read_back(capfd, element, dtype):
    """Each number has the digits that tell it from others."""
    type_ = f'tensor<?x{element}, #graph.shape<["n"]>>'
    text = f"func.func @main(%x: {type_}) {{\n{printed('{}', '%x', type_)}  return\n}}\n"
    bits = FLOATS.view("u1") % 2 if dtype == "?" else FLOATS
    x = bits.view(dtype)[:300]
    lines = []
    for way in (2, "interpreted"):
        function(text, way)(x)
        lines.append(capfd.readouterr().out)
    assert lines[0] == lines[1]
    words = lines[0].strip("[]\n").split(", ")
    if dtype == "?":
        assert words == [str(bool(value)).lower() for value in x]
    else:
        found = np.array([np.dtype(dtype).type(word) for word in words])
        np.testing.assert_array_equal(found, x)


def test_text_that_is_too_long(capfd):
    """It ends in dots."""
    type_ = "tensor<3x3x3x3x3x3x3x3x3xf64>"
    text = f"func.func @main(%x: {type_}) {{\n{printed('{}', '%x', type_)}  return\n}}\n"
    function(text, 2)(np.full((3,) * 9, 1 / 3))
    out = capfd.readouterr().out
    assert out.endswith("...\n")
    assert len(out) == 2**16 + 4


def asserted(condition: str, type_: str, format_: str, values: str, types: str) -> str:
    operands = ", ".join(filter(None, [condition, values]))
    kinds = ", ".join(filter(None, [type_, types]))
    count = len(operands.split(","))
    attributes = f'format = "{format_}", {segments(count, 0)}'
    return f'"graph.assert"({operands}) {{{attributes}}} : ({kinds}) -> ()\n'


N = 'tensor<?xf32, #graph.shape<["n"]>>'
CHECKED = f"""
func.func @main(%x: {N}, %k: index) -> {N} {{
  %limit = arith.constant 10 : index
  %small = arith.cmpi sle, %k, %limit : index
  {asserted("%small", "i1", "no more than {} tokens, but {}", "%limit, %k", "index, index")}
  %0 = "graph.isfinite"(%x) : ({N}) -> tensor<?xi1, #graph.shape<["n"]>>
  %1 = "graph.all"(%0) {{axes = array<i64: 0>, keepdims = false}}
      : (tensor<?xi1, #graph.shape<["n"]>>) -> tensor<i1>
  {asserted("%1", "tensor<i1>", "infinite: {}", "%x", N)}
  return %x : {N}
}}
"""


@pytest.mark.parametrize("way", WAYS)
def test_assertions(way):
    main = function(CHECKED, way)
    x = np.ones(2, np.float32)
    np.testing.assert_array_equal(main(x, 10), x)
    where = r"-:\d+:\d+: "
    with pytest.raises(ExecutionError, match=where + "no more than 10 tokens, but 11$"):
        main(x, 11)
    with pytest.raises(ExecutionError, match=where + re.escape("infinite: [1, inf]") + "$"):
        main(np.array([1, np.inf], np.float32), 3)
    np.testing.assert_array_equal(main(x, -1), x)


def test_a_long_message_is_cut():
    x = np.full(999, np.nan, np.float32)
    with pytest.raises(ExecutionError, match=r"infinite: \[nan, nan") as error:
        function(CHECKED, 2)(x, 3)
    assert len(str(error.value)) < 1024
