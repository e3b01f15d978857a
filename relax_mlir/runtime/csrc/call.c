/* Calls of graph functions: what fails on the way becomes an error of the call. */

typedef struct {
  const RxCall* call;
  int32_t failed;
} Running;

static void run_call(void* data) {
  Running* running = data;
  const RxCall* call = running->call;
  running->failed =
      call->entry(call->context, call->args, call->num_args, call->results, call->num_results);
}

int32_t rx_call(RxCall* call) {
  RxContext* context = call->context;
  Running running = {call, 0};
  if (rx_get_threads() < 1) {
    clear_error(context);
    say(context, "RELAX_NUM_THREADS is '%s'; expects a number of threads, 1 or more",
        getenv("RELAX_NUM_THREADS"));
    return RX_ERROR;
  }
  context->call = call;
  int64_t lack = attempt(run_call, &running);
  if (lack) {
    say_lack(context);
    say(context, "a kernel needs %lld bytes of scratch memory", (long long)lack);
    return RX_OUT_OF_MEMORY;
  }
  if (running.failed) return context->lacks_memory ? RX_OUT_OF_MEMORY : RX_ERROR;
  return RX_OK;
}
