/* Constants in a file beside the shared object: mapped over the pages that the object keeps free.
 *
 * The linker defines RxConstants if there are constants. `external.py` moves them to a safetensors
 * file, and writes into the object which one it is. A context is created only once they are there.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <linux/stat.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

/* Written by `elf_data.py` and `external.py`. */
typedef struct {
  int64_t begin;  /* of the constants, relative to this struct */
  int64_t bytes;
  int64_t offset; /* of the constants in the file; 0: they are in the shared object */
  uint64_t header_sum, data_sum;
  char file[216]; /* its name, in the folder of the shared object */
} RxConstants;

extern const RxConstants rx_constants __attribute__((weak, visibility("default")));

enum { SAMPLE_BYTES = 4096, NUM_SAMPLES = 256, SUMMED_BYTES = 16 << 20 };

static uint32_t constants_lock;
static int32_t has_constants;
static char constants_error[ERROR_SIZE];

/* Of the 8-byte words from byte `begin` on, `begin` a multiple of 8; the last one may be short. */
static uint64_t sum_words(const char* data, int64_t begin, int64_t end) {
  uint64_t sum = 0;
  for (int64_t at = begin; at < end; at += 8) {
    uint64_t word = 0;
    memcpy(&word, data + at, end - at < 8 ? (size_t)(end - at) : 8);
    word = (word ^ (uint64_t)(at / 8) * 0x9E3779B97F4A7C15u) * 0xBF58476D1CE4E5B9u;
    word = (word ^ word >> 29) * 0x94D049BB133111EBu;
    sum += word ^ word >> 32;
  }
  return sum;
}

/* Of all bytes if they are few, else of samples: what is large is not read to be loaded. */
static uint64_t checksum(const char* data, int64_t bytes) {
  if (bytes <= SUMMED_BYTES) return sum_words(data, 0, bytes);
  uint64_t sum = 0;
  for (int64_t i = 0; i < NUM_SAMPLES; i++) {
    int64_t begin = (bytes - SAMPLE_BYTES) / (NUM_SAMPLES - 1) * i / 8 * 8;
    sum += sum_words(data, begin, begin + SAMPLE_BYTES);
  }
  return sum;
}

/* Finds the path of the object that this code is in. */
static int find_object(struct dl_phdr_info* info, size_t size, void* path) {
  (void)size;
  uint64_t at = (uint64_t)&rx_constants - info->dlpi_addr;
  for (int i = 0; i < info->dlpi_phnum; i++) {
    const ElfW(Phdr)* segment = &info->dlpi_phdr[i];
    if (segment->p_type == PT_LOAD && at - segment->p_vaddr < segment->p_memsz) {
      *(const char**)path = info->dlpi_name;
      return 1;
    }
  }
  return 0;
}

/* Why a file of that size and type is not the one that is expected; NULL if it may be. */
static const char* check_file(int file, int64_t expected) {
  static char reason[128];
#ifdef RX_ANDROID /* which ends processes of apps that call statx; a folder has another size */
  int64_t size = lseek(file, 0, SEEK_END);
  if (size < 0) return strerror(errno);
#else
  struct statx status;
  if (syscall(SYS_statx, file, "", AT_EMPTY_PATH, STATX_TYPE | STATX_SIZE, &status))
    return strerror(errno);
  if ((status.stx_mode & S_IFMT) != S_IFREG) return "is not a regular file";
  int64_t size = (int64_t)status.stx_size;
#endif
  if (size == expected) return NULL;
  snprintf(reason, sizeof reason, "has %lld bytes, but %lld are expected", (long long)size,
           (long long)expected);
  return reason;
}

/* Maps the constants of an open file; NULL, or what is wrong. */
static const char* map_file(int file) {
  const char* reason = check_file(file, rx_constants.offset + rx_constants.bytes);
  if (reason) return reason;
  size_t length = (size_t)rx_constants.offset;
  char* header = mmap(NULL, length, PROT_READ, MAP_PRIVATE, file, 0);
  if (header == MAP_FAILED) return strerror(errno);
  uint64_t sum = checksum(header, rx_constants.offset);
  munmap(header, length);
  if (sum != rx_constants.header_sum) return "is another file than was saved with the module";
  char* begin = (char*)&rx_constants + rx_constants.begin;
  void* mapped = mmap(begin, (size_t)rx_constants.bytes, PROT_READ, MAP_PRIVATE | MAP_FIXED, file,
                      rx_constants.offset);
  if (mapped == MAP_FAILED) return strerror(errno);
  if (checksum(begin, rx_constants.bytes) != rx_constants.data_sum) return "is damaged";
  return NULL;
}

/* Nonzero, with a message for rx_last_error(NULL), if the constants are not there. */
static int32_t map_constants(void) {
  if (!&rx_constants || !rx_constants.offset) return 0;
  acquire_lock(&constants_lock);
  const char *object = "", *reason = NULL;
  char path[PATH_MAX];
  if (!has_constants) {
    dl_iterate_phdr(find_object, &object);
    const char* slash = strrchr(object, '/');
    int folder = slash ? (int)(slash - object) + 1 : 0;
    snprintf(path, sizeof path, "%.*s%s", folder, object, rx_constants.file);
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    reason = file < 0 ? strerror(errno) : map_file(file);
    if (file >= 0) close(file);
    has_constants = !reason;
  }
  constants_error[0] = 0;
  if (reason)
    snprintf(constants_error, sizeof constants_error, "its constants, '%s': %s", path, reason);
  release_lock(&constants_lock);
  return !!reason;
}
