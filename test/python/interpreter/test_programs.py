"""Tensor programs that are written by hand: what each kind of op does, in the types it names."""

import ml_dtypes
import numpy as np
import pytest

from relax_mlir.errors import ExecutionError
from relax_mlir.interpreter import interpret, nests

MAPS = """
#i = affine_map<(i) -> (i)>
#none = affine_map<(i) -> ()>
#p = ["parallel"]
"""


def program(signature: str, body: str):
    """The function `main` whose body is that of a tensor program."""
    return interpret(f"{MAPS}func.func @main{signature} {{\n{body}\n}}")["main"]


def sums(element: str) -> str:
    """A program that adds up a vector in its own type."""
    return f"""
  %c = linalg.generic {{indexing_maps = [#i, #none], iterator_types = ["reduction"]}}
      ins(%x : tensor<?x{element}>) outs(%y : tensor<{element}>) {{
  ^bb0(%a: {element}, %b: {element}):
    %s = arith.addf %a, %b : {element}
    linalg.yield %s : {element}
  }} -> tensor<{element}>
  return %c : tensor<{element}>"""


@pytest.mark.parametrize(("dtype", "stops"), [("f16", 2048), ("f32", 4096)])
def test_sums_are_in_the_type_they_are_written_in(dtype: str, stops: int) -> None:
    main = program(f"(%x: tensor<?x{dtype}>, %y: tensor<{dtype}>) -> tensor<{dtype}>", sums(dtype))
    kind = {"f16": np.float16, "f32": np.float32}[dtype]
    assert main(np.ones(4096, kind), np.zeros((), kind)) == stops
    assert main(np.ones(0, kind), np.full((), 3, kind)) == 3


def test_steps_depend_on_one_another() -> None:
    """What is no plain sum runs in order: a recurrence, and a pair of results."""
    main = program(
        "(%x: tensor<?x3xf64>, %y: tensor<3xf64>) -> tensor<3xf64>",
        """
  %c = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>],
      iterator_types = ["reduction", "parallel"]}
      ins(%x : tensor<?x3xf64>) outs(%y : tensor<3xf64>) {
  ^bb0(%a: f64, %b: f64):
    %h = arith.mulf %b, %b : f64
    %s = arith.addf %a, %h : f64
    linalg.yield %s : f64
  } -> tensor<3xf64>
  return %c : tensor<3xf64>""",
    )
    x = np.random.default_rng(0).uniform(-0.5, 0.5, (7, 3))
    expected = np.full(3, 0.25)
    for row in x:
        expected = row + expected * expected
    np.testing.assert_array_equal(main(x, np.full(3, 0.25)), expected)


@pytest.mark.parametrize("limit", [1, 5, nests.MAX_ITERATIONS])
def test_maps_may_be_any_affine_ones(limit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Windows, a diagonal, a reversed and a divided index; at once, or in parts."""
    monkeypatch.setattr(nests, "MAX_ITERATIONS", limit)
    main = program(
        "(%x: tensor<9xi64>, %z: tensor<4x4xi64>, %y: tensor<4xi64>) -> tensor<4xi64>",
        """
  %w = tensor.empty() : tensor<3xi64>
  %c = linalg.generic {indexing_maps = [
        affine_map<(i, j) -> (2 * i + j)>, affine_map<(i, j) -> (i, i)>,
        affine_map<(i, j) -> (3 - i, i floordiv 2)>, affine_map<(i, j) -> (j)>,
        affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]}
      ins(%x, %z, %z, %w : tensor<9xi64>, tensor<4x4xi64>, tensor<4x4xi64>, tensor<3xi64>)
      outs(%y : tensor<4xi64>) {
  ^bb0(%a: i64, %d: i64, %e: i64, %f: i64, %b: i64):
    %p = arith.muli %a, %d : i64
    %q = arith.muli %p, %e : i64
    %s = arith.addi %q, %b : i64
    linalg.yield %s : i64
  } -> tensor<4xi64>
  return %c : tensor<4xi64>""",
    )
    random = np.random.default_rng(1)
    x, z, y = (random.integers(-9, 9, shape) for shape in ((9,), (4, 4), (4,)))
    expected = [
        y[i] + sum(x[2 * i + j] * z[i, i] * z[3 - i, i // 2] for j in range(3)) for i in range(4)
    ]
    np.testing.assert_array_equal(main(x, z, y), expected)


def test_several_iterations_may_write_to_one_element() -> None:
    main = program(
        "(%x: tensor<6xi64>, %y: tensor<3xi64>) -> tensor<3xi64>",
        """
  %c = linalg.generic {indexing_maps = [#i, affine_map<(i) -> (i floordiv 2)>],
      iterator_types = ["reduction"]} ins(%x : tensor<6xi64>) outs(%y : tensor<3xi64>) {
  ^bb0(%a: i64, %b: i64):
    %s = arith.addi %a, %b : i64
    linalg.yield %s : i64
  } -> tensor<3xi64>
  return %c : tensor<3xi64>""",
    )
    assert main(np.arange(6), np.array([100, 200, 300])).tolist() == [101, 205, 309]


@pytest.mark.parametrize("element", ["f32", "i8", "bf16"])
def test_ops_with_names(element: str) -> None:
    zero = "0.0" if element != "i8" else "0"
    x, y, p, r = (f"tensor<{dims}x{element}>" for dims in ("?x4", "4x3", "?x3", "3x?"))
    main = program(
        f"(%x: {x}, %y: {y}) -> {r}",
        f"""
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : {x}
  %zero = arith.constant {zero} : {element}
  %e = tensor.empty(%n) : {p}
  %f = linalg.fill ins(%zero : {element}) outs(%e : {p}) -> {p}
  %p = linalg.matmul ins(%x, %y : {x}, {y}) outs(%f : {p}) -> {p}
  %t = tensor.empty(%n) : {r}
  %r = linalg.transpose ins(%p : {p}) outs(%t : {r}) permutation = [1, 0]
  return %r : {r}""",
    )
    random = np.random.default_rng(2)
    dtype = np.dtype({"f32": np.float32, "i8": np.int8, "bf16": ml_dtypes.bfloat16}[element])
    for n in (0, 1, 5):
        # Small integers, whose sums of products every type holds, or wraps.
        x, y = random.integers(-3, 4, (n, 4)).astype(dtype), random.integers(-3, 4, (4, 3))
        expected = (x.astype(np.float32) @ y).T
        np.testing.assert_array_equal(main(x, y.astype(dtype)).astype(np.float32), expected)


def test_control_flow() -> None:
    """Row i is x * i while i is below 3, else -1; the number of rows is halved down to 3."""
    main = program(
        "(%x: tensor<?xf32>) -> (tensor<?xf32>, tensor<1xi32>)",
        """
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %n = tensor.dim %x, %c0 : tensor<?xf32>
  %filled = scf.for %i = %c0 to %n step %c1 iter_args(%t = %x) -> tensor<?xf32> {
    %below = arith.cmpi slt, %i, %c3 : index
    %value = scf.if %below -> f32 {
      %a = tensor.extract %t[%i] : tensor<?xf32>
      %k = arith.index_cast %i : index to i32
      %f = arith.sitofp %k : i32 to f32
      %p = arith.mulf %a, %f : f32
      scf.yield %p : f32
    } else {
      %m = arith.constant -1.0 : f32
      scf.yield %m : f32
    }
    %next = tensor.insert %value into %t[%i] : tensor<?xf32>
    scf.yield %next : tensor<?xf32>
  }
  %halved = scf.while (%i = %n) : (index) -> index {
    %more = arith.cmpi sgt, %i, %c3 : index
    scf.condition(%more) %i : index
  } do {
  ^bb0(%i: index):
    %c2 = arith.constant 2 : index
    %half = arith.divui %i, %c2 : index
    scf.yield %half : index
  }
  %count = arith.index_cast %halved : index to i32
  %one = tensor.from_elements %count : tensor<1xi32>
  return %filled, %one : tensor<?xf32>, tensor<1xi32>""",
    )
    for n, rest in ((0, 0), (2, 2), (7, 3), (13, 3)):
        x = np.arange(1, n + 1, dtype=np.float32)
        filled, halved = main(x)
        index = np.arange(n)
        np.testing.assert_array_equal(filled, np.where(index < 3, x * index, -1))
        assert halved.tolist() == [rest]
        assert x.tolist() == list(range(1, n + 1))


def test_bodies_with_branches_run_element_by_element() -> None:
    """The branch that is not taken would read beyond the end."""
    main = program(
        "(%x: tensor<?xi32>, %y: tensor<?xi32>) -> tensor<?xi32>",
        """
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %n = tensor.dim %x, %c0 : tensor<?xi32>
  %r = linalg.generic {indexing_maps = [#i], iterator_types = #p}
      outs(%y : tensor<?xi32>) {
  ^bb0(%old: i32):
    %i = linalg.index 0 : index
    %twice = arith.muli %i, %c2 : index
    %inside = arith.cmpi slt, %twice, %n : index
    %v = scf.if %inside -> i32 {
      %a = tensor.extract %x[%twice] : tensor<?xi32>
      scf.yield %a : i32
    } else {
      scf.yield %old : i32
    }
    linalg.yield %v : i32
  } -> tensor<?xi32>
  return %r : tensor<?xi32>""",
    )
    x, y = np.arange(5, dtype=np.int32), np.full(5, -7, np.int32)
    assert main(x, y).tolist() == [0, 2, 4, -7, -7]


def test_shapes_and_slices() -> None:
    main = program(
        "(%x: tensor<?x6xf32>, %v: tensor<f32>)"
        " -> (tensor<?x2x3xf32>, tensor<?x3xf32>, tensor<?xf32>)",
        """
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = tensor.dim %x, %c0 : tensor<?x6xf32>
  %e = tensor.expand_shape %x [[0], [1, 2]] output_shape [%n, 2, 3]
      : tensor<?x6xf32> into tensor<?x2x3xf32>
  %value = tensor.extract %v[] : tensor<f32>
  %p = tensor.pad %x low[%c1, 0] high[0, 0] {
  ^bb0(%i: index, %j: index):
    tensor.yield %value : f32
  } : tensor<?x6xf32> to tensor<?x6xf32>
  %m = arith.addi %n, %c1 : index
  %s = tensor.extract_slice %p[0, 1] [%m, 3] [1, 2] : tensor<?x6xf32> to tensor<?x3xf32>
  %row = tensor.extract_slice %p[0, 2] [%m, 1] [1, 1] : tensor<?x6xf32> to tensor<?xf32>
  %t = tensor.insert_slice %row into %s[0, 1] [%m, 1] [1, 1] : tensor<?xf32> into tensor<?x3xf32>
  %flat = tensor.collapse_shape %x [[0, 1]] : tensor<?x6xf32> into tensor<?xf32>
  return %e, %t, %flat : tensor<?x2x3xf32>, tensor<?x3xf32>, tensor<?xf32>""",
    )
    for n in (0, 1, 4):
        x = np.arange(6 * n, dtype=np.float32).reshape(n, 6)
        expanded, slices, flat = main(x, np.float32(-1))
        np.testing.assert_array_equal(expanded, x.reshape(n, 2, 3))
        np.testing.assert_array_equal(flat, x.reshape(-1))
        padded = np.concatenate([np.full((1, 6), -1), x])
        expected = padded[:, 1::2].copy()
        expected[:, 1] = padded[:, 2]
        np.testing.assert_array_equal(slices, expected)


OUTSIDE = {
    "extract": (
        """
  %i = arith.constant 5 : index
  %e = tensor.extract %x[%i] : tensor<?xf32>
  %r = tensor.from_elements %e : tensor<1xf32>""",
        "error: 'tensor.extract' op has the index 5 outside of dim 0 of 3",
    ),
    "slice": (
        "  %r = tensor.extract_slice %x[3] [1] [1] : tensor<?xf32> to tensor<1xf32>",
        "takes 1 elements from 3, by 1, of dim 0 of 3",
    ),
    "cast": (
        "  %r = tensor.cast %x : tensor<?xf32> to tensor<1xf32>",
        "'tensor.cast' op has a result whose dim 0 is 3, but 1 is declared",
    ),
    "generic": (
        """
  %e = tensor.empty() : tensor<1xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i + 3)>, #i], iterator_types = #p}
      ins(%x : tensor<?xf32>) outs(%e : tensor<1xf32>) {
  ^bb0(%a: f32, %b: f32):
    linalg.yield %a : f32
  } -> tensor<1xf32>""",
        "'linalg.generic' op reaches index 3 of dim 0 of operand 0, which has 3",
    ),
}


@pytest.mark.parametrize("case", OUTSIDE)
def test_what_is_outside_is_refused(case: str) -> None:
    body, message = OUTSIDE[case]
    body += "\n  return %r : tensor<1xf32>"
    main = program("(%x: tensor<?xf32>) -> tensor<1xf32>", body)
    with pytest.raises(ExecutionError, match=message):
        main(np.zeros(3, np.float32))


INTEGERS = {
    "addi": lambda a, b: a + b,
    "subi": lambda a, b: a - b,
    "muli": lambda a, b: a * b,
    "divsi": lambda a, b: int(abs(a) // abs(b)) * (1 if (a < 0) == (b < 0) else -1),
    "remsi": lambda a, b: abs(a) % abs(b) * (1 if a >= 0 else -1),
    "floordivsi": lambda a, b: a // b,
    "ceildivsi": lambda a, b: -(-a // b),
    "divui": lambda a, b: (a % 256) // (b % 256),
    "remui": lambda a, b: (a % 256) % (b % 256),
    "ceildivui": lambda a, b: -(-(a % 256) // (b % 256)),
    "maxsi": max,
    "minsi": min,
    "maxui": lambda a, b: max(a % 256, b % 256),
    "minui": lambda a, b: min(a % 256, b % 256),
    "andi": lambda a, b: a & b,
    "ori": lambda a, b: a | b,
    "xori": lambda a, b: a ^ b,
}
COMPARISONS = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "slt": lambda a, b: a < b,
    "sle": lambda a, b: a <= b,
    "sgt": lambda a, b: a > b,
    "sge": lambda a, b: a >= b,
    "ult": lambda a, b: a % 256 < b % 256,
    "ule": lambda a, b: a % 256 <= b % 256,
    "ugt": lambda a, b: a % 256 > b % 256,
    "uge": lambda a, b: a % 256 >= b % 256,
}


def elementwise(ops: str, results: str):
    """A program that computes each element of `results` from %a and %b of i8 by `ops`."""
    return program(
        f"(%x: tensor<?xi8>, %y: tensor<?xi8>) -> tensor<?x{results}>",
        f"""
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?xi8>
  %e = tensor.empty(%n) : tensor<?x{results}>
  %r = linalg.generic {{indexing_maps = [#i, #i, #i], iterator_types = #p}}
      ins(%x, %y : tensor<?xi8>, tensor<?xi8>) outs(%e : tensor<?x{results}>) {{
  ^bb0(%a: i8, %b: i8, %old: {results}):
    {ops}
    linalg.yield %v : {results}
  }} -> tensor<?x{results}>
  return %r : tensor<?x{results}>""",
    )


A, B = (grid.reshape(-1) for grid in np.meshgrid(*[np.arange(-128, 128, 5, dtype=np.int8)] * 2))
A, B = A[B != 0], B[B != 0]
A, B = A[(A != -128) | (B != -1)], B[(A != -128) | (B != -1)]


@pytest.mark.parametrize("name", INTEGERS)
def test_integer_arithmetic(name: str) -> None:
    found = elementwise(f"%v = arith.{name} %a, %b : i8", "i8")(A, B)
    exact = [INTEGERS[name](int(a), int(b)) for a, b in zip(A, B, strict=True)]
    np.testing.assert_array_equal(found, np.array(exact).astype(np.int8))


@pytest.mark.parametrize("name", COMPARISONS)
def test_comparisons(name: str) -> None:
    found = elementwise(f"%v = arith.cmpi {name}, %a, %b : i8", "i1")(A, B)
    exact = [COMPARISONS[name](int(a), int(b)) for a, b in zip(A, B, strict=True)]
    np.testing.assert_array_equal(found, exact)


@pytest.mark.parametrize(
    ("ops", "results", "expected"),
    [
        ("%v = arith.extsi %a : i8 to i32", "i32", lambda a, b: a),
        ("%v = arith.extui %a : i8 to i32", "i32", lambda a, b: a % 256),
        ("%v = arith.sitofp %a : i8 to f32", "f32", lambda a, b: a),
        ("%v = arith.uitofp %a : i8 to f32", "f32", lambda a, b: a % 256),
        ("%v = arith.trunci %a : i8 to i1", "i1", lambda a, b: a % 2 == 1),
        ("%t = arith.trunci %a : i8 to i1\n    %v = arith.extsi %t : i1 to i8", "i8",
         lambda a, b: -(a % 2)),
        ("%t = arith.trunci %a : i8 to i1\n    %v = arith.extui %t : i1 to i8", "i8",
         lambda a, b: a % 2),
        ("%k = arith.constant 3 : i8\n    %v = arith.shli %a, %k : i8", "i8",
         lambda a, b: (a * 8 + 128) % 256 - 128),
        ("%k = arith.constant 3 : i8\n    %v = arith.shrsi %a, %k : i8", "i8",
         lambda a, b: a // 8),
        ("%k = arith.constant 3 : i8\n    %v = arith.shrui %a, %k : i8", "i8",
         lambda a, b: a % 256 // 8),
        ("%i = arith.index_cast %a : i8 to index\n    %k = arith.constant 3 : index\n"
         "    %w = arith.floordivsi %i, %k : index\n    %v = arith.index_cast %w : index to i8",
         "i8", lambda a, b: a // 3),
        ("%f = arith.sitofp %a : i8 to f16\n    %i = arith.bitcast %f : f16 to i16\n"
         "    %v = arith.trunci %i : i16 to i8", "i8",
         lambda a, b: int(np.float16(a).view(np.int16)) % 256),
        ("%f = arith.sitofp %a : i8 to f32\n    %k = arith.constant 1.0e2 : f32\n"
         "    %g = arith.mulf %f, %k : f32\n    %v = arith.fptosi %g : f32 to i16", "i16",
         lambda a, b: a * 100),
        ("%c = arith.cmpi slt, %a, %b : i8\n    %v = arith.select %c, %a, %b : i8", "i8",
         lambda a, b: min(a, b)),
    ],
)  # fmt: skip
def test_conversions_of_integers(ops: str, results: str, expected) -> None:
    found = elementwise(ops, results)(A, B)
    exact = np.array([expected(int(a), int(b)) for a, b in zip(A, B, strict=True)])
    np.testing.assert_array_equal(found, exact.astype(found.dtype))


FLOATS = {
    "oeq": "==", "ogt": ">", "oge": ">=", "olt": "<", "ole": "<=", "one": "<>", "ord": "<=>",
    "ueq": "==?", "ugt": ">?", "uge": ">=?", "ult": "<?", "ule": "<=?", "une": "<>?", "uno": "?",
    "true": "<=>?", "false": "",
}  # fmt: skip
"""What each predicate accepts: equal, greater, less (as characters), and `?` for NaN."""


@pytest.mark.parametrize("name", FLOATS)
def test_comparisons_of_floats(name: str) -> None:
    main = program(
        "(%x: tensor<?xf32>, %y: tensor<?xf32>, %o: tensor<?xi1>) -> tensor<?xi1>",
        f"""
  %r = linalg.generic {{indexing_maps = [#i, #i, #i], iterator_types = #p}}
      ins(%x, %y : tensor<?xf32>, tensor<?xf32>) outs(%o : tensor<?xi1>) {{
  ^bb0(%a: f32, %b: f32, %old: i1):
    %v = arith.cmpf {name}, %a, %b : f32
    linalg.yield %v : i1
  }} -> tensor<?xi1>
  return %r : tensor<?xi1>""",
    )
    values = np.array([np.nan, -np.inf, -1, 0, 2, np.inf], np.float32)
    x, y = np.repeat(values, len(values)), np.tile(values, len(values))
    accepted = FLOATS[name]
    relation = np.where(x == y, "=", np.where(x > y, ">", np.where(x < y, "<", "?")))
    np.testing.assert_array_equal(
        main(x, y, np.zeros(len(x), bool)), [mark in accepted for mark in relation]
    )
