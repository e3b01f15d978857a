/* Threads that the host program starts, each with an instance of the module on the same memory.
 *
 * One thread makes calls; the others work on its parallel loops. A worker has a state word:
 *
 *     ABSENT --rx_work--> IDLE        IDLE --worker, after spinning--> ASLEEP
 *     IDLE, ASLEEP --caller--> POSTED --worker--> RUNNING --worker--> IDLE
 *     POSTED --caller--> IDLE (withdrawn)        RUNNING --caller--> AWAITED --worker--> IDLE
 *
 * A worker that is gone, or is not scheduled, never takes a post: the caller does its iterations and
 * withdraws. A worker that traps says so in the loop, which traps then too, as it does if one that
 * took a post does not answer. Main threads of pages must not wait: there the caller spins.
 */
enum { MAX_WORKERS = 63, WORKER_STACK = 512 << 10, MAIN_STACK = 1 << 20, TRAP_BYTES = 256 };
enum { SPINS = 20000, CHUNKS_PER_THREAD = 16, WAIT_NS = 1000000 };
enum { ABSENT, IDLE, ASLEEP, POSTED, RUNNING, AWAITED };

typedef struct {
  _Alignas(2 * ALIGNMENT) _Atomic uint32_t state;
  Thread thread;
  char trap[TRAP_BYTES]; /* why it trapped, in the loop that runs */
} Worker;

__attribute__((noreturn)) static void escape(Thread* thread, int64_t bytes);

/* The loop that runs; there is one at a time. */
static struct {
  RxTask task;
  void* data;
  int64_t count, chunk;
  _Alignas(2 * ALIGNMENT) _Atomic int64_t next; /* first iteration that no thread took */
  _Alignas(2 * ALIGNMENT) _Atomic int64_t missing; /* bytes of scratch memory; 0: none */
  _Atomic int32_t has_trapped;
  int32_t has_lost; /* a worker that did not answer */
} region;

static Worker workers[MAX_WORKERS];
static Thread only_thread; /* that makes calls */
static int32_t num_workers, may_wait, num_threads = 1;
static int32_t patience = 60000; /* waits for a worker, of WAIT_NS each */
static uintptr_t stacks; /* of the workers */

/* Stacks tell threads apart. */
static Thread* own_thread(void) {
  uintptr_t at = (uintptr_t)__builtin_frame_address(0);
  return at <= MAIN_STACK ? &only_thread : &workers[(at - 1 - stacks) / WORKER_STACK].thread;
}

static void free_blocks(Thread* thread) {
  for (Block *block = thread->top, *below; block; block = below) {
    below = block->below;
    free(block);
  }
  thread->top = NULL;
}

static void free_own_thread(void) { free_blocks(&only_thread); }

enum { STACK_RESERVE = 256 << 10 }; /* bytes, for kernels and the runtime */

/* The linker puts the caller's stack below all data; workers run kernels only. */
static uintptr_t stack_end(void) { return STACK_RESERVE; }

static int32_t at_most_all(int64_t threads) {
  return threads < 1 ? 0 : threads > num_workers ? num_workers + 1 : (int32_t)threads;
}

void rx_set_threads(int32_t threads) {
  num_threads = threads > 0 ? at_most_all(threads) : num_workers + 1;
}

int32_t rx_get_threads(void) { return num_threads > 1 ? num_threads : 1; }

/* Prepares `count` workers, which then call rx_work; each has the stack that ends at the result plus
 * its index plus one times the result of rx_stack_bytes. `waits`: the caller may wait. 0: out of
 * memory, or there are workers already. */
RX_API uintptr_t rx_add_workers(int32_t count, int32_t waits) {
  if (num_workers || count < 1 || count > MAX_WORKERS) return 0;
  stacks = (uintptr_t)allocate((int64_t)count * WORKER_STACK);
  if (!stacks) return 0;
  may_wait = waits;
  num_workers = count;
  num_threads = count + 1;
  return stacks;
}

RX_API int32_t rx_stack_bytes(void) { return WORKER_STACK; }

static void notify(Worker* worker) { __builtin_wasm_memory_atomic_notify((int*)&worker->state, 1); }

static void wait_while(Worker* worker, uint32_t state, int64_t nanoseconds) {
  __builtin_wasm_memory_atomic_wait32((int*)&worker->state, (int)state, nanoseconds);
}

static void take_part(void) {
  for (;;) {
    int64_t begin = atomic_fetch_add(&region.next, region.chunk);
    if (begin >= region.count) return;
    int64_t left = region.count - begin;
    region.task(region.data, begin, left > region.chunk ? begin + region.chunk : region.count);
  }
}

/* Ends the worker's part. */
static void leave(Worker* worker) {
  if (atomic_exchange(&worker->state, IDLE) == AWAITED) notify(worker);
}

static void await_post(Worker* worker) {
  for (int spin = 0; spin < SPINS; spin++)
    if (atomic_load_explicit(&worker->state, memory_order_acquire) != IDLE) return;
  uint32_t seen = IDLE;
  if (!atomic_compare_exchange_strong(&worker->state, &seen, ASLEEP)) return;
  while (atomic_load(&worker->state) == ASLEEP) wait_while(worker, ASLEEP, -1);
}

/* Runs a worker, for ever, or until it traps: then call rx_worker_trapped, and this again. */
RX_API void rx_work(int32_t index) {
  Worker* worker = &workers[index];
  uint32_t seen = ABSENT;
  worker->thread.in_region = 1; /* always */
  atomic_compare_exchange_strong(&worker->state, &seen, IDLE);
  for (;;) {
    await_post(worker);
    seen = POSTED;
    if (!atomic_compare_exchange_strong(&worker->state, &seen, RUNNING)) continue;
    see_memory();
    take_part();
    leave(worker);
  }
}

/* Where to write why a worker trapped, before rx_worker_trapped: fewer than rx_trap_bytes bytes, and
 * a zero. */
RX_API char* rx_trap_text(int32_t index) { return workers[index].trap; }

RX_API int32_t rx_trap_bytes(void) { return TRAP_BYTES; }

/* Why a worker trapped in the last loop; NULL: none did. */
RX_API const char* rx_told_trap(void) {
  for (int32_t i = 0; i < num_workers; i++)
    if (workers[i].trap[0]) return workers[i].trap;
  return NULL;
}

/* Says that a worker trapped; its stack has to be reset first. */
RX_API void rx_worker_trapped(int32_t index) {
  Worker* worker = &workers[index];
  Thread* thread = &worker->thread;
  if (thread->missing)
    atomic_store(&region.missing, thread->missing);
  else
    atomic_store(&region.has_trapped, 1);
  thread->missing = 0;
  for (Block* block = thread->top; block; block = block->below) block->used = 0;
  free_empty(thread);
  leave(worker);
}

/* Forgets a worker that is gone. */
RX_API void rx_worker_lost(int32_t index) {
  if (atomic_exchange(&workers[index].state, ABSENT) >= RUNNING)
    atomic_store(&region.has_trapped, 1);
}

static int post(Worker* worker) {
  uint32_t seen = atomic_load_explicit(&worker->state, memory_order_relaxed);
  if (seen != IDLE && seen != ASLEEP) return 0;
  if (!atomic_compare_exchange_strong(&worker->state, &seen, POSTED)) {
    if (seen != ASLEEP || !atomic_compare_exchange_strong(&worker->state, &seen, POSTED)) return 0;
  }
  if (seen == ASLEEP) notify(worker);
  return 1;
}

/* Withdraws a post that the worker has not taken, or waits for its end. */
static void join(Worker* worker) {
  uint32_t seen = POSTED;
  if (atomic_compare_exchange_strong(&worker->state, &seen, IDLE)) {
    notify(worker); /* it may have slept before it saw the post */
    return;
  }
  for (int spin = 0; spin < SPINS; spin++)
    if ((seen = atomic_load_explicit(&worker->state, memory_order_acquire)) != RUNNING) break;
  seen = RUNNING;
  if (may_wait) atomic_compare_exchange_strong(&worker->state, &seen, AWAITED);
  for (int32_t waits = 0; (seen = atomic_load(&worker->state)) == RUNNING || seen == AWAITED;) {
    if (!may_wait) continue;
    wait_while(worker, AWAITED, WAIT_NS);
    if (++waits < patience) continue;
    region.has_lost = 1;
    return;
  }
}

/* Whether a worker did not answer: the host program has to end all of them. */
RX_API int32_t rx_has_lost_workers(void) { return region.has_lost; }

RX_API void rx_set_patience(int32_t milliseconds) { patience = milliseconds; }

/* Ends a loop in which the caller trapped. */
static void end_region(void) {
  if (!only_thread.in_region) return;
  atomic_store(&region.next, region.count);
  for (int32_t i = 0; i < num_workers; i++) join(&workers[i]);
  only_thread.in_region = 0;
}

static int32_t helpers_for(const Thread* thread, int64_t count, int64_t grain) {
  if (count <= grain || thread->in_region || region.has_lost) return 0;
  int64_t grains = grain > 0 ? (count - 1) / grain + 1 : count;
  int32_t threads = thread->threads ? thread->threads : num_threads;
  return (threads < grains ? threads : (int32_t)grains) - 1;
}

void rx_parallel_for(RxTask task, void* data, int64_t count, int64_t grain) {
  Thread* thread = own_thread();
  int32_t helpers = helpers_for(thread, count, grain), posted = 0;
  if (helpers <= 0) {
    if (count > 0) task(data, 0, count);
    return;
  }
  int64_t chunk = count / ((int64_t)(helpers + 1) * CHUNKS_PER_THREAD) + 1;
  region.task = task;
  region.data = data;
  region.count = count;
  region.chunk = chunk < grain ? grain : chunk;
  atomic_store(&region.missing, 0);
  atomic_store(&region.has_trapped, 0);
  atomic_store(&region.next, 0);
  thread->in_region = 1;
  for (int32_t i = 0; i < num_workers; i++) workers[i].trap[0] = 0;
  for (int32_t i = 0; i < num_workers && posted < helpers; i++) posted += post(&workers[i]);
  take_part();
  for (int32_t i = 0; i < num_workers; i++) join(&workers[i]);
  thread->in_region = 0;
  tally(RX_PARALLEL_REGIONS, 1);
  if (atomic_load(&region.missing)) escape(thread, region.missing);
  if (region.has_lost || atomic_load(&region.has_trapped)) __builtin_trap();
}
