"""Kernels of devices, thread by thread: what is computed, and what is refused.

The kernels that are refused may compute what is wanted on a device, or may not.
"""

import re

import numpy as np
import pytest

from relax_mlir.bindings import ir
from relax_mlir.dialects import make_context
from relax_mlir.errors import ExecutionError
from relax_mlir.interpreter import interpret
from relax_mlir.testing.outlined import outlined

X = np.arange(1, 14, dtype=np.float32)
GROUP = "memref<8xf32, #gpu.address_space<workgroup>>"


def run(body: str, groups: int = 2, threads: int = 8, element: str = "f32") -> np.ndarray:
    """What a launch writes to an array; `%x` and `%y` have 13 elements, `%s` 8 of each group."""
    call = "operandSegmentSizes = array<i32: 1, 1" + ", 0" * 30 + ">, resultSegmentSizes = "
    call += "array<i32: 0" + ", 0" * 7 + ">, num_outs = 1 : i64, updates = array<i64>"
    call += ", sym_args = #graph.shape<[]>"
    text = f"""
func.func private @kernel(%x: memref<13xf32>, %y: memref<13xf32>) attributes {{tir.prim_func,
    tir.scheduled, tir.num_outs = 1 : i64}} {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c7 = arith.constant 7 : index
  %c8 = arith.constant 8 : index
  %c13 = arith.constant 13 : index
  %groups = arith.constant {groups} : index
  %threads = arith.constant {threads} : index
  gpu.launch blocks(%g, %g1, %g2) in (%n, %n1, %n2) = (%groups, %c1, %c1)
      threads(%t, %t1, %t2) in (%m, %m1, %m2) = (%threads, %c1, %c1) workgroup(%s : {GROUP}) {{
    %before = arith.muli %g, %c8 : index
    %i = arith.addi %before, %t : index
    %has = arith.cmpi ult, %i, %c13 : index
    %first = arith.cmpi eq, %t, %c0 : index
    %one = arith.constant 1.0 : f32
{body}
    gpu.terminator
  }}
  return
}}
func.func @main(%x: tensor<13xf32>, %y: tensor<13xf32> {{graph.inout = 0 : i64}})
    -> tensor<13xf32> {{
  "graph.call_dps"(%x, %y) {{callee = @kernel, {call}}}
      : (tensor<13xf32>, tensor<13xf32>) -> ()
  return %y : tensor<13xf32>
}}"""
    text = re.sub(r"in \((%\w+), (%\w+), (%\w+)\) = \((%\w+), (%\w+), (%\w+)\)",
                  r"in (\1 = \4, \2 = \5, \3 = \6)", text)  # fmt: skip
    x = X if element == "f32" else X.astype(np.int32)
    text = text.replace("1.0 : f32", f"{x.dtype.type(1)} : f32").replace("f32", element)
    return interpret(text)["main"](x, np.zeros_like(x))


def test_branches_run_on_the_threads_that_take_them() -> None:
    got = run("""
    scf.if %has {
      %v = memref.load %x[%i] : memref<13xf32>
      %r = scf.if %first -> (f32) { scf.yield %one : f32 } else { scf.yield %v : f32 }
      memref.store %r, %y[%i] : memref<13xf32>
    }""")
    np.testing.assert_array_equal(got, np.where(np.arange(13) % 8 == 0, 1, X))


def test_loops_end_when_the_bounds_of_a_thread_say_so() -> None:
    got = run("""
    scf.if %has {
      %sum = scf.for %j = %c0 to %i step %c1 iter_args(%a = %one) -> (f32) {
        %b = arith.addf %a, %one : f32
        scf.yield %b : f32
      }
      %w, %half = scf.while (%p = %i, %q = %sum) : (index, f32) -> (index, f32) {
        %go = arith.cmpi ugt, %p, %c7 : index
        scf.condition(%go) %p, %q : index, f32
      } do {
      ^bb0(%p: index, %q: f32):
        %less = arith.subi %p, %c1 : index
        %more = arith.addf %q, %one : f32
        scf.yield %less, %more : index, f32
      }
      memref.store %half, %y[%i] : memref<13xf32>
    }""")
    i = np.arange(13)
    np.testing.assert_array_equal(got, 1 + i + np.maximum(i - 7, 0))


REVERSED = """
    memref.store %one, %s[%t] : GROUP
    BARRIER
    %r = arith.subi %c7, %t : index
    %v = memref.load %s[%r] : GROUP
    scf.if %has { memref.store %v, %y[%i] : memref<13xf32> }""".replace("GROUP", GROUP)


def test_threads_of_a_group_share_memory() -> None:
    np.testing.assert_array_equal(run(REVERSED.replace("BARRIER", "gpu.barrier")), np.ones(13))


REFUSED = {
    "a barrier is missing": (REVERSED.replace("BARRIER", ""), "reads what another thread writes"),
    "a barrier that threads skip": (
        REVERSED.replace("BARRIER", "scf.if %first { gpu.barrier }"),
        "is a barrier that 7 threads of a group do not reach",
    ),
    "memory that nobody wrote": (
        f"%v = memref.load %s[%t] : {GROUP}", "reads memory of the group that no thread wrote",
    ),
    "out of bounds of the device": (
        "%v = memref.load %x[%i] : memref<13xf32>", "accesses index 13 of dim 0, which has 13",
    ),
    "out of bounds of the group": (
        f"%j = arith.addi %t, %c1 : index\nmemref.store %one, %s[%j] : {GROUP}",
        "accesses index 8 of memory of 8 elements",
    ),
    "two threads write a word": (
        "memref.store %one, %y[%c0] : memref<13xf32>", "writes what another thread accesses",
    ),
    "another group writes": (
        """scf.if %first { memref.store %one, %y[%g] : memref<13xf32> }
        gpu.barrier
        %last = arith.cmpi eq, %i, %c8 : index
        scf.if %last { %v = memref.load %y[%c0] : memref<13xf32> }""",
        "reads what another thread writes",
    ),
    "another group reads": (
        """%v = memref.load %y[%c0] : memref<13xf32>
        gpu.barrier
        %last = arith.cmpi eq, %i, %c8 : index
        scf.if %last { memref.store %one, %y[%c0] : memref<13xf32> }""",
        "writes what another thread accesses",
    ),
    "a division by zero": ("%q = arith.divui %c8, %t : index", "divides by zero"),
    "a step of zero": ("scf.for %j = %c0 to %c8 step %t { }", "has a step that is not positive"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_refused_kernels(case: str) -> None:
    body, message = REFUSED[case]
    with pytest.raises(ExecutionError, match=message):
        run(body)


def shuffle(mode: str, lane: int, width: int) -> str:
    return f"""
    %v = memref.load %x[%t] : memref<13xf32>
    %lane = arith.constant {lane} : i32
    %width = arith.constant {width} : i32
    %r, %is_inside = gpu.shuffle {mode} %v, %lane, %width : f32
    memref.store %r, %y[%t] : memref<13xf32>"""


@pytest.mark.parametrize(
    ("mode", "lanes"), [("xor", np.arange(8) ^ 3), ("idx", np.full(8, 3))], ids=str
)
def test_shuffles(mode: str, lanes: np.ndarray) -> None:
    """Of all eight threads of a group: the warp has no more."""
    got = run(shuffle(mode, 3, 8), groups=1)
    np.testing.assert_array_equal(got[:8], X[lanes])


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("scf.if %first {\n" + shuffle("xor", 1, 8) + "\n}", "of which other threads run"),
        (shuffle("xor", 1, 4), "of which other threads run"),
        (shuffle("xor", 1, 32), "of which other threads run"),
        (shuffle("idx", 8, 8), "reads a lane that is not one of 8"),
        (shuffle("up", 1, 8), "by 'up'; interpreted are xor and idx"),
    ],
)
def test_shuffles_that_are_refused(body: str, message: str) -> None:
    with pytest.raises(ExecutionError, match=message):
        run(body, groups=1)


MATRIX = '!gpu.mma_matrix<8x8xf32, "COp">'
ONES = f"%a = gpu.subgroup_mma_constant_matrix %one : {MATRIX}\n"
STORED = (
    f"gpu.subgroup_mma_store_matrix %a, %s[AT] {{leadDimension = 8 : index}} : {MATRIX}, {GROUP}"
)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (STORED.replace("AT", "%t"), "another address in some threads of a subgroup"),
        (STORED.replace("AT", "%c0"), "accesses index .* of memory of 8 elements"),
        ("scf.if %first {\n" + STORED.replace("AT", "%c0") + "\n}", "of which threads do not run"),
    ],
)
def test_matrices_of_subgroups_that_are_refused(body: str, message: str) -> None:
    with pytest.raises(ExecutionError, match=message):
        run(ONES + body, groups=1, threads=32)


def update(kind: str, at: str = "%i") -> str:
    return f"memref.atomic_rmw {kind} %one, %y[{at}] : (f32, memref<13xf32>) -> f32\n"


def test_updates_of_one_element() -> None:
    """By both groups, in any order."""
    result = run(update("addi", "%c7"), element="i32")
    np.testing.assert_array_equal(result, np.where(np.arange(13) == 7, 16, 0))


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("memref.store %one, %y[%t] : memref<13xf32>\n" + update("addi", "%t"), "otherwise"),
        (update("addi", "%t") + "%v = memref.load %y[%t] : memref<13xf32>\n"
         "memref.store %v, %y[%t] : memref<13xf32>", "another thread writes"),
        ("%v = " + update("addi", "%t") + "memref.store %v, %x[%t] : memref<13xf32>",
         "depends on their order"),
        (update("muli", "%t"), "depends on the order"),
        (update("addi", "%c13"), "accesses index 13"),
    ],
)  # fmt: skip
def test_updates_that_are_refused(body: str, message: str) -> None:
    with pytest.raises(ExecutionError, match=message):
        run(body, groups=1, element="i32")


def test_an_empty_grid_is_refused() -> None:
    with pytest.raises(ExecutionError, match=r"has no threads: grid \[0, 1, 1\]"):
        run("", groups=0)


SOFTMAX = """
!x = tensor<?x?xf32, #graph.shape<["m", "n"]>>
func.func @main(%x: !x) -> !x {
  %0 = "graph.nn_softmax"(%x) {axis = -1 : i64} : (!x) -> !x
  return %0 : !x
}
"""


def test_a_barrier_that_is_taken_out_of_a_kernel_is_missed() -> None:
    """All of softmax's but the last: a thread reads of the exponentials those it stored."""
    x = np.random.default_rng(5).standard_normal((3, 259)).astype(np.float32)
    with make_context(), ir.Location.unknown():
        module = outlined(SOFTMAX, "gpu")
        text = str(module)
    parts = text.split("gpu.barrier")
    exact = np.exp(x.astype(np.float64))
    np.testing.assert_allclose(
        interpret(text)["main"](x), exact / exact.sum(1, keepdims=True), rtol=1e-6
    )
    for i in range(1, len(parts) - 1):
        changed = "gpu.barrier".join(parts[:i]) + "gpu.barrier".join(parts[i:])
        with pytest.raises(ExecutionError, match="without a barrier between them"):
            interpret(changed)["main"](x)
