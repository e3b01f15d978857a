/* Loops of host code ask a word in memory whether to go on: a host that lets another thread make a
 * call writes it meanwhile. */

static volatile int32_t stop_word;

RX_API int32_t* rx_stop_word(void) { return (int32_t*)&stop_word; }

int32_t rx_poll(RxContext* context, int32_t weight) {
  (void)weight;
  if (!stop_word) return 0;
  stop_word = 0;
  rx_fail(context, "interrupted");
  context->is_interrupted = 1;
  return 1;
}
