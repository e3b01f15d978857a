"""Host programs in C: the example of the header, and modules that are loaded and unloaded."""

import platform
import re
import subprocess
from pathlib import Path

import pytest
from c_module import CSRC, ZIG, CFunction, Output, Tensor, build_module

ADD_ONE = """
  float *out = rx_result(context, results, 0, RX_FLOAT, 32, 2, (int64_t[]){n, m});
  if (!out) return 1;
  for (int64_t i = 0; i < n * m; i++) out[i] = ((const float *)args[0].data)[i] + 1;
  rx_parallel_for(nothing, NULL, 100, 1);
"""
PRELUDE = """
static void nothing(void *data, int64_t begin, int64_t end) { (void)data, (void)begin, (void)end; }
"""
MATRIX = Tensor("x", "f32", ["n", "m"])
MAIN = CFunction("main", [MATRIX], [Output("f32", ["n", "m"])], body=ADD_ONE)


@pytest.fixture(scope="module")
def module(tmp_path_factory) -> Path:
    return build_module([MAIN], tmp_path_factory.mktemp("host"), PRELUDE)


def compile_c(source: str, *arguments: str) -> None:
    command = [*ZIG, "cc", "-target", f"{platform.machine()}-linux-gnu", f"-I{CSRC}"]
    # Without these zig would build its sanitizer's library first, which takes a minute.
    command += ["-O2", "-fno-sanitize=all", "-Wall", "-Wextra", "-Werror", *arguments]
    subprocess.run(command, input=source, text=True, check=True)


def run(source: str, module: Path, *arguments: Path) -> str:
    """What a program prints that is linked with the module."""
    program = module.with_name("program")
    rest = ("-x", "none", str(module), f"-Wl,-rpath,{module.parent}", "-o", str(program))
    compile_c(source, "-x", "c", "-", *rest)
    done = subprocess.run([program, *arguments], capture_output=True, text=True, timeout=60)
    assert (done.stderr, done.returncode) == ("", 0)
    return done.stdout


def test_the_example_of_the_header(module):
    header = (CSRC / "relax_runtime.h").read_text()
    example = re.search(r"A host program in C:\n \*\n((?: \*     .*\n)+)", header)[1]
    body = re.sub(r"^ \*", "", example, flags=re.MULTILINE)
    source = f"""
#include "relax_runtime.h"
#include <stdio.h>
#ifdef __cplusplus
extern "C"
#endif
RX_API int32_t rx_fn_main(RxContext *, const DLTensor *, int32_t, DLTensor *, int32_t);
int main(void) {{
{body}
  for (int i = 0; i < 6; i++) printf("%g ", (double)y[i]);
  return 0;
}}
"""
    assert run(source, module) == "1 1 1 1 1 1 "
    compile_c(source, "-x", "c++", "-", "-c", "-o", str(module.with_name("program.o")))


LOADER = r"""
#include <dirent.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "relax_runtime.h"

static int threads(void) {
  int count = -2;
  DIR *tasks = opendir("/proc/self/task");
  while (readdir(tasks)) count++;
  closedir(tasks);
  return count;
}

static void call(void *module) {
  RxContext *(*create)(void) = (RxContext *(*)(void))dlsym(module, "rx_create");
  int32_t (*call_on)(RxCall *, int32_t, RxFresh *const *) =
      (int32_t (*)(RxCall *, int32_t, RxFresh *const *))dlsym(module, "rx_call_on");
  void (*release)(void *) = (void (*)(void *))dlsym(module, "rx_free");
  void (*destroy)(RxContext *) = (void (*)(RxContext *))dlsym(module, "rx_destroy");
  float x[6] = {1, 2, 3, 4, 5, 6};
  int64_t dims[2] = {2, 3}, room[2];
  DLTensor arg = {x, {1, 0}, 2, {2, 32, 1}, dims, NULL, 0}, result = {0};
  result.shape = room;
  RxContext *context = create();
  RxCall made = {.context = context, .entry = (RxEntry)dlsym(module, "rx_fn_main"), .args = &arg,
                 .results = &result, .num_args = 1, .num_results = 1};
  if (call_on(&made, 4, NULL) || ((float *)result.data)[5] != 7) abort();
  release(result.data);
  destroy(context);
}

int main(int count, char **paths) {
  void *modules[8];
  for (int i = 1; i < count; i++) {
    modules[i] = dlopen(paths[i], RTLD_NOW | RTLD_LOCAL);
    call(modules[i]);
  }
  printf("%d ", threads());
  for (int i = 1; i + 1 < count; i++) {
    dlclose(modules[i]);
    call(modules[i + 1]);
  }
  printf("%d ", threads());
  call(modules[count - 1] = dlopen(paths[1], RTLD_NOW | RTLD_LOCAL));
  printf("%d", threads());
  return 0;
}
"""


def test_modules_that_come_and_go(module):
    copies = [module.with_name(f"copy{i}.so") for i in range(4)]
    for copy in copies:
        copy.write_bytes(module.read_bytes())
    assert run(LOADER, copies[0], *copies) == "4 4 4"
