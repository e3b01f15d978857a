/* The whole runtime as one translation unit, for modules whose kernels run on a device. */
#define RX_DEVICE
#include "runtime.c"
