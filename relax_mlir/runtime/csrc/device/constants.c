/* The devices of a module while they are in use: opened by the first context, with all constants. */

/* Written by the compiler. */
typedef struct {
  const void* data;
  int64_t bytes, device;
} RxDeviceConstant;

extern const RxDeviceConstant rx_device_constants[];
extern const int32_t rx_num_device_constants;

static void free_constants(void) {
  for (int32_t i = 0; devices.constants && i < rx_num_device_constants; i++) {
    int32_t device = (int32_t)rx_device_constants[i].device;
    if (devices.constants[i])
      devices.bytes[device] -= driver_of(device)->free(device, devices.constants[i]);
  }
  free(devices.constants);
  devices.constants = NULL;
}

/* NULL, or what went wrong on `*device`. */
static const char* upload_constants(int32_t* device) {
  static char text[96];
  devices.constants = calloc((size_t)rx_num_device_constants + 1, sizeof(void*));
  if (!devices.constants) return "out of memory";
  for (int32_t i = 0; i < rx_num_device_constants; i++) {
    const RxDeviceConstant* each = &rx_device_constants[i];
    int64_t bytes = round_up(each->bytes, TENSOR_ALIGNMENT);
    int32_t own = *device = (int32_t)each->device;
    void* data = devices.constants[i] = driver_of(own)->alloc(own, bytes);
    if (!data) {
      snprintf(text, sizeof text, "out of memory: a constant of %lld bytes",
               (long long)each->bytes);
      return text;
    }
    devices.bytes[own] += bytes;
    const char* wrong = driver_of(own)->upload(own, data, each->data, each->bytes);
    if (wrong) return wrong;
  }
  return NULL;
}

/* With the lock. */
static void close_unused(void) {
  if (!devices.is_open || forked() || devices.contexts || devices.tensors) return;
  free_constants();
  for (int32_t i = 0; i < rx_num_devices; i++) driver_of(i)->close(i);
  devices.is_open = 0;
}

static void keep_why(int32_t device, const char* wrong) {
  snprintf(constants_error, sizeof constants_error, "%s: %s", rx_devices[device].name, wrong);
}

/* With the lock: opens all devices, or none. Nonzero, with a message, if one cannot be used. */
static int32_t open_all(void) {
  devices.generation = RX_PROCESS.generation;
  for (int32_t i = 0; i < rx_num_devices; i++) {
    const char* wrong = driver_of(i)->open(i);
    if (!wrong) continue;
    keep_why(i, wrong);
    while (i--) driver_of(i)->close(i);
    return 1;
  }
  devices.is_open = 1;
  int32_t device = 0;
  const char* wrong = upload_constants(&device);
  if (wrong) keep_why(device, wrong);
  return wrong != NULL;
}

/* Adds a context; nonzero, with a message for rx_last_error(NULL), if a device cannot be used. */
static int32_t open_device(void) {
  acquire_lock(&devices.lock);
  const char* wrong = devices.is_open ? forked() : NULL;
  if (wrong) keep_why(0, wrong);
  int32_t failed = wrong || (!devices.is_open && open_all());
  if (!failed) devices.contexts++;
  close_unused();
  release_lock(&devices.lock);
  return failed;
}

static void close_device(void) {
  acquire_lock(&devices.lock);
  devices.contexts--;
  close_unused();
  release_lock(&devices.lock);
}

void* rx_device_constant(int32_t index) { return devices.constants[index]; }
