/* Loops of host code, which may be endless, ask the host program now and then whether to go on. */
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { POLL_WEIGHT = 64 };
static const int64_t POLL_INTERVAL = 20000000; /* nanoseconds */

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

int32_t rx_poll(RxContext* context, int32_t weight) {
  context->rounds += weight;
  if (context->rounds < POLL_WEIGHT) return 0;
  context->rounds = 0;
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  int64_t now = (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
  if (now - context->polled < POLL_INTERVAL) return 0;
  context->polled = now;
  if (!is_interrupted()) return 0;
  rx_fail(context, "interrupted");
  context->is_interrupted = 1;
  return 1;
}
