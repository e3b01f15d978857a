/* Devices: what each API offers to the runtime of modules whose kernels run there.
 *
 * `runtime_device.c` is the runtime of such modules. It calls the functions of `RxDriver`, of which
 * one file for each API has a table: `standin.c`, `cuda.c`, `vulkan.c`. Each is a part of its own,
 * linked into every module for its API; it finds the driver by dlopen. One thread calls it at a time.
 *
 * A module may have several devices, of one API or more. What is done to memory of one, and launches
 * there, happen in the order of the calls; a device may do them later until it is waited for.
 * Functions that return text return NULL, or what went wrong: that text is valid until the next call.
 */
#ifndef RELAX_DEVICE_H
#define RELAX_DEVICE_H

#include <stdint.h>

enum { RX_DEVICE_ALIGNMENT = 256, RX_MOST_DEVICES = 8, RX_PRODUCT = -1 };

/* ---- Written by the compiler
 * ------------------------------------------------------------------------------------ */

typedef struct {
  const char* name; /* of the entry point */
  /* Two letters for each argument: 'r' a buffer, 'w' one that the kernel stores to, 'i' an index,
   * 's' another scalar; then the bytes of an element or of the scalar: '1', '2', '4', '8'. 'm' is a
   * tensor of 16-bit elements, of which the device copies boxes, then its dims: '1' to '5'. */
  const char* kinds;
  const void* code; /* as the printer of the API made it */
  int64_t code_bytes;
  int32_t block[3];        /* threads of a group */
  int32_t workgroup_bytes; /* memory of a group, which code declares unless it is much */
  int32_t device;          /* the index of the one that it is for */
} RxKernel;

/* A launch of a kernel on a grid of groups, each extent at least 1. A buffer is two words, its
 * address and its bytes, a scalar is one, extended by sign or zeros. A tensor of n dims, innermost
 * first, is 3 n: its address, n sizes, n - 1 strides in bytes, and n extents of a box. RX_PRODUCT
 * instead of a kernel: products by a library, on devices of APIs that call any, of which the words are
 * an RxProduct. */
typedef struct {
  int32_t kernel, device;
  int32_t grid[3];
  const int64_t* words;
} RxLaunch;

/* Products of row-major matrices, none of which are empty but for k: `count` pairs of them one after
 * another, each result [m, n] of lhs [m, k] and of rhs [k, n], or [n, k] if that is transposed. All
 * have one type of elements, which is as in DLPack. */
typedef struct {
  void* function; /* of the library */
  int64_t code, bits, is_transposed, count, m, n, k;
  const void *lhs, *rhs;
  void* result;
} RxProduct;

/* What each API defines. `device` is the index of one in `rx_devices`. */
typedef struct {
  /* Opens the device and makes its kernels ready. NULL, or why it cannot be used: the text says what
   * was looked for. Called again after a failure, or after `close`. */
  const char* (*open)(int32_t device);

  /* Frees all. */
  void (*close)(int32_t device);

  /* DLPack's type of the device's memory. */
  int32_t (*type)(void);

  /* The stream that everything is queued on, as DLPack passes one; 0: the API has none. */
  int64_t (*stream)(int32_t device);

  /* Memory, its address a multiple of RX_DEVICE_ALIGNMENT; NULL: out of memory. Addresses are of the
   * device, or only name its memory: offsets may be added to them, but the host must not use them. */
  void* (*alloc)(int32_t device, int64_t bytes);

  /* Frees memory once nothing uses it any more; returns its bytes. */
  int64_t (*free)(int32_t device, void* data);

  /* Between host and device. The host memory may be changed when the function returns. */
  const char* (*upload)(int32_t device, void* to, const void* from, int64_t bytes);
  const char* (*download)(int32_t device, void* to, const void* from, int64_t bytes);

  /* Between memory of the device that does not overlap. */
  const char* (*copy)(int32_t device, void* to, const void* from, int64_t bytes);

  /* How many launches are best made at once: with more than 1, those that nothing comes between are
   * collected. */
  int32_t (*batch)(void);

  /* Makes launches one after another, at most `batch()`; `*failed` is the one that cannot be made. */
  const char* (*launch)(int32_t device, const RxLaunch* launches, int32_t count, int32_t* failed);

  /* Waits until all is done, and tells what failed. */
  const char* (*sync)(int32_t device);
} RxDriver;

typedef struct {
  const RxDriver* driver;
  const char* name;   /* such as "cuda:sm_90a", which it ends in; "cuda:1 of .." for the next one */
  int32_t index_bits; /* that it counts elements with */
  int32_t ordinal;    /* among the devices of its API */
} RxDevice;

extern const RxKernel rx_kernels[];
extern const int32_t rx_num_kernels;
extern const RxDevice rx_devices[]; /* those of the target, at most RX_MOST_DEVICES */
extern const int32_t rx_num_devices;

/* Words of an argument, by its two letters. */
static inline int32_t rx_argument_words(const char* kind) {
  return *kind == 'r' || *kind == 'w' ? 2 : *kind == 'm' ? 3 * (kind[1] - '0') : 1;
}

/* Words that a launch passes. */
static inline int32_t rx_launch_words(const RxLaunch* launch) {
  int32_t count = 0;
  if (launch->kernel == RX_PRODUCT) return (int32_t)(sizeof(RxProduct) / sizeof(int64_t));
  const char* kind = rx_kernels[launch->kernel].kinds;
  for (; *kind; kind += 2) count += rx_argument_words(kind);
  return count;
}

#endif
