/* Graph functions that call themselves: how deep their calls are nested is limited, by a count and
 * by the stack of the thread. */

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

static int has_stack(void) {
  char here;
  Thread* thread = own_thread();
  if (!thread) return 0;
  if (!thread->stack_end) thread->stack_end = stack_end();
  return (uintptr_t)&here >= thread->stack_end;
}

int32_t rx_enter(RxContext* context, const char* where) {
  int is_full = context->depth >= RX_MAX_DEPTH;
  if (is_full || !has_stack()) {
    clear_error(context);
    say(context, "%s is nested %d calls deep, ", where, context->depth);
    say(context, is_full ? "which is the limit" : "and the stack of the thread is used up");
    return 1;
  }
  context->depth++;
  return rx_poll(context, 16);
}

void rx_leave(RxContext* context) { context->depth--; }
