/* A stand-in for libcuda.so.1: tests of the runtime for NVIDIA's devices need no driver.
 *
 * Memory is apart from the host's, which crashes on its addresses. What a stream is to do is done
 * as late as is permitted: when it, or an event on it, is waited for. A launch is handed to a
 * function of the host program, which interprets PTX. Failures are injected by the name of a
 * function, of one device if ":" and its number follow.
 */
#define _GNU_SOURCE
#include "../../relax_mlir/runtime/csrc/device/collector.h"

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

enum { MOST_DEVICES = 4 };

typedef struct {
  int retained, sticky; /* a failure that stays */
} Context;

typedef struct Memory {
  struct Memory* next;
  Context* context;
  char *address, *data;
  size_t bytes;
} Memory;

typedef struct {
  Context* context;
  char* ptx;
} Module;

typedef struct {
  Module* module;
  char name[256];
  unsigned most_shared;
} Function;

enum { MOST_ARGUMENTS = 64, MOST_WORDS = 128, MAP_WORDS = 16, MOST_DIMS = 5 };

/* What a stream, or a node of a graph, is to do. */
typedef struct Operation {
  struct Operation* next;
  void (*host)(void*); /* NULL: none is to be called, with `values` */
  void *to, *event;
  const void* from;
  size_t bytes;
  Function* function;
  unsigned dims[8]; /* groups, threads, memory of a group, the device */
  int is_set, byte; /* bytes are set to one value */
  int offsets[MOST_ARGUMENTS]; /* of arguments in the values */
  uint64_t values[MOST_WORDS];
} Operation;

typedef struct Graph Graph;

typedef struct Stream {
  struct Stream* next;
  Context* context;
  Operation *first, **last;
  Graph* captured; /* what is queued becomes nodes of it */
  int is_running;
} Stream;

typedef struct {
  Stream* stream; /* that it was recorded on last */
} Event;

static Interpreter interpret;
static RxCollector* collector;
static Memory* memories;
static Context contexts[MOST_DEVICES];
static Stream* all_streams;
static _Thread_local Context* entered[16]; /* contexts that are current, the last one is in use */
static _Thread_local int depth;
static int modules, streams, events, pinned, devices = 1, architecture = 90;
static int graphs, executables, interprets; /* a launch, now */
static int64_t launches, graph_launches, changes;
static char failing[64];
static int failing_in, failing_status;

/* ---- For tests */

API void standin_run_by(Interpreter function, RxCollector* paused) {
  interpret = function;
  collector = paused;
}
API void standin_architecture(int count, int arch) {
  devices = count;
  architecture = arch;
}

static Context* current(void) { return depth ? entered[depth - 1] : NULL; }
static unsigned number_of(const Context* context) { return (unsigned)(context - contexts); }

/* Has a function fail at its call number `after`, 1 being the next one. */
API void standin_fail(const char* name, int after, int status) {
  snprintf(failing, sizeof failing, "%s", name);
  failing_in = after;
  failing_status = status;
}
API void standin_reset(void) {
  failing_in = 0;
  for (int i = 0; i < MOST_DEVICES; i++) contexts[i].sticky = 0;
  devices = 1;
  architecture = 90;
}
API int standin_interprets(void) { return interprets; }
API int64_t standin_launches(void) { return launches; }
API int64_t standin_graph_launches(void) { return graph_launches; }
API int64_t standin_changes(void) { return changes; } /* of nodes of graphs */
/* Everything that was made and not freed. */
API int standin_live(void) {
  int count = modules + streams + events + pinned + graphs + executables;
  for (int i = 0; i < MOST_DEVICES; i++) count += contexts[i].retained;
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
  words[3] = number_of(memory->context);
  return 1;
}

/* Where bytes of the current device are; NULL if it has no such memory. */
static char* data_of(const void* address, size_t bytes) {
  for (Memory* memory = memories; memory; memory = memory->next) {
    uint64_t offset = (uint64_t)address - (uint64_t)memory->address;
    if (memory->context == current() && offset <= memory->bytes && bytes <= memory->bytes - offset)
      return memory->data + offset;
  }
  return NULL;
}
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
  char own[80];
  snprintf(own, sizeof own, "%s:%u", name, current() ? number_of(current()) : 0);
  int is_meant = !strcmp(failing, name) || !strcmp(failing, own);
  if (failing_in && is_meant && !--failing_in) return failing_status;
  return current() ? current()->sticky : 0;
}
#define ENTER(condition)                         \
  LOCKED;                                        \
  do {                                           \
    int status = enter(__func__);                \
    if (status) return status;                   \
    if (!(condition)) return 1; /* an invalid value */ \
  } while (0)
#define ENTER_CONTEXT(condition) \
  if (!current()) return 201;    \
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
  ENTER(device >= 0 && device < devices);
  snprintf(name, (size_t)bytes, "a stand-in");
  return 0;
}
API int cuDeviceGetAttribute(int* value, int attribute, int device) {
  ENTER(device >= 0 && device < devices && (attribute == 75 || attribute == 76));
  *value = attribute == 75 ? architecture / 10 : architecture % 10;
  return 0;
}
API int cuDevicePrimaryCtxRetain(void** context, int device) {
  ENTER(device >= 0 && device < devices);
  *context = &contexts[device];
  contexts[device].retained++;
  return 0;
}
API int cuDevicePrimaryCtxRelease_v2(int device) {
  LOCKED;
  if (!contexts[device].retained) abort();
  return contexts[device].retained--, 0;
}
API int cuCtxPushCurrent_v2(void* given) {
  Context* context = given;
  if (!context || !context->retained || depth == 16) return 201;
  entered[depth++] = context;
  int status = enter(__func__);
  if (!status || status == context->sticky) return 0;
  depth--;
  return status;
}
API int cuCtxPopCurrent_v2(void** context) {
  if (!depth) return 201;
  *context = entered[--depth];
  return 0;
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
  module->context = current();
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
API int cuStreamCreate(void** made, unsigned flags) {
  ENTER_CONTEXT(flags == 1);
  Stream* stream = calloc(1, sizeof *stream);
  stream->context = current();
  stream->last = &stream->first;
  stream->next = all_streams;
  all_streams = stream;
  *made = stream;
  return streams++, 0;
}
API int cuEventCreate(void** event, unsigned flags) {
  ENTER_CONTEXT(flags == 2);
  *event = calloc(1, sizeof(Event));
  return events++, 0;
}
API int cuEventDestroy_v2(void* event) {
  LOCKED;
  free(event);
  return events--, 0;
}

static int run(const Operation* operation) {
  if (operation->function) {
    void* arguments[MOST_ARGUMENTS];
    for (int i = 0; i < MOST_ARGUMENTS; i++) arguments[i] = (void*)&operation->values[operation->offsets[i]];
    launches++;
    if (!interpret) return 700;
    const Function* function = operation->function;
    interprets = 1;
    rx_pause(collector);
    int status = interpret(function->module->ptx, function->name, operation->dims, arguments);
    rx_resume(collector);
    interprets = 0;
    return status ? 700 : 0;
  }
  if (operation->event) return 0;
  if (operation->host) return operation->host((void*)operation->values), 0;
  if (operation->is_set)
    return memset(data_of(operation->to, operation->bytes), operation->byte, operation->bytes), 0;
  char *to = data_of(operation->to, operation->bytes), *host = (char*)operation->to;
  const char *from = data_of(operation->from, operation->bytes), *own = operation->from;
  memmove(to ? to : host, from ? from : own, operation->bytes);
  return 0;
}

/* Does what a stream was to do up to an event, or all of it. */
static int wait_for(Stream* stream, void* event) {
  Operation* end = NULL;
  for (Operation* each = stream->first; event && each; each = each->next)
    if (each->event == event) end = each;
  if (event && !end) return stream->context->sticky;
  if (stream->is_running) abort(); /* it would do the rest before what it is at */
  stream->is_running = 1;
  entered[depth++] = stream->context;
  while (stream->first) {
    Operation* each = stream->first;
    stream->first = each->next;
    if (!stream->first) stream->last = &stream->first;
    if (!stream->context->sticky) stream->context->sticky = run(each);
    int is_last = each == end;
    free(each);
    if (is_last) break;
  }
  depth--;
  stream->is_running = 0;
  return stream->context->sticky;
}

static void capture(Graph* graph, const Operation* operation);

static void add(Stream* stream, Operation operation) {
  if (stream->captured) {
    capture(stream->captured, &operation);
    return;
  }
  Operation* added = malloc(sizeof *added);
  *added = operation;
  added->next = NULL;
  *stream->last = added;
  stream->last = &added->next;
}

/* Whether work of the current device can be queued there. */
static int is_stream(const Stream* stream) { return stream && stream->context == current(); }

API int cuStreamSynchronize(void* stream) {
  ENTER_CONTEXT(is_stream(stream) && !((Stream*)stream)->captured);
  return wait_for(stream, NULL);
}
API int cuStreamDestroy_v2(void* stream) {
  LOCKED;
  if (!is_stream(stream) || ((Stream*)stream)->captured) abort();
  wait_for(stream, NULL);
  Stream** link = &all_streams;
  while (*link != stream) link = &(*link)->next;
  *link = (*link)->next;
  free(stream);
  return streams--, 0;
}
API int cuEventRecord(void* event, void* stream) {
  ENTER_CONTEXT(is_stream(stream) && !((Stream*)stream)->captured);
  ((Event*)event)->stream = stream;
  add(stream, (Operation){.event = event});
  return 0;
}
API int cuEventSynchronize(void* event) {
  ENTER_CONTEXT(1);
  Stream* stream = ((Event*)event)->stream;
  return stream ? wait_for(stream, event) : 0;
}
API int cuMemAlloc_v2(Address* made, size_t bytes) {
  ENTER_CONTEXT(bytes);
  Memory* memory = malloc(sizeof *memory);
  char* data = malloc(bytes);
  void* address =
      mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (!data || address == MAP_FAILED) return 2;
  memset(data, 0x55, bytes);
  *memory = (Memory){memories, current(), address, data, bytes};
  memories = memory;
  *made = (Address)address;
  return 0;
}
API int cuMemFree_v2(Address address) {
  LOCKED;
  for (Stream* each = all_streams; each; each = each->next)
    if (each->context == current()) wait_for(each, NULL);
  Memory** link = &memories;
  while (*link && (*link)->address != (char*)address) link = &(*link)->next;
  Memory* memory = *link;
  if (!memory || memory->context != current()) abort();
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
  ENTER_CONTEXT(is_stream(stream) && data_of((void*)to, bytes));
  add(stream, (Operation){.to = (void*)to, .from = from, .bytes = bytes});
  return 0;
}
API int cuMemcpyDtoHAsync_v2(void* to, Address from, size_t bytes, void* stream) {
  ENTER_CONTEXT(is_stream(stream) && data_of((void*)from, bytes));
  add(stream, (Operation){.to = to, .from = (void*)from, .bytes = bytes});
  return 0;
}
API int cuMemcpyDtoDAsync_v2(Address to, Address from, size_t bytes, void* stream) {
  ENTER_CONTEXT(is_stream(stream) && data_of((void*)to, bytes) && data_of((void*)from, bytes));
  add(stream, (Operation){.to = (void*)to, .from = (void*)from, .bytes = bytes});
  return 0;
}
API int cuMemsetD8Async(Address to, unsigned char byte, size_t bytes, void* stream) {
  ENTER_CONTEXT(is_stream(stream) && data_of((void*)to, bytes));
  add(stream, (Operation){.to = (void*)to, .bytes = bytes, .is_set = 1, .byte = byte});
  return 0;
}
/* Queues a function of another stand-in, which is called with a copy of the data. */
API int standin_later(void* stream, void (*function)(void*), const void* data, size_t bytes) {
  Operation queued = {.host = function};
  ENTER_CONTEXT(is_stream(stream) && bytes <= sizeof queued.values);
  memcpy(queued.values, data, bytes);
  add(stream, queued);
  return 0;
}
API int standin_is_capturing(const Stream* stream) { return !!stream->captured; }

/* A tensor as boxes are copied of it: a layout of this file's own, which its reader knows. */
typedef struct {
  uint64_t address, sizes[MOST_DIMS], strides[MOST_DIMS - 1], box[MOST_DIMS], magic;
} Map;
enum { MAGIC = 0x7e2504 };
#ifndef WITHOUT_TENSOR_MAPS
API int cuTensorMapEncodeTiled(void* made, int type, unsigned dims, void* address,
                               const uint64_t* sizes, const uint64_t* strides, const unsigned* box,
                               const unsigned* steps, int interleave, int swizzle, int promotion,
                               int fill) {
  Map map = {.address = (uint64_t)address, .magic = MAGIC};
  ENTER(type == 1 && dims && dims <= MOST_DIMS && !interleave && swizzle == 3 && promotion == 2 &&
        !fill && !((uint64_t)made % 64) && !(map.address % 16) && box[0] * 2 <= 128 &&
        !(box[0] * 2 % 16));
  for (unsigned i = 0; i < dims; i++) {
    if (!sizes[i] || sizes[i] > 1ull << 32 || !box[i] || box[i] > 256 || steps[i] != 1) return 1;
    if (i + 1 < dims && (strides[i] % 16 || strides[i] >= 1ull << 40)) return 1;
    map.sizes[i] = sizes[i];
    map.box[i] = box[i];
    if (i + 1 < dims) map.strides[i] = strides[i];
  }
  _Static_assert(sizeof map == 8 * MAP_WORDS, "of a device's size");
  memcpy(made, &map, sizeof map);
  return 0;
}
#endif
/* As many arguments as there are parameters, of 8 bytes or less, or maps of 128 bytes. */
static Operation launch_of(Function* function, const unsigned* grid, const unsigned* block,
                           unsigned shared, void** arguments) {
  Operation made = {.function = function,
                    .dims = {grid[0], grid[1], grid[2], block[0], block[1], block[2], shared,
                             number_of(function->module->context)}};
  const char* at = strstr(function->module->ptx, ".entry");
  const char* end = strchr(at, ')');
  int used = 0;
  for (int i = 0; i < MOST_ARGUMENTS && (at = strstr(at + 1, ".param")) && at < end; i++) {
    int words = strcspn(at, "[") < strcspn(at, ",)") ? MAP_WORDS : 1;
    if (used + words > MOST_WORDS) abort();
    made.offsets[i] = used;
    memcpy(&made.values[used], arguments[i], 8 * (size_t)words);
    used += words;
  }
  return made;
}
static int may_share(const Function* function, unsigned bytes) {
  return bytes <= 48 << 10 || bytes <= function->most_shared;
}
API int cuLaunchKernel(void* function, unsigned x, unsigned y, unsigned z, unsigned a, unsigned b,
                       unsigned c, unsigned shared, void* stream, void** arguments, void** extra) {
  ENTER_CONTEXT(is_stream(stream) && ((Function*)function)->module->context == current());
  if (extra || !may_share(function, shared) || !x || y > 65535 || z > 65535) return 1;
  add(stream, launch_of(function, (unsigned[]){x, y, z}, (unsigned[]){a, b, c}, shared, arguments));
  return 0;
}

#include "cuda_driver_graphs.c"

API int cuGetErrorString(int status, const char** text) {
  *text = status == 2     ? "out of memory"
          : status == 700 ? "an illegal memory access was encountered"
          : status == 218 ? "a PTX JIT compilation failed"
                          : NULL;
  return *text ? 0 : 1;
}
