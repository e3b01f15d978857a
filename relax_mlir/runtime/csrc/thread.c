/* The state of each thread, shared by the modules that it calls. */

enum { ERROR_SIZE = 1024 };

/* A block of a thread's scratch stack. */
typedef struct Block {
  _Alignas(ALIGNMENT) struct Block* below;
  int64_t size, used; /* of the bytes after the header */
} Block;

typedef struct Escape Escape;

/* A call that a thread makes, in which it may make others. */
typedef struct Active {
  const RxCall* call;
  struct Active* outer;
} Active;

typedef struct {
  Block* top;
  Escape* escape;          /* the innermost; NULL outside of `attempt` */
  int64_t missing;         /* bytes of scratch memory that could not be allocated */
  int32_t threads;         /* of the running call; 0: those of rx_set_threads */
  int32_t in_region;       /* nested loops run on this thread */
  uintptr_t stack_end;     /* with a reserve; 0 until it is asked for, 1: not known */
  RxSpan span;             /* of the running kernel, while spans are recorded */
  Active* active;          /* the innermost call */
  RxContext* running;      /* of the innermost call */
  const RxContext* called; /* of the last rx_call, */
  char error[ERROR_SIZE];  /* and its message */
} Thread;

/* Frees empty blocks below an empty top: they are smaller and would not be used again. */
static void free_empty(Thread* thread) {
  for (Block* top = thread->top; top && !top->used && top->below && !top->below->used;) {
    Block* below = top->below;
    top->below = below->below;
    free(below);
  }
}
