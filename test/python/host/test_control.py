"""Structured control flow in host code, on kernels that are written by hand."""

import numpy as np
import pytest
from host_module import KERNEL, allocate, build, call

import relax_mlir
from relax_mlir.executable import Executable

N, K, OPEN = (
    f"tensor<?xf32{dims}>" for dims in (', #graph.shape<["n"]>', ', #graph.shape<["k"]>', "")
)

KERNELS = f"""
func.func private @double(%x: memref<?xf32>, %y: memref<?xf32>) {KERNEL} {{
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %n = memref.dim %x, %zero : memref<?xf32>
  scf.for %i = %zero to %n step %one {{
    %0 = memref.load %x[%i] : memref<?xf32>
    %1 = arith.addf %0, %0 : f32
    memref.store %1, %y[%i] : memref<?xf32>
  }}
  return
}}
func.func private @add_symbol(%y: memref<?xf32>, %symbol: index) {KERNEL} {{
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %n = memref.dim %y, %zero : memref<?xf32>
  %0 = arith.index_cast %symbol : index to i64
  %1 = arith.sitofp %0 : i64 to f32
  scf.for %i = %zero to %n step %one {{
    %2 = memref.load %y[%i] : memref<?xf32>
    %3 = arith.addf %2, %1 : f32
    memref.store %3, %y[%i] : memref<?xf32>
  }}
  return
}}"""


def storage(size: str) -> str:
    """The text of a storage of that many bytes."""
    return f'"graph.alloc_storage"() {{size = #graph.shape<["{size}"]>}} : () -> !graph.storage'


def double(source: str, target: str, type_: str = N) -> str:
    """The text of a call that doubles a tensor."""
    return call("double", [source, target], [type_, type_])


CAST = f'"graph.match_cast"(%y) : ({OPEN}) -> {K}'
BRANCHES = f"""
func.func @branches(%x: {N}, %y: {OPEN}) -> {OPEN} {{
  %zero = arith.constant 0 : index
  %four = arith.constant 4 : index
  %n = tensor.dim %x, %zero : {N}
  %is_short = arith.cmpi slt, %n, %four : index
  %r = scf.if %is_short -> {OPEN} {{
    %0 = {CAST}
    %s = {storage("4*k")}
    %1 = {allocate(K, "%s")}
    {double("%0", "%1", K)}
    {call("add_symbol", ["%1"], [K], '"k"', updates=True)}
    %2 = "graph.match_cast"(%1) : ({K}) -> {OPEN}
    scf.yield %2 : {OPEN}
  }} else {{
    %2 = "graph.match_cast"(%x) : ({N}) -> {OPEN}
    scf.yield %2 : {OPEN}
  }}
  return %r : {OPEN}
}}"""
ROUNDS = f"""
func.func @rounds(%x: {N}, %counter: {OPEN}) -> {N} {{
  %zero = arith.constant 0 : index
  %three = arith.constant 3 : index
  %rounds = tensor.dim %counter, %zero : {OPEN}
  %s = {storage("8*n")}
  %a = {allocate(N, "%s")}
  %b = {allocate(N, "%s", '"4*n"')}
  {double("%x", "%a")}
  %r:2 = scf.for %i = %zero to %rounds step %three iter_args(%now = %a, %next = %b) -> ({N}, {N}) {{
    %t = {storage("64*n + 64")}
    %u = {storage("4*n")}
    %0 = {allocate(N, "%t")}
    %1 = {allocate(N, "%u")}
    {double("%now", "%0")}
    {double("%0", "%1")}
    {double("%1", "%next")}
    scf.yield %next, %now : {N}, {N}
  }}
  return %r#0 : {N}
}}
func.func @until(%x: {OPEN}, %y: {OPEN}) -> {OPEN} {{
  %zero = arith.constant 0 : index
  %four = arith.constant 4 : index
  %r:2 = scf.while (%now = %x, %next = %y) : ({OPEN}, {OPEN}) -> ({OPEN}, {OPEN}) {{
    %n = tensor.dim %now, %zero : {OPEN}
    %c = arith.cmpi slt, %n, %four : index
    scf.condition(%c) %now, %next : {OPEN}, {OPEN}
  }} do {{
  ^body(%now: {OPEN}, %next: {OPEN}):
    %s = {storage("64")}
    %0 = {allocate("tensor<16xf32>", "%s")}
    scf.yield %next, %now : {OPEN}, {OPEN}
  }}
  return %r#0 : {OPEN}
}}
func.func @cases(%x: {N}, %which: {OPEN}) -> {N} {{
  %zero = arith.constant 0 : index
  %n = tensor.dim %which, %zero : {OPEN}
  %s = {storage("4*n")}
  %a = {allocate(N, "%s")}
  %r = scf.index_switch %n -> {N}
  case 0 {{
    scf.yield %x : {N}
  }}
  case 5 {{
    {double("%x", "%a")}
    {double("%a", "%a")}
    scf.yield %a : {N}
  }}
  default {{
    {double("%x", "%a")}
    scf.yield %a : {N}
  }}
  return %r : {N}
}}"""


@pytest.fixture(scope="module")
def exe(tmp_path_factory: pytest.TempPathFactory) -> Executable:
    return build(KERNELS + BRANCHES + ROUNDS, tmp_path_factory.mktemp("control"))


def numbers(n: int) -> np.ndarray:
    return np.random.default_rng(n).standard_normal(n).astype(np.float32)


@pytest.mark.parametrize("n", [0, 3, 4, 17])
def test_a_branch_binds_symbols_and_takes_memory(exe: Executable, n: int) -> None:
    x = numbers(n)
    for k in (0, 1, 31):
        y = numbers(k)
        before = exe.counters()["kernels"]
        np.testing.assert_array_equal(exe["branches"](x, y), x if n >= 4 else 2 * y + np.float32(k))
        assert exe.counters()["kernels"] - before == (0 if n >= 4 else 2)


def test_loops_hand_tensors_on_and_give_memory_back(exe: Executable) -> None:
    for n in (0, 1, 13):
        x = numbers(n)
        for rounds in (0, 1, 3, 4, 30):
            counter = np.zeros(rounds, np.float32)
            want = x * np.float32(2 * 8 ** -(-rounds // 3))
            np.testing.assert_array_equal(exe["rounds"](x, counter), want)
    call = exe["rounds"].bind(x, counter, results=[np.empty_like(x)])
    call.run()
    steady = exe.counters()
    call.run()
    assert exe.counters()["allocations"] == steady["allocations"]
    assert exe.counters()["arena_bytes"] == steady["arena_bytes"]
    assert exe.counters()["kernels"] - steady["kernels"] == 1 + 3 * 10


@pytest.mark.parametrize(("n", "k"), [(4, 0), (3, 4), (0, 9)])
def test_a_loop_goes_on_while_a_condition_holds(exe: Executable, n: int, k: int) -> None:
    x, y = numbers(n), numbers(k)
    np.testing.assert_array_equal(exe["until"](x, y), x if n >= 4 else y)


@pytest.mark.parametrize(("which", "factor"), [(0, 1), (5, 4), (1, 2), (6, 2)])
def test_the_case_of_an_index(exe: Executable, which: int, factor: int) -> None:
    x = numbers(7)
    np.testing.assert_array_equal(exe["cases"](x, np.zeros(which, np.float32)), x * factor)


def test_sites_are_numbered_through_regions(exe: Executable) -> None:
    main = exe.metadata["functions"]["rounds"]
    assert [site["kernel"] for site in main["sites"]] == ["double"] * 4
    assert main["arena_bytes"] == ["8*n", "64*n + 64", "4*n"]
    exe.record(100)
    exe["rounds"](numbers(2), np.zeros(5, np.float32))
    assert exe.spans()["site"].tolist() == [0, 1, 2, 3, 1, 2, 3]
    exe.record(0)


@pytest.mark.parametrize(("end", "step"), [(127, 5), (127, 101), (126, 127), (5, 1), (0, 3)])
def test_the_last_step_of_a_loop_may_be_beyond_its_type(end, step):
    exe = relax_mlir.compile("""
    func.func @main(%end: i8, %step: i8) -> i64 {
      %zero = arith.constant 0 : i8
      %none = arith.constant 0 : i64
      %one = arith.constant 1 : i64
      %r = scf.for %i = %zero to %end step %step iter_args(%c = %none) -> (i64) : i8 {
        %d = arith.addi %c, %one : i64
        scf.yield %d : i64
      }
      return %r : i64
    }""")
    assert exe["main"](end, step) == len(range(0, end, step))
