/* Tile registers (AMX), which Linux keeps from a process until it asks for them. */
#include <sys/syscall.h>
#include <unistd.h>

enum { ARCH_REQ_XCOMP_PERM = 0x1023, XFEATURE_XTILEDATA = 18 };

/* Nonzero, with a text, unless this process may use tile registers. */
static int32_t ask_for_tiles(RxContext* context) {
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
                 "is compiled for; a target with '+-amx-tile' behind its name does without");
}
