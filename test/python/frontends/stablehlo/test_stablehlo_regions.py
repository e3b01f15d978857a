"""Regions of StableHLO, with dims of run time: branches, loops, and functions of two elements."""

import ml_dtypes
import numpy as np
import pytest

import relax_mlir
from relax_mlir.errors import CompileError
from relax_mlir.frontends.stablehlo import from_stablehlo
from relax_mlir.interpreter import interpret

F = "tensor<f32>"
ROW = "tensor<?x4xf32>"


def function(arguments: str, results: str, body: str) -> str:
    """The text of a module of one function."""
    return f"func.func @main({arguments}) -> ({results}) {{\n{body}\n}}"


def both(text: str):
    """The function of a module, interpreted and compiled."""
    imported = from_stablehlo(text)
    return interpret(imported.module)["main"], relax_mlir.compile(imported, opt_level=1)["main"]


def region(op: str) -> str:
    """A region of two elements that no operator of ours is."""
    return f"""({{
      ^bb0(%a: {F}, %b: {F}):
        %half = stablehlo.constant dense<5.0e-01> : {F}
        %d = stablehlo.{op} %a, %b : {F}
        %e = stablehlo.multiply %d, %half : {F}
        stablehlo.return %e : {F}
    }})"""


@pytest.mark.parametrize("rows", [0, 1, 5])
def test_reductions_by_any_function_of_dims_of_run_time(rows):
    body = f"""
    %i = stablehlo.constant dense<1.0> : {F}
    %0 = "stablehlo.reduce"(%x, %i) <{{dimensions = array<i64: 0>}}> {region("add")}
      : ({ROW}, {F}) -> tensor<4xf32>
    return %0 : tensor<4xf32>"""
    x = np.random.default_rng(rows).standard_normal((rows, 4)).astype(np.float32)
    expected = np.ones(4, np.float32)
    for row in x:
        expected = (expected + row) / 2
    for main in both(function(f"%x: {ROW}", "tensor<4xf32>", body)):
        np.testing.assert_allclose(main(x), expected, rtol=1e-6)


def test_scatters_by_any_function_are_in_order():
    body = f"""
    %0 = "stablehlo.scatter"(%x, %i, %u) <{{scatter_dimension_numbers = #stablehlo.scatter<
      inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}}>
      {region("subtract")} : (tensor<?xf32>, tensor<?x1xi32>, tensor<?xf32>) -> tensor<?xf32>
    return %0 : tensor<?xf32>"""
    arguments = "%x: tensor<?xf32>, %i: tensor<?x1xi32>, %u: tensor<?xf32>"
    x, u = np.arange(5, dtype=np.float32), np.array([1, 2, 3, 4, 5], np.float32)
    i = np.array([[0], [3], [0], [9], [-1]], np.int32)
    expected = x.copy()
    for at, value in zip(i[:, 0], u):
        if 0 <= at < 5:
            expected[at] = (expected[at] - value) / 2
    for main in both(function(arguments, "tensor<?xf32>", body)):
        np.testing.assert_array_equal(main(x, i, u), expected)


def test_branches_and_loops():
    body = f"""
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %0 = "stablehlo.case"(%n) ({{
      %a = stablehlo.add %x, %x : {ROW}
      stablehlo.return %a : {ROW}
    }}, {{
      stablehlo.return %x : {ROW}
    }}, {{
      %a = stablehlo.negate %x : {ROW}
      stablehlo.return %a : {ROW}
    }}) : (tensor<i32>) -> {ROW}
    %1:2 = stablehlo.while(%i = %zero, %y = %0) : tensor<i32>, {ROW}
    cond {{
      %c = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %c : tensor<i1>
    }} do {{
      %i1 = stablehlo.add %i, %one : tensor<i32>
      %y1 = stablehlo.add %y, %x : {ROW}
      stablehlo.return %i1, %y1 : tensor<i32>, {ROW}
    }}
    return %1#1 : {ROW}"""
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    for main in both(function(f"%x: {ROW}, %n: tensor<i32>", ROW, body)):
        for n, first in ((0, 2 * x), (1, x), (2, -x), (7, -x), (-1, -x)):
            np.testing.assert_array_equal(main(x, np.int32(n)), first + max(n, 0) * x)


def test_sorts_by_any_relation():
    body = f"""
    %0 = "stablehlo.sort"(%x) <{{dimension = 0 : i64}}> ({{
      ^bb0(%a: {F}, %b: {F}):
        %c = stablehlo.multiply %a, %a : {F}
        %d = stablehlo.add %b, %b : {F}
        %e = stablehlo.multiply %b, %b : {F}
        %f = stablehlo.compare LT, %c, %e : ({F}, {F}) -> tensor<i1>
        %g = stablehlo.compare EQ, %d, %d : ({F}, {F}) -> tensor<i1>
        %h = stablehlo.and %f, %g : tensor<i1>
        stablehlo.return %h : tensor<i1>
    }}) : (tensor<?xf32>) -> tensor<?xf32>
    return %0 : tensor<?xf32>"""
    x = np.array([3, -1, 2, -2, 0, 1], np.float32)
    for main in both(function("%x: tensor<?xf32>", "tensor<?xf32>", body)):
        np.testing.assert_array_equal(main(x), [0, -1, 1, 2, -2, 3])


def test_complex_arguments_are_pairs():
    kind = "tensor<?xcomplex<f32>>"
    body = f"""
    %0 = stablehlo.multiply %x, %x : {kind}
    %1 = stablehlo.exponential %0 : {kind}
    return %1 : {kind}"""
    x = np.array([1 + 2j, 0.5 - 1j, 0], np.complex64)
    pairs = np.stack([x.real, x.imag], -1)
    expected = np.exp(x.astype(np.complex128) ** 2)
    for main in both(function(f"%x: {kind}", kind, body)):
        result = main(pairs)
        np.testing.assert_allclose(result[:, 0] + 1j * result[:, 1], expected, rtol=1e-5)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (
            f"""%0 = "stablehlo.reduce"(%x, %y) <{{dimensions = array<i64: 0>}}> ({{
              ^bb0(%a: {F}, %b: {F}):
                %c = "stablehlo.reshape"(%a) : ({F}) -> tensor<1xf32>
                %d = "stablehlo.transpose"(%c) <{{permutation = array<i64: 0>}}>
                  : (tensor<1xf32>) -> tensor<1xf32>
                %e = stablehlo.reshape %d : (tensor<1xf32>) -> {F}
                stablehlo.return %e : {F}
            }}) : (tensor<4xf32>, {F}) -> {F}
            return %0 : {F}""",
            "in a region of single elements",
        ),
        (
            f"""%0 = stablehlo.convert %y : ({F}) -> tensor<i4>
            %1 = stablehlo.convert %0 : (tensor<i4>) -> {F}
            return %1 : {F}""",
            "elements of i4, which is not supported",
        ),
        (
            f"""%0 = stablehlo.constant dense<false> : tensor<i1>
            stablehlo.custom_call @shape_assertion(%0) {{error_message = "no"}} : (tensor<i1>) -> ()
            return %y : {F}""",
            "asserts what is false: no",
        ),
    ],
)
def test_what_is_not_supported_is_refused(body, message):
    with pytest.raises(CompileError, match=message) as caught:
        from_stablehlo(function(f"%x: tensor<4xf32>, %y: {F}", F, body))
    assert str(caught.value).startswith("-:")


def test_windows_of_all_before_begin_with_any_value():
    body = f"""
    %0 = "stablehlo.reduce_window"(%x, %i) <{{window_dimensions = array<i64: 3>,
      padding = dense<[[2, 0]]> : tensor<1x2xi64>}}> ({{
      ^bb0(%a: {F}, %b: {F}):
        %c = stablehlo.add %a, %b : {F}
        stablehlo.return %c : {F}
    }}) : (tensor<3xf32>, {F}) -> tensor<3xf32>
    return %0 : tensor<3xf32>"""
    imported = from_stablehlo(function(f"%x: tensor<3xf32>, %i: {F}", "tensor<3xf32>", body))
    result = interpret(imported.module)["main"](np.array([1, 2, 3], "f4"), np.float32(10))
    np.testing.assert_array_equal(result, [31, 23, 16])  # 10 is also outside


@pytest.mark.parametrize("op", ["if", "while"])
def test_what_a_region_asserts_holds_in_it_alone(op):
    fails = """stablehlo.custom_call @shape_assertion(%e) : (tensor<i1>) -> ()
      stablehlo.return %five : tensor<i32>"""
    region = {
        "if": f"({{ {fails} }}, {{ stablehlo.return %n : tensor<i32> }}) : (tensor<i1>)",
        "while": f"""({{ ^bb0(%a: tensor<i32>): stablehlo.return %never : tensor<i1> }},
          {{ ^bb0(%a: tensor<i32>): {fails} }}) : (tensor<i32>)""",
    }[op]
    body = f"""
    %n = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?xf32>) -> tensor<i32>
    %five = stablehlo.constant dense<5> : tensor<i32>
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %e = stablehlo.compare EQ, %n, %five : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %0 = "stablehlo.{op}"({"%never" if op == "if" else "%n"}) {region} -> tensor<i32>
    %e2 = stablehlo.compare EQ, %n, %five : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %1 = stablehlo.select %e2, %five, %zero : tensor<i1>, tensor<i32>
    return %1 : tensor<i32>"""
    imported = from_stablehlo(
        function("%x: tensor<?xf32>, %never: tensor<i1>", "tensor<i32>", body)
    )
    assert interpret(imported.module)["main"](np.ones(3, "f4"), np.bool_(False)) == 0


def test_regions_of_many_ops_are_read_once():
    products = "\n".join(f"%c{i + 1} = stablehlo.multiply %c{i}, %c{i} : {F}" for i in range(60))
    body = f"""
    %0 = "stablehlo.reduce"(%x, %y) <{{dimensions = array<i64: 0>}}> ({{
      ^bb0(%a: {F}, %b: {F}):
        %c0 = stablehlo.add %a, %b : {F}
        {products}
        stablehlo.return %c60 : {F}
    }}) : (tensor<2xf32>, {F}) -> {F}
    return %0 : {F}"""
    imported = from_stablehlo(function(f"%x: tensor<2xf32>, %y: {F}", F, body))
    x = np.array([0.5, -0.5], "f4")
    assert interpret(imported.module)["main"](x, np.float32(1)) == 1


@pytest.mark.parametrize(("small", "large"), [("i8", "i32"), ("ui8", "ui32"), ("bf16", "f32")])
def test_operands_are_promoted_to_the_types_of_regions(small, large):
    body = (
        f"({{ ^bb0(%a: tensor<{large}>, %b: tensor<{large}>):\n"
        f" %c = stablehlo.add %a, %b : tensor<{large}>\n stablehlo.return %c : tensor<{large}> }})"
    )
    picked = (
        f"({{ ^bb0(%a: tensor<{small}>, %b: tensor<{small}>):\n"
        f" %c = stablehlo.compare GE, %a, %b : (tensor<{small}>, tensor<{small}>) -> tensor<i1>\n"
        f" stablehlo.return %c : tensor<i1> }}, {body[1:]}"
    )
    windows = "window_dimensions = array<i64: 2>, window_strides = array<i64: 2>"
    numbers = (
        "#stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0],"
        " index_vector_dim = 1>"
    )
    own, one, three = f"tensor<6x{small}>", f"tensor<{small}>", f"tensor<3x{small}>"
    text = f"""
func.func @main(%x: {own}, %i: {one}, %k: tensor<3x1xi32>, %u: {three})
    -> (tensor<{large}>, tensor<3x{large}>, tensor<6x{large}>, tensor<6x{large}>) {{
  %r = "stablehlo.reduce"(%x, %i) <{{dimensions = array<i64: 0>}}> {body}
    : ({own}, {one}) -> tensor<{large}>
  %w = "stablehlo.reduce_window"(%x, %i) <{{{windows}}}> {body}
    : ({own}, {one}) -> tensor<3x{large}>
  %s = "stablehlo.scatter"(%x, %k, %u) <{{scatter_dimension_numbers = {numbers}}}> {body}
    : ({own}, tensor<3x1xi32>, {three}) -> tensor<6x{large}>
  %c = "stablehlo.select_and_scatter"(%x, %u, %i) <{{{windows}}}> {picked}
    : ({own}, {three}, {one}) -> tensor<6x{large}>
  func.return %r, %w, %s, %c
    : tensor<{large}>, tensor<3x{large}>, tensor<6x{large}>, tensor<6x{large}>
}}
"""
    dtype = {"i8": np.int8, "ui8": np.uint8, "bf16": ml_dtypes.bfloat16}[small]
    x, init, u = (
        np.array(v).astype(dtype) for v in ([100, 120, 3, 127, 90, 90], 100, [127, 1, 99])
    )
    k = np.array([[5], [1], [5]], np.int32)
    main = interpret(from_stablehlo(text).module)["main"]
    total, sums, scattered, chosen = (np.asarray(each) for each in main(x, init, k, u))
    assert str(total.dtype) == {"i32": "int32", "ui32": "uint32", "f32": "float32"}[large]
    assert total == 630
    np.testing.assert_array_equal(sums, [320, 230, 280])
    np.testing.assert_array_equal(scattered, [100, 121, 3, 127, 90, 316])
    np.testing.assert_array_equal(chosen, [100, 227, 100, 101, 199, 100])
