/* Spans of time of the kernels of host functions, recorded on request. */
#include <time.h>

static RxSpan* spans;
static int64_t span_capacity, num_spans;

static int64_t now_ns(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

int32_t rx_profile(int64_t capacity) {
  free(spans);
  num_spans = span_capacity = 0;
  spans = capacity > 0 ? malloc((size_t)capacity * sizeof *spans) : NULL;
  if (capacity > 0 && !spans) return 1;
  span_capacity = capacity;
  return 0;
}

int64_t rx_num_spans(void) { return num_spans; }

const RxSpan* rx_spans(void) { return spans; }

void rx_span_begin(int32_t site) {
  if (num_spans >= span_capacity) return;
  spans[num_spans].site = site;
  spans[num_spans].begin = now_ns();
}

void rx_span_end(void) {
  if (num_spans >= span_capacity) return;
  spans[num_spans++].end = now_ns();
}
