/* Bounded queues between the stages of a stream; any threads push to them and pop from them.
 *
 * Nobody locks: a thread claims the cell at a position by one exchange of `tail` or `head`, and the
 * turn of the cell says when it may be written or read. Threads that find a full or an empty queue
 * sleep in the kernel. Source: D. Vyukov's bounded queue, with turns for any depth.
 */
#include <errno.h>
#include <limits.h>
#include <time.h>

static const uint64_t CLOSED = (uint64_t)1 << 63; /* in `tail`, so that no push comes after it */

/* The position p is in the cell p % depth, in its lap p / depth. A turn is twice the lap while the
 * cell is free, and 1 more while it holds the item. */
typedef struct {
  _Atomic uint64_t turn;
  uint64_t item;
} Cell;

/* Threads that sleep until a queue changes. */
typedef struct {
  _Atomic uint32_t changes;
  _Atomic int32_t count;
} Waiters;

/* What other threads write is in other lines of a cache. */
struct RxQueue {
  uint64_t depth;
  Waiters for_space, for_item;
  char apart[ALIGNMENT];
  _Atomic uint64_t tail; /* the position of the next push */
  char more_apart[ALIGNMENT];
  _Atomic uint64_t head; /* the position of the next pop */
  char most_apart[ALIGNMENT];
  Cell cells[];
};

RxQueue* rx_queue_new(int64_t depth) {
  if (depth < 1 || depth > MOST_BYTES / (int64_t)(sizeof(Cell) + sizeof(RxQueue))) return NULL;
  RxQueue* queue = calloc(1, sizeof(RxQueue) + (size_t)depth * sizeof(Cell));
  if (queue) queue->depth = (uint64_t)depth;
  return queue;
}

void rx_queue_free(RxQueue* queue) { free(queue); }

static void notify(Waiters* waiters) {
  atomic_fetch_add(&waiters->changes, 1);
  /* All: the first that wakes may find a cell in front that another thread still writes. */
  if (atomic_load(&waiters->count)) futex(&waiters->changes, FUTEX_WAKE_PRIVATE, INT_MAX);
}

/* The cell at a position of `next`, if it is free, or full, and no other thread claims it. */
static Cell* claim(RxQueue* queue, _Atomic uint64_t* next, uint64_t at, int is_full) {
  Cell* cell = &queue->cells[at % queue->depth];
  uint64_t turn = 2 * (at / queue->depth) + (uint64_t)is_full;
  if (atomic_load_explicit(&cell->turn, memory_order_acquire) != turn) return NULL;
  return atomic_compare_exchange_strong(next, &at, at + 1) ? cell : NULL;
}

static int32_t try_push(RxQueue* queue, uint64_t* item) {
  for (;;) {
    uint64_t at = atomic_load(&queue->tail);
    if (at & CLOSED) return RX_QUEUE_CLOSED;
    Cell* cell = claim(queue, &queue->tail, at, 0);
    if (cell) {
      cell->item = *item;
      atomic_fetch_add_explicit(&cell->turn, 1, memory_order_release);
      notify(&queue->for_item);
      return RX_OK;
    }
    if (at == atomic_load(&queue->tail)) return RX_QUEUE_BUSY;
  }
}

static int32_t try_pop(RxQueue* queue, uint64_t* item) {
  for (;;) {
    uint64_t at = atomic_load(&queue->head);
    Cell* cell = claim(queue, &queue->head, at, 1);
    if (cell) {
      *item = cell->item;
      atomic_fetch_add_explicit(&cell->turn, 1, memory_order_release);
      notify(&queue->for_space);
      return RX_OK;
    }
    uint64_t tail = atomic_load(&queue->tail);
    if (at != atomic_load(&queue->head)) continue;
    return tail == (at | CLOSED) ? RX_QUEUE_CLOSED : RX_QUEUE_BUSY;
  }
}

/* Sleeps until a notification after `seen`; nonzero after a signal. */
static int32_t sleep_on(Waiters* waiters, uint32_t seen, int64_t left) {
  struct timespec limit = {(time_t)(left / 1000000000), (long)(left % 1000000000)};
  return syscall(SYS_futex, &waiters->changes, FUTEX_WAIT_PRIVATE, seen, &limit, NULL, 0) &&
         errno == EINTR;
}

typedef int32_t (*Attempt)(RxQueue*, uint64_t* item);

static int32_t attempt_within(RxQueue* queue, Attempt attempt, Waiters* waiters, uint64_t* item,
                              int64_t nanoseconds) {
  static const int64_t LONGEST = (int64_t)1 << 60; /* 36 years */
  int32_t status = attempt(queue, item), is_interrupted = 0;
  if (status != RX_QUEUE_BUSY || nanoseconds <= 0) return status;
  int64_t end = now_ns() + (nanoseconds < LONGEST ? nanoseconds : LONGEST);
  atomic_fetch_add(&waiters->count, 1);
  for (;;) {
    uint32_t seen = atomic_load(&waiters->changes);
    status = attempt(queue, item);
    int64_t left = end - now_ns();
    if (status != RX_QUEUE_BUSY || is_interrupted || left <= 0) break;
    is_interrupted = sleep_on(waiters, seen, left);
  }
  atomic_fetch_sub(&waiters->count, 1);
  return status;
}

int32_t rx_queue_push(RxQueue* queue, uint64_t item, int64_t nanoseconds) {
  return attempt_within(queue, try_push, &queue->for_space, &item, nanoseconds);
}

int32_t rx_queue_pop(RxQueue* queue, uint64_t* item, int64_t nanoseconds) {
  return attempt_within(queue, try_pop, &queue->for_item, item, nanoseconds);
}

void rx_queue_close(RxQueue* queue) {
  atomic_fetch_or(&queue->tail, CLOSED);
  notify(&queue->for_space);
  notify(&queue->for_item);
}
