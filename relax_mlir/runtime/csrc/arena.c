/* The memory of a context's temporaries: a stack of chunks, which never move while they are in use.
 *
 * Chunks stay allocated when their contents are released; several empty ones are merged into one of
 * the peak size of all. So a call, or an iteration of a loop, that needs no more memory than the
 * one before it allocates nothing.
 */

typedef struct Chunk {
  struct Chunk* below;
  char* data;
  int64_t size, used; /* multiples of TENSOR_ALIGNMENT */
  int64_t bytes;      /* that were requested */
} Chunk;

typedef struct {
  Chunk* top;
  int64_t used, peak; /* of all chunks */
  int64_t wanted;     /* the least size of the next chunk */
  int32_t place;      /* of its memory: 0 where tensors are, see `device/tensors.c` */
} Arena;

/* Rounds up to a multiple of TENSOR_ALIGNMENT. */
static int64_t aligned(int64_t bytes) {
  return (bytes + TENSOR_ALIGNMENT - 1) & -(int64_t)TENSOR_ALIGNMENT;
}

static void free_top(Arena* arena) {
  Chunk* chunk = arena->top;
  arena->top = chunk->below;
  tally(RX_ARENA_BYTES, -chunk->bytes);
  free_at(arena->place, chunk->data);
  free(chunk);
}

static void free_arena(Arena* arena) {
  while (arena->top) free_top(arena);
}

static Chunk* push_chunk(Arena* arena, int64_t bytes) {
  int64_t size = aligned(bytes);
  Chunk* chunk = malloc(sizeof *chunk);
  char* data = NULL;
  if (chunk) data = allocate_at(arena->place, size + TENSOR_ALIGNMENT);
  if (!data) {
    free(chunk);
    return NULL;
  }
  *chunk = (Chunk){arena->top, data, size, 0, bytes};
  tally(RX_ARENA_BYTES, bytes);
  return arena->top = chunk;
}

/* Pushes a new chunk, after it frees empty ones that are too small. */
__attribute__((cold, noinline)) static Chunk* grow(Arena* arena, int64_t bytes) {
  if (bytes < 0 || bytes > MOST_BYTES) return NULL;
  while (arena->top && !arena->top->used) free_top(arena);
  int64_t wanted = arena->wanted;
  arena->wanted = 0;
  Chunk* chunk = wanted > bytes ? push_chunk(arena, wanted) : NULL;
  return chunk ? chunk : push_chunk(arena, bytes);
}

/* Allocates memory until the release; NULL if out of memory. No bytes are taken as one: `grow` would
 * free a chunk that only they are in. */
static void* arena_take(Arena* arena, int64_t bytes) {
  Chunk* chunk = arena->top;
  bytes += !bytes;
  if (!chunk || (uint64_t)bytes > (uint64_t)(chunk->size - chunk->used)) {
    chunk = grow(arena, bytes);
    if (!chunk) return NULL;
  }
  char* data = chunk->data + chunk->used;
  chunk->used += aligned(bytes);
  arena->used += aligned(bytes);
  if (arena->peak < arena->used) arena->peak = arena->used;
  return data;
}

/* What to release to: NULL where nothing is used. Not in an empty chunk, which `grow` may free. */
static char* arena_mark(const Arena* arena) {
  const Chunk* chunk = arena->top;
  while (chunk && !chunk->used) chunk = chunk->below;
  return chunk ? chunk->data + chunk->used : NULL;
}

static int is_in(const Chunk* chunk, const char* mark) {
  /* What follows a chunk is allocated with it, so a mark at its end is in no other chunk. */
  return (uintptr_t)mark - (uintptr_t)chunk->data <= (uintptr_t)chunk->size;
}

static void shrink(Arena* arena, Chunk* chunk, int64_t used) {
  arena->used -= chunk->used - used;
  chunk->used = used;
}

/* Releases what was allocated since the mark. */
static void arena_release(Arena* arena, char* mark) {
  Chunk* chunk = arena->top;
  for (; chunk && !is_in(chunk, mark); chunk = chunk->below) shrink(arena, chunk, 0);
  if (chunk) shrink(arena, chunk, mark - chunk->data);
  if (arena->top == chunk || arena->top->below == chunk) return;
  while (arena->top != chunk) free_top(arena);
  arena->wanted = arena->peak - arena->used;
}

/* Releases everything. */
static void arena_empty(Arena* arena) {
  Chunk* chunk = arena->top;
  if (!chunk) return;
  arena->used = chunk->used = 0;
  if (!chunk->below && chunk->size >= arena->peak) return;
  free_arena(arena);
  arena->wanted = arena->peak;
}
