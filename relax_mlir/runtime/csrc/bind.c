/* Entry of a graph function: checks the arguments and binds the symbols. */
#include <string.h>

/* The dim that bound a symbol; arg -1: it had a value before. */
typedef struct {
  int32_t arg, dim;
} Origin;

typedef struct {
  RxContext* context;
  const RxFunction* info;
  const DLTensor* args;
  int64_t* symbols; /* -1: no value yet */
  uint8_t* printed; /* per symbol: the message has its value */
  Origin* origins;
  int32_t num_unbound;
} Binding;

static void say_argument(RxContext* context, const RxFunction* info, int32_t i) {
  if (info->is_cast) {
    say(context, "match_cast");
    return;
  }
  say(context, "argument %d", i);
  if (info->args[i].name && info->args[i].name[0]) say(context, " '%s'", info->args[i].name);
}

static void say_dtype(RxContext* context, int32_t code, int32_t bits, int32_t lanes) {
  static const char* const names[] = {[RX_INT] = "int",
                                      [RX_UINT] = "uint",
                                      [RX_FLOAT] = "float",
                                      [RX_BFLOAT] = "bfloat",
                                      [RX_COMPLEX] = "complex"};
  static const char* const float8[] = {"e4m3fn", "e4m3fnuz", "e5m2", "e5m2fnuz"};
  int known = code >= 0 && code <= RX_COMPLEX && names[code];
  if (code == RX_BOOL && bits == 8)
    say(context, "bool");
  else if (code >= RX_E4M3FN && code <= RX_E5M2FNUZ && bits == 8)
    say(context, "float8_%s", float8[code - RX_E4M3FN]);
  else if (known)
    say(context, "%s%d", names[code], bits);
  else
    say(context, "DLPack type %d of %d bits", code, bits);
  if (lanes != 1) say(context, "x%d", lanes);
}

/* Bytes of a tensor, ignoring dims of 0: a bound on all strides. -1: overflow or a negative dim. */
static int64_t span_bytes(int32_t bits, int32_t ndim, const int64_t* dims) {
  int64_t bytes = (bits + 7) / 8;
  for (int32_t d = 0; d < ndim; d++)
    if (dims[d] < 0 || (dims[d] && __builtin_mul_overflow(bytes, dims[d], &bytes))) return -1;
  return bytes;
}

static int has_elements(const DLTensor* tensor) {
  for (int32_t d = 0; d < tensor->ndim; d++)
    if (!tensor->shape[d]) return 0;
  return 1;
}

/* The first dim whose stride is not that of a contiguous row-major tensor, or -1. The span must fit
 * an int64. */
static int32_t gap_dim(const DLTensor* tensor, int64_t* want) {
  int64_t stride = 1;
  if (!tensor->strides || !has_elements(tensor)) return -1;
  for (int32_t d = tensor->ndim - 1; d >= 0; d--) {
    *want = stride;
    if (tensor->shape[d] != 1 && tensor->strides[d] != stride) return d;
    stride *= tensor->shape[d];
  }
  return -1;
}

/* What a DLPack type is of. */
static const char* device_name(int32_t type) {
  static const char* const names[] = {[1] = "the CPU",   [2] = "a CUDA device", [4] = "OpenCL",
                                      [7] = "Vulkan",    [8] = "Metal",         [10] = "ROCm",
                                      [12] = "a device", [14] = "oneAPI",       [15] = "WebGPU"};
  int known = type > 0 && type < (int32_t)(sizeof names / sizeof *names) && names[type];
  return known ? names[type] : "another device";
}

/* Checks device, dtype and rank (-1: not checked) of a tensor (RX_TENSOR), or of what is on the host
 * in any case; the message continues "argument 0 'x': ". */
static int32_t check_kind(RxContext* context, const DLTensor* tensor, int32_t kind, int32_t code,
                          int32_t bits, int32_t ndim) {
  DLDataType dtype = tensor->dtype;
  int32_t type = tensor->device.type, expected = kind == RX_TENSOR ? tensor_device() : 1;
  if (kind == RX_TENSOR ? !is_tensor_memory(type) : !is_host_memory(type)) {
    say(context, "memory is of %s (DLPack type %d), but of %s (%d) is expected", device_name(type),
        type, device_name(expected), expected);
  } else if (!is_host_memory(type) && tensor->device.id) {
    say(context, "memory is of %s %d, but of device 0 is expected", device_name(type),
        tensor->device.id);
  } else if (dtype.code != code || dtype.bits != bits || dtype.lanes != 1) {
    say(context, "dtype is ");
    say_dtype(context, dtype.code, dtype.bits, dtype.lanes);
    say(context, ", but ");
    say_dtype(context, code, bits, 1);
    say(context, " is expected");
  } else if (ndim >= 0 && tensor->ndim != ndim) {
    say(context, "rank is %d, but %d is expected", tensor->ndim, ndim);
  } else if (tensor->ndim < 0 || tensor->ndim > RX_MAX_RANK) {
    say(context, "rank is %d, but 0 to %d are supported", tensor->ndim, RX_MAX_RANK);
  } else {
    return 0;
  }
  return 1;
}

static void say_dims(RxContext* context, int32_t ndim, const int64_t* dims) {
  say(context, "dims [");
  for (int32_t d = 0; d < ndim; d++) say(context, d ? ", %lld" : "%lld", (long long)dims[d]);
  say(context, "]");
}

/* Checks that no dim is negative, and that strides and bytes fit 63 bits, even of an empty tensor,
 * since kernels compute them. The message continues "argument 0: ". */
static int32_t check_dims(RxContext* context, int32_t bits, int32_t ndim, const int64_t* dims) {
  if (span_bytes(bits, ndim, dims) >= 0) return 0;
  for (int32_t d = 0; d < ndim; d++) {
    if (dims[d] >= 0) continue;
    say(context, "dim %d is %lld, but a dim must not be negative", d, (long long)dims[d]);
    return 1;
  }
  say_dims(context, ndim, dims);
  say(context, " of %d bits span more than 2^63 - 1 bytes", bits);
  return 1;
}

static int is_beyond_memory(const DLTensor* tensor) {
  return span_bytes(tensor->dtype.bits, tensor->ndim, tensor->shape) > MOST_BYTES;
}

/* Checks dims, strides and the data pointer; the message continues "argument 0 'x': ". */
static int32_t check_layout(RxContext* context, const DLTensor* tensor) {
  int64_t want = 0;
  int32_t bytes = tensor->dtype.bits / 8;
  if (check_dims(context, tensor->dtype.bits, tensor->ndim, tensor->shape)) return 1;
  int32_t gap = gap_dim(tensor, &want);
  if (gap >= 0) {
    say(context, "stride of dim %d is %lld, but %lld is expected (contiguous row-major)", gap,
        (long long)tensor->strides[gap], (long long)want);
  } else if (tensor->byte_offset) {
    say(context, "byte_offset is %llu, but 0 is expected (add it to data)",
        (unsigned long long)tensor->byte_offset);
  } else if (!tensor->data && has_elements(tensor)) {
    say(context, "data is null, but there are elements");
  } else if (has_elements(tensor) && is_beyond_memory(tensor)) {
    say_dims(context, tensor->ndim, tensor->shape);
    say(context, " of %d bits have more bytes than the address space", tensor->dtype.bits);
  } else if (bytes > 1 && (uintptr_t)tensor->data % (uintptr_t)bytes) {
    say(context, "data is at address %p, but a multiple of %d is expected", tensor->data, bytes);
  } else {
    return 0;
  }
  return 1;
}

/* Checks what does not depend on symbols; the message continues "argument 0 'x': ". */
static int32_t check_tensor(RxContext* context, const RxArg* arg, const DLTensor* tensor) {
  if (arg->kind != RX_SHAPE)
    return check_kind(context, tensor, arg->kind, arg->code, arg->bits, arg->ndim) ||
           check_layout(context, tensor);
  if (check_kind(context, tensor, RX_SHAPE, RX_INT, 64, 1) || check_layout(context, tensor)) return 1;
  if (arg->ndim < 0 || tensor->shape[0] == arg->ndim) return 0;
  say(context, "number of values is %lld, but %d is expected", (long long)tensor->shape[0],
      arg->ndim);
  return 1;
}

static int32_t check_argument(RxContext* context, const RxFunction* info, const DLTensor* tensor,
                              int32_t i) {
  /* Formatting costs more than checking: the message is written on failure only. */
  if (!check_tensor(NULL, &info->args[i], tensor)) return 0;
  clear_error(context);
  say_argument(context, info, i);
  say(context, ": ");
  return check_tensor(context, &info->args[i], tensor);
}

/* The count of dims (or values) of an argument that the table describes. */
static int32_t num_dims(const RxArg* arg) { return arg->ndim < 0 || !arg->dims ? 0 : arg->ndim; }

static const char* dim_word(const RxArg* arg) { return arg->kind == RX_SHAPE ? "value" : "dim"; }

static int64_t actual_dim(const Binding* binding, int32_t i, int32_t d) {
  const DLTensor* tensor = &binding->args[i];
  return binding->info->args[i].kind == RX_SHAPE ? ((const int64_t*)tensor->data)[d]
                                                 : tensor->shape[d];
}

static void say_dim(const Binding* binding, int32_t i, int32_t d) {
  clear_error(binding->context);
  say_argument(binding->context, binding->info, i);
  say(binding->context, ": %s %d is %lld", dim_word(&binding->info->args[i]), d,
      (long long)actual_dim(binding, i, d));
}

/* Appends the dim that bound a symbol, between two texts, if it is known. */
static void say_origin(const Binding* binding, int32_t symbol, const char* before,
                       const char* after) {
  Origin origin = binding->origins[symbol];
  if (origin.arg < 0) return;
  say(binding->context, "%sfrom ", before);
  say_argument(binding->context, binding->info, origin.arg);
  say(binding->context, ", %s %d%s", dim_word(&binding->info->args[origin.arg]), origin.dim, after);
}

/* Appends "n = 3 from argument 0 'x', dim 0" for each symbol of the program not printed yet. */
static void say_symbols(const Binding* binding, RxDim dim, const char** separator) {
  for (int64_t at = 0; at < dim.count; at += 2) {
    int64_t symbol = dim.program[at + 1];
    if (dim.program[at] != RX_SYMBOL || binding->printed[symbol]) continue;
    binding->printed[symbol] = 1;
    say(binding->context, "%s%s = %lld", *separator, binding->info->symbols[symbol],
        (long long)binding->symbols[symbol]);
    say_origin(binding, (int32_t)symbol, " ", "");
    *separator = ", ";
  }
}

static void bind_symbol(Binding* binding, int32_t symbol, int64_t value, int32_t i, int32_t d) {
  binding->symbols[symbol] = value;
  binding->origins[symbol] = (Origin){i, d};
  binding->num_unbound--;
}

/* Binds the symbol of a dim that is a plain symbol. */
static int32_t bind_plain(Binding* binding, int32_t i, int32_t d) {
  RxDim dim = binding->info->args[i].dims[d];
  int64_t value = actual_dim(binding, i, d);
  if (!is_symbol(dim) || binding->symbols[dim.program[1]] >= 0) return 0;
  if (value < 0) {
    say_dim(binding, i, d);
    say(binding->context, ", but '%s' must not be negative",
        binding->info->symbols[dim.program[1]]);
    return 1;
  }
  bind_symbol(binding, (int32_t)dim.program[1], value, i, d);
  return 0;
}

static void say_dim_and_program(const Binding* binding, int32_t i, int32_t d) {
  say_dim(binding, i, d);
  say(binding->context, ", but '");
  print_dim(binding->context, binding->info->symbols, binding->info->args[i].dims[d]);
  say(binding->context, "' ");
}

/* Binds the unbound symbol s of a*s + b by exact division. */
static int32_t bind_linear(Binding* binding, int32_t i, int32_t d) {
  RxDim dim = binding->info->args[i].dims[d];
  int64_t value = actual_dim(binding, i, d);
  int32_t symbol;
  Wide rest, quotient = -1;
  if (!dim.count || is_const(dim)) return 0;
  Linear linear = evaluate(binding->symbols, dim, &symbol);
  if (linear.fault || linear.a <= 0) return 0;
  if (!__builtin_sub_overflow(value, linear.b, &rest) && rest >= 0 && !modulo(rest, linear.a))
    quotient = divide_wide(rest, linear.a);
  if (quotient >= 0 && fits_int64(quotient)) {
    bind_symbol(binding, symbol, (int64_t)quotient, i, d);
    return 0;
  }
  const char* name = binding->info->symbols[symbol];
  say_dim_and_program(binding, i, d);
  if (quotient < 0) {
    say(binding->context, "cannot be %lld for any integer %s >= 0", (long long)value, name);
  } else {
    say(binding->context, "needs %s = ", name);
    say_wide(binding->context, quotient);
    say(binding->context, ", beyond 2^63 - 1");
  }
  return 1;
}

/* Refuses values of dims that determine a symbol only if it is `value`, or no integer. */
static int32_t refuse_solution(const Binding* binding, const RxSolution* solution, Wide value) {
  RxContext* context = binding->context;
  const RxTerm* terms = solution->terms;
  const char* name = binding->info->symbols[solution->symbol];
  clear_error(context);
  for (int32_t t = 0; t < solution->num_terms; t++) {
    const RxArg* arg = &binding->info->args[terms[t].arg];
    if (t) say(context, ", ");
    say_argument(context, binding->info, terms[t].arg);
    say(context, ": %s %d is %lld", dim_word(arg), terms[t].dim,
        (long long)actual_dim(binding, terms[t].arg, terms[t].dim));
  }
  for (int32_t t = 0; t < solution->num_terms; t++) {
    say(context, t ? "', '" : ", but '");
    print_dim(context, binding->info->symbols, binding->info->args[terms[t].arg].dims[terms[t].dim]);
  }
  if (value >= 0) {
    say(context, "' need %s = ", name);
    say_wide(context, value);
    say(context, ", beyond 2^63 - 1");
    return 1;
  }
  for (int32_t t = 0; t < solution->num_terms; t++)
    say(context, t ? ", %lld" : "' cannot be %lld",
        (long long)actual_dim(binding, terms[t].arg, terms[t].dim));
  say(context, " for any integer %s >= 0", name);
  return 1;
}

/* Binds a symbol that several dims determine, once all others of its solution are bound. */
static int32_t bind_jointly(Binding* binding, const RxSolution* solution) {
  Linear offset = evaluate_known(binding->symbols, solution->offset);
  Wide total, product;
  if (binding->symbols[solution->symbol] >= 0 || offset.fault) return 0;
  if (__builtin_sub_overflow((Wide)0, offset.b, &total)) return 0;
  for (int32_t t = 0; t < solution->num_terms; t++) {
    RxTerm term = solution->terms[t];
    product = (Wide)term.weight * actual_dim(binding, term.arg, term.dim);
    if (__builtin_add_overflow(total, product, &total)) return 0;
  }
  Wide value = total < 0 || modulo(total, solution->divisor)
                   ? -1
                   : divide_wide(total, solution->divisor);
  if (value < 0 || !fits_int64(value)) return refuse_solution(binding, solution, value);
  bind_symbol(binding, solution->symbol, (int64_t)value, -1, -1);
  return 0;
}

static const char* if_beyond(Wide value) {
  return fits_int64(value) ? "" : value < 0 ? ", below -2^63" : ", beyond 2^63 - 1";
}

static void say_mismatch(const Binding* binding, int32_t i, int32_t d, Wide want) {
  RxDim dim = binding->info->args[i].dims[d];
  RxContext* context = binding->context;
  const char* separator = " (";
  if (is_const(dim)) {
    say_dim(binding, i, d);
    say(context, ", but %lld is expected", (long long)want);
    return;
  }
  say_dim_and_program(binding, i, d);
  say(context, "is ");
  say_wide(context, want);
  if (is_symbol(dim)) {
    say_origin(binding, (int32_t)dim.program[1], " (", ")");
    return;
  }
  say_symbols(binding, dim, &separator);
  say(context, "%s%s", separator[0] == ',' ? ")" : "", if_beyond(want));
}

static int32_t check_dim(Binding* binding, int32_t i, int32_t d) {
  RxDim dim = binding->info->args[i].dims[d];
  if (!dim.count) return 0;
  Linear want = evaluate_known(binding->symbols, dim);
  if (want.fault) {
    say_dim_and_program(binding, i, d);
    say(binding->context, "%s", want.fault);
    return 1;
  }
  if (actual_dim(binding, i, d) == want.b) return 0;
  say_mismatch(binding, i, d, want.b);
  return 1;
}

static int holds(int32_t relation, Wide x, Wide y) {
  switch (relation) {
    case RX_EQ:
      return x == y;
    case RX_LE:
      return x <= y;
    case RX_LT:
      return x < y;
    case RX_GE:
      return x >= y;
    case RX_GT:
      return x > y;
  }
  return x != y;
}

static void say_fault(const Binding* binding, RxDim side, const char* fault) {
  if (!fault) return;
  say(binding->context, "; '");
  print_dim(binding->context, binding->info->symbols, side);
  say(binding->context, "' %s", fault);
}

static int32_t check_fact(Binding* binding, const RxFact* fact) {
  int32_t unbound[2];
  Linear lhs = evaluate(binding->symbols, fact->lhs, &unbound[0]);
  Linear rhs = evaluate(binding->symbols, fact->rhs, &unbound[1]);
  if (unbound[0] >= 0 || unbound[1] >= 0) return 0;
  if (!lhs.fault && !rhs.fault && holds(fact->relation, lhs.b, rhs.b)) return 0;
  const char* separator = ", but ";
  clear_error(binding->context);
  say(binding->context, "'%s' requires %s", binding->info->name, fact->text);
  say_symbols(binding, fact->lhs, &separator);
  say_symbols(binding, fact->rhs, &separator);
  say_fault(binding, fact->lhs, lhs.fault);
  say_fault(binding, fact->rhs, rhs.fault);
  return 1;
}

typedef int32_t (*DimCheck)(Binding*, int32_t, int32_t);

static int32_t for_each_dim(Binding* binding, DimCheck check) {
  for (int32_t i = 0; i < binding->info->num_args; i++)
    for (int32_t d = 0; d < num_dims(&binding->info->args[i]); d++)
      if (check(binding, i, d)) return 1;
  return 0;
}

static int32_t solve(Binding* binding) {
  /* Plain symbols first: messages on compound dims then refer to them. */
  if (binding->num_unbound && for_each_dim(binding, bind_plain)) return 1;
  for (int32_t before = -1; binding->num_unbound && binding->num_unbound != before;) {
    before = binding->num_unbound;
    if (for_each_dim(binding, bind_linear)) return 1;
    if (binding->num_unbound != before) continue;
    for (int64_t s = 0; s < binding->info->num_solutions; s++)
      if (bind_jointly(binding, &binding->info->solutions[s])) return 1;
  }
  if (for_each_dim(binding, check_dim)) return 1;
  for (int32_t f = 0; f < binding->info->num_facts; f++)
    if (check_fact(binding, &binding->info->facts[f])) return 1;
  return 0;
}

static int32_t check_count(RxContext* context, const char* function, const char* what, int32_t got,
                            int32_t want) {
  if (got == want) return 0;
  clear_error(context);
  say(context, "'%s' has %d %s%s, but got %d", function, want, what, want == 1 ? "" : "s", got);
  return 1;
}

static int bind_quickly(const RxFunction* info, const DLTensor* args, int is_checked,
                        int64_t* symbols);

/* Binds and checks, with a message on failure; symbols of a cast may have values. */
static int32_t bind_slowly(RxContext* context, const RxFunction* info, const DLTensor* args,
                           int64_t* symbols) {
  int64_t count = info->num_symbols;
  Origin* origins = rx_scratch_push(count * (int64_t)(sizeof(Origin) + 1));
  uint8_t* printed = (uint8_t*)(origins + count);
  memset(printed, 0, (size_t)count);
  Binding binding = {context, info, args, symbols, printed, origins, 0};
  for (int64_t s = 0; s < count; s++) {
    if (!info->is_cast) symbols[s] = -1;
    origins[s].arg = -1;
    binding.num_unbound += symbols[s] < 0;
  }
  int32_t failed = solve(&binding);
  rx_scratch_pop(origins);
  return failed;
}

/* Records what later runs of the call may rely on. */
static void remember(RxCall* call, const RxFunction* info, const int64_t* symbols) {
  call->known = info->num_symbols <= RX_MAX_KNOWN_SYMBOLS ? RX_SYMBOLS_KNOWN : RX_ARGUMENTS_FIT;
  for (int64_t i = 0; i < info->num_open; i++) /* the values of a shape may change in place */
    if (info->args[info->open[i]].kind == RX_SHAPE) call->known = RX_ARGUMENTS_FIT;
  if (call->known == RX_SYMBOLS_KNOWN)
    for (int32_t s = 0; s < info->num_symbols; s++) call->symbols[s] = symbols[s];
}

int32_t rx_bind(RxContext* context, const RxFunction* info, const DLTensor* args, int32_t num_args,
                int32_t num_results, int64_t* symbols) {
  RxCall* call = context->call;
  context->call = NULL;
  int32_t known = call ? call->known : RX_NOTHING;
  clear_error(context);
  arena_empty(&context->arena);
#ifdef RX_DEVICE
  for (int32_t i = 0; i < rx_num_devices; i++) arena_empty(&context->placed[i]);
#endif
  context->depth = 0;
  if (known == RX_SYMBOLS_KNOWN) {
    for (int32_t s = 0; s < info->num_symbols; s++) symbols[s] = call->symbols[s];
    return 0;
  }
  if (known == RX_NOTHING) {
    if (info->uses_tiles && request_tiles(context)) return 1;
    if (check_count(context, info->name, "argument", num_args, info->num_args)) return 1;
    if (check_count(context, info->name, "result", num_results, info->num_results)) return 1;
    for (int32_t i = 0; i < num_args; i++)
      if (check_argument(context, info, &args[i], i)) return 1;
  }
  if (!bind_quickly(info, args, known != RX_NOTHING, symbols) &&
      bind_slowly(context, info, args, symbols))
    return 1;
  if (call && known == RX_NOTHING) remember(call, info, symbols);
  return 0;
}
