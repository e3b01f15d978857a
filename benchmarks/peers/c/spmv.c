// A sparse matrix in CSR times a vector, row by row.
#include <stdint.h>

void spmv(long rows, const int32_t *restrict starts, const int32_t *restrict columns,
          const float *restrict values, const float *restrict x, float *restrict y) {
#pragma omp parallel for schedule(static)
  for (long i = 0; i < rows; i++) {
    float sum = 0;
    for (int32_t p = starts[i]; p < starts[i + 1]; p++)
      sum += values[p] * x[columns[p]];
    y[i] = sum;
  }
}
