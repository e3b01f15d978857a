/* The heap: all memory above the data, in pieces of whole lines, each with a line for its header.
 * Free pieces are a list in the order of their addresses, so that neighbours become one. */

enum { LINE = 64, PAGE = 65536 };

typedef struct Piece {
  _Alignas(LINE) struct Piece* next; /* of a free piece */
  size_t bytes;                      /* with the header */
} Piece;

extern char __heap_base; /* defined by the linker */
static Piece* free_pieces;
static size_t heap_end; /* 0: nothing was allocated yet */

static uint32_t heap_lock;
static size_t most_pages; /* that any thread has seen */

/* An engine may tell a thread late that another one has grown the memory; growing by nothing asks. */
static void see_memory(void) {
  while ((size_t)__builtin_wasm_memory_size(0) < __atomic_load_n(&most_pages, __ATOMIC_SEQ_CST))
    __builtin_wasm_memory_grow(0, 0);
}

/* A new piece at the end of memory; NULL if that cannot grow. */
static Piece* extend_heap(size_t bytes) {
  if (!heap_end) heap_end = ((size_t)&__heap_base + LINE - 1) / LINE * LINE;
  size_t begin = heap_end, end, have = (size_t)__builtin_wasm_memory_size(0);
  if (__builtin_add_overflow(begin, bytes, &end)) return NULL;
  size_t pages = end / PAGE + (end % PAGE != 0);
  if (pages > have && __builtin_wasm_memory_grow(0, pages - have) == (size_t)-1) return NULL;
  if (pages > most_pages) __atomic_store_n(&most_pages, pages, __ATOMIC_SEQ_CST);
  heap_end = end;
  Piece* piece = (Piece*)begin;
  piece->bytes = bytes;
  return piece;
}

static void* take_piece(size_t bytes) {
  for (Piece** at = &free_pieces; *at; at = &(*at)->next) {
    Piece* piece = *at;
    if (piece->bytes < bytes) continue;
    if (piece->bytes >= bytes + 2 * LINE) { /* the rest is one */
      Piece* rest = (Piece*)((char*)piece + bytes);
      *rest = (Piece){piece->next, piece->bytes - bytes};
      *piece = (Piece){rest, bytes};
    }
    *at = piece->next;
    return piece + 1;
  }
  Piece* piece = extend_heap(bytes);
  return piece ? piece + 1 : NULL;
}

void* malloc(size_t size) {
  size_t bytes;
  if (__builtin_add_overflow(size, 2 * LINE - 1, &bytes)) return NULL;
  acquire_lock(&heap_lock);
  see_memory();
  void* data = take_piece(bytes / LINE * LINE);
  release_lock(&heap_lock);
  return data;
}

/* Joins two free pieces if they are neighbours. */
static void join_pieces(Piece* low) {
  Piece* high = low->next;
  if (!high || (char*)low + low->bytes != (char*)high) return;
  low->bytes += high->bytes;
  low->next = high->next;
}

void free(void* data) {
  if (!data) return;
  acquire_lock(&heap_lock);
  see_memory();
  Piece *piece = (Piece*)data - 1, *low = NULL;
  for (Piece* at = free_pieces; at && at < piece; at = at->next) low = at;
  piece->next = low ? low->next : free_pieces;
  *(low ? &low->next : &free_pieces) = piece;
  join_pieces(piece);
  if (low) join_pieces(low);
  release_lock(&heap_lock);
}

void* calloc(size_t count, size_t size) {
  size_t bytes;
  void* data = __builtin_mul_overflow(count, size, &bytes) ? NULL : malloc(bytes);
  return data ? memset(data, 0, bytes) : NULL;
}

void* aligned_alloc(size_t alignment, size_t size) { return alignment > LINE ? NULL : malloc(size); }

/* For host programs, which free it by rx_free. NULL: out of memory. */
RX_API void* rx_allocate(int64_t bytes) { return allocate(bytes); }

/* NULL, with the old memory as it was, if out of memory. */
void* realloc(void* data, size_t size) {
  void* copy = malloc(size);
  if (!copy || !data) return copy;
  size_t old = ((Piece*)data - 1)->bytes - LINE;
  memcpy(copy, data, old < size ? old : size);
  free(data);
  return copy;
}
