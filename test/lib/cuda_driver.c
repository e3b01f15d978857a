/* A stand-in for libcuda.so.1: tests of the runtime for NVIDIA's devices need no driver.
 *
 * Memory is apart from the host's, which crashes on its addresses. What a stream is to do is done
 * as late as is permitted: when it, or an event on it, is waited for. A launch is handed to a
 * function of the host program, which interprets PTX. Failures are injected by the name of a
 * function.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define API __attribute__((visibility("default")))

typedef uint64_t Address;

/* Runs a kernel of a PTX text; nonzero if it fails. */
typedef int (*Interpreter)(const char* ptx, const char* name, const unsigned* dims, void** arguments);

typedef struct Memory {
  struct Memory* next;
  char *address, *data;
  size_t bytes;
} Memory;

typedef struct {
  char* ptx;
} Module;

typedef struct {
  Module* module;
  char name[256];
  unsigned most_shared;
} Function;

enum { MOST_ARGUMENTS = 64 };

typedef struct Operation {
  struct Operation* next;
  void (*host)(void*); /* NULL: none is to be called, with `to` */
  void *to, *event;
  const void* from;
  size_t bytes;
  Function* function;
  unsigned dims[7];
  int is_set, byte; /* bytes are set to one value */
  uint64_t values[MOST_ARGUMENTS];
} Operation;

static Interpreter interpret;
static Memory* memories;
static Operation *first, **last = &first;
static _Thread_local int current;
static int contexts, modules, streams, events, pinned, devices = 1, sticky, architecture = 90;
static int graphs, executables;
static int64_t launches, graph_launches, changes;
static char failing[64];
static int failing_in, failing_status;

/* ---- For tests */

API void standin_run_by(Interpreter function) { interpret = function; }
API void standin_architecture(int count, int arch) {
  devices = count;
  architecture = arch;
}
/* Has a function fail at its call number `after`, 1 being the next one. */
API void standin_fail(const char* name, int after, int status) {
  snprintf(failing, sizeof failing, "%s", name);
  failing_in = after;
  failing_status = status;
}
API void standin_reset(void) {
  sticky = failing_in = 0;
  devices = 1;
  architecture = 90;
}
API int64_t standin_launches(void) { return launches; }
API int64_t standin_graph_launches(void) { return graph_launches; }
API int64_t standin_changes(void) { return changes; } /* of nodes of graphs */
/* Everything that was made and not freed. */
API int standin_live(void) {
  int count = contexts + modules + streams + events + pinned + graphs + executables;
  for (Memory* memory = memories; memory; memory = memory->next) count++;
  return count;
}
API int standin_memory(int index, uint64_t* words) {
  Memory* memory = memories;
  while (memory && index--) memory = memory->next;
  if (!memory) return 0;
  words[0] = (uint64_t)memory->address;
  words[1] = (uint64_t)memory->data;
  words[2] = memory->bytes;
  return 1;
}

/* Where bytes of the device are; NULL if it has no such memory. */
static char* data_of(const void* address, size_t bytes);
API void* standin_data(const void* address, size_t bytes) { return data_of(address, bytes); }

/* One thread at a time is in the driver; the interpreter asks for memory while it is called. */
static pthread_mutex_t lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static int take_lock(void) { return pthread_mutex_lock(&lock); }
static void give_lock(int* taken) {
  (void)taken;
  pthread_mutex_unlock(&lock);
}
#define LOCKED __attribute__((cleanup(give_lock), unused)) int taken = take_lock()

static int enter(const char* name) {
  if (failing_in && !strcmp(name, failing) && !--failing_in) return failing_status;
  return sticky;
}
#define ENTER(condition)                         \
  LOCKED;                                        \
  do {                                           \
    int status = enter(__func__);                \
    if (status) return status;                   \
    if (!(condition)) return 1; /* an invalid value */ \
  } while (0)
#define ENTER_CONTEXT(condition) \
  if (!current) return 201;      \
  ENTER(condition)

/* ---- The driver */

API int cuInit(unsigned flags) {
  ENTER(!flags);
  return devices ? 0 : 100;
}
API int cuDeviceGetCount(int* count) {
  ENTER(1);
  *count = devices;
  return 0;
}
API int cuDeviceGet(int* device, int index) {
  ENTER(index < devices);
  *device = index;
  return 0;
}
API int cuDeviceGetName(char* name, int bytes, int device) {
  ENTER(!device);
  snprintf(name, (size_t)bytes, "a stand-in");
  return 0;
}
API int cuDeviceGetAttribute(int* value, int attribute, int device) {
  ENTER(!device && (attribute == 75 || attribute == 76));
  *value = attribute == 75 ? architecture / 10 : architecture % 10;
  return 0;
}
API int cuDevicePrimaryCtxRetain(void** context, int device) {
  ENTER(!device);
  *context = &contexts;
  contexts++;
  return 0;
}
API int cuDevicePrimaryCtxRelease_v2(int device) {
  LOCKED;
  if (device || !contexts) abort();
  return contexts--, 0;
}
API int cuCtxPushCurrent_v2(void* context) {
  if (context != &contexts || !contexts) return 201;
  int status = enter(__func__);
  if (!status || status == sticky) current++;
  return status == sticky ? 0 : status;
}
API int cuCtxPopCurrent_v2(void** context) {
  if (!current) return 201;
  *context = &contexts;
  return current--, 0;
}
API int cuModuleLoadDataEx(void** made, const void* image, unsigned count, int* options,
                           void** values) {
  Module* module = calloc(1, sizeof *module);
  *made = NULL;
  /* What tests have instead of ptxas writes PTX after the first bytes of an ELF file. */
  if ((uintptr_t)image % 16) abort();
  if (!memcmp(image, "\177ELF", 4)) image = (const char*)image + 4;
  for (unsigned i = 0; i < count; i++)
    if (options[i] == 5 && failing_in == 1) snprintf(values[i], 64, "ptxas fatal: line 7");
  ENTER_CONTEXT(strstr(image, ".version"));
  module->ptx = strdup(image);
  modules++;
  *made = module;
  return 0;
}
API int cuModuleUnload(void* module) {
  LOCKED;
  free(((Module*)module)->ptx);
  free(module);
  return modules--, 0;
}
API int cuModuleGetFunction(void** made, void* module, const char* name) {
  char entry[300];
  snprintf(entry, sizeof entry, ".entry %s(", name);
  ENTER_CONTEXT(1);
  if (!strstr(((Module*)module)->ptx, entry)) return 500;
  Function* function = calloc(1, sizeof *function); /* as long as the process */
  function->module = module;
  snprintf(function->name, sizeof function->name, "%s", name);
  *made = function;
  return 0;
}
API int cuFuncSetAttribute(void* function, int attribute, int value) {
  ENTER_CONTEXT(attribute == 8 && value > 0);
  if (value > 227 << 10) return 1;
  ((Function*)function)->most_shared = (unsigned)value;
  return 0;
}
API int cuStreamCreate(void** stream, unsigned flags) {
  ENTER_CONTEXT(flags == 1);
  *stream = &streams;
  return streams++, 0;
}
API int cuEventCreate(void** event, unsigned flags) {
  ENTER_CONTEXT(flags == 2);
  *event = malloc(1);
  return events++, 0;
}
API int cuEventDestroy_v2(void* event) {
  LOCKED;
  free(event);
  return events--, 0;
}

static char* data_of(const void* address, size_t bytes) {
  for (Memory* memory = memories; memory; memory = memory->next) {
    uint64_t offset = (uint64_t)address - (uint64_t)memory->address;
    if (offset <= memory->bytes && bytes <= memory->bytes - offset) return memory->data + offset;
  }
  return NULL;
}

static int run(const Operation* operation) {
  if (operation->function) {
    void* arguments[MOST_ARGUMENTS];
    for (int i = 0; i < MOST_ARGUMENTS; i++) arguments[i] = (void*)&operation->values[i];
    launches++;
    const Function* function = operation->function;
    return interpret && !interpret(function->module->ptx, function->name, operation->dims, arguments)
               ? 0
               : 700;
  }
  if (operation->event) return 0;
  if (operation->host) return operation->host(operation->to), 0;
  if (operation->is_set) 
    return memset(data_of(operation->to, operation->bytes), operation->byte, operation->bytes), 0;
  char *to = data_of(operation->to, operation->bytes), *host = (char*)operation->to;
  const char *from = data_of(operation->from, operation->bytes), *own = operation->from;
  memmove(to ? to : host, from ? from : own, operation->bytes);
  return 0;
}

/* Does what was to be done up to an event, or all of it. */
static int wait_for(void* event) {
  Operation* end = NULL;
  for (Operation* each = first; event && each; each = each->next)
    if (each->event == event) end = each;
  if (event && !end) return sticky;
  while (first) {
    Operation* each = first;
    first = each->next;
    if (!first) last = &first;
    if (!sticky) sticky = run(each);
    int is_last = each == end;
    free(each);
    if (is_last) break;
  }
  return sticky;
}

static Operation* add(Operation operation) {
  Operation* added = malloc(sizeof *added);
  *added = operation;
  *last = added;
  last = &added->next;
  return added;
}

API int cuStreamSynchronize(void* stream) {
  ENTER_CONTEXT(stream == &streams);
  return wait_for(NULL);
}
API int cuStreamDestroy_v2(void* stream) {
  LOCKED;
  if (stream != &streams) abort();
  wait_for(NULL);
  return streams--, 0;
}
API int cuEventRecord(void* event, void* stream) {
  ENTER_CONTEXT(stream == &streams);
  add((Operation){.event = event});
  return 0;
}
API int cuEventSynchronize(void* event) {
  ENTER_CONTEXT(1);
  return wait_for(event);
}
API int cuMemAlloc_v2(Address* made, size_t bytes) {
  ENTER_CONTEXT(bytes);
  Memory* memory = malloc(sizeof *memory);
  char* data = malloc(bytes);
  void* address =
      mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (!data || address == MAP_FAILED) return 2;
  memset(data, 0x55, bytes);
  *memory = (Memory){memories, address, data, bytes};
  memories = memory;
  *made = (Address)address;
  return 0;
}
API int cuMemFree_v2(Address address) {
  LOCKED;
  wait_for(NULL);
  Memory** link = &memories;
  while (*link && (*link)->address != (char*)address) link = &(*link)->next;
  Memory* memory = *link;
  if (!memory) abort();
  *link = memory->next;
  munmap(memory->address, memory->bytes);
  free(memory->data);
  free(memory);
  return 0;
}
API int cuMemHostAlloc(void** made, size_t bytes, unsigned flags) {
  ENTER_CONTEXT(!flags);
  *made = malloc(bytes);
  return pinned++, 0;
}
API int cuMemFreeHost(void* data) {
  LOCKED;
  free(data);
  return pinned--, 0;
}
API int cuMemcpyHtoDAsync_v2(Address to, const void* from, size_t bytes, void* stream) {
  ENTER_CONTEXT(stream == &streams && data_of((void*)to, bytes));
  add((Operation){.to = (void*)to, .from = from, .bytes = bytes});
  return 0;
}
API int cuMemcpyDtoHAsync_v2(void* to, Address from, size_t bytes, void* stream) {
  ENTER_CONTEXT(stream == &streams && data_of((void*)from, bytes));
  add((Operation){.to = to, .from = (void*)from, .bytes = bytes});
  return 0;
}
API int cuMemcpyDtoDAsync_v2(Address to, Address from, size_t bytes, void* stream) {
  ENTER_CONTEXT(stream == &streams && data_of((void*)to, bytes) && data_of((void*)from, bytes));
  add((Operation){.to = (void*)to, .from = (void*)from, .bytes = bytes});
  return 0;
}
API int cuMemsetD8Async(Address to, unsigned char byte, size_t bytes, void* stream) {
  ENTER_CONTEXT(stream == &streams && data_of((void*)to, bytes));
  add((Operation){.to = (void*)to, .bytes = bytes, .is_set = 1, .byte = byte});
  return 0;
}
API int cuLaunchHostFunc(void* stream, void (*function)(void*), void* data) {
  ENTER_CONTEXT(stream == &streams);
  add((Operation){.to = data, .host = function});
  return 0;
}
/* As many arguments as there are parameters, of 8 bytes or less. */
static Operation launch_of(Function* function, const unsigned* grid, const unsigned* block,
                           unsigned shared, void** arguments) {
  Operation made = {.function = function,
                    .dims = {grid[0], grid[1], grid[2], block[0], block[1], block[2], shared}};
  const char* at = strstr(function->module->ptx, ".entry");
  int count = 0;
  for (; *at && *at != ')'; at++) count += !strncmp(at, ".param", 6);
  for (int i = 0; i < count && i < MOST_ARGUMENTS; i++) memcpy(&made.values[i], arguments[i], 8);
  return made;
}
static int may_share(const Function* function, unsigned bytes) {
  return bytes <= 48 << 10 || bytes <= function->most_shared;
}
API int cuLaunchKernel(void* function, unsigned x, unsigned y, unsigned z, unsigned a, unsigned b,
                       unsigned c, unsigned shared, void* stream, void** arguments, void** extra) {
  ENTER_CONTEXT(stream == &streams && !extra && may_share(function, shared) && x && y <= 65535 && z <= 65535);
  add(launch_of(function, (unsigned[]){x, y, z}, (unsigned[]){a, b, c}, shared, arguments));
  return 0;
}

/* ---- Graphs, which are chains of launches */

typedef struct GraphNode {
  struct GraphNode* next;
  Operation launch;
} GraphNode;
typedef struct {
  GraphNode *first, *last;
  int is_executable;
} Graph;
typedef struct {
  void* function;
  unsigned grid[3], block[3], shared;
  void **arguments, **extra;
} NodeParams;

static int is_launch(const NodeParams* node) {
  return node->function && !node->extra && may_share(node->function, node->shared) && node->grid[0] && node->grid[1] <= 65535 &&
         node->grid[2] <= 65535;
}
API int cuGraphCreate(void** made, unsigned flags) {
  ENTER_CONTEXT(!flags);
  *made = calloc(1, sizeof(Graph));
  return graphs++, 0;
}
static void free_graph(Graph* graph) {
  for (GraphNode *node = graph->first, *next; node; node = next) {
    next = node->next;
    free(node);
  }
  free(graph);
}
API int cuGraphDestroy(void* graph) {
  LOCKED;
  if (((Graph*)graph)->is_executable) abort();
  free_graph(graph);
  return graphs--, 0;
}
API int cuGraphExecDestroy(void* graph) {
  LOCKED;
  if (!((Graph*)graph)->is_executable) abort();
  free_graph(graph);
  return executables--, 0;
}
API int cuGraphAddKernelNode(void** made, void* to, void* const* after, size_t num_after,
                             const NodeParams* params) {
  Graph* graph = to;
  int is_chained = graph->last ? num_after == 1 && *after == graph->last : !num_after;
  ENTER_CONTEXT(!graph->is_executable && is_chained && is_launch(params));
  GraphNode* node = calloc(1, sizeof *node);
  node->launch =
      launch_of(params->function, params->grid, params->block, params->shared, params->arguments);
  if (graph->last)
    graph->last->next = node;
  else
    graph->first = node;
  graph->last = *made = node;
  return 0;
}
API int cuGraphInstantiate_v2(void** made, void* from, void** node, char* log, size_t bytes) {
  ENTER_CONTEXT(!node && !log && !bytes);
  Graph *graph = calloc(1, sizeof *graph), *source = from;
  graph->is_executable = 1;
  GraphNode** link = &graph->first;
  for (GraphNode* each = source->first; each; each = each->next) {
    GraphNode* copy = *link = malloc(sizeof *copy);
    *copy = (GraphNode){.launch = each->launch};
    copy->launch.to = each; /* the node that it is a copy of */
    link = &copy->next;
  }
  *made = graph;
  return executables++, 0;
}
API int cuGraphExecKernelNodeSetParams(void* executable, void* node, const NodeParams* params) {
  Graph* graph = executable;
  ENTER_CONTEXT(graph->is_executable && is_launch(params));
  GraphNode* own = graph->first;
  while (own && own->launch.to != node) own = own->next;
  if (!own || own->launch.function != params->function) return 1;
  own->launch =
      launch_of(params->function, params->grid, params->block, params->shared, params->arguments);
  own->launch.to = node;
  changes++;
  return 0;
}
API int cuGraphLaunch(void* executable, void* stream) {
  Graph* graph = executable;
  ENTER_CONTEXT(graph->is_executable && stream == &streams);
  for (GraphNode* node = graph->first; node; node = node->next) add(node->launch);
  graph_launches++;
  return 0;
}
API int cuGetErrorString(int status, const char** text) {
  *text = status == 2     ? "out of memory"
          : status == 700 ? "an illegal memory access was encountered"
          : status == 218 ? "a PTX JIT compilation failed"
                          : NULL;
  return *text ? 0 : 1;
}
