/* Heap memory and the counters that tests and benchmarks read. */
#include <stdatomic.h>
#include <stdlib.h>
#ifdef __linux__
#include <sys/mman.h>
#endif

enum { ALIGNMENT = 64, HUGE_PAGE = 2 << 20 };

/* Of an address space. */
static const int64_t MOST_BYTES = sizeof(void*) == 8 ? (int64_t)1 << 47 : INTPTR_MAX;

static _Atomic int64_t counters[RX_NUM_COUNTERS];

static void tally(int which, int64_t count) {
  atomic_fetch_add_explicit(&counters[which], count, memory_order_relaxed);
}

int64_t rx_counter(int32_t which) {
  if (which < 0 || which >= RX_NUM_COUNTERS) return -1;
  return atomic_load_explicit(&counters[which], memory_order_relaxed);
}

void rx_count_kernels(int64_t count) { tally(RX_KERNELS, count); }

/* Rounds up to a multiple of a power of two; 0 becomes one unit, so that every block has a unique
 * address. */
static int64_t round_up(int64_t bytes, int64_t unit) {
  return bytes <= 0 ? unit
                    : (int64_t)(((uint64_t)bytes + (uint64_t)unit - 1) & ~(uint64_t)(unit - 1));
}

/* NULL if out of memory, or if the size is negative or exceeds the address space. */
static void* allocate(int64_t bytes) {
#ifdef __linux__
  int64_t unit = bytes >= 2 * HUGE_PAGE ? HUGE_PAGE : ALIGNMENT;
#else
  int64_t unit = ALIGNMENT;
#endif
  if (bytes < 0 || bytes > MOST_BYTES) return NULL;
  bytes = round_up(bytes, unit);
  void* data = aligned_alloc((size_t)unit, (size_t)bytes);
  if (!data) return NULL;
#ifdef __linux__
  /* Fewer TLB misses when a kernel streams through a large buffer; failure is harmless. */
  if (unit == HUGE_PAGE) madvise(data, (size_t)bytes, MADV_HUGEPAGE);
#endif
  tally(RX_ALLOCATIONS, 1);
  return data;
}

void rx_free(void* data) { free(data); }

void rx_release(RxFresh* fresh) {
  free(fresh->data);
  fresh->data = NULL;
}
