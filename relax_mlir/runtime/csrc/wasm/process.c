/* What a process has once: there are no children. */

static struct {
  _Atomic int64_t num_contexts;
  uint32_t generation;
} RX_PROCESS;

/* Locks are short: who waits spins, since main threads of pages must not sleep. */
static int acquire_lock(uint32_t* lock) {
  while (atomic_exchange((_Atomic uint32_t*)lock, 1)) continue;
  return 0;
}

static void release_lock(uint32_t* lock) { atomic_store((_Atomic uint32_t*)lock, 0); }

/* Constants are in the module; what keeps a device from opening is said here. */
static char constants_error[256];

static int32_t map_constants(void) { return 0; }
