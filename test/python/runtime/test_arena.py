"""The arena: memory of temporaries that is taken anywhere, stays put, and is kept for later."""

import pytest
from c_module import CFunction, build_module, shape

from relax_mlir.errors import OutOfMemoryError
from relax_mlir.executable import Executable, load

# Takes blocks in rounds beside one that outlives them, and looks whether any of them moves or
# overlaps another one. Sizes grow from round to round.
ROUNDS = """
  char *outer = rx_arena(context, n);
  if (!outer) return 1;
  memset(outer, 1, n);
  for (int64_t round = 0; round < m; round++) {
    void *mark = rx_arena_mark(context);
    int64_t size = n * (round + 1);
    char *first = rx_arena(context, size), *second = rx_arena(context, 2 * size);
    if (!first || !second) return 1;
    if ((uintptr_t)first % 64 || (uintptr_t)second % 64) return rx_fail(context, "not aligned");
    memset(first, 2, size);
    memset(second, 3, 2 * size);
    for (int64_t i = 0; i < size; i++)
      if (first[i] != 2) return rx_fail(context, "the second block overlaps the first");
    rx_arena_release(context, mark);
  }
  char *last = rx_arena(context, n);
  if (!last) return 1;
  memset(last, 4, n);
  for (int64_t i = 0; i < n; i++)
    if (outer[i] != 1) return rx_fail(context, "the outer block was written over");
"""

# One block a round: the chunk that is left empty by a round is too small for the next one.
SINGLE = """
  char *outer = rx_arena(context, n);
  if (!outer) return 1;
  memset(outer, 1, n);
  for (int64_t round = 0; round < m; round++) {
    void *mark = rx_arena_mark(context);
    char *block = rx_arena(context, 1000 * (round + 1));
    if (!block) return 1;
    memset(block, 2, 1000 * (round + 1));
    rx_arena_release(context, mark);
    char *next = rx_arena(context, 1);
    if (!next) return 1;
    *next = 3;
    for (int64_t i = 0; i < n; i++)
      if (outer[i] != 1) return rx_fail(context, "the outer block was written over");
    rx_arena_release(context, mark);
  }
"""

# One that fails while it holds memory.
FAILS = """
  if (!rx_arena(context, n)) return 1;
  void *mark = rx_arena_mark(context);
  if (!rx_arena(context, m)) return 1;
  rx_arena_release(context, mark);
"""

# Blocks of no bytes, the first of all: a chunk that only they are in is not freed.
EMPTY = """
  char *first = rx_arena(context, 0), *second = rx_arena(context, 0);
  if (!first || !second) return 1;
  if (first == second) return rx_fail(context, "two blocks are at one address");
  void *mark = rx_arena_mark(context);
  if (!mark) return rx_fail(context, "nothing is in use");
  if (!rx_arena(context, n)) return 1;
  rx_arena_release(context, mark);
  if (rx_arena_mark(context) != mark) return rx_fail(context, "the blocks are of freed memory");
"""


@pytest.fixture
def exe(tmp_path) -> Executable:
    functions = [
        CFunction(name, [shape("sizes", ["n", "m"])], [], body=body)
        for name, body in (
            ("rounds", ROUNDS),
            ("single", SINGLE),
            ("fails", FAILS),
            ("empty", EMPTY),
        )
    ]
    return load(build_module(functions, tmp_path))


def test_blocks_stay_and_a_steady_call_allocates_nothing(exe: Executable) -> None:
    for n, m in ((1, 1), (0, 3), (63, 2), (64, 5), (65, 7), (1000, 0), (100_000, 9)):
        for _ in range(2):
            exe["rounds"]((n, m))
        steady = exe.counters()
        for _ in range(3):
            exe["rounds"]((n, m))
        assert exe.counters()["allocations"] == steady["allocations"]
        assert exe.counters()["arena_bytes"] == steady["arena_bytes"]
    # What the last call needs at a time is held, and no more.
    assert exe.counters()["arena_bytes"] == 100_032 + 900_032 + 1_800_000


def test_memory_that_there_is_not(exe: Executable) -> None:
    exe["rounds"]((1000, 3))
    for size in (2**63 - 1, 2**62, 2**47 + 1):
        with pytest.raises(OutOfMemoryError, match=f"^out of memory: the function needs {size} "):
            exe["fails"]((1000, size))
    exe["fails"]((1000, 1000))
    held = exe.counters()["arena_bytes"]
    for _ in range(3):
        with pytest.raises(OutOfMemoryError):
            exe["fails"]((10, 2**62))
        exe["rounds"]((10, 3))
    assert exe.counters()["arena_bytes"] <= held + 1000


def test_a_mark_outlives_the_empty_chunk_that_it_was_taken_at(exe: Executable) -> None:
    for n, m in ((64, 4), (1, 2), (5000, 9)):
        exe["single"]((n, m))


def test_blocks_of_no_bytes_are_of_memory_that_stays(exe: Executable) -> None:
    for n in (1, 64, 100_000):
        for _ in range(2):
            exe["empty"]((n, 0))
