/* Contexts: the arena and the error message of a call; a list of them serves calls that overlap. */
#include <stdarg.h>
#include <stdio.h>

#ifdef RX_DEVICE
typedef struct Collected Collected;
#endif

struct RxContext {
  Arena arena;
#ifdef RX_DEVICE
  Arena scratch[RX_MOST_DEVICES];  /* of launches, by device */
  Arena placed[RX_MOST_DEVICES];   /* of temporaries on the host, and on devices after the first */
  void* read;                /* what the host reads from a device */
  Collected* collected;      /* launches that are to be made */
  int32_t has_device_failed; /* in this call, whose error says how */
#endif
  Kept* kept;
  RxCall* call;              /* until rx_bind; NULL: called without rx_call */
  RxFresh* const* fresh;     /* of rx_call_on; NULL: new results are put into their descriptors */
  int32_t is_out_of_memory;  /* the cause of the error */
  int32_t is_interrupted;    /* likewise */
  int32_t rounds;            /* of loops since rx_poll looked at the clock, weighted */
  int64_t polled;            /* when that was */
  int32_t depth;             /* of calls of functions that call themselves */
  int32_t threads;           /* of calls; 0: those of rx_set_threads */
  _Atomic int32_t is_busy;   /* a call uses it */
  RxContext* _Atomic next;   /* for calls that overlap with one of this context */
  int32_t error_length;
  char error[ERROR_SIZE];
};

static RxContext* new_context(void) {
  RxContext* context = calloc(1, sizeof *context);
  if (context) tally(RX_ALLOCATIONS, 1);
#ifdef RX_DEVICE
  for (int32_t i = 0; context && i < rx_num_devices; i++) {
    context->scratch[i].place = i;
    context->placed[i].place = i ? i : HOST;
  }
#endif
  return context;
}

RxContext* rx_create(void) {
  if (map_constants() || open_device()) return NULL;
  RxContext* context = new_context();
  if (context)
    atomic_fetch_add(&RX_PROCESS.num_contexts, 1);
  else
    close_device();
  return context;
}

void rx_destroy(RxContext* context) {
  if (!context) return;
  for (RxContext* next; context; context = next) {
    next = atomic_load(&context->next);
    free_arena(&context->arena);
    free_kept(context->kept);
#ifdef RX_DEVICE
    for (int32_t i = 0; i < rx_num_devices; i++) {
      free_arena(&context->scratch[i]);
      free_arena(&context->placed[i]);
    }
    free(context->read);
    free(context->collected);
#endif
    free(context);
  }
  close_device();
  if (atomic_fetch_sub(&RX_PROCESS.num_contexts, 1) == 1) free_own_thread();
}

/* A context for a call: the first of the list that is not busy, or a new one; NULL: out of memory.
 * The context of a call that a fork interrupted stays busy. */
static RxContext* acquire_context(RxContext* first) {
  for (RxContext* context = first; context; context = atomic_load(&context->next))
    if (!atomic_load_explicit(&context->is_busy, memory_order_relaxed) &&
        !atomic_exchange_explicit(&context->is_busy, 1, memory_order_acquire))
      return context;
  RxContext* context = new_context();
  if (!context) return NULL;
  context->is_busy = 1;
  RxContext* next = atomic_load(&first->next);
  do context->next = next;
  while (!atomic_compare_exchange_weak(&first->next, &next, context));
  return context;
}

static void release_context(RxContext* context) {
  atomic_store_explicit(&context->is_busy, 0, memory_order_release);
}

const char* rx_last_error(RxContext* context) {
  if (!context && constants_error[0]) return constants_error;
  const Thread* thread = context ? own_thread() : NULL;
  if (!thread) return "out of memory";
  return thread->called == context ? thread->error : context->error;
}

void rx_set_context_threads(RxContext* context, int32_t threads) {
  context->threads = threads < 0 ? 0 : threads;
}

static void clear_error(RxContext* context) {
  context->is_out_of_memory = context->is_interrupted = 0;
  context->error[context->error_length = 0] = 0;
}

/* Appends to the error message, unless `context` is NULL; truncates it if it is too long. */
__attribute__((format(printf, 2, 3))) static void say(RxContext* context, const char* format, ...) {
  va_list values;
  if (!context) return;
  va_start(values, format);
  int32_t room = ERROR_SIZE - context->error_length;
  int32_t length = vsnprintf(context->error + context->error_length, (size_t)room, format, values);
  va_end(values);
  context->error_length += length < room ? length : room - 1;
}

/* Begins the error message of a failed allocation. */
static void say_out_of_memory(RxContext* context) {
  clear_error(context);
  context->is_out_of_memory = 1;
  say(context, "out of memory: ");
}

int32_t rx_fail(RxContext* context, const char* message) {
  clear_error(context);
  say(context, "%s", message);
  return 1;
}

static void* take_temporaries(RxContext* context, Arena* arena, const char* where, int64_t bytes) {
  void* data = arena_take(arena, bytes);
  if (data) return data;
  say_out_of_memory(context);
  say(context, "the function needs %lld bytes for temporaries", (long long)bytes);
  if (where) say(context, " on %s", where);
  return NULL;
}

void* rx_arena(RxContext* context, int64_t bytes) {
  return take_temporaries(context, &context->arena, NULL, bytes);
}

#ifdef RX_DEVICE
/* That of a place which is not the first device. */
static Arena* placed(RxContext* context, int32_t place) {
  return &context->placed[place == HOST ? 0 : place];
}

void* rx_placed_arena(RxContext* context, int32_t place, int64_t bytes) {
  const char* where = place == HOST ? "the host" : rx_devices[place].name;
  return take_temporaries(context, placed(context, place), where, bytes);
}

void* rx_placed_arena_mark(RxContext* context, int32_t place) {
  return arena_mark(placed(context, place));
}

void rx_placed_arena_release(RxContext* context, int32_t place, void* mark) {
  arena_release(placed(context, place), mark);
}
#endif

void* rx_arena_mark(RxContext* context) { return arena_mark(&context->arena); }

void rx_arena_release(RxContext* context, void* mark) { arena_release(&context->arena, mark); }

void* rx_keep(RxContext* context, int32_t site, const void* source, int64_t bytes) {
  Kept* kept = kept_at(&context->kept, site, context->depth);
  int32_t missing = !kept, failed = 0;
  void* before = kept ? grow_kept(kept, bytes, &missing) : NULL;
  if (!missing) failed = copy_tensor(context, kept->data, source, bytes);
  free_tensor(before); /* the source may lie in it */
  if (!missing) return failed ? NULL : kept->data;
  say_out_of_memory(context);
  say(context, "a loop carries %lld bytes", (long long)bytes);
  return NULL;
}
