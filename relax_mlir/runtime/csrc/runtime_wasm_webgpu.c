/* The whole runtime as one translation unit for WebAssembly whose kernels run on WebGPU. */
#define RX_DEVICE
#include "runtime_wasm.c"

#include "device/webgpu.c"
