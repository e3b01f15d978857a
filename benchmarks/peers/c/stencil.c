// A step of a 7-point stencil; borders are repeated, so only the ends of rows are apart.
static float point(float own, float front, float back, float up, float down, float left,
                   float right) {
  return 0.4f * own + 0.1f * (front + back + up + down + left + right);
}

void stencil(long d, long h, long w, const float *restrict x, float *restrict y) {
#pragma omp parallel for collapse(2) schedule(static)
  for (long k = 0; k < d; k++)
    for (long j = 0; j < h; j++) {
      const float *row = x + (k * h + j) * w;
      const float *front = k ? row - h * w : row, *back = k + 1 < d ? row + h * w : row;
      const float *up = j ? row - w : row, *down = j + 1 < h ? row + w : row;
      float *out = y + (k * h + j) * w;
      for (long i = 1; i + 1 < w; i++)
        out[i] = point(row[i], front[i], back[i], up[i], down[i], row[i - 1], row[i + 1]);
      for (long i = 0; i < w; i += w > 1 ? w - 1 : 1)
        out[i] = point(row[i], front[i], back[i], up[i], down[i], row[i ? i - 1 : 0],
                       row[i + 1 < w ? i + 1 : i]);
    }
}
