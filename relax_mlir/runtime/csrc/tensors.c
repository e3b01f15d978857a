/* Memory of tensors: that of the host. `device/tensors.c` has the same functions for devices. */
#include <string.h>

enum { TENSOR_ALIGNMENT = ALIGNMENT };

/* Whether tensors, or what is on the host in any case, may be in memory of a DLPack type. */
static int is_host_memory(int32_t device) {
  return device == 1 || device == 3 || device == 11 ||
         device == 13; /* CPU, pinned for CUDA or ROCm, managed */
}
static int is_tensor_memory(int32_t device) { return is_host_memory(device); }

static int32_t tensor_device(void) { return 1; }

static int32_t open_device(void) { return 0; }
static void close_device(void) {}

static void* allocate_at(int32_t place, int64_t bytes) { return (void)place, allocate(bytes); }
static void* allocate_tensor(int64_t bytes) { return allocate(bytes); }

static void free_at(int32_t place, void* data) { (void)place, free(data); }
static void free_tensor(void* data) { free(data); }

/* Copies bytes that may overlap; nonzero, with a message, on failure. */
static int32_t copy_tensor(RxContext* context, void* to, const void* from, int64_t bytes) {
  (void)context;
  memmove(to, from, (size_t)bytes);
  return 0;
}
