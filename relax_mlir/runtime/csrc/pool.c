/* The thread pool: workers spin briefly for the next region, then sleep on a futex.
 *
 * A process has one pool, whose workers several regions may use at the same time: a caller claims
 * free workers in a bit mask. Each worker has a state word. The caller posts its region to the
 * workers it claimed, works itself, and at the end withdraws posts that no worker has started: a
 * sleeping or preempted worker never delays a region.
 *
 *     IDLE --caller--> POSTED --worker--> RUNNING --worker--> IDLE
 *     ASLEEP --caller--> POSTED (and a wake-up)      POSTED --caller--> IDLE (withdrawn)
 *     IDLE --worker, after spinning--> ASLEEP
 *
 * If cores share no cache, the transfer of a line from one to another takes 0.2 us. All that a
 * worker needs to start is in the line of its state, and the caller waits for none before it works.
 */
#include <sched.h>
#include <signal.h>

enum { MAX_THREADS = 256, SPIN = 3000, JOIN_SPIN = 256, CHUNKS_PER_THREAD = 16 };
enum { WORD_BITS = 64, WORDS = MAX_THREADS / WORD_BITS };
enum { IDLE, POSTED, RUNNING, ASLEEP };

typedef struct Region Region;

/* One thread's part of a region: consecutive iterations, which probably read adjacent memory.
 * Aligned to two lines, since machines prefetch pairs. */
typedef struct {
  _Alignas(2 * ALIGNMENT) _Atomic uint32_t state; /* of the worker */
  _Atomic int32_t caller_cpu;                     /* when it woke the worker */
  Region* region;
  RxTask task;
  void* data;
  int64_t chunk;
  _Atomic int64_t next; /* first iteration that no thread took */
  int64_t end;
  int32_t index; /* in the region */
} Share;

/* A loop that several threads run, on the stack of its caller. */
struct Region {
  Share own; /* the caller's */
  int32_t num_shares;
  _Atomic int64_t missing; /* bytes of scratch memory that a thread could not allocate; 0: none */
  Share* shares[MAX_THREADS];
};

struct Pool {
  _Alignas(2 * ALIGNMENT) _Atomic uint64_t unclaimed[WORDS]; /* a bit for each worker */
  _Atomic int32_t num_workers;
  _Atomic int32_t is_growing;
  int32_t num_cpus;
  Share workers[MAX_THREADS];
};

static _Atomic int32_t num_threads; /* 0: not set yet */

static void relax_cpu(void) {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __builtin_arm_isb(15); /* a longer pause than `yield`, which most cores ignore */
#endif
}

static int32_t at_most_all(int64_t threads) {
  return threads < MAX_THREADS ? (int32_t)threads : MAX_THREADS;
}

/* The CPUs of the main thread; other threads may be bound to fewer. Nonzero on failure. */
static int get_cpus(cpu_set_t* cpus) { return sched_getaffinity(getpid(), sizeof *cpus, cpus); }

static int32_t count_cpus(void) {
  cpu_set_t cpus;
  return get_cpus(&cpus) ? 1 : at_most_all(CPU_COUNT(&cpus));
}

/* 0 if the environment variable is not a valid thread count. */
static int32_t default_threads(void) {
  const char* text = getenv("RELAX_NUM_THREADS");
  if (!text || !*text) return count_cpus();
  char* end;
  long wanted = strtol(text, &end, 10);
  return *end || wanted < 1 ? 0 : at_most_all(wanted);
}

void rx_set_threads(int32_t threads) {
  threads = threads > 0 ? at_most_all(threads) : default_threads();
  atomic_store_explicit(&num_threads, threads, memory_order_relaxed);
}

int32_t rx_get_threads(void) {
  int32_t threads = atomic_load_explicit(&num_threads, memory_order_relaxed);
  if (threads) return threads;
  rx_set_threads(0);
  return atomic_load_explicit(&num_threads, memory_order_relaxed);
}

/* Takes chunks of one share until none is left. */
static void work_on(Share* share) {
  RxTask task = share->task;
  void* data = share->data;
  int64_t chunk = share->chunk, last = share->end;
  for (;;) {
    int64_t begin = atomic_fetch_add_explicit(&share->next, chunk, memory_order_relaxed);
    if (begin >= last) return;
    task(data, begin, last - begin > chunk ? begin + chunk : last);
  }
}

/* Works on the thread's own share, in order, then helps with the others. */
static void work(void* data) {
  Share* own = data;
  work_on(own);
  const Region* region = own->region;
  for (int32_t i = 1; i < region->num_shares; i++)
    work_on(region->shares[(own->index + i) % region->num_shares]);
}

static void take_part(Share* own) {
  Thread* thread = own_thread();
  int64_t missing = thread ? attempt(thread, work, own) : (int64_t)sizeof *thread;
  if (missing) atomic_store(&own->region->missing, missing);
}

/* Migrates away from the caller's core, where the system may have woken this thread, and might
 * leave it for tens of milliseconds although another core is idle. */
static void leave_caller(Share* share) {
  cpu_set_t allowed, others;
  int cpu = sched_getcpu();
  if (cpu < 0 || cpu != atomic_load_explicit(&share->caller_cpu, memory_order_relaxed)) return;
  if (sched_getaffinity(0, sizeof allowed, &allowed)) return;
  others = allowed;
  CPU_CLR(cpu, &others);
  if (CPU_COUNT(&others) && !sched_setaffinity(0, sizeof others, &others))
    sched_setaffinity(0, sizeof allowed, &allowed);
}

/* Waits until the state is not IDLE; returns it. */
static uint32_t await_post(Share* share) {
  _Atomic uint32_t* state = &share->state;
  for (int spin = 1; spin <= SPIN; spin++) {
    uint32_t seen = atomic_load_explicit(state, memory_order_acquire);
    if (seen != IDLE) return seen;
    /* The caller may share this core: let it run. */
    if (spin % 64 == 0) sched_yield();
    relax_cpu();
  }
  uint32_t seen = IDLE;
  if (!atomic_compare_exchange_strong(state, &seen, ASLEEP)) return seen;
  while ((seen = atomic_load(state)) == ASLEEP) futex(state, FUTEX_WAIT_PRIVATE, ASLEEP);
  leave_caller(share);
  return seen;
}

static void* run_worker(void* argument) {
  Share* share = argument;
  Thread* thread = own_thread();
  cpu_set_t cpus;
  if (thread) thread->in_region = 1; /* always */
  if (!get_cpus(&cpus)) sched_setaffinity(0, sizeof cpus, &cpus); /* not its caller's affinity */
  for (;;) {
    uint32_t seen = await_post(share);
    if (seen != POSTED || !atomic_compare_exchange_strong(&share->state, &seen, RUNNING)) continue;
    take_part(share);
    atomic_store_explicit(&share->state, IDLE, memory_order_release);
  }
}

/* The pool; NULL: out of memory. */
static Pool* get_pool(void) {
  Pool* pool = atomic_load_explicit(&RX_PROCESS.pool, memory_order_acquire);
  if (pool) return pool;
  int protection = PROT_READ | PROT_WRITE, flags = MAP_PRIVATE | MAP_ANONYMOUS;
  void* fresh = mmap(NULL, sizeof *pool, protection, flags, -1, 0);
  if (fresh == MAP_FAILED) return NULL;
  ((Pool*)fresh)->num_cpus = count_cpus();
  if (atomic_compare_exchange_strong(&RX_PROCESS.pool, &pool, fresh)) return fresh;
  munmap(fresh, sizeof *pool);
  return pool; /* another thread's */
}

static void forget_workers(void) {
  Pool* pool = atomic_load(&RX_PROCESS.pool);
  if (!pool) return;
  for (int word = 0; word < WORDS; word++) atomic_store(&pool->unclaimed[word], 0);
  atomic_store(&pool->num_workers, 0);
  atomic_store(&pool->is_growing, 0);
}

/* Adds up to `wanted` free workers to the region. */
static void claim_workers(Pool* pool, Region* region, int32_t wanted) {
  for (int word = 0; word < WORDS && wanted > 0; word++) {
    uint64_t seen = atomic_load_explicit(&pool->unclaimed[word], memory_order_relaxed), rest, taken;
    int32_t count;
    do {
      for (count = 0, rest = seen; rest && count < wanted; count++) rest &= rest - 1;
      taken = seen ^ rest; /* the lowest bits, so that the same workers are reused */
    } while (taken && !atomic_compare_exchange_weak_explicit(&pool->unclaimed[word], &seen, rest,
                                                             memory_order_acquire,
                                                             memory_order_relaxed));
    for (; taken; taken &= taken - 1, wanted--)
      region->shares[region->num_shares++] =
          &pool->workers[word * WORD_BITS + __builtin_ctzll(taken)];
  }
}

static void release_workers(Pool* pool, const Region* region) {
  uint64_t taken[WORDS] = {0};
  for (int32_t i = 1; i < region->num_shares; i++) {
    int64_t worker = region->shares[i] - pool->workers;
    taken[worker / WORD_BITS] |= (uint64_t)1 << worker % WORD_BITS;
  }
  for (int word = 0; word < WORDS; word++)
    if (taken[word])
      atomic_fetch_or_explicit(&pool->unclaimed[word], taken[word], memory_order_release);
}

/* Starts workers for a region that got fewer than `wanted`. The pool grows up to one worker less
 * than there are CPUs, or to `wanted`. */
static void start_workers(Pool* pool, Region* region, int32_t wanted) {
  int32_t most = wanted >= pool->num_cpus ? wanted : pool->num_cpus - 1;
  sigset_t all, old;
  if (atomic_load_explicit(&pool->num_workers, memory_order_relaxed) >= most) return;
  if (atomic_exchange(&pool->is_growing, 1)) return; /* by another caller */
  /* Signals belong to the host program's threads. */
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &old);
  while (region->num_shares <= wanted && pool->num_workers < most) {
    Share* share = &pool->workers[pool->num_workers];
    pthread_t thread;
    atomic_store(&share->state, IDLE);
    if (pthread_create(&thread, NULL, RX_PROCESS.run_worker, share)) break;
    pthread_detach(thread);
    pool->num_workers++;
    region->shares[region->num_shares++] = share;
  }
  pthread_sigmask(SIG_SETMASK, &old, NULL);
  atomic_store(&pool->is_growing, 0);
}

/* Posts without waiting for the line, which the worker has; `join` handles a worker that falls
 * asleep at this moment. */
static void post(Share* share) {
  uint32_t seen = atomic_load_explicit(&share->state, memory_order_relaxed);
  if (seen == ASLEEP)
    atomic_store_explicit(&share->caller_cpu, sched_getcpu(), memory_order_relaxed);
  atomic_store_explicit(&share->state, POSTED, memory_order_release);
  if (seen == ASLEEP) futex(&share->state, FUTEX_WAKE_PRIVATE, 1);
}

/* Withdraws a post that the worker has not started, or waits for its end. */
static void join(Share* share) {
  uint32_t seen = atomic_load_explicit(&share->state, memory_order_acquire);
  if (seen == POSTED && atomic_compare_exchange_strong(&share->state, &seen, IDLE)) {
    futex(&share->state, FUTEX_WAKE_PRIVATE, 1); /* it may have slept before it saw the post */
    return;
  }
  for (int spin = 1; atomic_load_explicit(&share->state, memory_order_acquire) == RUNNING; spin++) {
    if (spin > JOIN_SPIN)
      sched_yield();
    else
      relax_cpu();
  }
}

/* A share for each thread, taken in chunks: other threads take chunks of a delayed one. */
static void divide(Region* region, RxTask task, void* data, int64_t count, int64_t grain) {
  int32_t threads = region->num_shares;
  int64_t size = count / threads, rest = count % threads, begin = 0;
  int64_t chunk = size / CHUNKS_PER_THREAD + 1;
  for (int32_t i = 0; i < threads; i++) {
    Share* share = region->shares[i];
    share->region = region;
    share->index = i;
    share->task = task;
    share->data = data;
    share->chunk = chunk < grain ? grain : chunk;
    atomic_store_explicit(&share->next, begin, memory_order_relaxed);
    begin += size + (i < rest);
    share->end = begin;
  }
}

/* The count of threads that may help with a loop of `grains` grains. */
static int32_t helpers_for(const Thread* thread, int64_t grains) {
  if (!thread || thread->in_region) return 0;
  int32_t threads = thread->threads ? thread->threads : rx_get_threads();
  return (threads < grains ? threads : (int32_t)grains) - 1;
}

/* Runs the loop on the threads of a region whose workers are claimed. */
static void run_region(Thread* thread, Region* region, RxTask task, void* data, int64_t count,
                       int64_t grain) {
  region->shares[0] = &region->own;
  region->missing = 0;
  divide(region, task, data, count, grain);
  thread->in_region = 1;
  for (int32_t i = 1; i < region->num_shares; i++) post(region->shares[i]);
  take_part(&region->own);
  for (int32_t i = 1; i < region->num_shares; i++) join(region->shares[i]);
  thread->in_region = 0;
}

void rx_parallel_for(RxTask task, void* data, int64_t count, int64_t grain) {
  Thread* thread = count > grain ? own_thread() : NULL;
  int32_t helpers = count > grain ? helpers_for(thread, (count - 1) / grain + 1) : 0;
  Pool* pool = helpers > 0 ? get_pool() : NULL;
  Region region;
  region.num_shares = 1;
  if (pool) claim_workers(pool, &region, helpers);
  if (pool && region.num_shares <= helpers) start_workers(pool, &region, helpers);
  if (region.num_shares == 1) {
    if (count > 0) task(data, 0, count);
    return;
  }
  run_region(thread, &region, task, data, count, grain);
  release_workers(pool, &region);
  tally(RX_PARALLEL_REGIONS, 1);
  if (region.missing) escape(thread, region.missing);
}
