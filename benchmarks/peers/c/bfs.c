// A breadth-first search, level by level: vertices without a level look for a neighbour of the last.
#include <stdint.h>

void bfs(long n, const int32_t *restrict starts, const int32_t *restrict neighbours,
         int32_t *restrict levels) {
  for (long v = 0; v < n; v++)
    levels[v] = v ? -1 : 0;
  long reached = 1;
  for (int32_t last = 0; reached; last++) {
    reached = 0;
#pragma omp parallel for schedule(dynamic, 4096) reduction(+ : reached)
    for (long v = 0; v < n; v++) {
      if (levels[v] >= 0)
        continue;
      for (int32_t p = starts[v]; p < starts[v + 1]; p++)
        if (levels[neighbours[p]] == last) {
          levels[v] = last + 1;
          reached++;
          break;
        }
    }
  }
}
