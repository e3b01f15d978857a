/* Per-thread scratch stacks: blocks that never move while in use and are merged into one when the
 * stack is empty. */
enum { FIRST_BLOCK = 64 << 10 };

static char* block_data(Block* block) { return (char*)block + sizeof(Block); }

__attribute__((cold, noinline)) static Block* new_block(Thread* thread, int64_t bytes) {
  int64_t size = thread->top ? 2 * thread->top->size : FIRST_BLOCK;
  if (size < bytes) size = bytes;
  Block* block = allocate(size + (int64_t)sizeof(Block));
  if (!block && size > bytes) block = allocate((size = bytes) + (int64_t)sizeof(Block));
  if (!block) escape(thread, bytes);
  *block = (Block){.below = thread->top, .size = size};
  return thread->top = block;
}

void* rx_scratch_push(int64_t bytes) {
  Thread* thread = own_thread();
  if (!thread || bytes < 0 || bytes > MOST_BYTES) escape(thread, bytes);
  Block* block = thread->top;
  bytes = round_up(bytes, ALIGNMENT);
  if (!block || block->size - block->used < bytes) block = new_block(thread, bytes);
  void* data = block_data(block) + block->used;
  block->used += bytes;
  return data;
}

void rx_scratch_pop(void* data) {
  Thread* thread = data ? own_thread() : NULL;
  Block* block = thread ? thread->top : NULL;
  while (block &&
         ((char*)data < block_data(block) || (char*)data >= block_data(block) + block->size))
    block = block->below;
  if (!block) return;
  for (Block* above = thread->top; above != block; above = above->below) above->used = 0;
  block->used = (char*)data - block_data(block);
  free_empty(thread);
}

/* The names that MLIR's memref lowering calls with generic allocation functions. */
void* _mlir_memref_to_llvm_alloc(uint64_t bytes) { return rx_scratch_push((int64_t)bytes); }
void _mlir_memref_to_llvm_free(void* data) { rx_scratch_pop(data); }
