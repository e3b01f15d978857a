/* NVIDIA's devices, by the driver's API: the library is found by dlopen when a module is loaded.
 *
 * Kernels are PTX, which the driver compiles for the device and keeps in its cache. All is done in
 * the primary context of a device, as other libraries do, and on one stream of it. The devices of a
 * module are those that the driver counts first. The driver reports failures of kernels at a later call; its context is of no use then.
 *
 * Source: NVIDIA, CUDA driver API, of CUDA 11 and later.
 */
#define _GNU_SOURCE /* dladdr */
#include "device.h"

#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef uint64_t Address;
typedef unsigned Unsigned;

enum { OK = 0, NO_DEVICE = 100 };
enum { ATTRIBUTE_MAJOR = 75, ATTRIBUTE_MINOR = 76 };
enum { STREAM_NON_BLOCKING = 1, EVENT_WITHOUT_TIME = 2 };
enum { JIT_ERROR_LOG = 5, JIT_ERROR_LOG_BYTES = 6 };
enum { MAX_ARGUMENTS = 256, MAX_MAPS = 4, MAX_DIMS = 5 };
/* Memory of a group beyond STATIC_BYTES is not in the code: each launch asks for it. */
enum { STATIC_BYTES = 48 << 10, MOST_DYNAMIC_BYTES = 8 };

/* The functions that are used; those of a name with a version have the older name's ABI changed. */
#define DRIVER(X)                                                                                  \
  X(cuInit, (Unsigned))                                                                            \
  X(cuDeviceGetCount, (int*))                                                                      \
  X(cuDeviceGet, (int*, int))                                                                      \
  X(cuDeviceGetName, (char*, int, int))                                                            \
  X(cuDeviceGetAttribute, (int*, int, int))                                                        \
  X(cuDevicePrimaryCtxRetain, (void**, int))                                                       \
  X(cuDevicePrimaryCtxRelease_v2, (int))                                                           \
  X(cuCtxPushCurrent_v2, (void*))                                                                  \
  X(cuCtxPopCurrent_v2, (void**))                                                                  \
  X(cuModuleLoadDataEx, (void**, const void*, Unsigned, int*, void**))                             \
  X(cuModuleUnload, (void*))                                                                       \
  X(cuModuleGetFunction, (void**, void*, const char*))                                             \
  X(cuFuncSetAttribute, (void*, int, int))                                                         \
  X(cuStreamCreate, (void**, Unsigned))                                                            \
  X(cuStreamDestroy_v2, (void*))                                                                   \
  X(cuStreamSynchronize, (void*))                                                                  \
  X(cuEventCreate, (void**, Unsigned))                                                             \
  X(cuEventDestroy_v2, (void*))                                                                    \
  X(cuEventRecord, (void*, void*))                                                                 \
  X(cuEventSynchronize, (void*))                                                                   \
  X(cuMemAlloc_v2, (Address*, size_t))                                                             \
  X(cuMemFree_v2, (Address))                                                                       \
  X(cuMemHostAlloc, (void**, size_t, Unsigned))                                                    \
  X(cuMemFreeHost, (void*))                                                                        \
  X(cuMemcpyHtoDAsync_v2, (Address, const void*, size_t, void*))                                   \
  X(cuMemcpyDtoHAsync_v2, (void*, Address, size_t, void*))                                         \
  X(cuMemcpyDtoDAsync_v2, (Address, Address, size_t, void*))                                       \
  X(cuMemsetD8Async, (Address, unsigned char, size_t, void*))                                      \
  X(cuLaunchKernel, (void*, Unsigned, Unsigned, Unsigned, Unsigned, Unsigned, Unsigned, Unsigned,  \
                     void*, void**, void**))                                                       \
  X(cuGetErrorString, (int, const char**))

#define FIELD(name, types) int(*name) types;
static struct {
  DRIVER(FIELD)
} cu;

/* CUtensorMap: a tensor as a device copies boxes of it, by value. */
typedef struct {
  _Alignas(64) uint64_t words[16];
} Map;

/* Of drivers since CUDA 12; NULL: the driver has none. */
static int (*encode_map)(Map*, int type, Unsigned dims, void* address, const uint64_t* sizes,
                         const uint64_t* strides, const Unsigned* box, const Unsigned* steps,
                         int interleave, int swizzle, int promotion, int fill);

/* Memory of the host that the device copies from and to: one half is filled while the other one is
 * copied. */
enum { HALF = 1 << 20 };

typedef struct {
  char* data;
  void* copied; /* an event */
} Half;

/* Memory of the device, of which the driver does not tell what was asked for. */
typedef struct Memory {
  struct Memory* next;
  Address address;
  int64_t bytes;
} Memory;

/* Of each device that is used. */
typedef struct {
  void *context, *stream;
  int device; /* as the driver names it */
  void **modules, **functions;
  Half halves[2];
  int turn;
  Memory *memories, *unfreed; /* those that could not be freed when they were to be */
  struct Graphs* graphs;
  void* capturing; /* the stream whose work becomes parts of graphs; NULL: not used yet */
  void *cublas, *cublas_stream; /* a handle of the library, and where it queues; NULL: not used yet */
  Address workspace;            /* of the library */
} State;

static State states[RX_MOST_DEVICES], *own; /* that of the device of the call */
static void* library;
static char text[1024];

static const char* said(const char* what, int status) {
  const char* why = NULL;
  if (cu.cuGetErrorString(status, &why) != OK || !why) why = "an unknown error";
  snprintf(text, sizeof text, "%s: the NVIDIA driver says %d, %s", what, status, why);
  return text;
}

static void free_late(void) {
  /* Its failure is sticky: the next call reports it. */
  if (own->stream) cu.cuStreamSynchronize(own->stream);
  for (Memory* next; own->unfreed; own->unfreed = next) {
    next = own->unfreed->next;
    cu.cuMemFree_v2(own->unfreed->address);
    free(own->unfreed);
  }
}

/* The context of the device is current between these, whichever thread calls. */
static const char* enter(void) {
  int status = cu.cuCtxPushCurrent_v2(own->context);
  if (status) return said("cannot use the device", status);
  if (own->unfreed) free_late();
  return NULL;
}

static void leave(void) {
  void* popped;
  cu.cuCtxPopCurrent_v2(&popped);
}

static void cuda_close(int32_t device);
static void find_graphs(void);
static void forget_graphs(void);
static void close_cublas(void);

/* ---- Opening
 * ------------------------------------------------------------------------------------------ */

static const char* find_driver(void) {
  const char* path = getenv("RELAX_CUDA_DRIVER");
  if (!path || !*path) path = "libcuda.so.1";
  if (!library) library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    const char* why = dlerror();
    snprintf(text, sizeof text,
             "no NVIDIA driver: %s; it looked for '%s', which drivers install (RELAX_CUDA_DRIVER "
             "names another file)",
             why ? why : "it is missing", path);
    return text;
  }
#define LOOK_UP(name, types)                                                                       \
  *(void**)(&cu.name) = dlsym(library, #name);                                                     \
  if (!cu.name) {                                                                                  \
    snprintf(text, sizeof text, "the NVIDIA driver '%s' is too old: it has no " #name, path);      \
    return text;                                                                                   \
  }
  DRIVER(LOOK_UP)
  *(void**)(&encode_map) = dlsym(library, "cuTensorMapEncodeTiled");
  find_graphs();
  return NULL;
}

/* PTX runs on later devices too, but that for an architecture such as sm_90a on no other one, and
 * what is assembled only on those that differ in the last digit. */
static const char* check_architecture(void) {
  char name[128] = "";
  int major = 0, minor = 0;
  int status = cu.cuDeviceGetAttribute(&major, ATTRIBUTE_MAJOR, own->device);
  if (!status) status = cu.cuDeviceGetAttribute(&minor, ATTRIBUTE_MINOR, own->device);
  if (!status) status = cu.cuDeviceGetName(name, sizeof name, own->device);
  if (status) return said("cannot ask the device", status);
  const char* arch = strstr(rx_devices[own - states].name, "sm_");
  char* rest = NULL;
  long wanted = strtol(arch + 3, &rest, 10);
  int has = 10 * major + minor, is_assembled = strstr(rest, "+cubin") != NULL;
  int fits = has >= wanted && (!is_assembled || major == wanted / 10);
  if (*rest == 'a' ? has == wanted : fits) return NULL;
  snprintf(text, sizeof text,
           "the device is '%s', of sm_%d, on which code for %s does not run; compile for "
           "'cuda:sm_%d%s'",
           name, has, arch, has, is_assembled ? "+cubin" : "");
  return text;
}

static Unsigned dynamic_bytes(const RxKernel* kernel) {
  return kernel->workgroup_bytes > STATIC_BYTES ? (Unsigned)kernel->workgroup_bytes : 0;
}

static const char* load_kernel(int32_t i) {
  const RxKernel* kernel = &rx_kernels[i];
  char log[512] = "", what[192];
  int options[] = {JIT_ERROR_LOG, JIT_ERROR_LOG_BYTES};
  void* values[] = {log, (void*)(uintptr_t)sizeof log};
  snprintf(what, sizeof what, "cannot load kernel '%.90s'", kernel->name);
  int status = cu.cuModuleLoadDataEx(&own->modules[i], kernel->code, 2, options, values);
  if (!status) status = cu.cuModuleGetFunction(&own->functions[i], own->modules[i], kernel->name);
  if (!status && dynamic_bytes(kernel)) {
    snprintf(what, sizeof what, "groups of kernel '%.90s' cannot have their %d bytes of memory",
             kernel->name, (int)kernel->workgroup_bytes);
    status = cu.cuFuncSetAttribute(own->functions[i], MOST_DYNAMIC_BYTES, kernel->workgroup_bytes);
  }
  if (!status) return NULL;
  said(what, status);
  size_t used = strlen(text);
  if (*log) snprintf(text + used, sizeof text - used, ": %s", log);
  return text;
}

/* What is needed besides the context, which is current. */
static const char* prepare(void) {
  size_t count = (size_t)rx_num_kernels + 1;
  own->modules = calloc(count, sizeof *own->modules);
  own->functions = calloc(count, sizeof *own->functions);
  if (!own->modules || !own->functions) return "out of memory";
  int status = cu.cuStreamCreate(&own->stream, STREAM_NON_BLOCKING);
  for (int i = 0; i < 2 && !status; i++) {
    status = cu.cuMemHostAlloc((void**)&own->halves[i].data, HALF, 0);
    if (!status) status = cu.cuEventCreate(&own->halves[i].copied, EVENT_WITHOUT_TIME);
  }
  if (status) return said("cannot open the device", status);
  for (int32_t i = 0; i < rx_num_kernels; i++) {
    const char* wrong = rx_kernels[i].device == own - states ? load_kernel(i) : NULL;
    if (wrong) return wrong;
  }
  return NULL;
}

static int ordinal(void) { return rx_devices[own - states].ordinal; }

static const char* cuda_open(int32_t device) {
  own = &states[device];
  const char* wrong = find_driver();
  if (wrong) return wrong;
  int count = 0, status = cu.cuInit(0);
  if (status && status != NO_DEVICE) return said("cannot start", status);
  if (!status) status = cu.cuDeviceGetCount(&count);
  if (status == NO_DEVICE || (!status && !count))
    return "the NVIDIA driver has no device; CUDA_VISIBLE_DEVICES may hide some";
  if (!status && ordinal() >= count) {
    snprintf(text, sizeof text,
             "the NVIDIA driver has %d of the devices that the module is for, which needs %d; "
             "CUDA_VISIBLE_DEVICES may hide some",
             count, ordinal() + 1);
    return text;
  }
  if (!status) status = cu.cuDeviceGet(&own->device, ordinal());
  if (status) return said("cannot find a device", status);
  if ((wrong = check_architecture())) return wrong;
  if ((status = cu.cuDevicePrimaryCtxRetain(&own->context, own->device))) {
    own->context = NULL;
    return said("cannot open the device", status);
  }
  if (!(wrong = enter())) {
    wrong = prepare();
    leave();
  }
  if (wrong) cuda_close(device);
  return wrong;
}

static void cuda_close(int32_t device) {
  own = &states[device];
  if (!own->context) return;
  int is_current = !enter() || !enter(); /* nothing could be freed after this */
  if (is_current) {
    if (own->stream) cu.cuStreamSynchronize(own->stream);
    forget_graphs();
    close_cublas();
    if (own->capturing) cu.cuStreamDestroy_v2(own->capturing);
    for (int i = 0; i < 2; i++) {
      if (own->halves[i].copied) cu.cuEventDestroy_v2(own->halves[i].copied);
      if (own->halves[i].data) cu.cuMemFreeHost(own->halves[i].data);
    }
    for (int32_t i = 0; own->modules && i < rx_num_kernels; i++)
      if (own->modules[i]) cu.cuModuleUnload(own->modules[i]);
    if (own->stream) cu.cuStreamDestroy_v2(own->stream);
    leave();
  }
  memset(own->halves, 0, sizeof own->halves);
  free(own->modules);
  free(own->functions);
  own->modules = own->functions = NULL;
  own->stream = own->capturing = NULL;
  cu.cuDevicePrimaryCtxRelease_v2(own->device);
  own->context = NULL;
}

static int32_t cuda_type(void) { return 2; /* kDLCUDA */ }

static int64_t cuda_stream(int32_t device) { return (int64_t)(uintptr_t)states[device].stream; }

/* ---- Memory
 * ------------------------------------------------------------------------------------------- */

static void* cuda_alloc(int32_t device, int64_t bytes) {
  own = &states[device];
  Memory* memory = malloc(sizeof *memory);
  Address address = 0;
  if (!memory || enter()) {
    free(memory);
    return NULL;
  }
  int status = cu.cuMemAlloc_v2(&address, bytes > 0 ? (size_t)bytes : 1);
  leave();
  if (status) {
    free(memory);
    return NULL;
  }
  *memory = (Memory){own->memories, address, bytes};
  own->memories = memory;
  return (void*)address;
}

static int64_t cuda_free(int32_t device, void* data) {
  own = &states[device];
  Memory** link = &own->memories;
  while (*link && (*link)->address != (Address)data) link = &(*link)->next;
  Memory* memory = *link;
  if (!memory) abort(); /* it is not the device's, or freed */
  *link = memory->next;
  int64_t bytes = memory->bytes;
  memory->next = own->unfreed;
  own->unfreed = memory;
  if (!enter()) leave(); /* which frees it; else the next call does that can */
  return bytes;
}

/* One half, once the last copy of it is done. */
static int take_half(Half** half) {
  *half = &own->halves[own->turn];
  own->turn ^= 1;
  return cu.cuEventSynchronize((*half)->copied);
}

static int upload(Address to, const char* from, int64_t bytes) {
  for (int64_t at = 0; at < bytes; at += HALF) {
    size_t size = (size_t)(bytes - at < HALF ? bytes - at : HALF);
    Half* half;
    int status = take_half(&half);
    if (status) return status;
    memcpy(half->data, from + at, size);
    status = cu.cuMemcpyHtoDAsync_v2(to + (Address)at, half->data, size, own->stream);
    if (!status) status = cu.cuEventRecord(half->copied, own->stream);
    if (status) return status;
  }
  return OK;
}

static int download(char* to, Address from, int64_t bytes) {
  Half* before = NULL;
  int64_t begun = 0;
  size_t size = 0;
  for (int64_t at = 0; at < bytes || before; at += HALF) {
    Half* half = NULL;
    size_t next = 0;
    int status = OK;
    if (at < bytes) {
      Address begin = from + (Address)at;
      next = (size_t)(bytes - at < HALF ? bytes - at : HALF);
      status = take_half(&half);
      if (!status) status = cu.cuMemcpyDtoHAsync_v2(half->data, begin, next, own->stream);
      if (!status) status = cu.cuEventRecord(half->copied, own->stream);
    }
    if (before && !status) {
      status = cu.cuEventSynchronize(before->copied);
      if (!status) memcpy(to + begun, before->data, size);
    }
    if (status) return status;
    before = half;
    begun = at;
    size = next;
  }
  return OK;
}

static const char* cuda_upload(int32_t device, void* to, const void* from, int64_t bytes) {
  own = &states[device];
  const char* wrong = enter();
  if (wrong) return wrong;
  int status = upload((Address)to, from, bytes);
  leave();
  return status ? said("a copy to the device fails", status) : NULL;
}

static const char* cuda_download(int32_t device, void* to, const void* from, int64_t bytes) {
  own = &states[device];
  const char* wrong = enter();
  if (wrong) return wrong;
  int status = download(to, (Address)from, bytes);
  leave();
  return status ? said("a copy from the device, or a kernel before it, fails", status) : NULL;
}

static const char* cuda_copy(int32_t device, void* to, const void* from, int64_t bytes) {
  own = &states[device];
  const char* wrong = enter();
  if (wrong) return wrong;
  int status = cu.cuMemcpyDtoDAsync_v2((Address)to, (Address)from, (size_t)bytes, own->stream);
  leave();
  return status ? said("a copy on the device fails", status) : NULL;
}

/* ---- Launches
 * ----------------------------------------------------------------------------------------- */

/* What a launch passes: the address of each argument, and the maps that are made for it. */
typedef struct {
  void* addresses[MAX_ARGUMENTS];
  Map maps[MAX_MAPS];
} Arguments;

enum { ELEMENTS_OF_16_BITS = 1, SWIZZLE_128_BYTES = 3, PROMOTE_128_BYTES = 2 };

static const char* make_map(Map* map, Unsigned dims, const int64_t* words) {
  if (!encode_map) return "the NVIDIA driver is too old: it has no cuTensorMapEncodeTiled";
  uint64_t sizes[MAX_DIMS], strides[MAX_DIMS];
  Unsigned box[MAX_DIMS], steps[MAX_DIMS];
  for (Unsigned i = 0; i < dims; i++) {
    sizes[i] = (uint64_t)words[1 + i];
    strides[i] = i + 1 < dims ? (uint64_t)words[1 + dims + i] : 0;
    box[i] = (Unsigned)words[2 * dims + i];
    steps[i] = 1;
  }
  int status = encode_map(map, ELEMENTS_OF_16_BITS, dims, (void*)(uintptr_t)words[0], sizes, strides,
                          box, steps, 0, SWIZZLE_128_BYTES, PROMOTE_128_BYTES, 0);
  return status ? said("cannot describe a tensor to the device", status) : NULL;
}

/* Lists what a kernel takes; NULL, or what is wrong. */
static const char* list_arguments(const RxKernel* kernel, const int64_t* words, Arguments* all) {
  int count = 0, num_maps = 0;
  for (const char* kind = kernel->kinds; *kind; words += rx_argument_words(kind), kind += 2) {
    if (count == MAX_ARGUMENTS || num_maps == MAX_MAPS)
      return "has more arguments than NVIDIA's devices take";
    /* Of an address and bytes, kernels take the first. */
    all->addresses[count] = (void*)(uintptr_t)words;
    if (*kind == 'm') {
      Map* map = &all->maps[num_maps++];
      const char* wrong = make_map(map, (Unsigned)(kind[1] - '0'), words);
      if (wrong) return wrong;
      all->addresses[count] = map;
    }
    count++;
  }
  return NULL;
}

#include "cuda/cublas.c"

static const char* launch_one(const RxLaunch* launch) {
  if (launch->kernel == RX_PRODUCT) return queue_product(launch, own->stream);
  const RxKernel* kernel = &rx_kernels[launch->kernel];
  const Unsigned *g = (const Unsigned*)launch->grid, *b = (const Unsigned*)kernel->block;
  Arguments arguments;
  const char* wrong = list_arguments(kernel, launch->words, &arguments);
  if (wrong) return wrong;
  int status = cu.cuLaunchKernel(own->functions[launch->kernel], g[0], g[1], g[2], b[0], b[1], b[2],
                                 dynamic_bytes(kernel), own->stream, arguments.addresses, NULL);
  return status ? said("cannot launch, or a kernel before it fails", status) : NULL;
}

#include "cuda/graphs.c"

static int32_t cuda_batch(void) { return has_graphs ? 1024 : 1; }

static const char* cuda_launch(int32_t device, const RxLaunch* launches, int32_t count,
                               int32_t* failed) {
  own = &states[device];
  const char* wrong = enter();
  if (wrong) return wrong;
  int is_left = launch_graph(launches, count);
  for (int32_t i = 0; is_left && i < count && !wrong; i++) {
    *failed = i;
    wrong = launch_one(&launches[i]);
  }
  leave();
  return wrong;
}

static const char* cuda_sync(int32_t device) {
  own = &states[device];
  const char* wrong = enter();
  if (wrong) return wrong;
  int status = cu.cuStreamSynchronize(own->stream);
  leave();
  return status ? said("a kernel fails", status) : NULL;
}

const RxDriver rx_driver_cuda = {cuda_open,   cuda_close,    cuda_type, cuda_stream, cuda_alloc,  cuda_free,
                                  cuda_upload, cuda_download, cuda_copy, cuda_batch,  cuda_launch, cuda_sync};
