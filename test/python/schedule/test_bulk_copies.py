"""Products whose sides the device copies by tensor maps, as PTX and thread by thread."""

import re
from typing import Any

import numpy as np
import pytest
import test_tensor_cores
from test_tensor_cores import (
    DTYPES,
    STATIC,
    WARPGROUPS,
    built,
    by_threads,
    check,
    exact_of,
    lowered,
    normal,
)

import relax_mlir
from relax_mlir.bindings import gpu, ir, nvvm, scf
from relax_mlir.dialects import make_context
from relax_mlir.errors import ExecutionError
from relax_mlir.interpreter.ptx import parse
from relax_mlir.rewriting import walk_ops
from relax_mlir.schedule.gpu.products.matrix_units import bulk
from relax_mlir.testing.ptx import PtxKernels

COPY = "cp.async.bulk.tensor"
NARROW, MANY = "m64n128k16", "m64n256k16"
GROUPS = 2
"""Groups that do one tile after another here; programs are apart from those of other tests."""
PLAIN, TRANSPOSED, BATCHED = (
    f"{text}\n" for text in (test_tensor_cores.PLAIN, test_tensor_cores.TRANSPOSED,
                             test_tensor_cores.BATCHED)
)  # fmt: skip
COLLAPSED = """
!x = tensor<?x?x?xTYPE, #graph.shape<["b", "s", "k"]>>
!w = tensor<?x?xTYPE, #graph.shape<["k", "n"]>>
!y = tensor<?x?x?xTYPE, #graph.shape<["b", "s", "n"]>>
func.func @main(%x: !x, %w: !w) -> !y {
  %0 = "graph.matmul"(%x, %w) : (!x, !w) -> !y
  return %0 : !y
}"""


CASES = [
    (PLAIN, "f16", [(5, 72, 8), (7, 8, 72), (129, 128, 136), (385, 200, 24), (130, 64, 520)]),
    (TRANSPOSED, "bf16", [(8, 66, 8), (264, 131, 72), (136, 65, 248)]),
    (COLLAPSED, "bf16", [(35, 72, 40), (129, 136, 136)]),
]

PERMUTED = """
!x = tensor<?x?x?xTYPE, #graph.shape<["s", "b", "k"]>>
!t = tensor<?x?x?xTYPE, #graph.shape<["b", "s", "k"]>>
!w = tensor<?x?xTYPE, #graph.shape<["k", "n"]>>
!y = tensor<?x?x?xTYPE, #graph.shape<["b", "s", "n"]>>
func.func @main(%x: !x, %w: !w) -> !y {
  %0 = "graph.permute_dims"(%x) {axes = array<i64: 1, 0, 2>} : (!x) -> !t
  %1 = "graph.matmul"(%0, %w) : (!t, !w) -> !y
  return %1 : !y
}"""

SHARED = """
!x = tensor<6x?x?xTYPE, #graph.shape<[6, "m", "k"]>>
!w = tensor<2x?x?xTYPE, #graph.shape<[2, "k", "n"]>>
!t = tensor<6x?x?xTYPE, #graph.shape<[6, "k", "n"]>>
!y = tensor<6x?x?xTYPE, #graph.shape<[6, "m", "n"]>>
func.func @main(%x: !x, %w: !w) -> !y {
  %0 = "graph.repeat"(%w) {axis = 0 : i64, repeats = #graph.shape<[3]>} : (!w) -> !t
  %1 = "graph.matmul"(%x, %0) : (!x, !t) -> !y
  return %1 : !y
}"""


@pytest.fixture(autouse=True)
def few_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bulk, "RESIDENT", GROUPS)


def kernels_with(kernels: PtxKernels, *texts: str) -> list[str]:
    """The names of kernels that have all of some texts."""
    return [name for name, ptx in kernels.texts.items() if all(x in ptx for x in texts)]


def computed(text: str, type_: str, *arrays: np.ndarray) -> tuple[np.ndarray, str]:
    """The result, and the code of the last kernel that was launched."""
    run, kernels = built(text, type_, WARPGROUPS)
    kernels.launched.clear()
    return run(*arrays), kernels.texts[kernels.launched[-1]]


@pytest.mark.rotate(4)
@pytest.mark.parametrize(("text", "type_", "sizes"), CASES, ids=["plain", "transposed", "rows"])
def test_sizes(text: str, type_: str, sizes: list[tuple[int, int, int]]) -> None:
    """Of rows at multiples of 16 bytes: what is beyond a matrix is zero."""
    for m, k, n in sizes:
        x, w = normal(type_, m, k), normal(type_, k, n)
        a, b = exact_of(x, w)
        given = x
        if text is TRANSPOSED:
            given = np.ascontiguousarray(x.T)
        elif text is COLLAPSED:
            given = x.reshape(-1, 5 if m % 5 == 0 else 3, k)
        y, ptx = computed(text, type_, given, w)
        assert COPY in ptx
        check(y.reshape(m, n), a @ b, np.abs(a) @ np.abs(b), k)
        threads = by_threads(text, type_, WARPGROUPS)(given, w)
        np.testing.assert_array_equal(threads.view("u2"), y.view("u2"))


@pytest.mark.rotate(2)
def test_batches_with_an_epilogue() -> None:
    for m, k, n in ((66, 72, 65), (5, 136, 129), (127, 264, 257)):
        x, w, r = (normal("bf16", 3, *shape) for shape in ((m, k), (n, k), (m, n)))
        a, b, c = exact_of(x, w.swapaxes(1, 2), r)
        y, ptx = computed(BATCHED, "bf16", x, w, r)
        assert COPY in ptx
        exact = c - (a @ b).astype(DTYPES["bf16"]).astype(float)
        check(y, exact, 2 * np.abs(a @ b), 1 << 16)  # rounded to bf16 in between


@pytest.mark.rotate(2)
@pytest.mark.parametrize(("m", "k", "n"), [(130, 72, 256), (128, 8, 264), (257, 576, 128)])
def test_static_sizes(m: int, k: int, n: int) -> None:
    """With a bias, and the larger of zero."""
    text = STATIC.replace("M", str(m)).replace("K", str(k)).replace("N", str(n)) + "\n"
    x, w = (np.round(2 * normal("f16", *shape)) for shape in ((m, k), (k, n)))
    bias = np.round(normal("f16", n))
    y, ptx = computed(text, "f16", x, w, bias)
    assert COPY in ptx
    exact = np.maximum(x.astype(np.float64) @ w.astype(np.float64) + bias, 0)
    np.testing.assert_array_equal(y, exact)  # integers below 2^11
    np.testing.assert_array_equal(by_threads(text, "f16", WARPGROUPS)(x, w, bias), exact)


def test_tiles_of_more_columns() -> None:
    """Where groups take 8/5 of the time for a tile, but have fewer of them."""
    few, many = ((129, 128), (128, 256), (130, 264), (257, 136)), ((129, 256), (64, 1024))
    for (m, n), shape in [*((x, NARROW) for x in few), *((x, MANY) for x in many)]:
        _, ptx = computed(PLAIN, "f16", normal("f16", m, 8), normal("f16", 8, n))
        assert shape in ptx


@pytest.mark.parametrize(
    ("m", "k", "n", "shift"),
    [(70, 97, 64, 0), (70, 96, 33, 0), (0, 96, 64, 0), (70, 0, 64, 0), (70, 96, 64, 4),
     (4, 96, 64, 0)],
)  # fmt: skip
def test_other_arrays_are_copied_by_threads(m: int, k: int, n: int, shift: int) -> None:
    """Of other pitches and addresses, with no step, and of few rows."""
    x = normal("f16", m * k + 8)[shift : m * k + shift].reshape(m, k)
    w = normal("f16", k, n)
    run, kernels = built(PLAIN, "f16", WARPGROUPS)
    kernels.launched.clear()
    a, b = exact_of(x, w)
    check(run(x, w), a @ b, np.abs(a) @ np.abs(b), k)
    assert not set(kernels.launched) & set(kernels_with(kernels, COPY))


@pytest.mark.rotate(2)
def test_rows_that_are_apart() -> None:
    """Of one side alone, whose map has a dim more."""
    for s, b, k, n in ((7, 3, 72, 136), (67, 2, 200, 8)):
        x, w = normal("bf16", s, b, k), normal("bf16", k, n)
        a, c = exact_of(x.swapaxes(0, 1), w)
        y, ptx = computed(PERMUTED, "bf16", x, w)
        assert f"{COPY}.3d" in ptx
        check(y, a @ c, np.abs(a) @ np.abs(c), k)


@pytest.mark.rotate(2)
def test_matrices_that_several_share_are_copied_by_threads() -> None:
    """No map counts through them, but rows begin at multiples of 16 bytes."""
    run, kernels = built(SHARED, "bf16", WARPGROUPS)
    assert not kernels_with(kernels, COPY)
    for m, k, n in ((66, 72, 136), (5, 200, 8)):
        x, w = normal("bf16", 6, m, k), normal("bf16", 2, k, n)
        a, c = exact_of(x, np.repeat(w, 3, 0))
        check(run(x, w), a @ c, np.abs(a) @ np.abs(c), k)


NEVER = "a phase of a barrier that is never complete"
EARLY = "before a copy to it is complete|without a wait for its barrier|that no thread wrote"
READ = "copies to what others read without a barrier|a product of a warpgroup still reads"
OFTEN = r"more than \d threads arrive"
ORDER = {
    "bar.sync \t0": "that another thread made",
    "bar.sync \t1": "without a barrier between",
    "mbarrier.init": "there is no barrier at",
    "fence.mbarrier_init": r"made without fence\.mbarrier_init",
    "mbarrier.arrive.expect_tx": NEVER,
    "mbarrier.arrive.shared": NEVER,
    COPY: NEVER,
    "wgmma.fence": r"without wgmma\.fence before",
    "wgmma.wait_group.sync.aligned \t1": READ,
    "wgmma.wait_group.sync.aligned \t0": READ,
}
"""What orders threads and copies, and how a kernel without it fails."""


def planted(
    old: re.Match[str], new: str, program: tuple[str, str] = (PLAIN, "f16"), *arrays: np.ndarray
) -> np.ndarray:
    """Runs the kernel with a part of its code replaced, on five steps of 5 tiles or on arrays."""
    run, kernels = built(*program, WARPGROUPS)
    (name,) = kernels_with(kernels, COPY, NARROW)
    kernel, before = kernels._kernels[name]
    text = kernels.texts[name]
    changed = parse(f"{text[: old.start()]}{new}{text[old.end() :]}")
    kernels._kernels[name] = kernel, changed
    try:
        return run(*(arrays or (normal("f16", 520, 320), normal("f16", 320, 128))))
    finally:
        kernels._kernels[name] = kernel, before


def matches_of(pattern: str, program: tuple[str, str] = (PLAIN, "f16")) -> list[re.Match[str]]:
    """Where the kernel has something."""
    _, kernels = built(*program, WARPGROUPS)
    (name,) = kernels_with(kernels, COPY, NARROW)
    matches = list(re.finditer(pattern, kernels.texts[name]))
    assert matches
    return matches


@pytest.mark.rotate(4)
@pytest.mark.parametrize("instruction", ORDER)
def test_what_orders_threads_is_needed(instruction: str) -> None:
    """With one of them left out."""
    for match in matches_of(re.escape(instruction)):
        with pytest.raises(ExecutionError, match=ORDER[instruction]):
            planted(match, f"//{match[0]}")


@pytest.mark.rotate(2)
@pytest.mark.parametrize("index", [0, 1], ids=["tile", "step"])
def test_threads_of_warps_are_together(index: int) -> None:
    """Before warpgroups go on to multiply; of some tiles, not all threads have elements."""
    program = BATCHED, "bf16"
    arrays = [normal("bf16", 3, *shape) for shape in ((127, 264), (129, 264), (127, 129))]
    match = matches_of(re.escape("bar.warp.sync"), program)[index]
    with pytest.raises(ExecutionError, match="threads of a warpgroup do not run"):
        planted(match, f"//{match[0]}", program, *arrays)


LOOK = r"mbarrier\.try_wait\.parity\.shared\.b64 \t?(%p\d+), (\[%rd\d+\]), (%r\d+);"


@pytest.mark.parametrize(
    ("index", "message"),
    [(0, f"{EARLY}|{READ}"), (1, f"{READ}|{EARLY}|{OFTEN}")],
    ids=["full", "empty"],
)
def test_waits_are_needed(index: int, message: str) -> None:
    """A wait that is taken for granted, one that is not repeated, and those for other phases."""
    waits = matches_of(LOOK)
    assert len(waits) == 2
    wait = waits[index]
    with pytest.raises(ExecutionError, match=message):
        planted(wait, f"setp.eq.b32 {wait[1]}, 0, 0;")
    (again,) = [m for m in matches_of(r"@%p\d+ bra \t?\$L\w+;") if 0 < m.start() - wait.end() < 60]
    with pytest.raises(ExecutionError, match=message):
        planted(again, "")
    for parity in ("0", "1"):
        with pytest.raises(ExecutionError, match=f"{message}|{NEVER}"):
            planted(wait, wait[0].replace(wait[3], parity))
    opposite = f"xor.b32 {wait[3]}, {wait[3]}, 1; {wait[0]} xor.b32 {wait[3]}, {wait[3]}, 1;"
    with pytest.raises(ExecutionError, match=f"{message}|{NEVER}"):
        planted(wait, opposite)


@pytest.mark.parametrize(
    ("count", "message"), [(4, f"{READ}|{OFTEN}|{NEVER}"), (9, NEVER), (16, NEVER)]
)
def test_all_warps_have_read_a_step(count: int, message: str) -> None:
    (old,) = matches_of(r"mov\.b32 \t?%r\d+, 8;")
    with pytest.raises(ExecutionError, match=message):
        planted(old, old[0].replace("8;", f"{count};"))


OPS = {
    nvvm.BarrierOp: "without a barrier between",
    gpu.BarrierOp: "that another thread made",
    nvvm.MBarrierInitOp: "there is no barrier at",
    nvvm.MBarrierArriveExpectTxOp: NEVER,
    nvvm.MBarrierArriveOp: NEVER,
    nvvm.CpAsyncBulkTensorGlobalToSharedClusterOp: NEVER,
    nvvm.WgmmaWaitGroupSyncOp: f"{EARLY}|{READ}",
    scf.WhileOp: f"{EARLY}|{READ}|{OFTEN}",
}
"""What orders threads in the IR, and how a kernel without it fails."""


@pytest.mark.rotate(3)
@pytest.mark.parametrize("kind", OPS)
def test_what_orders_threads_is_needed_in_the_ir(kind: Any) -> None:
    """With one of them left out, thread by thread."""
    x, w = normal("f16", 264, 320), normal("f16", 320, 128)
    with make_context():
        text = str(lowered(PLAIN, "f16", WARPGROUPS))
        count = 1
        index = 0
        while index < count:
            module = ir.Module.parse(text)
            (kernel,) = [
                f for f in walk_ops(module, gpu.GPUFuncOp)
                if walk_ops(f, nvvm.CpAsyncBulkTensorGlobalToSharedClusterOp)
                and "n = 128" in str(walk_ops(f, nvvm.WgmmaMmaAsyncOp)[0].attributes["shape"])
            ]  # fmt: skip
            ops = walk_ops(kernel, kind)
            count = len(ops)
            ops[index].operation.erase()
            with pytest.raises(ExecutionError, match=OPS[kind]):
                relax_mlir.interpret(module)["main"](x, w)
            index += 1
