"""Scans on devices, of rows longer than what a group of threads has at once, against float64."""

from typing import Any

import numpy as np
import pytest
from device_modules import as_ptx, built

from relax_mlir.schedule.gpu.scans.launches import LEAST_TILES, MOST_PARTS
from relax_mlir.schedule.gpu.scans.scan import MANY_COLUMNS, STRETCH

ROWS, LINE = 'tensor<?x?xTYPE, #graph.shape<["n", "m"]>>', 'tensor<?xTYPE, #graph.shape<["m"]>>'
TILE = 256 * STRETCH
"""Elements that one group of the device `gpu` has at once."""
LENGTHS = (0, 1, 7, 8, 9, 31, 257, 1023, TILE - 1, TILE, TILE + 1, 2 * TILE, 2 * TILE + 1, 12289)
SETTINGS = "{{axis = {axis} : i64, exclusive = {exclusive}, reverse = {reverse}}}"


def program(op: str, kind: str, exclusive: bool, reverse: bool, axis: int = -1) -> str:
    settings = SETTINGS.format(
        axis=axis, exclusive=str(exclusive).lower(), reverse=str(reverse).lower()
    )
    return f"""
    func.func @main(%x: {kind}) -> {kind} {{
      %0 = "graph.{op}"(%x) {settings} : ({kind}) -> {kind}
      return %0 : {kind}
    }}
    """


def scan(x: np.ndarray, op: np.ufunc, exclusive: bool, reverse: bool) -> np.ndarray:
    """Along the last axis, in float64 or the type of integers."""
    exact = x if x.dtype.kind == "i" else x.astype(np.float64)
    exact = exact[..., ::-1] if reverse else exact
    sums = op.accumulate(exact, axis=-1, dtype=exact.dtype)
    if exclusive and sums.shape[-1]:
        first = np.full_like(sums[..., :1], op.identity)
        sums = np.concatenate([first, sums[..., :-1]], -1)
    return sums[..., ::-1] if reverse else sums


def threads(text: str, target: str = "gpu") -> tuple[Any, list[int]]:
    """A function whose launches are interpreted, and the threads of their groups."""
    module, kernels, _ = built(text, target, 2)
    return module["main"], [kernel.block[0] for kernel in kernels]


@pytest.mark.parametrize(("exclusive", "reverse"), [(False, False), (True, True)])
def test_one_row(exclusive: bool, reverse: bool) -> None:
    """Sums of floats: a part of two tiles, then parts of a group each."""
    main, sizes = threads(program("cumsum", LINE.replace("TYPE", "f32"), exclusive, reverse))
    assert sizes == [256, 256]
    rng = np.random.default_rng()
    for n in LENGTHS:
        x = rng.uniform(0.5, 1.5, n).astype(np.float32)
        exact = scan(x, np.add, exclusive, reverse)
        np.testing.assert_array_equal(main(x), exact.astype(np.float32), f"{n} elements")


@pytest.mark.parametrize(
    ("op", "target"), [("cumsum", "gpu"), ("cumprod", "gpu"), ("cumsum", "x86-64-v3@webgpu")]
)
def test_rows_of_integers(op: str, target: str) -> None:
    """Sums and products wrap, as in order; with warps, and without."""
    main, sizes = threads(program(op, ROWS.replace("TYPE", "i32"), False, True), target)
    assert sizes == [128, 128]
    rng = np.random.default_rng()
    for n, m in ((0, 3), (3, 0), (1, 1), (5, 31), (3, 1024), (2, 2049), (3, 7001), (130, 2053)):
        x = rng.integers(-(2**31), 2**31, (n, m), dtype=np.int32) | 1
        np.testing.assert_array_equal(
            main(x), scan(x, {"cumsum": np.add, "cumprod": np.multiply}[op], False, True)
        )


def test_a_row_as_ptx() -> None:
    """Groups of 1024 threads, two tiles and two parts."""
    main = as_ptx(program("cumsum", LINE.replace("TYPE", "f64"), True, False), "cuda:sm_80")
    for n in (0, 1, 1025, 1024 * STRETCH + 1, 2048 * STRETCH + 3):
        x = np.random.default_rng().standard_normal(n)
        np.testing.assert_allclose(main(x), scan(x, np.add, True, False), rtol=0, atol=1e-10)


def test_infinities_stay_where_they_are() -> None:
    """Elements after a prefix, in a stretch of their own or not, have no part in its sum."""
    main, _ = threads(program("cumsum", LINE.replace("TYPE", "f64"), False, False))
    for at in (5, 8, 800, TILE + 3):
        x = np.ones(TILE + 9)
        x[at], x[at + 2] = np.inf, -np.inf
        with np.errstate(invalid="ignore"):
            np.testing.assert_array_equal(main(x), np.cumsum(x))


def test_as_many_parts_as_occupy_a_device() -> None:
    """Parts of three tiles, all but the last one."""
    main, _ = threads(program("cumsum", LINE.replace("TYPE", "f64"), False, False))
    n = MOST_PARTS * LEAST_TILES * TILE + 75_713
    x = np.random.default_rng().integers(-9, 9, n).astype(np.float64)
    np.testing.assert_array_equal(main(x), np.cumsum(x))


def test_signs_of_zeros() -> None:
    """A sum begins with 0, so that of zeros is 0, whatever their sign."""
    main, _ = threads(program("cumsum", LINE.replace("TYPE", "f32"), False, False))
    assert not np.signbit(main(np.full(300, -0.0, np.float32))).any()


def test_products_of_floats_are_in_order() -> None:
    """A stretch of a row overflows, which no prefix of it does."""
    main, sizes = threads(program("cumprod", LINE.replace("TYPE", "f64"), False, False))
    assert sizes == [1]
    x = np.full(100, 1e200)
    x[0] = 0
    np.testing.assert_array_equal(main(x), np.zeros(100))


IN_PLACE = """
!x = tensor<700xi32>
func.func private @running(%y: tensor<700xi32>) -> tensor<700xi32>
    attributes {tir.prim_func, tir.num_outs = 1 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = arith.constant 700 : index
  %first = arith.constant 7 : i32
  %s:2 = scf.for %j = %c0 to %n step %c1 iter_args(%r = %y, %sum = %first)
      -> (tensor<700xi32>, i32) {
    %v = tensor.extract %r[%j] : tensor<700xi32>
    %more = arith.addi %v, %sum : i32
    %next = tensor.insert %more into %r[%j] : tensor<700xi32>
    scf.yield %next, %more : tensor<700xi32>, i32
  }
  return %s#0 : tensor<700xi32>
}
func.func @main(%x: !x) -> !x {
  %0 = "graph.negative"(%x) : (!x) -> !x
  %1 = "graph.call_tir_inplace"(%0) {callee = @running, inplace_indices = array<i64: 0>,
      sym_args = #graph.shape<[]>, operandSegmentSizes = array<i32: 1, SEGMENTS>,
      resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (!x) -> !x
  return %1 : !x
}
""".replace("SEGMENTS", ", ".join(["0"] * 31))


def test_a_scan_in_place() -> None:
    """Elements are replaced by their sums, which begin with 7."""
    main, sizes = threads(IN_PLACE)
    assert 128 in sizes
    x = np.random.default_rng().integers(-(2**31), 2**31, 700, dtype=np.int32)
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(main(x), np.cumsum(-x, dtype=np.int32) + np.int32(7))


def test_what_is_loaded_after_it_was_stored_is_no_scan() -> None:
    """Sums of what an iteration has stored: there is nothing of that before."""
    text = IN_PLACE.replace("%more = arith.addi %v, %sum : i32", "")
    text = text.replace(
        "%next = tensor.insert %more into %r[%j] : tensor<700xi32>",
        """%own = arith.addi %v, %sum : i32
    %next = tensor.insert %own into %r[%j] : tensor<700xi32>
    %again = tensor.extract %next[%j] : tensor<700xi32>
    %more = arith.addi %again, %sum : i32""",
    )
    main, sizes = threads(text)
    assert 128 not in sizes
    x = np.random.default_rng().integers(-9, 10, 700, dtype=np.int32)
    wanted, total = [], 7
    for element in -x.astype(object):
        wanted.append(element + total)
        total += wanted[-1]
    np.testing.assert_array_equal(main(x), np.array([w % 2**32 for w in wanted], "u4").view("i4"))


@pytest.mark.parametrize(
    ("kind", "target", "sizes"),
    [
        ("tensor<100xf32>", "cuda:sm_90a", [32]),
        ("tensor<5000xf32>", "cuda:sm_90a", [1024]),
        ("tensor<31xf32>", "cuda:sm_90a", [1]),
        ("tensor<9x1000xf32>", "cuda:sm_90a", [128]),
        ("tensor<5000xf32>", "vulkan", [128, 128]),
        ("tensor<5000xf32>", "x86-64-v3@webgpu", [1]),
        ("tensor<5000xi32>", "x86-64-v3@webgpu", [256, 256]),
    ],
)
def test_threads_of_a_group(kind: str, target: str, sizes: list[int]) -> None:
    """No more than a row needs; one for few elements, and where memory has no such totals."""
    assert threads(program("cumsum", kind, False, False), target)[1] == sizes


def test_columns() -> None:
    """Totals that tasks of CPUs have in memory, a block of them at a time."""
    columns = 'tensor<?x?xTYPE, #graph.shape<["m", "n"]>>'
    main, sizes = threads(program("cumsum", columns.replace("TYPE", "f32"), True, True, 0))
    assert sizes == [128, 128]
    for m, n in ((0, 3), (3, 0), (1, 1), (31, 65), (1025, 3), (4099, 2)):
        x = np.random.default_rng().uniform(0.5, 1.5, (m, n)).astype(np.float32)
        exact = scan(x.T, np.add, True, True).T
        np.testing.assert_array_equal(main(x), exact.astype(np.float32), f"{m} x {n}")


def test_many_columns() -> None:
    """A thread each."""
    columns = f'tensor<?x{MANY_COLUMNS}xi8, #graph.shape<["m", {MANY_COLUMNS}]>>'
    main, sizes = threads(program("cumsum", columns, False, False, 0))
    assert sizes == [256]
    x = np.random.default_rng().integers(-128, 128, (3, MANY_COLUMNS), np.int8)
    np.testing.assert_array_equal(main(x), np.cumsum(x, 0, np.int8))
