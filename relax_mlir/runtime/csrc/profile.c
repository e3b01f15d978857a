/* Time spans of the kernels of host functions, recorded on request. */

static uint32_t spans_lock;
static _Atomic int64_t span_capacity; /* 0: nothing is recorded */
static _Atomic int32_t num_calls;
static int64_t num_spans;
static RxSpan* spans;

int32_t rx_profile(int64_t capacity) {
  int is_possible = capacity < MOST_BYTES / (int64_t)sizeof *spans;
  RxSpan* fresh = NULL;
  if (capacity > 0 && is_possible) fresh = malloc((size_t)capacity * sizeof *spans);
  acquire_lock(&spans_lock);
  RxSpan* before = spans;
  num_spans = num_calls = span_capacity = 0;
  spans = fresh;
  span_capacity = fresh ? capacity : 0;
  release_lock(&spans_lock);
  free(before);
  return capacity > 0 && !fresh;
}

int64_t rx_spans(RxSpan* copies, int64_t capacity) {
  acquire_lock(&spans_lock);
  int64_t count = num_spans;
  if (count < capacity) capacity = count;
  if (capacity > 0) memcpy(copies, spans, (size_t)capacity * sizeof *spans);
  release_lock(&spans_lock);
  return count;
}

static int is_recording(void) {
  return atomic_load_explicit(&span_capacity, memory_order_relaxed) != 0;
}

/* Gives a call an index, which tells its spans from those of calls that overlap. */
static void start_spans(Thread* thread) {
  thread->span = (RxSpan){.call = is_recording() ? atomic_fetch_add(&num_calls, 1) : 0};
}

#ifndef RX_DEVICE
static void finish_span(Thread* thread) { (void)thread; }
#endif

void rx_span_begin(int32_t site) {
  Thread* thread = is_recording() ? own_thread() : NULL;
  if (!thread) return;
  finish_span(thread);
  thread->span.site = site;
  thread->span.begin = now_ns();
}

void rx_span_end(void) {
  Thread* thread = is_recording() ? own_thread() : NULL;
  if (!thread || !thread->span.begin) return; /* recording has just begun */
  finish_span(thread);
  thread->span.end = now_ns();
  acquire_lock(&spans_lock);
  if (num_spans < span_capacity) spans[num_spans++] = thread->span;
  release_lock(&spans_lock);
  thread->span.begin = 0;
}
