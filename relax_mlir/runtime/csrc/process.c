/* The state that all modules of a process share: the thread pool, and the state of each thread.
 *
 * Every module exports this variable with the binding STB_GNU_UNIQUE: the loader binds all of them
 * to that of the module that was loaded first, whatever their scopes, and never unloads that
 * module. So its functions are the ones that the pool's threads run, and that free the state of a
 * thread that ends. The variable's name identifies the layout of the shared data.
 */
#include <linux/futex.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef RX_PROCESS
#define RX_PROCESS rx_process /* build.py derives the name from the sources that share it */
#endif

typedef struct Pool Pool;

typedef struct {
  void* (*run_worker)(void* share);
  void (*free_thread)(void* thread);
  pthread_key_t key; /* of each thread's `Thread`; static TLS space can run out */
  int32_t has_key;
  uint32_t generation; /* 1, incremented in each forked child */
  _Atomic int64_t num_contexts;
  Pool* _Atomic pool; /* NULL until a loop needs one */
} Process;

static void* run_worker(void* share);
static void free_thread(void* thread);
static void forget_workers(void);

extern RX_API Process RX_PROCESS;
Process RX_PROCESS = {.run_worker = run_worker, .free_thread = free_thread, .generation = 1};

/* In the child, which has only the thread that forked. */
static void after_fork(void) {
  RX_PROCESS.generation++;
  forget_workers();
}

/* `pthread_atfork` is not in the shared C library, but this is. */
int __register_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void), void*);

static void start_process(void) {
  if (RX_PROCESS.free_thread != free_thread) return; /* another module has started */
  RX_PROCESS.has_key = !pthread_key_create(&RX_PROCESS.key, free_thread);
  __register_atfork(NULL, NULL, after_fork, NULL);
}

/* A constructor; the attribute of that name would use another section. */
__attribute__((used, section(".init_array"))) static void (*const at_load)(void) = start_process;

static void futex(void* word, int operation, uint32_t value) {
  syscall(SYS_futex, word, operation, value, NULL, NULL, 0);
}

/* Acquires a lock: 0 while it is free, else twice the generation of its owner, plus 1 if threads
 * wait. Nonzero if its owner does not exist in this forked child, so that the guarded data may be
 * partly written. */
static int acquire_lock(uint32_t* lock) {
  uint32_t own = 2 * RX_PROCESS.generation, seen = 0;
  while (!__atomic_compare_exchange_n(lock, &seen, own, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
    uint32_t owned = seen, waited = seen | 1;
    if (owned / 2 != RX_PROCESS.generation) {
      if (__atomic_compare_exchange_n(lock, &owned, own, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
        return 1;
    } else if (owned == waited || __atomic_compare_exchange_n(lock, &owned, waited, 0,
                                                             __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
      futex(lock, FUTEX_WAIT_PRIVATE, waited);
      own |= 1; /* others may wait too */
    }
    seen = 0;
  }
  return 0;
}

static void release_lock(uint32_t* lock) {
  if (__atomic_exchange_n(lock, 0, __ATOMIC_RELEASE) & 1) futex(lock, FUTEX_WAKE_PRIVATE, 1);
}
