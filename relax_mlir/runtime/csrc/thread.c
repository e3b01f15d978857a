/* The state of each thread, shared by the modules that it calls. */
#include <setjmp.h>

enum { ERROR_SIZE = 1024 };

/* A block of a thread's scratch stack. */
typedef struct Block {
  _Alignas(ALIGNMENT) struct Block* below;
  int64_t size, used; /* of the bytes after the header */
} Block;

/* Where a thread continues when it runs out of scratch memory, and the stack to restore. */
typedef struct Escape {
  jmp_buf jump;
  Block* block;
  int64_t used;
  struct Escape* outer;
} Escape;

/* A call that a thread makes, in which it may make others. */
typedef struct Active {
  const RxCall* call;
  struct Active* outer;
} Active;

typedef struct {
  Block* top;
  Escape* escape;          /* the innermost; NULL outside of `attempt` */
  int64_t missing;         /* bytes of scratch memory that could not be allocated */
  int32_t threads;         /* of the running call; 0: those of rx_set_threads */
  int32_t in_region;       /* nested loops run on this thread */
  uintptr_t stack_end;     /* with a reserve; 0 until it is asked for, 1: not known */
  RxSpan span;             /* of the running kernel, while spans are recorded */
  Active* active;          /* the innermost call */
  const RxContext* called; /* of the last rx_call, */
  char error[ERROR_SIZE];  /* and its message */
} Thread;

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
