/* Graph functions that call themselves: how deep their calls are nested is limited, by a count and
 * by the stack of the thread. */

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
