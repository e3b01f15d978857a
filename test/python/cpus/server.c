/* Loads a compiled module in a process of an emulated CPU, and does what requests on standard input
 * ask for: reads and writes memory, allocates it, calls functions.
 *
 * Every block of memory, the C library's too, ends where a page does that is followed by none, so
 * that an access behind it, or to memory that was freed, ends the process.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* ---- Memory that ends at a guard page; before it, on a page of its own, is what `free` needs. */

enum { PAGE = 4096 };

static _Atomic int64_t num_blocks;

typedef struct {
  char* start;
  size_t length, size;
} Header;

static Header* header_of(void* data) {
  return (Header*)(((uintptr_t)data & -(uintptr_t)PAGE) - PAGE);
}

void* memalign(size_t alignment, size_t size) {
  if (!alignment) alignment = 1;
  size_t used = size ? size : 1, slack = alignment > PAGE ? alignment : 0;
  if (used > PTRDIFF_MAX - slack - 4 * PAGE) return NULL;
  size_t length = (used + slack + PAGE - 1) / PAGE * PAGE + 2 * PAGE;
  char* start = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (start == MAP_FAILED) return NULL;
  char* end = start + length - PAGE;
  munmap(end, PAGE);
  char* data = (char*)((uintptr_t)(end - used) & -(uintptr_t)alignment);
  *header_of(data) = (Header){start, length - PAGE, size};
  memset(data, 0xa5, used);
  num_blocks++;
  return data;
}
void* malloc(size_t size) { return memalign(16, size); }
void* aligned_alloc(size_t alignment, size_t size) { return memalign(alignment, size); }
void* calloc(size_t count, size_t size) {
  size_t bytes;
  void* data = __builtin_mul_overflow(count, size, &bytes) ? NULL : malloc(bytes);
  return data ? memset(data, 0, bytes) : NULL;
}
void free(void* data) {
  if (!data) return;
  int saved = errno;
  Header header = *header_of(data);
  munmap(header.start, header.length);
  num_blocks--;
  errno = saved;
}
void* realloc(void* data, size_t size) {
  void* fresh = malloc(size);
  if (!fresh || !data) return fresh;
  size_t before = header_of(data)->size;
  memcpy(fresh, data, before < size ? before : size);
  free(data);
  return fresh;
}

/* As Android's C library calls it; all else that modules import has the names of glibc. */
int* __errno(void) { return &errno; }

/* ---- Requests: a letter, then integers of 64 bits, then bytes. */

static int64_t integer(void) {
  int64_t value;
  if (fread(&value, sizeof value, 1, stdin) != 1) exit(0);
  return value;
}

static void* address(void) { return (void*)(intptr_t)integer(); }

static void answer(const void* data, size_t size) {
  fwrite(data, 1, size, stdout);
  fflush(stdout);
}

static void answer_integer(int64_t value) { answer(&value, sizeof value); }

static void answer_symbol(void* module) {
  char name[512] = {0};
  if (fread(name, (size_t)integer(), 1, stdin) != 1) exit(0);
  answer_integer((intptr_t)dlsym(module, name));
}

static void call(void) {
  typedef intptr_t (*Function)(intptr_t, intptr_t, intptr_t, intptr_t);
  Function function = (Function)(intptr_t)integer();
  intptr_t values[4] = {0};
  int64_t count = integer();
  for (int64_t i = 0; i < count; i++) values[i & 3] = (intptr_t)integer();
  answer_integer(function(values[0], values[1], values[2], values[3]));
}

static void serve(void* module, int request) {
  if (request == 's') {
    answer_symbol(module);
  } else if (request == 'c') {
    call();
  } else if (request == 'r') {
    void* from = address();
    answer(from, (size_t)integer());
  } else if (request == 'w') {
    void* to = address();
    size_t size = (size_t)integer();
    if (size && fread(to, size, 1, stdin) != 1) exit(0);
  } else if (request == 'a') {
    size_t size = (size_t)integer();
    answer_integer((intptr_t)memalign((size_t)integer(), size));
  } else if (request == 'f') {
    free(address());
  } else if (request == 'n') {
    answer_integer(num_blocks);
  }
}

int main(int count, char** arguments) {
  void* module = count == 2 ? dlopen(arguments[1], RTLD_NOW) : NULL;
  if (!module) {
    fprintf(stderr, "%s\n", dlerror());
    return 1;
  }
  answer_integer(sizeof(void*));
  for (int request; (request = getchar()) != EOF;) serve(module, request);
  return 0;
}

/* ---- The start of a process, which a C compiler's files for the machine would have. */

int __libc_start_main(int (*)(int, char**), int, char**, void*, void*, void*, void*);

__attribute__((used)) static void start(intptr_t* stack) {
  __libc_start_main(main, (int)stack[0], (char**)(stack + 1), NULL, NULL, NULL, stack);
}

#if defined(__riscv)
__asm__(".globl _start\n_start: mv a0, sp\n andi sp, sp, -16\n tail start");
#elif defined(__aarch64__)
__asm__(".globl _start\n_start: mov x0, sp\n b start");
#else
__asm__(".globl _start\n_start: mov r0, sp\n bic ip, sp, #15\n mov sp, ip\n b start");
#endif
