/* The device of a module while it is in use: opened by the first context, with all constants. */

/* Written by the compiler. */
typedef struct {
  const void* data;
  int64_t bytes;
} RxDeviceConstant;

extern const RxDeviceConstant rx_device_constants[];
extern const int32_t rx_num_device_constants;

static void free_constants(void) {
  for (int32_t i = 0; device.constants && i < rx_num_device_constants; i++)
    if (device.constants[i]) device.bytes -= rx_device_free(device.constants[i]);
  free(device.constants);
  device.constants = NULL;
}

/* NULL, or what went wrong. */
static const char* upload_constants(void) {
  static char text[96];
  device.constants = calloc((size_t)rx_num_device_constants + 1, sizeof(void*));
  if (!device.constants) return "out of memory";
  for (int32_t i = 0; i < rx_num_device_constants; i++) {
    const RxDeviceConstant* each = &rx_device_constants[i];
    int64_t bytes = round_up(each->bytes, TENSOR_ALIGNMENT);
    void* data = device.constants[i] = rx_device_alloc(bytes);
    if (!data) {
      snprintf(text, sizeof text, "out of memory: a constant of %lld bytes",
               (long long)each->bytes);
      return text;
    }
    device.bytes += bytes;
    const char* wrong = rx_device_upload(data, each->data, each->bytes);
    if (wrong) return wrong;
  }
  return NULL;
}

/* With the lock. */
static void close_unused(void) {
  if (!device.is_open || forked() || device.contexts || device.tensors) return;
  free_constants();
  rx_device_close();
  device.is_open = 0;
}

/* Adds a context; nonzero, with a message for rx_last_error(NULL), if there is no device. */
static int32_t open_device(void) {
  acquire_lock(&device.lock);
  if (!device.is_open) device.generation = RX_PROCESS.generation;
  const char* wrong = device.is_open ? forked() : rx_device_open();
  if (!wrong && !device.is_open) {
    device.is_open = 1;
    wrong = upload_constants();
  }
  if (!wrong) device.contexts++;
  if (wrong) snprintf(constants_error, sizeof constants_error, "%s: %s", rx_device_name, wrong);
  close_unused();
  release_lock(&device.lock);
  return !!wrong;
}

static void close_device(void) {
  acquire_lock(&device.lock);
  device.contexts--;
  close_unused();
  release_lock(&device.lock);
}

void* rx_device_constant(int32_t index) { return device.constants[index]; }
