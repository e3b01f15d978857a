/* Calls of library functions that take DLPack descriptors. */

enum { MAX_OPERANDS = 40 };

/* `words` are the addresses of the operands, then their dims. */
static void describe_operands(DLTensor* tensors, const RxFunction* info, int64_t* words) {
  int64_t* dims = words + info->num_args;
  for (int32_t i = 0; i < info->num_args; i++) {
    const RxArg* arg = &info->args[i];
    DLDataType dtype = {(uint8_t)arg->code, (uint8_t)arg->bits, 1};
    void* data = (void*)(intptr_t)words[i];
    tensors[i] = (DLTensor){data, {1, 0}, arg->ndim, dtype, dims, NULL, 0};
    dims += arg->ndim;
  }
}

int32_t rx_call_library(RxContext* context, const RxFunction* info, RxLibraryFunction function,
                        int64_t* words) {
  DLTensor tensors[MAX_OPERANDS];
  describe_operands(tensors, info, words);
  int32_t num_results = info->num_results, num_args = info->num_args - num_results;
  int32_t status = function(tensors, num_args, tensors + num_args, num_results);
  if (!status) return 0;
  clear_error(context);
  if (status == RX_INTERRUPTED) context->is_interrupted = 1;
  say(context, "%s failed with status %d", info->name, status);
  return 1;
}
