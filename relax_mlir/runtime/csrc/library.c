/* Calls of library functions that take DLPack descriptors. */

enum { FEW_OPERANDS = 40 };

/* What is left of operands: `info` describes them, `words` are their addresses, then their dims. */
typedef struct Operands {
  const RxArg* arg;
  int64_t *words, *dims;
} Operands;

static Operands operands_of(const RxFunction* info, int64_t* words) {
  return (Operands){info->args, words, words + info->num_args};
}

static DLTensor next_operand(Operands* left) {
  const RxArg* arg = left->arg++;
  DLDataType dtype = {(uint8_t)arg->code, (uint8_t)arg->bits, 1};
  void* data = (void*)(intptr_t)*left->words++;
  DLTensor tensor = {data, {1, 0}, arg->ndim, dtype, left->dims, NULL, 0};
  left->dims += arg->ndim;
  return tensor;
}

int32_t rx_call_library(RxContext* context, const RxFunction* info, RxLibraryFunction function,
                        int64_t* words) {
  DLTensor few[FEW_OPERANDS];
  int is_many = info->num_args > FEW_OPERANDS;
  DLTensor* tensors = is_many ? malloc((size_t)info->num_args * sizeof *tensors) : few;
  if (!tensors) {
    say_out_of_memory(context);
    say(context, "the operands of %s", info->name);
    return 1;
  }
  Operands left = operands_of(info, words);
  for (int32_t i = 0; i < info->num_args; i++) tensors[i] = next_operand(&left);
  int32_t num_results = info->num_results, num_args = info->num_args - num_results;
  int32_t status = function(tensors, num_args, tensors + num_args, num_results);
  if (is_many) free(tensors);
  if (!status) return 0;
  clear_error(context);
  if (status == RX_INTERRUPTED) context->is_interrupted = 1;
  say(context, "%s failed with status %d", info->name, status);
  return 1;
}
