/* One thread, which never waits. */

static Thread only_thread;

static Thread* own_thread(void) { return &only_thread; }

static void free_own_thread(void) {
  for (Block *block = only_thread.top, *below; block; block = below) {
    below = block->below;
    free(block);
  }
  only_thread.top = NULL;
}

enum { STACK_RESERVE = 256 << 10 }; /* bytes, for kernels and the runtime */

/* The linker puts the stack below all data. */
static uintptr_t stack_end(void) { return STACK_RESERVE; }

void rx_set_threads(int32_t threads) { (void)threads; }

int32_t rx_get_threads(void) { return 1; }

static int32_t at_most_all(int64_t threads) { return threads < 1 ? 0 : 1; }

void rx_parallel_for(RxTask task, void* data, int64_t count, int64_t grain) {
  (void)grain;
  if (count > 0) task(data, 0, count);
}

static void end_region(void) {}
