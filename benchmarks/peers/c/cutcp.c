// Potentials of charges within a cutoff: for each charge around a cell, all points of the cell.
#include <math.h>

enum { DEPTH = 4, HEIGHT = 4, WIDTH = 16, CHARGES = 8 };

static void add(const float *charge, long z, long y, long x,
                float sums[restrict DEPTH][HEIGHT][WIDTH]) {
  for (int k = 0; k < DEPTH; k++)
    for (int j = 0; j < HEIGHT; j++)
#pragma omp simd
      for (int i = 0; i < WIDTH; i++) {
        float dz = charge[0] - (z + k * (1.f / DEPTH)), dy = charge[1] - (y + j * (1.f / HEIGHT));
        float dx = charge[2] - (x + i * (1.f / WIDTH));
        float square = dz * dz + dy * dy + dx * dx, rest = 1 - square;
        float value = charge[3] * rest * rest / sqrtf(square + 1e-3f);
        sums[k][j][i] += square < 1 ? value : 0;
      }
}

void cutcp(long d, long h, long w, const float *restrict charges, float *restrict out) {
#pragma omp parallel for collapse(3) schedule(static)
  for (long z = 0; z < d; z++)
    for (long y = 0; y < h; y++)
      for (long x = 0; x < w; x++) {
        float sums[DEPTH][HEIGHT][WIDTH] = {0};
        for (long c = z ? z - 1 : 0; c <= z + 1 && c < d; c++)
          for (long b = y ? y - 1 : 0; b <= y + 1 && b < h; b++)
            for (long a = x ? x - 1 : 0; a <= x + 1 && a < w; a++)
              for (int q = 0; q < CHARGES; q++)
                add(charges + (((c * h + b) * w + a) * CHARGES + q) * 4, z, y, x, sums);
        float *cell = out + ((z * h + y) * w + x) * DEPTH * HEIGHT * WIDTH;
        for (int i = 0; i < DEPTH * HEIGHT * WIDTH; i++)
          cell[i] = (&sums[0][0][0])[i];
      }
}
