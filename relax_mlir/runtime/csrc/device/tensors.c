/* Memory of tensors: that of the devices of a module, or of the host. See `tensors.c` for modules
 * without a device. A place is the index of a device, or HOST; the tensors that functions take and
 * return are on the first device. */
#include <string.h>

enum { TENSOR_ALIGNMENT = RX_DEVICE_ALIGNMENT, HOST = -1 };

static int is_host_memory(int32_t type) { return type == 1 || type == 3 || type == 11 || type == 13; }

static int32_t tensor_device(void) { return rx_devices[0].driver->type(); }

static int is_tensor_memory(int32_t type) { return type == tensor_device(); }

/* The devices are open while there are contexts or tensors. */
static struct {
  uint32_t lock;
  int32_t is_open;
  uint32_t generation; /* of the process that opened them */
  int64_t contexts, tensors, bytes[RX_MOST_DEVICES];
  void** constants; /* rx_num_device_constants addresses */
} devices;

static const RxDriver* driver_of(int32_t device) { return rx_devices[device].driver; }

/* With the lock: NULL, or why a process must not use the devices. */
static const char* forked(void) {
  if (devices.generation == RX_PROCESS.generation) return NULL;
  return "a forked process cannot use the device of its parent";
}

/* NULL if out of memory, or if the size is negative or exceeds the address space. */
static void* allocate_at(int32_t place, int64_t bytes) {
  if (place == HOST) return allocate(bytes);
  if (bytes < 0 || bytes > MOST_BYTES) return NULL;
  bytes = round_up(bytes, TENSOR_ALIGNMENT);
  acquire_lock(&devices.lock);
  void* data = forked() ? NULL : driver_of(place)->alloc(place, bytes);
  if (data) devices.tensors++, devices.bytes[place] += bytes;
  release_lock(&devices.lock);
  if (data) tally(RX_ALLOCATIONS, 1);
  return data;
}

static void* allocate_tensor(int64_t bytes) { return allocate_at(0, bytes); }

static int32_t open_device(void);
static void close_device(void);
static void close_unused(void);

static void flush_own(void);

static void free_at(int32_t place, void* data) {
  if (!data) return;
  if (place == HOST) {
    free(data);
    return;
  }
  flush_own();
  acquire_lock(&devices.lock);
  if (!forked()) {
    devices.bytes[place] -= driver_of(place)->free(place, data);
    devices.tensors--;
    close_unused();
  }
  release_lock(&devices.lock);
}

static void free_tensor(void* data) { free_at(0, data); }

static int32_t copy_tensor(RxContext* context, void* to, const void* from, int64_t bytes);
