/* The runtime for WebAssembly with threads that share memory. */
#define RX_THREADS
#include "runtime_wasm.c"
