// Edge detection: smoothing, Laplacian, then zero crossings, gradient and its maximum, then choice.
#include "image.h"

static void smooth(long h, long w, const float *restrict image, float *restrict out) {
#pragma omp parallel for schedule(static)
  for (long i = 0; i < h; i++) {
    ROWS(image)
#define MIXED(j) (0.5f * own[j] + 0.25f * (up[j] + down[j]))
#define BODY(j, l, r) out[i * w + (j)] = 0.5f * MIXED(j) + 0.25f * (MIXED(l) + MIXED(r))
    FOR_ROW(w, BODY);
#undef BODY
  }
}

static void laplacian(long h, long w, const float *restrict image, float *restrict out) {
#pragma omp parallel for schedule(static)
  for (long i = 0; i < h; i++) {
    ROWS(image)
#define OF(f, j) f(f(up[j], own[j]), down[j])
#define BODY(j, l, r)                                                                              \
  out[i * w + (j)] = most(most(OF(most, l), OF(most, j)), OF(most, r)) +                           \
                     least(least(OF(least, l), OF(least, j)), OF(least, r)) - 2 * own[j]
    FOR_ROW(w, BODY);
#undef BODY
  }
}

static float steepness(long h, long w, const float *restrict image, float *restrict out) {
  float greatest = 0;
#pragma omp parallel for schedule(static) reduction(max : greatest)
  for (long i = 0; i < h; i++) {
    ROWS(image)
    float *restrict steep = out + i * w;
#define SQUARE(x) ((x) * (x))
#define BODY(j, l, r) steep[j] = sqrtf(SQUARE(own[r] - own[l]) + SQUARE(down[j] - up[j]))
    FOR_ROW(w, BODY);
#undef BODY
#pragma omp simd reduction(max : greatest)
    for (long j = 0; j < w; j++)
      greatest = most(greatest, steep[j]);
  }
  return greatest;
}

static void choose(long h, long w, const float *restrict curved, const float *restrict steep,
                   float bound, float *restrict out) {
#pragma omp parallel for schedule(static)
  for (long i = 0; i < h; i++) {
    ROWS(curved)
#define BODY(j, l, r)                                                                              \
  out[i * w + (j)] = own[j] <= 0 && most(most(own[l], own[r]), most(up[j], down[j])) > 0 &&        \
                             steep[i * w + (j)] > bound                                            \
                         ? 1.f                                                                     \
                         : 0.f
    FOR_ROW(w, BODY);
#undef BODY
  }
}

void edges(long h, long w, const float *image, float *out) {
  float *smoothed = malloc(3 * h * w * sizeof(float)), *curved = smoothed + h * w;
  float *steep = curved + h * w;
  smooth(h, w, image, smoothed);
  laplacian(h, w, smoothed, curved);
  float greatest = steepness(h, w, smoothed, steep);
  choose(h, w, curved, steep, 0.25f * greatest, out);
  free(smoothed);
}
