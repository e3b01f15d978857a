/* Memory of tensors: that of a device. See `tensors.c` for the host's. */
#include <string.h>

enum { TENSOR_ALIGNMENT = RX_DEVICE_ALIGNMENT };

static int is_host_memory(int32_t type) { return type == 1 || type == 3 || type == 11 || type == 13; }

static int32_t tensor_device(void) { return rx_device_type(); }

static int is_tensor_memory(int32_t type) { return type == tensor_device(); }

/* The device is open while there are contexts or tensors. */
static struct {
  uint32_t lock;
  int32_t is_open;
  uint32_t generation; /* of the process that opened it */
  int64_t contexts, tensors, bytes;
  void** constants; /* rx_num_device_constants addresses */
} device;

/* With the lock: NULL, or why a process must not use the device. */
static const char* forked(void) {
  if (device.generation == RX_PROCESS.generation) return NULL;
  return "a forked process cannot use the device of its parent";
}

/* NULL if out of memory, or if the size is negative or exceeds the address space. */
static void* allocate_tensor(int64_t bytes) {
  if (bytes < 0 || bytes > MOST_BYTES) return NULL;
  bytes = round_up(bytes, TENSOR_ALIGNMENT);
  acquire_lock(&device.lock);
  void* data = forked() ? NULL : rx_device_alloc(bytes);
  if (data) device.tensors++, device.bytes += bytes;
  release_lock(&device.lock);
  if (data) tally(RX_ALLOCATIONS, 1);
  return data;
}

static int32_t open_device(void);
static void close_device(void);
static void close_unused(void);

static void flush_own(void);

static void free_tensor(void* data) {
  if (!data) return;
  flush_own();
  acquire_lock(&device.lock);
  if (!forked()) {
    device.bytes -= rx_device_free(data);
    device.tensors--;
    close_unused();
  }
  release_lock(&device.lock);
}

static int32_t copy_tensor(RxContext* context, void* to, const void* from, int64_t bytes);
