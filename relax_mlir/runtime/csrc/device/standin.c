/* A device that is not there: tests of all of the host's code need no driver.
 *
 * Its memory is apart from the host's, which crashes on its addresses. A launch is handed to a
 * function of the host program, which interprets the kernel. Failures are injected.
 */
#include "collector.h"
#include "device.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define EXPORT __attribute__((visibility("default")))

/* Runs a kernel; nonzero, with a text of at most `room` bytes, if it fails. */
typedef int32_t (*RxInterpreter)(const RxKernel* kernel, const int32_t* grid, const int64_t* words,
                                 char* text, int32_t room);

typedef struct Memory {
  struct Memory* next;
  char* address; /* nobody may access it */
  char* data;    /* what it has */
  int64_t bytes;
} Memory;

enum { FAIL_ALLOC, FAIL_LAUNCH, FAIL_SYNC, FAIL_COPY, FAIL_OPEN, LOST, NUM_FAILURES };

static RxInterpreter interpret;
static RxCollector* collector;
static Memory* memories;
static int64_t countdowns[NUM_FAILURES]; /* 0: never fails; 1: the next time, and so on */
static int32_t is_lost;

enum { UPLOADED, DOWNLOADED, COPIED, NUM_COPIES };
static int64_t copies[NUM_COPIES]; /* that were made */

static int fails(int which) { return countdowns[which] && !--countdowns[which]; }

/* For tests. */
EXPORT void rx_standin_run_by(RxInterpreter function, RxCollector* paused) {
  interpret = function;
  collector = paused;
}
EXPORT void rx_standin_fail(int32_t which, int64_t after) { countdowns[which] = after; }
EXPORT int64_t rx_standin_copies(int32_t which) { return copies[which]; }
EXPORT int64_t rx_standin_blocks(void) {
  int64_t count = 0;
  for (Memory* memory = memories; memory; memory = memory->next) count++;
  return count;
}

/* Where bytes of the device are kept; NULL if it has no such memory. */
EXPORT void* rx_standin_data(const void* address, int64_t bytes) {
  for (Memory* memory = memories; memory; memory = memory->next) {
    int64_t offset = (int64_t)((uintptr_t)address - (uintptr_t)memory->address);
    if (offset >= 0 && bytes >= 0 && offset <= memory->bytes - bytes) return memory->data + offset;
  }
  return NULL;
}

static const char* lost(void) {
  is_lost |= fails(LOST);
  return is_lost ? "the device is lost" : NULL;
}

static const char* standin_open(int32_t device) {
  (void)device;
  is_lost = 0;
  return fails(FAIL_OPEN) ? "there is no such device" : NULL;
}

static void standin_close(int32_t device) { (void)device; }

static int32_t standin_type(void) { return 12; /* kDLExtDev */ }

static int64_t standin_stream(int32_t device) { return (void)device, 0; }

static void* standin_alloc(int32_t device, int64_t bytes) {
  (void)device;
  if (fails(FAIL_ALLOC)) return NULL;
  Memory* memory = malloc(sizeof *memory);
  char* data = memory ? malloc((size_t)bytes) : NULL;
  void* address = data ? mmap(NULL, (size_t)bytes, PROT_NONE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)
                       : MAP_FAILED;
  if (address == MAP_FAILED) {
    free(data);
    free(memory);
    return NULL;
  }
  memset(data, 0x55, (size_t)bytes);
  *memory = (Memory){memories, address, data, bytes};
  memories = memory;
  return address;
}

static int64_t standin_free(int32_t device, void* address) {
  (void)device;
  Memory** link = &memories;
  while (*link && (*link)->address != address) link = &(*link)->next;
  Memory* memory = *link;
  if (!memory) abort(); /* it is not the device's, or freed */
  *link = memory->next;
  int64_t bytes = memory->bytes;
  munmap(memory->address, (size_t)bytes);
  free(memory->data);
  free(memory);
  return bytes;
}

static const char NOT_THERE[] = "accesses memory that the device does not have";

static const char* standin_upload(int32_t device, void* to, const void* from, int64_t bytes) {
  (void)device;
  void* data = rx_standin_data(to, bytes);
  if (lost()) return lost();
  if (fails(FAIL_COPY)) return "it fails";
  if (!data) return NOT_THERE;
  memcpy(data, from, (size_t)bytes);
  copies[UPLOADED]++;
  return NULL;
}

static const char* standin_download(int32_t device, void* to, const void* from, int64_t bytes) {
  (void)device;
  const void* data = rx_standin_data(from, bytes);
  if (lost()) return lost();
  if (fails(FAIL_COPY)) return "it fails";
  if (!data) return NOT_THERE;
  memcpy(to, data, (size_t)bytes);
  copies[DOWNLOADED]++;
  return NULL;
}

static const char* standin_copy(int32_t device, void* to, const void* from, int64_t bytes) {
  (void)device;
  void* data = rx_standin_data(to, bytes);
  const void* source = rx_standin_data(from, bytes);
  if (lost()) return lost();
  if (fails(FAIL_COPY)) return "it fails";
  if (!data || !source) return NOT_THERE;
  memcpy(data, source, (size_t)bytes);
  copies[COPIED]++;
  return NULL;
}

static int32_t standin_batch(void) { return 1; }

static const char* standin_launch(int32_t device, const RxLaunch* launch, int32_t count,
                                  int32_t* failed) {
  (void)device, (void)count, (void)failed; /* one */
  static char text[512];
  if (lost()) return lost();
  if (fails(FAIL_LAUNCH)) return "it fails to launch";
  if (!interpret) return "nothing interprets its kernels: see relax_mlir.interpreter.simulate";
  text[0] = 0;
  rx_pause(collector);
  int32_t status = interpret(&rx_kernels[launch->kernel], launch->grid, launch->words, text, sizeof text);
  rx_resume(collector);
  return status ? text : NULL;
}

static const char* standin_sync(int32_t device) {
  (void)device;
  if (lost()) return lost();
  return fails(FAIL_SYNC) ? "it fails" : NULL;
}

const RxDriver rx_driver_standin = {standin_open,   standin_close,    standin_type, standin_stream, standin_alloc,  standin_free,
                                  standin_upload, standin_download, standin_copy, standin_batch,  standin_launch, standin_sync};
