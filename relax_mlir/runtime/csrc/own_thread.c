/* The state of the calling thread, of which POSIX keeps the address, and its stack. */

static void free_thread(void* pointer) {
  Thread* thread = pointer;
  for (Block *block = thread->top, *below; block; block = below) {
    below = block->below;
    free(block);
  }
  free(thread);
}

__attribute__((cold, noinline)) static Thread* new_thread(void) {
  Thread* thread = RX_PROCESS.has_key ? calloc(1, sizeof *thread) : NULL;
  if (thread && pthread_setspecific(RX_PROCESS.key, thread)) {
    free(thread);
    thread = NULL;
  }
  if (thread) tally(RX_ALLOCATIONS, 1);
  return thread;
}

/* NULL: out of memory. */
static Thread* own_thread(void) {
  Thread* thread = RX_PROCESS.has_key ? pthread_getspecific(RX_PROCESS.key) : NULL;
  return thread ? thread : new_thread();
}

/* Frees the calling thread's state; the next use allocates a new one. */
static void free_own_thread(void) {
  Thread* thread = RX_PROCESS.has_key ? pthread_getspecific(RX_PROCESS.key) : NULL;
  if (thread && !pthread_setspecific(RX_PROCESS.key, NULL)) free_thread(thread);
}

enum { STACK_RESERVE = 256 << 10 }; /* bytes, for kernels and the runtime */

/* The end of the calling thread's stack, with a reserve; 1 if it is not known. */
static uintptr_t stack_end(void) {
  pthread_attr_t attributes;
  void* lowest = NULL;
  size_t size = 0;
  if (pthread_getattr_np(pthread_self(), &attributes)) return 1;
  int failed = pthread_attr_getstack(&attributes, &lowest, &size);
  pthread_attr_destroy(&attributes);
  if (failed || !size) return 1;
  return (uintptr_t)lowest + (size / 2 < STACK_RESERVE ? size / 2 : STACK_RESERVE);
}
