/* Per-thread scratch stacks: blocks that never move while in use and are merged into one when the
 * stack is empty. */
#include <unistd.h>

typedef struct Block {
  struct Block* below;
  int64_t size, used; /* of the bytes after the header */
  char padding[ALIGNMENT - sizeof(void*) - 2 * sizeof(int64_t)];
} Block;

typedef struct Stack {
  Block* top;
  struct Stack *next, *previous; /* all stacks, so that the last context can free them */
} Stack;

enum { FIRST_BLOCK = 64 << 10 };

static pthread_key_t stack_key;
static pthread_mutex_t stacks_lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic int has_stack_key;
static Stack* stacks;

__attribute__((noreturn, cold)) static void out_of_scratch(int64_t bytes) {
  dprintf(STDERR_FILENO, "relax: out of memory: a kernel needs %lld bytes of scratch memory\n",
          (long long)bytes);
  abort();
}

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

__attribute__((cold, noinline)) static Stack* new_stack(int64_t bytes) {
  Stack* stack = calloc(1, sizeof *stack);
  if (!stack) out_of_scratch(bytes);
  tally(RX_ALLOCATIONS, 1);
  pthread_mutex_lock(&stacks_lock);
  if (!has_stack_key && pthread_key_create(&stack_key, free_stack)) out_of_scratch(bytes);
  has_stack_key = 1;
  stack->next = stacks;
  if (stacks) stacks->previous = stack;
  stacks = stack;
  pthread_mutex_unlock(&stacks_lock);
  if (pthread_setspecific(stack_key, stack)) out_of_scratch(bytes);
  return stack;
}

/* A pthread key, not a thread-local variable: shared objects then need no TLS segment or
 * relocations. */
static Stack* own_stack(int64_t bytes) {
  Stack* stack = has_stack_key ? pthread_getspecific(stack_key) : NULL;
  return stack ? stack : new_stack(bytes);
}

__attribute__((cold, noinline)) static Block* new_block(Stack* stack, int64_t bytes) {
  int64_t size = stack->top ? 2 * stack->top->size : FIRST_BLOCK;
  if (size < bytes) size = bytes;
  Block* block = allocate(size + (int64_t)sizeof(Block));
  if (!block) out_of_scratch(bytes);
  *block = (Block){.below = stack->top, .size = size};
  return stack->top = block;
}

void* rx_scratch_push(int64_t bytes) {
  Stack* stack = own_stack(bytes);
  Block* block = stack->top;
  bytes = round_up(bytes, ALIGNMENT);
  if (!block || block->size - block->used < bytes) block = new_block(stack, bytes);
  void* data = block_data(block) + block->used;
  block->used += bytes;
  return data;
}

void rx_scratch_pop(void* data) {
  if (!data) return;
  Stack* stack = own_stack(0);
  Block* block = stack->top;
  while (block &&
         ((char*)data < block_data(block) || (char*)data >= block_data(block) + block->size))
    block = block->below;
  if (!block) return;
  block->used = (char*)data - block_data(block);
  /* Empty blocks under the top are smaller than it and never used again. */
  for (Block* top = stack->top; top->below && !top->below->used && !top->used;) {
    Block* below = top->below;
    top->below = below->below;
    free(below);
  }
}

/* The names that MLIR's memref lowering calls with generic allocation functions. */
void* _mlir_memref_to_llvm_alloc(uint64_t bytes) { return rx_scratch_push((int64_t)bytes); }
void _mlir_memref_to_llvm_free(void* data) { rx_scratch_pop(data); }
