/* The whole runtime as one translation unit: one bitcode file per target. */
#define _GNU_SOURCE
#include "relax_runtime.h"

#include "memory.c"

#include "process.c"

#ifdef RX_DEVICE
#include "device/device.h"
#include "device/tensors.c"
#else
#include "tensors.c"
#endif

#include "arena.c"

#include "kept.c"

#include "thread.c"

#include "own_thread.c"

#include "constants.c"

#ifdef RX_DEVICE
#include "device/constants.c"
#endif

#include "context.c"

#include "tiles.c"

#include "vectors.c"

#include "dims.c"

#include "bind.c"

#include "bind_quickly.c"

#include "inside.c"

#include "clock.c"

#include "interrupts.c"

#include "poll.c"

#include "depth.c"

#include "result.c"

#include "escape.c"

#include "scratch.c"

#ifdef RX_DEVICE
#include "device/launch.c"
#endif

#include "pool.c"

#include "queue.c"

#include "memref.c"

#include "half.c"

#include "aeabi.c"

#include "profile.c"

#include "library.c"

#include "im2col.c"

#include "digits.c"

#include "text.c"

#include "call.c"
