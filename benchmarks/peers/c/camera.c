// A camera's pipeline: demosaicing to three planes, then all else pixel by pixel.
#include "image.h"

static void demosaic(long h, long w, const float *restrict raw, float *restrict planes) {
#pragma omp parallel for schedule(static)
  for (long i = 0; i < h; i++) {
    ROWS(raw)
    float *restrict red = planes + i * w, *restrict green = red + h * w;
    float *restrict blue = green + h * w;
    // Odd rows have blue where even ones have red.
    float *restrict first = i % 2 ? blue : red, *restrict second = i % 2 ? red : blue;
    int phase = i % 2;
#define BODY(j, l, r)                                                                              \
  do {                                                                                             \
    float across = (own[l] + own[r]) * 0.5f, along = (up[j] + down[j]) * 0.5f;                     \
    float diagonal = (up[l] + up[r] + down[l] + down[r]) * 0.25f;                                  \
    int here = (j) % 2 == phase;                                                                   \
    first[j] = here ? own[j] : across;                                                             \
    green[j] = here ? (across + along) * 0.5f : own[j];                                            \
    second[j] = here ? diagonal : along;                                                           \
  } while (0)
    FOR_ROW(w, BODY);
#undef BODY
  }
}

static void finish(long h, long w, const float *restrict planes, float *restrict out) {
#pragma omp parallel for schedule(static)
  for (long i = 0; i < h; i++) {
    long up = i ? -w : 0, down = i + 1 < h ? w : 0, size = h * w;
    const float *restrict own = planes + i * w;
    float *restrict to = out + i * w;
#define OF(f, j, l, r) f(f(own[c + (l)], own[c + (r)]), f(own[c + (j) + up], own[c + (j) + down]))
#define CALM(j, l, r) least(most(own[c + (j)], OF(least, j, l, r)), OF(most, j, l, r))
#define TONE(x) (sqrtf(x) * (1.25f - 0.25f * (x)))
#define SET(c, r, g, b, x, y, z, j)                                                                \
  {                                                                                                \
    float mixed = least(most(r * (x) + g * (y) + b * (z), 0), 1);                                  \
    to[(c) * size + (j)] = TONE(mixed);                                                            \
  }
#define BODY(j, l, r)                                                                              \
  do {                                                                                             \
    float calm[3];                                                                                 \
    for (int p = 0; p < 3; p++) {                                                                  \
      long c = p * size;                                                                           \
      calm[p] = CALM(j, l, r);                                                                     \
    }                                                                                              \
    SET(0, 1.6f, -0.4f, -0.2f, calm[0], calm[1], calm[2], j)                                       \
    SET(1, -0.3f, 1.5f, -0.2f, calm[0], calm[1], calm[2], j)                                       \
    SET(2, -0.1f, -0.5f, 1.6f, calm[0], calm[1], calm[2], j)                                       \
  } while (0)
    FOR_ROW(w, BODY);
#undef BODY
  }
}

void camera(long h, long w, const float *raw, float *out) {
  float *planes = malloc(3 * h * w * sizeof(float));
  demosaic(h, w, raw, planes);
  finish(h, w, planes, out);
  free(planes);
}
