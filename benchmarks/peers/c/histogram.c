// A histogram: each thread has its own bins, which are added at its end.
#include <stdint.h>
#include <string.h>

enum { BINS = 256 };

void histogram(long n, const int32_t *restrict x, int32_t *restrict bins) {
  memset(bins, 0, BINS * sizeof *bins);
#pragma omp parallel
  {
    int32_t own[BINS] = {0};
#pragma omp for schedule(static)
    for (long p = 0; p < n; p++)
      if (x[p] >= 0 && x[p] < BINS)
        own[x[p]]++;
#pragma omp critical
    for (int i = 0; i < BINS; i++)
      bins[i] += own[i];
  }
}
