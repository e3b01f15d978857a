"""Tensor programs written by hand: loops, branches, padding, named ops, memory of their own.

Each is right at every level, at guard pages, by quick rules or by scalar loops.
"""

from collections.abc import Callable
from functools import cache
from math import ceil, trunc
from typing import NamedTuple

import numpy as np
import pytest

import relax_mlir
from relax_mlir.testing.guards import check_guards, guarded

N = '#graph.shape<["n"]>'
NUMBERS = [3.0, -1.5, 0.25, 8.0]
DTYPES = {"f32": np.float32, "f16": np.float16, "i1": np.bool_, "i32": np.int32, "i64": np.int64}


class Case(NamedTuple):
    """A program: its operands' types, those of its results, its body, and what it computes.

    In the body, operands are `%x0`, .. and outputs `%y0`, ..; it ends in `return`.
    """

    ins: list[str]
    outs: list[str]
    body: str
    want: Callable[..., list[np.ndarray]]


def _divided(x: np.ndarray, y: np.ndarray) -> list[np.ndarray]:
    """Quotients of least integers and of indices, and remainders: 0 where the divisor is."""
    least, rows = x * np.int32(-(2**31)), []
    for i, (a, b) in enumerate(zip(least.tolist(), y.tolist())):
        down, up = (trunc(a / (b - 1)), ceil(a / (b - 1))) if b != 1 else (0, 0)
        rows.append((down, up + (i // b if b else 0)))
    quotients = np.array(rows, np.int64).astype(np.int32)
    by = np.where(y == 0, 1, y)
    whole, rest = (np.where(y == 0, 0, each) for each in (x // by, x % by))
    return [quotients[:, 0], whole, rest, quotients[:, 1]]


CASES = {
    "pad": Case(
        ["?x4xf32"], ["?x7xf32"],
        """
        %c = arith.constant 1.0 : f32
        %p = tensor.pad %x0 low[0, 1] high[0, 2] {
        ^bb0(%i: index, %j: index):
          tensor.yield %c : f32
        } : tensor<?x4xf32> to tensor<?x7xf32>
        %r = linalg.square ins(%p : tensor<?x7xf32>) outs(%y0 : tensor<?x7xf32>) -> tensor<?x7xf32>
        return %r""",
        lambda x: [np.pad(x, ((0, 0), (1, 2)), constant_values=1) ** 2],
    ),
    "running_sum": Case(
        ["?xf32"], ["?xf32"],
        """
        %c0 = arith.constant 0 : index
        %c1 = arith.constant 1 : index
        %zero = arith.constant 0.0 : f32
        %n = tensor.dim %x0, %c0 : tensor<?xf32>
        %s, %r = scf.for %i = %c0 to %n step %c1 iter_args(%s = %zero, %a = %y0)
            -> (f32, tensor<?xf32>) {
          %x = tensor.extract %x0[%i] : tensor<?xf32>
          %t = arith.addf %s, %x : f32
          %b = tensor.insert %t into %a[%i] : tensor<?xf32>
          scf.yield %t, %b : f32, tensor<?xf32>
        }
        return %r""",
        lambda x: [np.cumsum(x, dtype=np.float64)],
    ),
    "exchange": Case(
        ["9xi32", "9xi32"], ["9xi32", "9xi32"],
        """
        %c0 = arith.constant 0 : index
        %c1 = arith.constant 1 : index
        %c5 = arith.constant 5 : index
        %r:2 = scf.for %i = %c0 to %c5 step %c1 iter_args(%a = %x0, %b = %x1)
            -> (tensor<9xi32>, tensor<9xi32>) {
          %s = arith.addi %a, %b : tensor<9xi32>
          scf.yield %b, %s : tensor<9xi32>, tensor<9xi32>
        }
        return %r#1, %r#0""",
        lambda a, b: [3 * a + 5 * b + 2 * a + 3 * b, 3 * a + 5 * b],
    ),
    "branch": Case(
        ["?xf32", "1xi1"], ["?xf32"],
        """
        %c0 = arith.constant 0 : index
        %c = tensor.extract %x1[%c0] : tensor<1xi1>
        %r = scf.if %c -> tensor<?xf32> {
          %t = linalg.exp ins(%x0 : tensor<?xf32>) outs(%y0 : tensor<?xf32>) -> tensor<?xf32>
          scf.yield %t : tensor<?xf32>
        } else {
          %t = linalg.negf ins(%x0 : tensor<?xf32>) outs(%y0 : tensor<?xf32>) -> tensor<?xf32>
          scf.yield %t : tensor<?xf32>
        }
        return %r""",
        lambda x, c: [np.exp(x) if c[0] else -x],
    ),
    "sums_of_rows_in_tasks": Case(
        ["?x?xf32"], ["?x?xf32"],
        """
        %c0 = arith.constant 0 : index
        %c1 = arith.constant 1 : index
        %zero = arith.constant 0.0 : f32
        %n = tensor.dim %x0, %c0 : tensor<?x?xf32>
        %m = tensor.dim %x0, %c1 : tensor<?x?xf32>
        %r = scf.forall (%i) = (0) to (%n) step (2) shared_outs(%a = %y0) -> (tensor<?x?xf32>) {
          %left = arith.subi %n, %i : index
          %c2 = arith.constant 2 : index
          %k = arith.minsi %left, %c2 : index
          %rows = tensor.extract_slice %a[%i, 0] [%k, %m] [1, 1]
            : tensor<?x?xf32> to tensor<?x?xf32>
          %q = scf.for %l = %c0 to %k step %c1 iter_args(%b = %rows) -> (tensor<?x?xf32>) {
            %row = arith.addi %i, %l : index
            %s, %p = scf.for %j = %c0 to %m step %c1 iter_args(%s = %zero, %b1 = %b)
                -> (f32, tensor<?x?xf32>) {
              %e = tensor.extract %x0[%row, %j] : tensor<?x?xf32>
              %t = arith.addf %s, %e : f32
              %b2 = tensor.insert %t into %b1[%l, %j] : tensor<?x?xf32>
              scf.yield %t, %b2 : f32, tensor<?x?xf32>
            }
            scf.yield %p : tensor<?x?xf32>
          }
          scf.forall.in_parallel {
            tensor.parallel_insert_slice %q into %a[%i, 0] [%k, %m] [1, 1]
              : tensor<?x?xf32> into tensor<?x?xf32>
          }
        }
        return %r""",
        lambda x: [np.cumsum(x, 1, dtype=np.float64)],
    ),
    "two_new_tensors": Case(
        ["5xi32"], ["5xi32"],
        """
        %c0 = arith.constant 0 : index
        %c1 = arith.constant 1 : index
        %c2 = arith.constant 2 : index
        %c5 = arith.constant 5 : index
        %e = tensor.empty() : tensor<5xi32>
        %r:3 = scf.for %k = %c0 to %c2 step %c1 iter_args(%u = %e, %v = %e, %w = %y0)
            -> (tensor<5xi32>, tensor<5xi32>, tensor<5xi32>) {
          %f:2 = scf.for %i = %c0 to %c5 step %c1 iter_args(%a = %u, %b = %v)
              -> (tensor<5xi32>, tensor<5xi32>) {
            %x = tensor.extract %x0[%i] : tensor<5xi32>
            %n = arith.index_cast %i : index to i32
            %s = tensor.insert %x into %a[%i] : tensor<5xi32>
            %t = tensor.insert %n into %b[%i] : tensor<5xi32>
            scf.yield %s, %t : tensor<5xi32>, tensor<5xi32>
          }
          %y = linalg.sub ins(%f#0, %f#1 : tensor<5xi32>, tensor<5xi32>)
            outs(%w : tensor<5xi32>) -> tensor<5xi32>
          scf.yield %f#0, %f#1, %y : tensor<5xi32>, tensor<5xi32>, tensor<5xi32>
        }
        return %r#2""",
        lambda x: [x - np.arange(5)],
    ),
    "halve": Case(
        ["1xi32"], ["1xi32"],
        """
        %c0 = arith.constant 0 : index
        %one = arith.constant 1 : i32
        %x = tensor.extract %x0[%c0] : tensor<1xi32>
        %r:2 = scf.while (%v = %x, %a = %y0) : (i32, tensor<1xi32>) -> (i32, tensor<1xi32>) {
          %more = arith.cmpi sgt, %v, %one : i32
          scf.condition(%more) %v, %a : i32, tensor<1xi32>
        } do {
        ^bb0(%v: i32, %a: tensor<1xi32>):
          %h = arith.shrsi %v, %one : i32
          scf.yield %h, %a : i32, tensor<1xi32>
        }
        %t = tensor.insert %r#0 into %r#1[%c0] : tensor<1xi32>
        return %t""",
        lambda x: [np.minimum(x, 1)],
    ),
    "rows_of_forall": Case(
        ["6x5xf32"], ["6x5xf32"],
        """
        %r = scf.forall (%i) in (6) shared_outs(%a = %y0) -> tensor<6x5xf32> {
          %row = tensor.extract_slice %x0[%i, 0] [1, 5] [1, 1] : tensor<6x5xf32> to tensor<5xf32>
          %e = tensor.empty() : tensor<5xf32>
          %t = linalg.abs ins(%row : tensor<5xf32>) outs(%e : tensor<5xf32>) -> tensor<5xf32>
          scf.forall.in_parallel {
            tensor.parallel_insert_slice %t into %a[%i, 0] [1, 5] [1, 1]
              : tensor<5xf32> into tensor<6x5xf32>
          }
        }
        return %r""",
        lambda x: [np.abs(x)],
    ),
    "named": Case(
        ["3x4x5xf32", "3x5x2xf32"], ["3x2x4xf32", "3xf32"],
        """
        %zero = arith.constant 0.0 : f32
        %e = tensor.empty() : tensor<3x4x2xf32>
        %z = linalg.fill ins(%zero : f32) outs(%e : tensor<3x4x2xf32>) -> tensor<3x4x2xf32>
        %c = linalg.batch_matmul ins(%x0, %x1 : tensor<3x4x5xf32>, tensor<3x5x2xf32>)
            outs(%z : tensor<3x4x2xf32>) -> tensor<3x4x2xf32>
        %t = linalg.transpose ins(%c : tensor<3x4x2xf32>) outs(%y0 : tensor<3x2x4xf32>)
            permutation = [0, 2, 1]
        %f = linalg.fill ins(%zero : f32) outs(%y1 : tensor<3xf32>) -> tensor<3xf32>
        %s = linalg.reduce {arith.addf} ins(%c : tensor<3x4x2xf32>) outs(%f : tensor<3xf32>)
            dimensions = [1, 2]
        return %t, %s""",
        lambda a, b: [(a @ b).transpose(0, 2, 1), (a @ b).sum((1, 2))],
    ),
    "concat": Case(
        ["?xf32"], ["?x2xf32"],
        """
        %e = tensor.expand_shape %x0 [[0, 1]] output_shape [%N, 1]
            : tensor<?xf32> into tensor<?x1xf32>
        %c = tensor.concat dim(1) %e, %e : (tensor<?x1xf32>, tensor<?x1xf32>) -> tensor<?x2xf32>
        return %c""",
        lambda x: [np.stack([x, x], 1)],
    ),
    "generate": Case(
        ["4x6xf32"], ["6x4xf32"],
        """
        %r = tensor.generate {
        ^bb0(%i: index, %j: index):
          %x = tensor.extract %x0[%j, %i] : tensor<4x6xf32>
          tensor.yield %x : f32
        } : tensor<6x4xf32>
        return %r""",
        lambda x: [x.T],
    ),
    "computed_places": Case(
        ["?xf32", "5xi64"], ["?xf32"],
        """
        %c0 = arith.constant 0 : index
        %c1 = arith.constant 1 : index
        %c5 = arith.constant 5 : index
        %i = linalg.copy ins(%x0 : tensor<?xf32>) outs(%y0 : tensor<?xf32>) -> tensor<?xf32>
        %r = scf.for %k = %c0 to %c5 step %c1 iter_args(%a = %i) -> tensor<?xf32> {
          %p = tensor.extract %x1[%k] : tensor<5xi64>
          %at = arith.index_cast %p : i64 to index
          %x = tensor.extract %a[%at] : tensor<?xf32>
          %d = arith.addf %x, %x : f32
          %b = tensor.insert %d into %a[%at] : tensor<?xf32>
          scf.yield %b : tensor<?xf32>
        }
        return %r""",
        lambda x, i: [x * 2.0 ** np.bincount(i, minlength=len(x))],
    ),
    "indices": Case(
        ["?x3xi64"], ["?x3xi64"],
        """
        %r = linalg.generic {indexing_maps = [affine_map<(a, b) -> (a, b)>,
            affine_map<(a, b) -> (a, b)>], iterator_types = ["parallel", "parallel"]}
            ins(%x0 : tensor<?x3xi64>) outs(%y0 : tensor<?x3xi64>) {
        ^bb0(%x: i64, %y: i64):
          %i = linalg.index 0 : index
          %j = linalg.index 1 : index
          %k = affine.apply affine_map<(a)[b] -> (a * 10 + b floordiv 2)>(%i)[%j]
          %l = arith.index_cast %k : index to i64
          %s = arith.addi %l, %x : i64
          linalg.yield %s : i64
        } -> tensor<?x3xi64>
        return %r""",
        lambda x: [x + 10 * np.arange(len(x))[:, None] + np.array([0, 0, 1])],
    ),
    "divisions": Case(
        ["?xi32", "?xi32"], ["?xi32", "?xi32", "?xi32", "?xi32"],
        """
        %c0 = arith.constant 0 : index
        %c1 = arith.constant 1 : index
        %one = arith.constant 1 : i32
        %least = arith.constant -2147483648 : i32
        %r = linalg.generic {indexing_maps = [affine_map<(a) -> (a)>, affine_map<(a) -> (a)>,
            affine_map<(a) -> (a)>], iterator_types = ["parallel"]}
            ins(%x0, %x1 : tensor<?xi32>, tensor<?xi32>) outs(%y0 : tensor<?xi32>) {
        ^bb0(%x: i32, %y: i32, %z: i32):
          %a = arith.muli %x, %least : i32
          %b = arith.subi %y, %one : i32
          %q = arith.divsi %a, %b : i32
          linalg.yield %q : i32
        } -> tensor<?xi32>
        %s = linalg.div ins(%x0, %x1 : tensor<?xi32>, tensor<?xi32>) outs(%y1 : tensor<?xi32>)
            -> tensor<?xi32>
        %t = arith.remui %x0, %x1 : tensor<?xi32>
        %u = scf.for %i = %c0 to %N step %c1 iter_args(%a = %y3) -> (tensor<?xi32>) {
          %x = tensor.extract %x0[%i] : tensor<?xi32>
          %y = tensor.extract %x1[%i] : tensor<?xi32>
          %c = arith.muli %x, %least : i32
          %b = arith.subi %y, %one : i32
          %q = arith.ceildivsi %c, %b : i32
          %k = arith.index_cast %y : i32 to index
          %l = arith.floordivsi %i, %k : index
          %m = arith.index_cast %l : index to i32
          %n = arith.addi %q, %m : i32
          %o = tensor.insert %n into %a[%i] : tensor<?xi32>
          scf.yield %o : tensor<?xi32>
        }
        return %r, %s, %t, %u""",
        _divided,
    ),
    "crossed": Case(
        ["?xf32"], ["?xf32", "?xf32"],
        """
        %r = linalg.exp ins(%x0 : tensor<?xf32>) outs(%y0 : tensor<?xf32>) -> tensor<?xf32>
        %s = linalg.negf ins(%x0 : tensor<?xf32>) outs(%y1 : tensor<?xf32>) -> tensor<?xf32>
        return %s, %r""",
        lambda x: [-x, np.exp(x)],
    ),
    "halves": Case(
        ["7xf16", "7xi1"], ["7xf16", "7xi1"],
        """
        %c1 = arith.constant 1 : index
        %c0 = arith.constant 0 : index
        %c7 = arith.constant 7 : index
        %a, %b = scf.for %i = %c0 to %c7 step %c1 iter_args(%a = %y0, %b = %y1)
            -> (tensor<7xf16>, tensor<7xi1>) {
          %x = tensor.extract %x0[%i] : tensor<7xf16>
          %c = tensor.extract %x1[%i] : tensor<7xi1>
          %e = math.tanh %x : f16
          %s = arith.addf %e, %x : f16
          %r = arith.select %c, %s, %x : f16
          %t = arith.constant true
          %d = arith.xori %c, %t : i1
          %na = tensor.insert %r into %a[%i] : tensor<7xf16>
          %nb = tensor.insert %d into %b[%i] : tensor<7xi1>
          scf.yield %na, %nb : tensor<7xf16>, tensor<7xi1>
        }
        return %a, %b""",
        lambda x, c: [np.where(c, np.tanh(x.astype(np.float64)) + x, x), ~c],
    ),
    "workspace": Case(
        ["?x4xf32"], ["?xf32"],
        """
        %c0 = arith.constant 0 : index
        %c1 = arith.constant 1 : index
        %n = tensor.dim %x0, %c0 : tensor<?x4xf32>
        %k = arith.constant dense<[3.0, -1.5, 0.25, 8.0]> : tensor<4xf32>
        %r = scf.for %i = %c0 to %n step %c1 iter_args(%a = %y0) -> tensor<?xf32> {
          %w = bufferization.alloc_tensor() {memory_space = 1 : i64} : tensor<4xf32>
          %row = tensor.extract_slice %x0[%i, 0] [1, 4] [1, 1] : tensor<?x4xf32> to tensor<4xf32>
          %p = linalg.mul ins(%row, %k : tensor<4xf32>, tensor<4xf32>) outs(%w : tensor<4xf32>)
              -> tensor<4xf32>
          %cell = memref.alloca() : memref<f32, 3>
          %zero = arith.constant 0.0 : f32
          memref.store %zero, %cell[] : memref<f32, 3>
          %c4 = arith.constant 4 : index
          scf.for %j = %c0 to %c4 step %c1 {
            %x = tensor.extract %p[%j] : tensor<4xf32>
            %s = memref.load %cell[] : memref<f32, 3>
            %t = arith.addf %s, %x : f32
            memref.store %t, %cell[] : memref<f32, 3>
          }
          %s = memref.load %cell[] : memref<f32, 3>
          %b = tensor.insert %s into %a[%i] : tensor<?xf32>
          scf.yield %b : tensor<?xf32>
        }
        return %r""",
        lambda x: [x @ np.array(NUMBERS)],
    ),
}  # fmt: skip


def _named(type_: str) -> str:
    dims = type_.split("x")[:-1]
    names = ", ".join('"n"' if dim == "?" else dim for dim in dims)
    return f"tensor<{type_}, #graph.shape<[{names}]>>" if "?" in dims else f"tensor<{type_}>"


def _function(name: str, case: Case) -> str:
    """The program, and a graph function of its name that calls it."""
    slots = ", ".join("1" if i < len(case.ins) else "0" for i in range(32))
    results = ", ".join("1" if i < len(case.outs) else "0" for i in range(8))
    ins, outs = list(map(_named, case.ins)), list(map(_named, case.outs))
    body, returned = case.body.rsplit("return", 1)
    values = [value.strip() for value in returned.split(",")]
    parameters = [f"%{c}{i}_: {t}" for c, ts in (("x", ins), ("y", outs)) for i, t in enumerate(ts)]
    border = [
        f"%{c}{i} = tensor.cast %{c}{i}_ : {_named(t)} to tensor<{t}>"
        for c, ts in (("x", case.ins), ("y", case.outs))
        for i, t in enumerate(ts)
    ]
    border += ["%zero_ = arith.constant 0 : index"]
    border += [f"%N = tensor.dim %x0, %zero_ : tensor<{case.ins[0]}>"]
    back = [
        f"%r{i}_ = tensor.cast {value} : tensor<{t}> to {_named(t)}"
        for i, (value, t) in enumerate(zip(values, case.outs, strict=True))
    ]
    kinds = ", ".join(outs)
    lines = "\n".join([*border, body, *back])
    operands = ", ".join(f"%a{i}" for i in range(len(ins)))
    arguments = ", ".join(f"%a{i}: {t}" for i, t in enumerate(ins))
    found = ", ".join(f"%r#{i}" for i in range(len(outs))) if len(outs) > 1 else "%r"
    finals = ", ".join(f"%r{i}_" for i in range(len(outs)))
    return f"""
func.func private @program_{name}({", ".join(parameters)}) -> ({kinds})
    attributes {{tir.prim_func, tir.num_outs = {len(outs)} : i64}} {{
{lines}
  return {finals} : {kinds}
}}
func.func @{name}({arguments}) -> ({kinds}) {{
  %r{f":{len(outs)}" if len(outs) > 1 else ""} = "graph.call_tir"({operands}) {{
      callee = @program_{name}, operandSegmentSizes = array<i32: {slots}>,
      resultSegmentSizes = array<i32: {results}>, sym_args = #graph.shape<[]>}}
      : ({", ".join(ins)}) -> ({kinds})
  return {found} : {kinds}
}}"""


@cache
def module() -> str:
    return "\n".join(_function(name, case) for name, case in CASES.items())


def _argument(type_: str, n: int) -> np.ndarray:
    *dims, element = type_.split("x")
    shape = [n if dim == "?" else int(dim) for dim in dims]
    generator = np.random.default_rng([n, *shape])
    if element[0] == "f":
        return generator.standard_normal(shape).astype(DTYPES[element])
    if element == "i1":
        return generator.integers(0, 2, shape).astype(np.bool_)
    return generator.integers(0, max(1, n), shape).astype(DTYPES[element])


@pytest.mark.parametrize("level", range(4))
def test_programs(level: int) -> None:
    executable = relax_mlir.compile(module(), opt_level=level)
    for name, case in CASES.items():
        for n in (1, 5, 17, 64):
            arrays = [_argument(type_, n) for type_ in case.ins]
            ins = [guarded(array, n != 5) for array in arrays]
            want = case.want(*arrays)
            outs = [
                guarded(np.zeros(w.shape, DTYPES[t.split("x")[-1]]), n != 5)
                for w, t in zip(want, case.outs, strict=True)
            ]
            executable[name].bind(*ins, results=outs).run()
            for out, expected in zip(outs, want, strict=True):
                tolerance = 2e-3 if out.dtype == np.float16 else 1e-5
                np.testing.assert_allclose(out, expected, tolerance, tolerance, err_msg=name)
            for array in (*ins, *outs):
                check_guards(array)


def test_divisions_are_interpreted_as_compiled() -> None:
    module = relax_mlir.interpret(_function("divisions", CASES["divisions"]))
    for n in (1, 5, 17):
        arrays = [_argument(type_, n) for type_ in CASES["divisions"].ins]
        for got, want in zip(module["divisions"](*arrays), _divided(*arrays), strict=True):
            np.testing.assert_array_equal(got, want)
