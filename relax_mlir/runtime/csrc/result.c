/* Results of graph functions: the caller's buffers or new ones. */

/* The message continues "result 0: ". */
static int32_t check_buffer(RxContext* context, const DLTensor* result, int32_t kind, int32_t code,
                            int32_t bits, int32_t ndim, const int64_t* dims) {
  if (check_kind(context, result, kind, code, bits, ndim)) return 1;
  for (int32_t d = 0; d < ndim; d++) {
    if (result->shape[d] == dims[d]) continue;
    say(context, "dim %d is %lld, but %lld is expected", d, (long long)result->shape[d],
        (long long)dims[d]);
    return 1;
  }
  return check_layout(context, result);
}

static int32_t check_result(RxContext* context, const DLTensor* result, int32_t index, int32_t kind,
                            int32_t code, int32_t bits, int32_t ndim, const int64_t* dims) {
  if (!check_buffer(NULL, result, kind, code, bits, ndim, dims)) return 0;
  clear_error(context);
  say(context, "result %d: ", index);
  return check_buffer(context, result, kind, code, bits, ndim, dims);
}

/* NULL, with a message, if a dim is negative or out of memory. */
static void* allocate_result(RxContext* context, int32_t index, int32_t kind, int32_t bits,
                             int32_t ndim, const int64_t* dims) {
  int64_t span = span_bytes(bits, ndim, dims), bytes = span;
  for (int32_t d = 0; d < ndim; d++) {
    if (dims[d] < 0) {
      clear_error(context);
      say(context, "result %d: ", index);
      check_dims(context, bits, ndim, dims);
      return NULL;
    }
    if (!dims[d]) bytes = 0;
  }
  void* data = span < 0             ? NULL
               : kind == RX_TENSOR ? allocate_tensor(bytes)
                                   : allocate(bytes);
  if (data) return data;
  say_out_of_memory(context);
  say(context, "result %d of ", index);
  say_dims(context, ndim, dims);
  if (span < 0)
    say(context, ", more than 2^63 - 1 bytes");
  else
    say(context, ", %lld bytes", (long long)bytes);
  return NULL;
}

static void* result_of(RxContext* context, DLTensor* results, int32_t index, int32_t kind,
                       int32_t code, int32_t bits, int32_t ndim, const int64_t* dims) {
  DLTensor* result = &results[index];
  RxFresh* fresh = context->fresh ? context->fresh[index] : NULL;
  if (!fresh && result->data) {
    int32_t failed = check_result(context, result, index, kind, code, bits, ndim, dims);
    return failed ? NULL : result->data;
  }
  void* data = allocate_result(context, index, kind, bits, ndim, dims);
  if (!data) return NULL;
  if (fresh) {
    fresh->data = data; /* first: the memory has an owner now */
    fresh->ndim = ndim;
    for (int32_t d = 0; d < ndim; d++) fresh->dims[d] = dims[d];
    return data;
  }
  for (int32_t d = 0; d < ndim; d++) result->shape[d] = dims[d];
  DLDevice place = {kind == RX_TENSOR ? tensor_device() : 1, 0};
  *result =
      (DLTensor){data, place, ndim, {(uint8_t)code, (uint8_t)bits, 1}, result->shape, NULL, 0};
  return data;
}

void* rx_result(RxContext* context, DLTensor* results, int32_t index, int32_t code, int32_t bits,
                int32_t ndim, const int64_t* dims) {
  return result_of(context, results, index, RX_TENSOR, code, bits, ndim, dims);
}

void* rx_host_result(RxContext* context, DLTensor* results, int32_t index, int32_t code,
                     int32_t bits, int32_t ndim, const int64_t* dims) {
  return result_of(context, results, index, RX_SCALAR, code, bits, ndim, dims);
}

static int32_t kind_of(const DLTensor* tensor) {
  return is_tensor_memory(tensor->device.type) ? RX_TENSOR : RX_SCALAR;
}

int32_t rx_result_alias(RxContext* context, DLTensor* results, int32_t index,
                        const DLTensor* argument) {
  DLTensor* result = &results[index];
  if (context->fresh && context->fresh[index]) return 0; /* the caller knows */
  if (result->data && result->data != argument->data) {
    clear_error(context);
    say(context, "result %d: is an argument updated in place, so no buffer of its own is expected",
        index);
    return 1;
  }
  if (result->data)
    return check_result(context, result, index, kind_of(argument), argument->dtype.code,
                        argument->dtype.bits, argument->ndim, argument->shape);
  for (int32_t d = 0; d < argument->ndim; d++) result->shape[d] = argument->shape[d];
  *result = (DLTensor){
      argument->data, argument->device, argument->ndim, argument->dtype, result->shape, NULL, 0};
  return 0;
}
