/* Memory of what loops carry whose size changes from round to round: a piece for each place in the
 * code that copies to it, and each depth of recursion. A piece that is too small becomes one of
 * twice the size, so that a tensor that grows is seldom moved; none is given back before its
 * context is. */

#include <string.h>

typedef struct Kept {
  struct Kept* next;
  char* data;
  int64_t size;
  int32_t site, depth;
} Kept;

static void free_kept(Kept* kept) {
  for (Kept* next; kept; kept = next) {
    next = kept->next;
    tally(RX_ARENA_BYTES, -kept->size);
    free(kept->data);
    free(kept);
  }
}

static Kept* kept_at(Kept** all, int32_t site, int32_t depth) {
  for (Kept* kept = *all; kept; kept = kept->next)
    if (kept->site == site && kept->depth == depth) return kept;
  Kept* kept = calloc(1, sizeof *kept);
  if (!kept) return NULL;
  tally(RX_ALLOCATIONS, 1);
  *kept = (Kept){*all, NULL, 0, site, depth};
  return *all = kept;
}

/* Copies bytes, which may lie in the piece itself, to that of a site; NULL: no memory. */
static void* keep_copy(Kept** all, int32_t site, int32_t depth, const void* source,
                       int64_t bytes) {
  Kept* kept = kept_at(all, site, depth);
  if (!kept || bytes > MOST_BYTES) return NULL;
  if (kept->data && bytes <= kept->size) return memmove(kept->data, source, (size_t)bytes);
  int64_t size = bytes > MOST_BYTES / 2 ? bytes : 2 * bytes;
  char* data = allocate(aligned(size));
  if (!data) return NULL;
  memcpy(data, source, (size_t)bytes);
  free(kept->data);
  tally(RX_ARENA_BYTES, size - kept->size);
  kept->data = data;
  kept->size = size;
  return data;
}
