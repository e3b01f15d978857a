"""The C sources under sanitizers, in a host program of C (`sanitized.c`)."""

import shutil
import subprocess
from pathlib import Path

import pytest
from c_module import CSRC, CFunction, Output, Tensor, c_source, shape

PRELUDE = """
#include <unistd.h>

static void twice(void *data, int64_t begin, int64_t end) {
  float *mine = rx_scratch_push((end - begin) * 4);
  float **both = data;
  for (int64_t i = begin; i < end; i++) mine[i - begin] = 2 * both[1][i];
  for (int64_t i = begin; i < end; i++) both[0][i] = mine[i - begin];
  rx_scratch_pop(mine);
}

static void lack(void *data, int64_t begin, int64_t end) {
  (void)begin;
  char *mine = rx_scratch_push(10000);
  mine[9999] = 1;
  char *none = rx_scratch_push(end > 50 ? (int64_t)1 << 60 : 1);
  rx_scratch_pop(none);
  rx_scratch_pop(mine);
  (void)data;
}
"""
SUM = """
  float *out = rx_result(context, results, 0, RX_FLOAT, 32, 1, &n);
  float *arena = out ? rx_arena(context, n * 4) : NULL;
  if (!arena) return 1;
  memcpy(arena, args[0].data, (size_t)n * 4);
  float *both[] = {out, arena};
  rx_span_begin(0);
  rx_parallel_for(twice, both, n, 7);
  rx_span_end();
"""
UPDATE = """
  *(int64_t *)args[0].data += 1;
  if (rx_result_alias(context, results, 0, &args[0])) return 1;
"""
LARGE = """
  if (!rx_result(context, results, 0, RX_INT, 8, 1, &n)) return 1;
  rx_parallel_for(lack, NULL, n, 1);
"""
FUNCTIONS = [
    CFunction(
        "shapes",
        [
            shape("s", ["n", "m", "n*m - k", None, "(n + 3*m) // (k + 1)"]),
            Tensor("x", "f32", ["min(n, m) * max(n - m, 0) % (n - k)"]),
        ],
        facts=["n*n + m*m < k*k*k", "n - m <= k*m", "n % m == 0", "n*m*k*n*m*k != 5"],
    ),
    CFunction("sum", [Tensor("x", "f32", ["n"])], [Output("f32", ["n"])], body=SUM),
    CFunction(
        "update", [Tensor("c", "i64", [1], inout=True)], [Output("i64", [1], 0)], body=UPDATE
    ),
    CFunction("large", [shape("s", ["n"])], [Output("i8", ["n"])], body=LARGE),
]


@pytest.mark.parametrize("sanitizers", ["address,undefined", "thread"])
def test_a_host_program(tmp_path, sanitizers):
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("there is no C compiler")
    # Older compilers have no __bf16, of which nothing here makes use.
    flags = f"-fsanitize={sanitizers} -fno-sanitize-recover=all -D__bf16=_Float16 -g -O1".split()
    driver = Path(__file__).with_name("sanitized.c")
    source = f'{c_source(FUNCTIONS, PRELUDE)}\n#include "{driver}"\n'
    (tmp_path / "module.c").write_text(source)
    files = [CSRC / "runtime.c", "module.c", "-o", "program", "-lpthread"]
    command = [compiler, *flags, "-std=gnu11", f"-I{CSRC}", "-Wno-tsan", *files]
    built = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    if "cannot find" in built.stderr:
        pytest.skip(f"the C compiler has no {sanitizers} sanitizer")
    assert built.returncode == 0, built.stderr
    # TSan ends a child that starts threads.
    arguments = [] if sanitizers == "thread" else ["fork"]
    done = subprocess.run(
        [tmp_path / "program", *arguments], capture_output=True, text=True, timeout=120
    )
    assert done.stderr == ""
    assert done.returncode == 0
