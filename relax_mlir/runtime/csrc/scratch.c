/* Per-thread scratch stacks: blocks that never move while in use and are merged into one when the
 * stack is empty. */
#include <setjmp.h>
#include <unistd.h>

typedef struct Block {
  struct Block* below;
  int64_t size, used; /* of the bytes after the header */
  char padding[ALIGNMENT - sizeof(void*) - 2 * sizeof(int64_t)];
} Block;

/* Where a thread goes on when it runs out of scratch memory, and the block that was in use then. */
typedef struct Escape {
  jmp_buf place;
  Block* block;
  int64_t used;
  struct Escape* outer;
} Escape;

typedef struct Stack {
  Block* top;
  Escape* escape;               /* the innermost; NULL outside of `attempt` */
  int64_t lack;                 /* bytes that there were not */
  struct Stack *next, *previous; /* all stacks, so that the last context can free them */
} Stack;

enum { FIRST_BLOCK = 64 << 10 };

static pthread_key_t stack_key;
static pthread_mutex_t stacks_lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic int has_stack_key;
static Stack* stacks;

static char* block_data(Block* block) { return (char*)block + sizeof(Block); }

static void free_stack(void* pointer) {
  Stack* stack = pointer;
  pthread_mutex_lock(&stacks_lock);
  if (stack->previous)
    stack->previous->next = stack->next;
  else
    stacks = stack->next;
  if (stack->next) stack->next->previous = stack->previous;
  pthread_mutex_unlock(&stacks_lock);
  for (Block *block = stack->top, *below; block; block = below) {
    below = block->below;
    free(block);
  }
  free(stack);
}

static void free_scratch(void) {
  while (stacks) free_stack(stacks);
  if (has_stack_key) pthread_key_delete(stack_key);
  has_stack_key = 0;
}

__attribute__((cold, noinline)) static Stack* new_stack(void) {
  Stack* stack = calloc(1, sizeof *stack);
  if (!stack) return NULL;
  pthread_mutex_lock(&stacks_lock);
  if (!has_stack_key) has_stack_key = !pthread_key_create(&stack_key, free_stack);
  if (!has_stack_key || pthread_setspecific(stack_key, stack)) {
    pthread_mutex_unlock(&stacks_lock);
    free(stack);
    return NULL;
  }
  tally(RX_ALLOCATIONS, 1);
  stack->next = stacks;
  if (stacks) stacks->previous = stack;
  stacks = stack;
  pthread_mutex_unlock(&stacks_lock);
  return stack;
}

/* A pthread key, not a thread-local variable: shared objects then need no TLS segment or
 * relocations. */
static Stack* own_stack(void) {
  Stack* stack = has_stack_key ? pthread_getspecific(stack_key) : NULL;
  return stack ? stack : new_stack();
}

/* Gives up what the thread attempts. */
__attribute__((noreturn, cold, noinline)) static void escape(Stack* stack, int64_t bytes) {
  if (!stack || !stack->escape) {
    dprintf(STDERR_FILENO, "relax: out of memory: a kernel needs %lld bytes of scratch memory\n",
            (long long)bytes);
    abort();
  }
  stack->lack = bytes;
  longjmp(stack->escape->place, 1);
}

/* Empty blocks under the top are smaller than it and never used again. */
static void free_empty(Stack* stack) {
  for (Block* top = stack->top; top && !top->used && top->below && !top->below->used;) {
    Block* below = top->below;
    top->below = below->below;
    free(below);
  }
}

/* Frees what was pushed since `attempt` began. */
__attribute__((cold, noinline)) static void unwind(Stack* stack, const Escape* from) {
  for (Block* block = stack->top; block && block != from->block; block = block->below)
    block->used = 0;
  if (from->block) from->block->used = from->used;
  free_empty(stack);
}

/* Runs body(data). Returns 0, or the bytes of scratch memory that there were not: then the body was
 * given up, and what it had pushed is free. */
static int64_t attempt(void (*body)(void*), void* data) {
  Stack* stack = own_stack();
  if (!stack) return (int64_t)sizeof *stack;
  Escape here = {.block = stack->top, .outer = stack->escape};
  while (here.block && !here.block->used) here.block = here.block->below;
  if (here.block) here.used = here.block->used;
  stack->escape = &here;
  stack->lack = 0;
  if (_setjmp(here.place))
    unwind(stack, &here);
  else
    body(data);
  stack->escape = here.outer;
  return stack->lack;
}

__attribute__((cold, noinline)) static Block* new_block(Stack* stack, int64_t bytes) {
  int64_t size = stack->top ? 2 * stack->top->size : FIRST_BLOCK;
  if (size < bytes) size = bytes;
  Block* block = allocate(size + (int64_t)sizeof(Block));
  if (!block && size > bytes) block = allocate((size = bytes) + (int64_t)sizeof(Block));
  if (!block) escape(stack, bytes);
  *block = (Block){.below = stack->top, .size = size};
  return stack->top = block;
}

void* rx_scratch_push(int64_t bytes) {
  Stack* stack = own_stack();
  if (!stack || bytes < 0 || bytes > MOST_BYTES) escape(stack, bytes);
  Block* block = stack->top;
  bytes = round_up(bytes, ALIGNMENT);
  if (!block || block->size - block->used < bytes) block = new_block(stack, bytes);
  void* data = block_data(block) + block->used;
  block->used += bytes;
  return data;
}

void rx_scratch_pop(void* data) {
  Stack* stack = data ? own_stack() : NULL;
  Block* block = stack ? stack->top : NULL;
  while (block &&
         ((char*)data < block_data(block) || (char*)data >= block_data(block) + block->size))
    block = block->below;
  if (!block) return;
  for (Block* above = stack->top; above != block; above = above->below) above->used = 0;
  block->used = (char*)data - block_data(block);
  free_empty(stack);
}

/* The names that MLIR's memref lowering calls with generic allocation functions. */
void* _mlir_memref_to_llvm_alloc(uint64_t bytes) { return rx_scratch_push((int64_t)bytes); }
void _mlir_memref_to_llvm_free(void* data) { rx_scratch_pop(data); }
