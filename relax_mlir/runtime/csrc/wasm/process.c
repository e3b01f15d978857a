/* What a process has once: there are no other threads, nor children. */

static struct {
  _Atomic int64_t num_contexts;
  uint32_t generation;
} RX_PROCESS;

static int acquire_lock(uint32_t* lock) {
  *lock = 1;
  return 0;
}

static void release_lock(uint32_t* lock) { *lock = 0; }

/* Constants are in the module; what keeps a device from opening is said here. */
static char constants_error[256];

static int32_t map_constants(void) { return 0; }
