// A product of matrices: tiles of 8 x 32 in registers, blocks of 256 terms.
#include <string.h>

enum { ROWS = 8, COLUMNS = 32, TERMS = 256 };

static void tile(long n, long k, long first, long end, const float *restrict a,
                 const float *restrict b, float *restrict c) {
  float sums[ROWS][COLUMNS];
  for (int i = 0; i < ROWS; i++)
    for (int j = 0; j < COLUMNS; j++)
      sums[i][j] = first ? c[i * n + j] : 0;
  for (long p = first; p < end; p++)
    for (int i = 0; i < ROWS; i++)
      for (int j = 0; j < COLUMNS; j++)
        sums[i][j] += a[i * k + p] * b[p * n + j];
  for (int i = 0; i < ROWS; i++)
    for (int j = 0; j < COLUMNS; j++)
      c[i * n + j] = sums[i][j];
}

static void rest(long m, long n, long width, long k, long first, long end, const float *restrict a,
                 const float *restrict b, float *restrict c) {
  for (long i = 0; i < m; i++) {
    if (!first)
      memset(c + i * n, 0, width * sizeof *c);
    for (long p = first; p < end; p++)
      for (long j = 0; j < width; j++)
        c[i * n + j] += a[i * k + p] * b[p * n + j];
  }
}

void sgemm(long m, long n, long k, const float *a, const float *b, float *c) {
  for (long first = 0; first < k; first += TERMS) {
    long end = first + TERMS < k ? first + TERMS : k;
#pragma omp parallel for schedule(dynamic)
    for (long j = 0; j < n; j += COLUMNS) {
      long i = 0;
      if (j + COLUMNS <= n)
        for (; i + ROWS <= m; i += ROWS)
          tile(n, k, first, end, a + i * k, b + j, c + i * n + j);
      rest(m - i, n, j + COLUMNS <= n ? COLUMNS : n - j, k, first, end, a + i * k, b + j,
           c + i * n + j);
    }
  }
}
