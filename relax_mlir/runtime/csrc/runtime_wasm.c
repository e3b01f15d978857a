/* The whole runtime as one translation unit for WebAssembly, which has one thread and no system. */
#include "relax_runtime.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "wasm/host.c"

#include "memory.c"

#include "wasm/heap.c"

#include "wasm/strings.c"

#include "wasm/process.c"

#ifdef RX_DEVICE
#include "device/device.h"
#include "device/tensors.c"
#else
#include "tensors.c"
#endif

#include "arena.c"

#include "kept.c"

#include "thread.c"

#include "wasm/thread.c"

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
