/* The whole runtime as one translation unit for WebAssembly, which has no system, and threads
 * with RX_THREADS only. */
#include "relax_runtime.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "wasm/host.c"

#include "memory.c"

#include "wasm/process.c"

#include "wasm/heap.c"

#include "wasm/strings.c"

#ifdef RX_DEVICE
#include "device/device.h"
#include "device/tensors.c"
#else
#include "tensors.c"
#endif

#include "arena.c"

#include "kept.c"

#include "thread.c"

#ifdef RX_THREADS
#include "wasm/pool.c"
#else
#include "wasm/thread.c"
#endif

#ifdef RX_DEVICE
#include "device/constants.c"
#endif

#include "context.c"

#include "tiles.c"

#include "dims.c"

#include "bind.c"

#include "bind_quickly.c"

#include "inside.c"

#include "wasm/poll.c"

#include "depth.c"

#include "result.c"

#include "wasm/escape.c"

#include "scratch.c"

#ifdef RX_DEVICE
#include "device/launch.c"
#endif

#include "memref.c"

#include "half.c"

#include "wasm/numbers.c"

#include "profile.c"

#include "library.c"

#include "wasm/digits.c"

#include "text.c"

#include "call.c"
