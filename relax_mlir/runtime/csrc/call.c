/* Calls of graph functions: any failure becomes an error of the call. */

typedef struct {
  const RxCall* call;
  RxContext* context;
  int32_t failed;
} Running;

static void run_entry(void* data) {
  Running* running = data;
  const RxCall* call = running->call;
  running->failed =
      call->entry(running->context, call->args, call->num_args, call->results, call->num_results);
}

static int32_t run_call(Thread* thread, RxContext* context, RxCall* call, RxFresh* const* fresh) {
  Running running = {call, context, 0};
  context->call = call;
#ifdef RX_DEVICE
  context->has_device_failed = 0;
#endif
  RxContext* outer = thread->running;
  thread->running = context;
  context->fresh = fresh;
  int64_t missing = attempt(thread, run_entry, &running);
  context->fresh = NULL;
  if (missing) {
    say_out_of_memory(context);
    say(context, "a kernel needs %lld bytes of scratch memory", (long long)missing);
  }
#ifdef RX_DEVICE
  running.failed = finish_device(context, missing || running.failed);
#endif
  thread->running = outer;
  if (!missing && !running.failed) return RX_OK;
  if (context->is_interrupted) return RX_INTERRUPTED;
  return context->is_out_of_memory ? RX_OUT_OF_MEMORY : RX_ERROR;
}

/* Makes the call, whose lock the thread holds, on `threads` threads. */
static int32_t call_on(Thread* thread, RxCall* call, int32_t threads, RxFresh* const* fresh) {
  RxContext* context = acquire_context(call->context);
  if (!context) {
    static const char text[] = "out of memory: a context of the call";
    memcpy(thread->error, text, sizeof text);
    return RX_OUT_OF_MEMORY;
  }
  int32_t outer = thread->threads;
  thread->threads = threads;
  start_spans(thread);
  int32_t status = run_call(thread, context, call, fresh);
  thread->threads = outer;
  /* Calls that this one made have set both. */
  thread->called = call->context;
  thread->error[0] = 0;
  if (status) memcpy(thread->error, context->error, ERROR_SIZE);
  release_context(context);
  return status;
}

/* Whether a thread is in a call, for whose lock it would wait for ever. */
static int is_calling(const Thread* thread, const RxCall* call) {
  const Active* active = thread->active;
  while (active && active->call != call) active = active->outer;
  return active != NULL;
}

static int32_t refuse_nested(Thread* thread) {
  static const char text[] = "the call is not over: what it calls cannot make or change it";
  memcpy(thread->error, text, sizeof text);
  return RX_ERROR;
}

/* In a forked child, undoes what a thread that does not exist there was changing. */
static void lock_call(RxCall* call) {
  if (!acquire_lock(&call->lock)) return;
  if (call->changing) call->args[call->changing - 1] = call->before;
  call->changing = 0;
  call->known = RX_NOTHING;
}

int32_t rx_call_on(RxCall* call, int32_t threads, RxFresh* const* fresh) {
  Thread* thread = own_thread();
  if (!thread) return RX_OUT_OF_MEMORY; /* rx_last_error says so */
  thread->called = call->context;
  thread->error[0] = 0;
  if (threads <= 0) threads = call->context->threads;
  if (threads <= 0) threads = rx_get_threads();
  if (threads < 1) {
    snprintf(thread->error, ERROR_SIZE,
             "RELAX_NUM_THREADS is '%s'; expects a thread count of 1 or more",
             getenv("RELAX_NUM_THREADS"));
    return RX_ERROR;
  }
  if (is_calling(thread, call)) return refuse_nested(thread);
  lock_call(call);
  Active active = {call, thread->active};
  RxSpan span = thread->span; /* of the kernel that makes this call, if one does */
  thread->active = &active;
  int32_t status = call_on(thread, call, at_most_all(threads), fresh);
  thread->active = active.outer;
  thread->span = span;
  release_lock(&call->lock);
  return status;
}

int32_t rx_call(RxCall* call) { return rx_call_on(call, 0, NULL); }

int32_t rx_exchange_argument(RxCall* call, int32_t index, DLTensor* tensor) {
  Thread* thread = own_thread();
  if (!thread) return RX_OUT_OF_MEMORY;
  thread->called = call->context;
  if (is_calling(thread, call)) return refuse_nested(thread);
  lock_call(call);
  DLTensor* argument = &call->args[index];
  call->known = RX_NOTHING;
  call->before = *argument;
  /* A child may be forked after any of these stores, and must see them in this order. */
  atomic_thread_fence(memory_order_seq_cst);
  call->changing = index + 1;
  atomic_thread_fence(memory_order_seq_cst);
  *argument = *tensor;
  atomic_thread_fence(memory_order_seq_cst);
  call->changing = 0;
  *tensor = call->before;
  release_lock(&call->lock);
  return RX_OK;
}
