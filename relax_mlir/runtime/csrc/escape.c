/* How a call ends in the middle of a kernel that runs out of scratch memory. */
#include <setjmp.h>

/* Where a thread continues, and the stack to restore. */
struct Escape {
  jmp_buf jump;
  Block* block;
  int64_t used;
  struct Escape* outer;
};

/* Aborts the innermost `attempt` of the thread. */
__attribute__((noreturn, cold, noinline)) static void escape(Thread* thread, int64_t bytes) {
  if (!thread || !thread->escape) {
    dprintf(STDERR_FILENO, "relax: out of memory: a kernel needs %lld bytes of scratch memory\n",
            (long long)bytes);
    abort();
  }
  thread->missing = bytes;
  longjmp(thread->escape->jump, 1);
}

/* Frees what was pushed since the `attempt` began. */
__attribute__((cold, noinline)) static void unwind(Thread* thread, const Escape* from) {
  for (Block* block = thread->top; block && block != from->block; block = block->below)
    block->used = 0;
  if (from->block) from->block->used = from->used;
  free_empty(thread);
}

/* Runs body(data). Returns 0, or the bytes of scratch memory that could not be allocated: then the
 * body was aborted, and what it had pushed is freed. */
static int64_t attempt(Thread* thread, void (*body)(void*), void* data) {
  Escape here = {.block = thread->top, .outer = thread->escape};
  while (here.block && !here.block->used) here.block = here.block->below;
  if (here.block) here.used = here.block->used;
  thread->escape = &here;
  if (_setjmp(here.jump)) {
    unwind(thread, &here);
    thread->escape = here.outer;
    return thread->missing;
  }
  body(data); /* which may make calls of its own */
  thread->escape = here.outer;
  return 0;
}
