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
    free_tensor(kept->data);
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

/* Has a piece hold that many bytes; returns what it was, to be freed after the copy. Nonzero
 * `*missing`: no memory. */
static void* grow_kept(Kept* kept, int64_t bytes, int32_t* missing) {
  if (kept->data && bytes <= kept->size) return NULL;
  int64_t size = bytes > MOST_BYTES / 2 ? bytes : 2 * bytes;
  char* before = kept->data;
  char* data = bytes > MOST_BYTES ? NULL : allocate_tensor(aligned(size));
  *missing = !data;
  if (!data) return NULL;
  tally(RX_ARENA_BYTES, size - kept->size);
  kept->data = data;
  kept->size = size;
  return before;
}
