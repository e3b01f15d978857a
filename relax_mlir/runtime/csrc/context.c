/* Contexts: the error text and the arena of one caller. */
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>

enum { ERROR_SIZE = 1024 };

struct RxContext {
  Arena arena;
  RxCall* call;         /* until rx_bind; NULL: called by itself */
  int32_t lacks_memory; /* the error is that there was none */
  int32_t error_length;
  char error[ERROR_SIZE];
};

static pthread_mutex_t contexts_lock = PTHREAD_MUTEX_INITIALIZER;
static int64_t num_contexts;

static void end_workers(void);
static void free_scratch(void);

RxContext* rx_create(void) {
  RxContext* context = calloc(1, sizeof *context);
  if (!context) return NULL;
  tally(RX_ALLOCATIONS, 1);
  pthread_mutex_lock(&contexts_lock);
  num_contexts++;
  pthread_mutex_unlock(&contexts_lock);
  return context;
}

void rx_destroy(RxContext* context) {
  if (!context) return;
  free_arena(&context->arena);
  free(context);
  pthread_mutex_lock(&contexts_lock);
  if (--num_contexts == 0) {
    end_workers();
    free_scratch();
  }
  pthread_mutex_unlock(&contexts_lock);
}

const char* rx_last_error(RxContext* context) { return context ? context->error : "out of memory"; }

static void clear_error(RxContext* context) {
  context->lacks_memory = 0;
  context->error[context->error_length = 0] = 0;
}

/* Appends to the error text, if there is one; what does not fit is cut off. */
__attribute__((format(printf, 2, 3))) static void say(RxContext* context, const char* format, ...) {
  va_list values;
  if (!context) return;
  va_start(values, format);
  int32_t room = ERROR_SIZE - context->error_length;
  int32_t length = vsnprintf(context->error + context->error_length, (size_t)room, format, values);
  va_end(values);
  context->error_length += length < room ? length : room - 1;
}

/* Begins the error text of what could not be allocated. */
static void say_lack(RxContext* context) {
  clear_error(context);
  context->lacks_memory = 1;
  say(context, "out of memory: ");
}

int32_t rx_fail(RxContext* context, const char* message) {
  clear_error(context);
  say(context, "%s", message);
  return 1;
}

void* rx_arena(RxContext* context, int64_t bytes) {
  void* data = arena_take(&context->arena, bytes);
  if (data) return data;
  say_lack(context);
  say(context, "the function needs %lld bytes for temporaries", (long long)bytes);
  return NULL;
}

void* rx_arena_mark(RxContext* context) { return arena_mark(&context->arena); }

void rx_arena_release(RxContext* context, void* mark) { arena_release(&context->arena, mark); }
