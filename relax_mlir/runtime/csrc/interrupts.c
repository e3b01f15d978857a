/* Whether the host program wants calls to end. */
#include <sys/syscall.h>
#include <unistd.h>

static RxPoll _Atomic host_poll;

void rx_set_poll(RxPoll poll) { atomic_store(&host_poll, poll); }

/* Only the main thread is asked: signals are handled there. Not again while the host answers. */
static int32_t is_interrupted(void) {
  static _Atomic int32_t is_asked;
  RxPoll poll = atomic_load(&host_poll);
  if (!poll || syscall(SYS_gettid) != getpid() || atomic_exchange(&is_asked, 1)) return 0;
  int32_t answer = poll();
  atomic_store(&is_asked, 0);
  return answer;
}
