/* What generated code and host programs do with a device. The first failure of a call is its
 * error: kernels cannot report any, so nothing more is launched then, and the call fails when it
 * ends, or when it reads from the device. */

extern const int32_t rx_device_index_bits;

static void fail_device(RxContext* context, const char* what, const char* why) {
  if (context->has_device_failed) return;
  clear_error(context);
  context->has_device_failed = 1;
  say(context, "%s: %s: %s", rx_device_name, what, why);
}

/* ---- Launches that are collected until something else is done
 * ------------------------------------- */

enum { MOST_LAUNCHES = 1024, MOST_WORDS = 16 << 10 };

/* In a context: launches that were not made yet, and what they pass. */
struct Collected {
  int32_t count, num_words;
  RxLaunch launches[MOST_LAUNCHES];
  int64_t words[MOST_WORDS];
};

static void launch_now(RxContext* context, const RxLaunch* launches, int32_t count) {
  int32_t failed = 0;
  acquire_lock(&device.lock);
  const char* wrong = forked();
  if (!wrong) wrong = rx_device_launch(launches, count, &failed);
  if (wrong) fail_device(context, rx_kernels[launches[failed].kernel].name, wrong);
  release_lock(&device.lock);
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
  int32_t most = rx_device_batch(), num_words = rx_kernel_words(&rx_kernels[launch.kernel]);
  if (most > 1 && !context->collected)
    context->collected = calloc(1, sizeof *context->collected);
  Collected* own = context->collected;
  if (most <= 1 || !own || num_words > MOST_WORDS) {
    flush(context);
    launch_now(context, &launch, 1);
    return;
  }
  if (own->count == most || own->count == MOST_LAUNCHES || num_words > MOST_WORDS - own->num_words)
    flush(context);
  int64_t* words = own->words + own->num_words;
  memcpy(words, launch.words, (size_t)num_words * sizeof *words);
  launch.words = words;
  own->launches[own->count++] = launch;
  own->num_words += num_words;
}

/* ---- Copies
 * ------------------------------------------------------------------------------------------- */

static int32_t copy_tensor(RxContext* context, void* to, const void* from, int64_t bytes) {
  flush(context);
  if (context->has_device_failed) return 1;
  if (!bytes || to == from) return 0;
  acquire_lock(&device.lock);
  const char* wrong = forked();
  if (!wrong) wrong = rx_device_copy(to, from, bytes);
  if (wrong) fail_device(context, "a copy", wrong);
  release_lock(&device.lock);
  return !!wrong;
}

int32_t rx_device_move(RxContext* context, void* to, const void* from, int64_t bytes) {
  return copy_tensor(context, to, from, bytes);
}

void* rx_device_read(RxContext* context, const void* from, int64_t bytes) {
  flush(context);
  if (context->has_device_failed) return NULL;
  void* to = realloc(context->read, (size_t)bytes + 1);
  if (!to) {
    say_out_of_memory(context);
    say(context, "a copy of %lld bytes from the device", (long long)bytes);
    return NULL;
  }
  context->read = to;
  acquire_lock(&device.lock);
  const char* wrong = forked();
  if (!wrong) wrong = rx_device_download(to, from, bytes);
  if (wrong) fail_device(context, "a copy to the host", wrong);
  release_lock(&device.lock);
  return wrong ? NULL : to;
}

int32_t rx_device_fetch(RxContext* context, void* to, const void* from, int64_t bytes) {
  flush(context);
  if (context->has_device_failed) return 1;
  if (!bytes) return 0;
  acquire_lock(&device.lock);
  const char* wrong = forked();
  if (!wrong) wrong = rx_device_download(to, from, bytes);
  if (wrong) fail_device(context, "a copy to the host", wrong);
  release_lock(&device.lock);
  return !!wrong;
}

int32_t rx_device_write(RxContext* context, void* to, const void* from, int64_t bytes) {
  flush(context);
  if (context->has_device_failed) return 1;
  acquire_lock(&device.lock);
  const char* wrong = forked();
  if (!wrong) wrong = rx_device_upload(to, from, bytes);
  if (wrong) fail_device(context, "a copy to the device", wrong);
  release_lock(&device.lock);
  return !!wrong;
}

/* ---- Launches
 * ----------------------------------------------------------------------------------------- */

/* What a device cannot count in 32 bits, with room for groups that reach beyond an extent. */
enum { MOST_INDEX = INT32_MAX - (1 << 16) };

static int are_indices_small(const RxKernel* kernel, const int64_t* words) {
  for (const char* kind = kernel->kinds; *kind; kind += 2) {
    int64_t count = *words++;
    if (*kind == 'r' || *kind == 'w') count = *words++ / (kind[1] - '0');
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
  if (x != grid[0] || y != grid[1] || z != grid[2]) {
    fail_device(context, name, "has more groups than a device counts");
  } else if (rx_device_index_bits == 32 && !are_indices_small(&rx_kernels[kernel], words)) {
    fail_device(context, name, "has more elements than the device's indices of 32 bits count");
  } else {
    collect(context, (RxLaunch){kernel, {grid[0], grid[1], grid[2]}, words});
  }
}

/* Scratch memory of launches: a stack of the running context. Out of memory, it aborts the call. */
void* rx_device_scratch(uint64_t bytes) {
  Thread* thread = own_thread();
  RxContext* context = thread ? thread->running : NULL;
  void* data = context && bytes <= INT64_MAX ? arena_take(&context->scratch, (int64_t)bytes) : NULL;
  if (!data) escape(thread, (int64_t)bytes);
  return data;
}

void rx_device_scratch_free(void* data) {
  Thread* thread = own_thread();
  if (thread && thread->running) arena_release(&thread->running->scratch, data);
}

/* At the end of a call: waits for the device; nonzero, with a message, if the call has failed. */
static int32_t finish_device(RxContext* context, int32_t failed) {
  flush(context);
  arena_empty(&context->scratch);
  acquire_lock(&device.lock);
  const char* wrong = forked();
  if (!wrong) wrong = rx_device_sync();
  if (wrong && !failed) fail_device(context, "running kernels", wrong);
  release_lock(&device.lock);
  return failed || context->has_device_failed;
}

/* ---- Tensors of host programs
 * ------------------------------------------------------------------------- */

void* rx_tensor_new(int64_t bytes) { return allocate_tensor(bytes); }

void rx_tensor_free(void* data) { free_tensor(data); }

void rx_tensor_release(RxFresh* fresh) {
  free_tensor(fresh->data);
  fresh->data = NULL;
}

/* Copies for host programs; nonzero, with a text of at most `room` bytes, on failure. */
static int32_t told(const char* wrong, char* text, int32_t room) {
  if (wrong) snprintf(text, (size_t)room, "%s: %s", rx_device_name, wrong);
  release_lock(&device.lock);
  return !!wrong;
}

int32_t rx_tensor_upload(void* to, const void* from, int64_t bytes, char* text, int32_t room) {
  flush_own();
  acquire_lock(&device.lock);
  const char* wrong = forked();
  return told(wrong || !bytes ? wrong : rx_device_upload(to, from, bytes), text, room);
}

int32_t rx_tensor_download(void* to, const void* from, int64_t bytes, char* text, int32_t room) {
  flush_own();
  acquire_lock(&device.lock);
  const char* wrong = forked();
  return told(wrong || !bytes ? wrong : rx_device_download(to, from, bytes), text, room);
}

/* Waits for what was queued before, as uploads. */
int32_t rx_tensor_sync(char* text, int32_t room) {
  flush_own();
  acquire_lock(&device.lock);
  const char* wrong = forked();
  return told(wrong ? wrong : rx_device_sync(), text, room);
}

int64_t rx_tensor_stream(void) { return rx_device_stream(); }

int64_t rx_tensor_bytes(void) { return device.bytes; }

int32_t rx_tensor_device(void) { return rx_device_type(); }
