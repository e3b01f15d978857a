/* Tile registers (AMX), which a process may use only after it requests permission from Linux. */
#ifdef __x86_64__
#include <sys/syscall.h>
#include <unistd.h>
#endif

enum { ARCH_REQ_XCOMP_PERM = 0x1023, XFEATURE_XTILEDATA = 18 };

/* Nonzero, with a message, unless this process may use tile registers. */
static int32_t request_tiles(RxContext* context) {
#ifdef __x86_64__
  static _Atomic int32_t allowed;
  if (allowed) return 0;
  if (!syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA)) {
    allowed = 1;
    return 0;
  }
#endif
  return rx_fail(context,
                 "the system does not let this process use the tile registers (AMX) that the code "
                 "is compiled for; append '+-amx-tile' to the target's name to compile without them");
}
