/* Loads a compiled module and calls its function @main on rows of numbers:
 *
 *     call_module ./model.so 3
 *
 * The runtime, which the module contains, checks the arguments; errors are its messages.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include "relax_runtime.h"

enum { COLUMNS = 4, MOST_ROWS = 1000 };

/* The functions of a module that this program calls. */
typedef struct {
  RxContext* (*create)(void);
  int32_t (*call)(RxCall*);
  const char* (*last_error)(RxContext*);
  void (*destroy)(RxContext*);
  RxEntry entry;
} Module;

/* Nonzero if the file is no module for this machine. */
static int load(const char* path, Module* module) {
  void* file = dlopen(path, RTLD_NOW);
  if (!file) return 1;
  *(void**)&module->create = dlsym(file, "rx_create");
  *(void**)&module->call = dlsym(file, "rx_call");
  *(void**)&module->last_error = dlsym(file, "rx_last_error");
  *(void**)&module->destroy = dlsym(file, "rx_destroy");
  *(void**)&module->entry = dlsym(file, "rx_fn_main");
  return !module->create || !module->call || !module->last_error || !module->destroy ||
         !module->entry;
}

int main(int count, char** arguments) {
  static float x[MOST_ROWS][COLUMNS], y[MOST_ROWS][COLUMNS];
  Module module;
  int rows = count == 3 ? atoi(arguments[2]) : 0;
  if (rows < 1 || rows > MOST_ROWS) {
    printf("usage: call_module ./model.so ROWS, of 1 to %d\n", MOST_ROWS);
    return 2;
  }
  if (load(arguments[1], &module)) {
    printf("cannot load '%s': %s\n", arguments[1], dlerror());
    return 1;
  }
  for (int i = 0; i < rows * COLUMNS; i++) x[0][i] = (float)(i % 7);
  int64_t dims[2] = {rows, COLUMNS};
  DLTensor argument = {x, {1, 0}, 2, {RX_FLOAT, 32, 1}, dims, NULL, 0};
  DLTensor result = {y, {1, 0}, 2, {RX_FLOAT, 32, 1}, dims, NULL, 0};
  RxContext* context = module.create();
  RxCall call = {.context = context, .entry = module.entry};
  call.args = &argument, call.num_args = 1;
  call.results = &result, call.num_results = 1;
  int failed = !context || module.call(&call) != RX_OK;
  if (failed) printf("%s\n", module.last_error(context));
  for (int i = 0; !failed && i < rows; i++)
    printf("%.6f %.6f %.6f %.6f\n", y[i][0], y[i][1], y[i][2], y[i][3]);
  module.destroy(context);
  return failed;
}
