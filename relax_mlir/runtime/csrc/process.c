/* What all modules of a process share: the pool of threads, and the state of each thread.
 *
 * Every module has this variable, exported with the binding STB_GNU_UNIQUE: the loader takes the
 * one of the module that came first for all of them, also for those that see nothing else of each
 * other, and never unloads that module. So its functions are what the pool's threads run, and what
 * frees the state of a thread that ends. The variable's name says how what it leads to is laid out.
 */
#include <linux/futex.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef RX_PROCESS
#define RX_PROCESS rx_process /* build.py gives it a name by the sources that share it */
#endif

typedef struct Pool Pool;

typedef struct {
  void* (*run_worker)(void* share);
  void (*free_thread)(void* thread);
  pthread_key_t key; /* of each thread's `Thread`; not TLS, which shared objects can run out of */
  int32_t has_key;
  uint32_t generation; /* 1, and one more in each child that is forked */
  _Atomic int64_t num_contexts;
  Pool* _Atomic pool; /* NULL until a loop wants one */
} Process;

static void* run_worker(void* share);
static void free_thread(void* thread);
static void forget_workers(void);

extern RX_API Process RX_PROCESS;
Process RX_PROCESS = {.run_worker = run_worker, .free_thread = free_thread, .generation = 1};

/* In the child, which has none of its parent's threads but the one that forked. */
static void after_fork(void) {
  RX_PROCESS.generation++;
  forget_workers();
}

/* `pthread_atfork` is no function of the shared C library, but this is. */
int __register_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void), void*);

static void start_process(void) {
  if (RX_PROCESS.free_thread != free_thread) return; /* another module has started */
  RX_PROCESS.has_key = !pthread_key_create(&RX_PROCESS.key, free_thread);
  __register_atfork(NULL, NULL, after_fork, NULL);
}

/* When the module is loaded: what a constructor is, but for LLVM's default of another section. */
__attribute__((used, section(".init_array"))) static void (*const at_load)(void) = start_process;

static void futex(void* word, int operation, uint32_t value) {
  syscall(SYS_futex, word, operation, value, NULL, NULL, 0);
}

/* Takes a lock: 0 while it is free, else twice the generation of its holder, plus 1 if threads
 * wait. Nonzero if its holder was left behind by a fork, so that what it guards may be half
 * written. */
static int take_lock(uint32_t* lock) {
  uint32_t own = 2 * RX_PROCESS.generation, seen = 0;
  while (!__atomic_compare_exchange_n(lock, &seen, own, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
    uint32_t held = seen, waited = seen | 1;
    if (held / 2 != RX_PROCESS.generation) {
      if (__atomic_compare_exchange_n(lock, &held, own, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
        return 1;
    } else if (held == waited || __atomic_compare_exchange_n(lock, &held, waited, 0,
                                                             __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
      futex(lock, FUTEX_WAIT_PRIVATE, waited);
      own |= 1; /* others may wait too */
    }
    seen = 0;
  }
  return 0;
}

static void give_lock(uint32_t* lock) {
  if (__atomic_exchange_n(lock, 0, __ATOMIC_RELEASE) & 1) futex(lock, FUTEX_WAKE_PRIVATE, 1);
}
