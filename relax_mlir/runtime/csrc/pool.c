/* The thread pool: workers spin briefly for the next region, then sleep on a futex.
 *
 * Each worker owns one word. The caller posts a region to the workers it wants, works itself, and
 * at the end takes back what a worker has not begun: a sleeping or preempted worker never holds up
 * a region.
 *
 *     IDLE --caller--> POSTED --worker--> RUNNING --worker--> IDLE
 *     ASLEEP --caller--> POSTED (and a wake-up)      POSTED --caller--> IDLE (taken back)
 *     IDLE --worker, after spinning--> ASLEEP        any --caller--> EXIT
 *
 * Cores may share no cache: then a line that one wrote and the other reads takes 0.2 us. What a
 * worker needs to begin is in the line of its state, and the caller does not wait for any before it
 * works.
 */
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>

#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18
#endif

enum { MAX_THREADS = 256, SPIN = 3000, JOIN_SPIN = 256, CHUNKS_PER_THREAD = 16 };
enum { IDLE, POSTED, RUNNING, ASLEEP, EXIT };

/* One thread's part of a region: iterations that lie side by side, and probably what they read does
 * too. The caller's share comes first and has no state. Machines fetch pairs of lines. */
typedef struct {
  _Alignas(2 * ALIGNMENT) _Atomic uint32_t state;
  _Atomic int32_t caller_cpu; /* when it woke the worker */
  int32_t num_shares;
  RxTask task;
  void* data;
  int64_t chunk;
  _Atomic int64_t next; /* first iteration that nobody took */
  int64_t end;
} Share;

typedef struct {
  _Alignas(ALIGNMENT) _Atomic uint32_t busy; /* owned by a region */
  int32_t num_workers;
  pid_t pid;
  _Atomic int64_t lack; /* bytes of scratch memory that a thread did not get; 0: none */
  Share shares[MAX_THREADS];
  pthread_t threads[MAX_THREADS];
} Pool;

static Pool* _Atomic pool;
static int wiped_on_fork;
static _Atomic int32_t num_threads; /* 0: not decided yet */

static void relax_cpu(void) {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __builtin_arm_isb(15); /* a longer pause than `yield`, which most cores ignore */
#endif
}

static void futex(_Atomic uint32_t* word, int operation, uint32_t value) {
  syscall(SYS_futex, word, operation, value, NULL, NULL, 0);
}

/* 0 where the environment asks for no number of threads. */
static int32_t default_threads(void) {
  const char* text = getenv("RELAX_NUM_THREADS");
  cpu_set_t cpus;
  if (text && *text) {
    char* end;
    long wanted = strtol(text, &end, 10);
    return *end || wanted < 1 ? 0 : wanted < MAX_THREADS ? (int32_t)wanted : MAX_THREADS;
  }
  if (sched_getaffinity(0, sizeof cpus, &cpus)) return 1;
  return CPU_COUNT(&cpus);
}

void rx_set_threads(int32_t threads) {
  if (threads <= 0) threads = default_threads();
  if (threads > MAX_THREADS) threads = MAX_THREADS;
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
    task(data, begin, begin + chunk < last ? begin + chunk : last);
  }
}

typedef struct {
  Share* shares;
  int32_t own, count;
} Part;

/* Works on the share of the thread's own, in order, then helps with the others. */
static void work(void* data) {
  const Part* part = data;
  for (int32_t i = 0; i < part->count; i++) work_on(&part->shares[(part->own + i) % part->count]);
}

static void take_part(Pool* p, int32_t own) {
  Part part = {p->shares, own, p->shares[own].num_shares};
  int64_t lack = attempt(work, &part);
  if (lack) atomic_store(&p->lack, lack);
}

/* Leaves the core of the caller, where the system may have woken this thread, for tens of
 * milliseconds maybe, though another core is idle. */
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

/* Waits until the state is not IDLE; returns what it is. */
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

static void* worker_main(void* argument) {
  Share* share = argument;
  for (;;) {
    uint32_t seen = await_post(share);
    if (seen == EXIT) return NULL;
    if (seen != POSTED || !atomic_compare_exchange_strong(&share->state, &seen, RUNNING)) continue;
    Pool* p = atomic_load_explicit(&pool, memory_order_relaxed);
    take_part(p, (int32_t)(share - p->shares));
    atomic_store_explicit(&share->state, IDLE, memory_order_release);
  }
}

/* The pool's memory reads as zero in a forked child, which has no workers: it starts its own. */
static Pool* make_pool(void) {
  pthread_mutex_lock(&contexts_lock);
  Pool* p = atomic_load(&pool);
  if (!p) {
    p = mmap(NULL, sizeof *p, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) p = NULL;
    if (p) wiped_on_fork = !madvise(p, sizeof *p, MADV_WIPEONFORK);
    atomic_store(&pool, p);
  }
  pthread_mutex_unlock(&contexts_lock);
  return p;
}

/* The pool, owned by the caller; NULL while it is in use. */
static Pool* take_pool(void) {
  Pool* p = atomic_load_explicit(&pool, memory_order_acquire);
  if (!p && !(p = make_pool())) return NULL;
  if (!wiped_on_fork && p->pid != getpid()) {
    p->pid = getpid();
    p->num_workers = 0;
    p->busy = 0;
  }
  if (atomic_load_explicit(&p->busy, memory_order_relaxed)) return NULL;
  return atomic_exchange_explicit(&p->busy, 1, memory_order_acquire) ? NULL : p;
}

/* Starts workers up to the number wanted; returns how many there are to use. */
static int32_t ensure_workers(Pool* p, int32_t wanted) {
  sigset_t all, old;
  if (p->num_workers >= wanted) return wanted;
  /* Signals belong to the host program's threads. */
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &old);
  while (p->num_workers < wanted) {
    int32_t own = p->num_workers + 1;
    atomic_store(&p->shares[own].state, IDLE);
    if (pthread_create(&p->threads[own], NULL, worker_main, &p->shares[own])) break;
    p->num_workers = own;
  }
  pthread_sigmask(SIG_SETMASK, &old, NULL);
  return p->num_workers < wanted ? p->num_workers : wanted;
}

/* Without waiting for the line, which the worker has; what goes wrong for one that falls asleep at
 * this moment, `join` mends. */
static void post(Share* share) {
  uint32_t seen = atomic_load_explicit(&share->state, memory_order_relaxed);
  if (seen == ASLEEP)
    atomic_store_explicit(&share->caller_cpu, sched_getcpu(), memory_order_relaxed);
  atomic_store_explicit(&share->state, POSTED, memory_order_release);
  if (seen == ASLEEP) futex(&share->state, FUTEX_WAKE_PRIVATE, 1);
}

/* Takes back a post that the worker has not begun, or waits for its end. */
static void join(Share* share) {
  uint32_t seen = atomic_load_explicit(&share->state, memory_order_acquire);
  if (seen == POSTED && atomic_compare_exchange_strong(&share->state, &seen, IDLE)) {
    futex(&share->state, FUTEX_WAKE_PRIVATE, 1); /* maybe it slept before it saw the post */
    return;
  }
  for (int spin = 1; atomic_load_explicit(&share->state, memory_order_acquire) == RUNNING; spin++) {
    if (spin > JOIN_SPIN)
      sched_yield();
    else
      relax_cpu();
  }
}

static void end_workers(void) {
  Pool* p = atomic_load(&pool);
  if (!p) return;
  if (!wiped_on_fork && p->pid != getpid()) p->num_workers = 0;
  for (int32_t i = 1; i <= p->num_workers; i++) {
    atomic_store(&p->shares[i].state, EXIT);
    futex(&p->shares[i].state, FUTEX_WAKE_PRIVATE, 1);
  }
  for (int32_t i = 1; i <= p->num_workers; i++) pthread_join(p->threads[i], NULL);
  munmap(p, sizeof *p);
  atomic_store(&pool, NULL);
}

/* A share for each thread, taken in chunks: a thread that is held up leaves some to others. */
static void divide(Pool* p, RxTask task, void* data, int64_t count, int64_t grain,
                   int32_t threads) {
  int64_t size = count / threads, rest = count % threads, begin = 0;
  int64_t chunk = size / CHUNKS_PER_THREAD + 1;
  for (int32_t i = 0; i < threads; i++) {
    Share* share = &p->shares[i];
    share->num_shares = threads;
    share->task = task;
    share->data = data;
    share->chunk = chunk < grain ? grain : chunk;
    atomic_store_explicit(&share->next, begin, memory_order_relaxed);
    begin += size + (i < rest);
    share->end = begin;
  }
}

void rx_parallel_for(RxTask task, void* data, int64_t count, int64_t grain) {
  if (count <= 0) return;
  int64_t threads = count <= grain ? 1 : rx_get_threads();
  Pool* p = threads == 1 ? NULL : take_pool();
  if (!p) {
    task(data, 0, count);
    return;
  }
  int64_t wanted = count / grain + (count % grain != 0);
  int32_t helpers = ensure_workers(p, (int32_t)(threads < wanted ? threads : wanted) - 1);
  divide(p, task, data, count, grain, helpers + 1);
  for (int32_t i = 1; i <= helpers; i++) post(&p->shares[i]);
  take_part(p, 0);
  for (int32_t i = 1; i <= helpers; i++) join(&p->shares[i]);
  counters[RX_PARALLEL_REGIONS]++;
  int64_t lack = p->lack;
  p->lack = 0;
  atomic_store_explicit(&p->busy, 0, memory_order_release);
  if (lack) escape(own_stack(), lack);
}
