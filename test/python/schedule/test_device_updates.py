"""Updates at computed indices on devices: a thread each where their order does not matter."""

from typing import Any

import numpy as np
import pytest
from device_modules import as_ptx, built

import relax_mlir
from relax_mlir.bindings import ir
from relax_mlir.dialects import make_context
from relax_mlir.schedule.gpu.serial import owners
from relax_mlir.testing.outlined import outlined

NUMPY = {
    **{"i32": np.int32, "i64": np.int64, "ui32": np.uint32, "ui64": np.uint64},
    **{"i16": np.int16, "f32": np.float32},
}
COMBINE = {"add": np.add, "max": np.maximum, "min": np.minimum, "mul": np.multiply}


def program(element: str, reduction: str) -> str:
    x, u = (f'tensor<?x{element}, #graph.shape<["{dim}"]>>' for dim in "nk")
    indices = 'tensor<?xi64, #graph.shape<["k"]>>'
    return f"""
    func.func @main(%x: {x}, %i: {indices}, %u: {u}) -> {x} {{
      %0 = "graph.scatter_elements"(%x, %i, %u) {{axis = 0 : i64, reduction = "{reduction}"}}
          : ({x}, {indices}, {u}) -> {x}
      return %0 : {x}
    }}
    """


def check(main: Any, element: str, reduction: str) -> None:
    """Many updates of few elements, some of them outside."""
    random = np.random.default_rng()
    for n, k in ((0, 2), (3, 0), (1, 65), (7, 257), (300, 1021)):
        if element == "f32":
            x, u = (random.standard_normal(count).astype(np.float32) for count in (n, k))
        else:
            limits = np.iinfo(NUMPY[element])
            x, u = (
                random.integers(limits.min, limits.max, count, NUMPY[element], endpoint=True)
                for count in (n, k)
            )
        indices = random.integers(-1, n + 1, k)
        inside = (indices >= 0) & (indices < n)
        wanted = x.copy()
        if reduction == "none":
            for i, y in zip(indices[inside], u[inside], strict=True):
                wanted[i] = y
        else:
            COMBINE[reduction].at(wanted, indices[inside], u[inside])
        np.testing.assert_array_equal(main(x, indices, u), wanted)


@pytest.mark.parametrize(
    ("element", "reduction", "is_atomic"),
    [
        ("i32", "add", True),
        ("ui32", "max", True),
        ("i64", "max", True),
        ("ui64", "min", True),
        ("i32", "min", True),
        ("i32", "mul", False),  # no device has that
        ("i16", "add", False),  # of no word
        ("f32", "add", False),  # in order
        ("i64", "none", False),  # the last one wins
    ],
)
def test_updates(element: str, reduction: str, is_atomic: bool) -> None:
    """A thread has an update, or all updates of its elements."""
    module, kernels, _ = built(program(element, reduction), "gpu", 2)
    copy, updates = kernels
    assert copy.block[0] == updates.block[0] == 256
    assert ("memref.atomic_rmw" in str(updates.module)) == is_atomic
    check(module["main"], element, reduction)


@pytest.mark.parametrize(
    ("element", "reduction"), [("i32", "add"), ("ui64", "max"), ("f32", "add")]
)
def test_updates_as_ptx(element: str, reduction: str) -> None:
    check(as_ptx(program(element, reduction), "cuda:sm_75"), element, reduction)


def test_no_atomic_updates() -> None:
    """Printers for other devices have none: threads have elements of their own."""
    module, (_, updates), _ = built(program("i32", "add"), "vulkan", 2)
    assert "memref.atomic_rmw" not in str(updates.module)
    check(module["main"], "i32", "add")


def test_more_elements_than_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each thread has several next to each other, the last one fewer."""
    monkeypatch.setattr(owners, "MOST_OWNERS", 7)
    with make_context(), ir.Location.unknown():
        main = relax_mlir.interpret(outlined(program("f32", "add"), "gpu"))["main"]
        check(main, "f32", "add")


POINTS = """
!x = tensor<?x?xf16, #graph.shape<["n", "m"]>>
!i = tensor<?x2xi64, #graph.shape<["k", 2]>>
!u = tensor<?xf16, #graph.shape<["k"]>>
func.func @main(%x: !x, %i: !i, %u: !u) -> !x {
  %0 = "graph.scatter_nd"(%x, %i, %u) {reduction = "max"} : (!x, !i, !u) -> !x
  return %0 : !x
}
"""


def test_elements_of_matrices() -> None:
    """Those of 16 bits are widened first, and narrowed last."""
    module, kernels, _ = built(POINTS, "gpu", 2)
    assert [kernel.block[0] for kernel in kernels] == [256] * 3
    random = np.random.default_rng()
    for n, m, k in ((0, 3, 0), (1, 1, 33), (13, 7, 100), (3, 129, 40)):
        x, u = (random.standard_normal(s).astype(np.float16) for s in ((n, m), k))
        indices = np.stack([random.integers(0, max(s, 1), k) for s in (n, m)], -1)
        wanted = x.copy()
        np.maximum.at(wanted, tuple(indices.T), u)
        np.testing.assert_array_equal(module["main"](x, indices, u), wanted)


BETWEEN = """
!x = tensor<700xi32>
!y = tensor<16xi32>
func.func private @update(%x: !x, %i: !x, %y: !y) -> !y
    attributes {tir.prim_func, tir.num_outs = 1 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %count = arith.constant 700 : index
  %zero = arith.constant 0 : i32
  %zeros = linalg.fill ins(%zero : i32) outs(%y : !y) -> !y
  %s = scf.for %j = %c0 to %count step %c1 iter_args(%r = %zeros) -> !y {
    %v = tensor.extract %x[%j] : !x
    %word = tensor.extract %i[%j] : !x
    %k = arith.index_cast %word : i32 to index
    %half = arith.divui %k, %c2 : index
    %a = tensor.extract %r[%k] : !y
    %b = tensor.extract %r[%half] : !y
    %more = arith.addi %b, %v : i32
    %next = tensor.insert %more into %r[%half] : !y
    %own = arith.addi %a, %v : i32
    %last = tensor.insert %own into %next[%k] : !y
    scf.yield %last : !y
  }
  return %s : !y
}
func.func @main(%x: !x, %i: !x) -> !y {
  %0 = "graph.call_tir"(%x, %i) {callee = @update, sym_args = #graph.shape<[]>,
      operandSegmentSizes = array<i32: 1, 1, ZEROS>, resultSegmentSizes = array<i32: 1, NONE>}
      : (!x, !x) -> !y
  return %0 : !y
}
""".replace("ZEROS", ", ".join(["0"] * 30)).replace("NONE", ", ".join(["0"] * 7))


def test_an_element_that_changes_before_its_update_is_stored() -> None:
    """It becomes what it was before, and a value: that update is no sum of both."""
    module, _, _ = built(BETWEEN, "gpu", 2)
    random = np.random.default_rng()
    x, indices = random.integers(-9, 10, (2, 700)).astype(np.int32)
    indices %= 16
    wanted = np.zeros(16, np.int32)
    for value, at in zip(x, indices, strict=True):
        before = wanted[at]
        wanted[at // 2] += value
        wanted[at] = before + value
    np.testing.assert_array_equal(module["main"](x, indices), wanted)
