/* What generated code and host programs do with devices. The first failure of a call is its error:
 * kernels cannot report any, so nothing more is launched then, and the call fails when it ends, or
 * when it reads from a device. */

/* The first failure is told, unless memory was missing since: a device that has failed gives none. */
static void fail_device(RxContext* context, int32_t device, const char* what, const char* why) {
  if (context->has_device_failed && !context->is_out_of_memory) return;
  clear_error(context);
  context->has_device_failed = 1;
  say(context, "%s: %s: %s", rx_devices[device].name, what, why);
}

/* ---- Launches that are collected until something else is done
 * ------------------------------------- */

enum { MOST_LAUNCHES = 1024, MOST_WORDS = 16 << 10 };

/* In a context: launches on one device that were not made yet, and what they pass. */
struct Collected {
  int32_t count, num_words;
  RxLaunch launches[MOST_LAUNCHES];
  int64_t words[MOST_WORDS];
};

static const char* name_of(const RxLaunch* launch) {
  return launch->kernel == RX_PRODUCT ? "a product" : rx_kernels[launch->kernel].name;
}

static void launch_now(RxContext* context, const RxLaunch* launches, int32_t count) {
  int32_t failed = 0, device = launches->device;
  acquire_lock(&devices.lock);
  const char* wrong = forked();
  if (!wrong) wrong = driver_of(device)->launch(device, launches, count, &failed);
  if (wrong) fail_device(context, device, name_of(&launches[failed]), wrong);
  release_lock(&devices.lock);
}

/* Makes the launches that were collected; anything else that is done to memory comes after it. */
static void flush(RxContext* context) {
  Collected* own = context->collected;
  if (!own || !own->count) return;
  int32_t count = own->count;
  own->count = own->num_words = 0;
  if (!context->has_device_failed) launch_now(context, own->launches, count);
}

/* The same in the call that the thread is in, if any. */
static void flush_own(void) {
  Thread* thread = own_thread();
  if (thread && thread->running) flush(thread->running);
}

static void collect(RxContext* context, RxLaunch launch) {
  int32_t most = driver_of(launch.device)->batch();
  int32_t num_words = rx_launch_words(&launch);
  if (most > 1 && !context->collected)
    context->collected = calloc(1, sizeof *context->collected);
  Collected* own = context->collected;
  if (most <= 1 || !own || num_words > MOST_WORDS) {
    flush(context);
    launch_now(context, &launch, 1);
    return;
  }
  int is_full = own->count == most || own->count == MOST_LAUNCHES;
  int is_other = own->count && own->launches->device != launch.device;
  if (is_full || is_other || num_words > MOST_WORDS - own->num_words) flush(context);
  int64_t* words = own->words + own->num_words;
  memcpy(words, launch.words, (size_t)num_words * sizeof *words);
  launch.words = words;
  own->launches[own->count++] = launch;
  own->num_words += num_words;
}

/* ---- Copies
 * ------------------------------------------------------------------------------------------- */

/* Has the memory of a context that the host reads devices by hold that many bytes; NULL, with a
 * message: out of memory. */
static void* reading(RxContext* context, int64_t bytes) {
  void* to = realloc(context->read, (size_t)bytes + 1);
  if (to) return context->read = to;
  say_out_of_memory(context);
  say(context, "a copy of %lld bytes from the device", (long long)bytes);
  return NULL;
}

/* With the lock: between two places that are not both the host; text as of a driver, which
 * `*failed` is of. */
static const char* copy_now(void* to, int32_t to_place, const void* from, int32_t from_place,
                            int64_t bytes, int32_t* failed) {
  *failed = from_place == HOST ? to_place : from_place;
  const char* wrong = forked();
  if (wrong) return wrong;
  if (from_place == HOST) return driver_of(to_place)->upload(to_place, to, from, bytes);
  if (to_place == HOST) return driver_of(from_place)->download(from_place, to, from, bytes);
  return driver_of(to_place)->copy(to_place, to, from, bytes);
}

static int32_t copy_once(RxContext* context, void* to, int32_t to_place, const void* from,
                         int32_t from_place, int64_t bytes) {
  int32_t failed;
  acquire_lock(&devices.lock);
  const char* wrong = copy_now(to, to_place, from, from_place, bytes, &failed);
  const char* what = from_place == HOST ? "a copy to the device"
                     : to_place == HOST ? "a copy to the host"
                                        : "a copy";
  if (wrong) fail_device(context, failed, what, wrong);
  release_lock(&devices.lock);
  return !!wrong;
}

/* From one device to another by the host: no API reads memory of another one. */
static int32_t copy_between(RxContext* context, void* to, int32_t to_place, const void* from,
                            int32_t from_place, int64_t bytes) {
  void* between = reading(context, bytes);
  return !between || copy_once(context, between, HOST, from, from_place, bytes) ||
         copy_once(context, to, to_place, between, HOST, bytes);
}

int32_t rx_device_move(RxContext* context, void* to, int32_t to_place, const void* from,
                       int32_t from_place, int64_t bytes) {
  flush(context);
  if (context->has_device_failed) return 1;
  if (!bytes || (to == from && to_place == from_place)) return 0;
  int is_between = to_place != HOST && from_place != HOST && to_place != from_place;
  return (is_between ? copy_between : copy_once)(context, to, to_place, from, from_place, bytes);
}

static int32_t copy_tensor(RxContext* context, void* to, const void* from, int64_t bytes) {
  return rx_device_move(context, to, 0, from, 0, bytes);
}

void* rx_device_read(RxContext* context, int32_t device, const void* from, int64_t bytes) {
  flush(context);
  if (context->has_device_failed) return NULL;
  void* to = reading(context, bytes);
  return to && !copy_once(context, to, HOST, from, device, bytes) ? to : NULL;
}

/* ---- Launches
 * ----------------------------------------------------------------------------------------- */

/* What a device cannot count in 32 bits, with room for groups that reach beyond an extent. */
enum { MOST_INDEX = INT32_MAX - (1 << 16) };

static int are_indices_small(const RxKernel* kernel, const int64_t* words) {
  for (const char* kind = kernel->kinds; *kind; words += rx_argument_words(kind), kind += 2) {
    int64_t count = words[0];
    if (*kind == 'r' || *kind == 'w') count = words[1] / (kind[1] - '0');
    if (*kind != 's' && (count > MOST_INDEX || count < -MOST_INDEX)) return 0;
  }
  return 1;
}

void rx_launch(int32_t kernel, int64_t x, int64_t y, int64_t z, const int64_t* words) {
  Thread* thread = own_thread();
  RxContext* context = thread ? thread->running : NULL;
  if (!context || context->has_device_failed) return;
  const int32_t grid[3] = {(int32_t)x, (int32_t)y, (int32_t)z};
  const char* name = rx_kernels[kernel].name;
  int32_t device = rx_kernels[kernel].device;
  if (x != grid[0] || y != grid[1] || z != grid[2]) {
    fail_device(context, device, name, "has more groups than a device counts");
  } else if (rx_devices[device].index_bits == 32 && !are_indices_small(&rx_kernels[kernel], words)) {
    fail_device(context, device, name, "has more elements than the device's indices of 32 bits count");
  } else {
    collect(context, (RxLaunch){kernel, device, {grid[0], grid[1], grid[2]}, words});
  }
}

int32_t rx_device_product(RxContext* context, int32_t device, const void* product) {
  const RxProduct* own = product;
  if (context->has_device_failed) return 1;
  if (own->count && own->m && own->n)
    collect(context, (RxLaunch){RX_PRODUCT, device, {0}, product});
  return 0;
}

/* Scratch memory of launches: a stack of the running context. Out of memory, it aborts the call. */
void* rx_device_scratch(int32_t device, uint64_t bytes) {
  Thread* thread = own_thread();
  RxContext* context = thread ? thread->running : NULL;
  void* data = NULL;
  if (context && bytes <= INT64_MAX) data = arena_take(&context->scratch[device], (int64_t)bytes);
  if (!data) escape(thread, (int64_t)bytes);
  return data;
}

void rx_device_scratch_free(int32_t device, void* data) {
  Thread* thread = own_thread();
  if (thread && thread->running) arena_release(&thread->running->scratch[device], data);
}

static void wait_for_devices(RxContext* context, int32_t is_told) {
  flush(context);
  acquire_lock(&devices.lock);
  for (int32_t i = 0; i < rx_num_devices; i++) {
    const char* wrong = forked();
    if (!wrong) wrong = driver_of(i)->sync(i);
    if (wrong && is_told) fail_device(context, i, "running kernels", wrong);
  }
  release_lock(&devices.lock);
}

/* At both ends of a span that is recorded, which so is the time of what it launches. */
static void finish_span(Thread* thread) {
  RxContext* context = thread->running;
  if (context && !context->has_device_failed) wait_for_devices(context, 1);
}

/* At the end of a call: waits for the devices; nonzero, with a message, if the call has failed. A
 * device that has failed gives no memory either, and that it has failed is what is told then. */
static int32_t finish_device(RxContext* context, int32_t failed) {
  flush(context);
  for (int32_t i = 0; i < rx_num_devices; i++) arena_empty(&context->scratch[i]);
  wait_for_devices(context, !failed || context->is_out_of_memory);
  return failed || context->has_device_failed;
}

/* ---- Tensors of host programs, on the first device
 * ------------------------------------------------------------------------- */

void* rx_tensor_new(int64_t bytes) { return allocate_tensor(bytes); }

void rx_tensor_free(void* data) { free_tensor(data); }

void rx_tensor_release(RxFresh* fresh) {
  free_tensor(fresh->data);
  fresh->data = NULL;
}

/* Copies for host programs; nonzero, with a text of at most `room` bytes, on failure. */
static int32_t told(const char* wrong, char* text, int32_t room) {
  if (wrong) snprintf(text, (size_t)room, "%s: %s", rx_devices[0].name, wrong);
  release_lock(&devices.lock);
  return !!wrong;
}

int32_t rx_tensor_upload(void* to, const void* from, int64_t bytes, char* text, int32_t room) {
  flush_own();
  acquire_lock(&devices.lock);
  const char* wrong = forked();
  return told(wrong || !bytes ? wrong : driver_of(0)->upload(0, to, from, bytes), text, room);
}

int32_t rx_tensor_download(void* to, const void* from, int64_t bytes, char* text, int32_t room) {
  flush_own();
  acquire_lock(&devices.lock);
  const char* wrong = forked();
  return told(wrong || !bytes ? wrong : driver_of(0)->download(0, to, from, bytes), text, room);
}

/* Waits for what was queued before, as uploads. */
int32_t rx_tensor_sync(char* text, int32_t room) {
  flush_own();
  acquire_lock(&devices.lock);
  const char* wrong = forked();
  return told(wrong ? wrong : driver_of(0)->sync(0), text, room);
}

int64_t rx_tensor_stream(void) { return driver_of(0)->stream(0); }

/* Bytes of all devices that the module uses, or of one. */
int64_t rx_tensor_bytes(void) {
  int64_t sum = 0;
  for (int32_t i = 0; i < rx_num_devices; i++) sum += devices.bytes[i];
  return sum;
}

int64_t rx_device_bytes(int32_t device) { return devices.bytes[device]; }

int32_t rx_tensor_device(void) { return tensor_device(); }
