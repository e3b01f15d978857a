/* How a call ends in the middle of a kernel: by a trap, after which the host calls rx_recover. */

static RxCall* attempted; /* the call that runs */

__attribute__((noreturn, cold, noinline)) static void escape(Thread* thread, int64_t bytes) {
  thread->missing = bytes;
  __builtin_trap();
}

/* Runs body(data). Always returns 0. */
static int64_t attempt(Thread* thread, void (*body)(void*), void* data) {
  attempted = (RxCall*)thread->active->call;
  thread->missing = 0;
  body(data);
  attempted = NULL;
  return 0;
}

/* After a trap in rx_call_on, ends that call: gives back what it had, and returns its status. Traps
 * that the runtime did not make are RX_ERROR, without a message. The stack has to be reset first. */
RX_API int32_t rx_recover(void) {
  Thread* thread = own_thread();
  RxCall* call = attempted;
  end_region();
  if (!call) return RX_ERROR;
  attempted = NULL;
  RxContext* context = call->context;
  while (!context->is_busy && context->next) context = context->next;
  for (Block* block = thread->top; block; block = block->below) block->used = 0;
  free_empty(thread);
  thread->active = NULL;
  thread->threads = 0;
  thread->called = call->context;
  thread->error[0] = 0;
  context->fresh = NULL;
  context->call = NULL;
  release_context(context);
  release_lock(&call->lock);
  if (!thread->missing) return RX_ERROR;
  say_out_of_memory(context);
  say(context, "a kernel needs %lld bytes of scratch memory", (long long)thread->missing);
  memcpy(thread->error, context->error, ERROR_SIZE);
  return RX_OUT_OF_MEMORY;
}
