/* Loops of host code, which may be endless, ask the host program now and then whether to go on. */

enum { POLL_WEIGHT = 64 };
static const int64_t POLL_INTERVAL = 20000000; /* nanoseconds */

int32_t rx_poll(RxContext* context, int32_t weight) {
  context->rounds += weight;
  if (context->rounds < POLL_WEIGHT) return 0;
  context->rounds = 0;
  int64_t now = now_ns();
  if (now - context->polled < POLL_INTERVAL) return 0;
  context->polled = now;
  if (!is_interrupted()) return 0;
  rx_fail(context, "interrupted");
  context->is_interrupted = 1;
  return 1;
}
