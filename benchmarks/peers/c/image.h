// Rows of images whose borders are repeated.
#include <math.h>
#include <stdlib.h>

static inline float least(float a, float b) { return a < b ? a : b; }
static inline float most(float a, float b) { return a > b ? a : b; }

// Calls BODY(j, left, right) for the pixels of a row; only those at its ends have to clamp.
#define FOR_ROW(w, BODY)                                                                           \
  do {                                                                                             \
    for (long j = 1; j + 1 < (w); j++)                                                             \
      BODY(j, j - 1, j + 1);                                                                       \
    BODY(0, 0, (w) > 1 ? 1 : 0);                                                                   \
    if ((w) > 1)                                                                                   \
      BODY((w) - 1, (w) - 2, (w) - 1);                                                             \
  } while (0)

// The rows above and below a row.
#define ROWS(x)                                                                                    \
  const float *restrict own = (x) + i * w;                                                         \
  const float *restrict up = i ? own - w : own;                                                    \
  const float *restrict down = i + 1 < h ? own + w : own;
