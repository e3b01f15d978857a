/* Entry of a graph function: checks the arguments and gives each symbol its value. */
#include <string.h>

/* Where a symbol got its value. */
typedef struct {
  int32_t arg, dim;
} Origin;

typedef struct {
  RxContext* context;
  const RxFunction* info;
  const DLTensor* args;
  int64_t* symbols;
  uint8_t *bound, *said; /* per symbol: it has a value; the text names its value */
  Origin* origins;
  int32_t num_unbound;
} Binding;

static void say_argument(RxContext* context, const RxFunction* info, int32_t i) {
  say(context, "argument %d", i);
  if (info->args[i].name && info->args[i].name[0]) say(context, " '%s'", info->args[i].name);
}

static void say_dtype(RxContext* context, int32_t code, int32_t bits, int32_t lanes) {
  static const char* const names[] = {[RX_INT] = "int",
                                      [RX_UINT] = "uint",
                                      [RX_FLOAT] = "float",
                                      [RX_BFLOAT] = "bfloat",
                                      [RX_COMPLEX] = "complex"};
  int known = code >= 0 && code <= RX_COMPLEX && names[code];
  if (code == RX_BOOL && bits == 8)
    say(context, "bool");
  else if (known)
    say(context, "%s%d", names[code], bits);
  else
    say(context, "DLPack type %d of %d bits", code, bits);
  if (lanes != 1) say(context, "x%d", lanes);
}

/* The first dim whose stride is not row-major without gaps, or -1. */
static int32_t gap_dim(const DLTensor* tensor, int64_t* want) {
  int64_t stride = 1;
  for (int32_t d = 0; d < tensor->ndim; d++)
    if (tensor->shape[d] == 0) return -1;
  for (int32_t d = tensor->ndim - 1; tensor->strides && d >= 0; d--) {
    *want = stride;
    if (tensor->shape[d] != 1 && tensor->strides[d] != stride) return d;
    stride *= tensor->shape[d];
  }
  return -1;
}

static int is_host_memory(int32_t device) {
  return device == 1 || device == 3 || device == 11 ||
         device == 13; /* CPU, pinned for CUDA or ROCm, managed */
}

/* Checks device, dtype and rank; the text goes on after "argument 0 'x': ". Rank -1 is not checked.
 */
static int32_t check_kind(RxContext* context, const DLTensor* tensor, int32_t code, int32_t bits,
                          int32_t ndim) {
  DLDataType dtype = tensor->dtype;
  if (!is_host_memory(tensor->device.type)) {
    say(context, "memory is on a device of DLPack type %d, but CPU memory (1) is expected",
        tensor->device.type);
  } else if (dtype.code != code || dtype.bits != bits || dtype.lanes != 1) {
    say(context, "dtype is ");
    say_dtype(context, dtype.code, dtype.bits, dtype.lanes);
    say(context, ", but ");
    say_dtype(context, code, bits, 1);
    say(context, " is expected");
  } else if (ndim >= 0 && tensor->ndim != ndim) {
    say(context, "rank is %d, but %d is expected", tensor->ndim, ndim);
  } else {
    return 0;
  }
  return 1;
}

/* Checks strides and the data pointer; the text goes on after "argument 0 'x': ". */
static int32_t check_layout(RxContext* context, const DLTensor* tensor) {
  int64_t want = 0, elements = 1;
  int32_t gap = gap_dim(tensor, &want);
  int32_t bytes = tensor->dtype.bits / 8;
  for (int32_t d = 0; d < tensor->ndim; d++) elements *= tensor->shape[d];
  if (gap >= 0) {
    say(context, "stride of dim %d is %lld, but %lld is expected (row-major without gaps)", gap,
        (long long)tensor->strides[gap], (long long)want);
  } else if (tensor->byte_offset) {
    say(context, "byte_offset is %llu, but 0 is expected (add it to data)",
        (unsigned long long)tensor->byte_offset);
  } else if (!tensor->data && elements) {
    say(context, "data is null, but there are %lld elements", (long long)elements);
  } else if (bytes > 1 && (uintptr_t)tensor->data % (uintptr_t)bytes) {
    say(context, "data is at address %p, but a multiple of %d is expected", tensor->data, bytes);
  } else {
    return 0;
  }
  return 1;
}

/* Checks what needs no symbols; the text goes on after "argument 0 'x': ". */
static int32_t check_tensor(RxContext* context, const RxArg* arg, const DLTensor* tensor) {
  if (arg->kind != RX_SHAPE)
    return check_kind(context, tensor, arg->code, arg->bits, arg->ndim) ||
           check_layout(context, tensor);
  if (check_kind(context, tensor, RX_INT, 64, 1) || check_layout(context, tensor)) return 1;
  if (arg->ndim < 0 || tensor->shape[0] == arg->ndim) return 0;
  say(context, "number of values is %lld, but %d is expected", (long long)tensor->shape[0],
      arg->ndim);
  return 1;
}

static int32_t check_argument(RxContext* context, const RxFunction* info, const DLTensor* tensor,
                              int32_t i) {
  /* Formatting costs more than checking: the text is made on failure only. */
  if (!check_tensor(NULL, &info->args[i], tensor)) return 0;
  clear_error(context);
  say_argument(context, info, i);
  say(context, ": ");
  return check_tensor(context, &info->args[i], tensor);
}

/* Number of dims (or values) of an argument that the table describes. */
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

static void say_origin(const Binding* binding, int32_t symbol) {
  Origin origin = binding->origins[symbol];
  say(binding->context, "from ");
  say_argument(binding->context, binding->info, origin.arg);
  say(binding->context, ", %s %d", dim_word(&binding->info->args[origin.arg]), origin.dim);
}

/* Appends "n = 3 from argument 0 'x', dim 0" for each symbol of the program that is not said yet.
 */
static void say_symbols(const Binding* binding, RxDim dim, const char** separator) {
  for (int64_t at = 0; at < dim.count; at += 2) {
    int64_t symbol = dim.program[at + 1];
    if (dim.program[at] != RX_SYMBOL || binding->said[symbol]) continue;
    binding->said[symbol] = 1;
    say(binding->context, "%s%s = %lld ", *separator, binding->info->symbols[symbol],
        (long long)binding->symbols[symbol]);
    say_origin(binding, (int32_t)symbol);
    *separator = ", ";
  }
}

static void bind_symbol(Binding* binding, int32_t symbol, int64_t value, int32_t i, int32_t d) {
  binding->symbols[symbol] = value;
  binding->bound[symbol] = 1;
  binding->origins[symbol] = (Origin){i, d};
  binding->num_unbound--;
}

/* Binds the symbol of a dim that is nothing but this symbol. */
static int32_t bind_plain(Binding* binding, int32_t i, int32_t d) {
  RxDim dim = binding->info->args[i].dims[d];
  int64_t value = actual_dim(binding, i, d);
  if (!is_symbol(dim) || binding->bound[dim.program[1]]) return 0;
  if (value < 0) {
    say_dim(binding, i, d);
    say(binding->context, ", but '%s' must not be negative",
        binding->info->symbols[dim.program[1]]);
    return 1;
  }
  bind_symbol(binding, (int32_t)dim.program[1], value, i, d);
  return 0;
}

/* Binds the symbol without a value in a*s + b by exact division. */
static int32_t bind_linear(Binding* binding, int32_t i, int32_t d) {
  RxDim dim = binding->info->args[i].dims[d];
  int64_t value = actual_dim(binding, i, d);
  Scope scope = {binding->symbols, binding->bound, -1};
  if (!dim.count || is_const(dim)) return 0;
  Linear linear = evaluate(&scope, dim);
  if (linear.fault || linear.a <= 0) return 0;
  int64_t rest = value - linear.b;
  if (rest < 0 || rest % linear.a) {
    say_dim(binding, i, d);
    say(binding->context, ", but '");
    print_dim(binding->context, binding->info->symbols, dim);
    say(binding->context, "' cannot be %lld for any integer %s >= 0", (long long)value,
        binding->info->symbols[scope.unbound]);
    return 1;
  }
  bind_symbol(binding, scope.unbound, rest / linear.a, i, d);
  return 0;
}

static void say_mismatch(const Binding* binding, int32_t i, int32_t d, int64_t want) {
  RxDim dim = binding->info->args[i].dims[d];
  RxContext* context = binding->context;
  const char* separator = " (";
  say_dim(binding, i, d);
  if (is_const(dim)) {
    say(context, ", but %lld is expected", (long long)want);
    return;
  }
  say(context, ", but '");
  print_dim(context, binding->info->symbols, dim);
  say(context, "' is %lld", (long long)want);
  if (is_symbol(dim)) {
    say(context, " (");
    say_origin(binding, (int32_t)dim.program[1]);
    say(context, ")");
    return;
  }
  say_symbols(binding, dim, &separator);
  if (separator[0] == ',') say(context, ")");
}

static int32_t check_dim(Binding* binding, int32_t i, int32_t d) {
  RxDim dim = binding->info->args[i].dims[d];
  Scope scope = {binding->symbols, binding->bound, -1};
  if (!dim.count) return 0;
  Linear want = evaluate(&scope, dim);
  if (scope.unbound >= 0 && !want.fault) want.fault = undetermined;
  if (want.fault) {
    say_dim(binding, i, d);
    say(binding->context, ", but '");
    print_dim(binding->context, binding->info->symbols, dim);
    say(binding->context, "' %s", want.fault);
    return 1;
  }
  if (actual_dim(binding, i, d) == want.b) return 0;
  say_mismatch(binding, i, d, want.b);
  return 1;
}

static int holds(int32_t relation, int64_t x, int64_t y) {
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

static int32_t check_fact(Binding* binding, const RxFact* fact) {
  Scope scope = {binding->symbols, binding->bound, -1};
  Linear lhs = evaluate(&scope, fact->lhs);
  int open = scope.unbound >= 0;
  Linear rhs = evaluate(&scope, fact->rhs);
  if (open || scope.unbound >= 0) return 0;
  if (!lhs.fault && !rhs.fault && holds(fact->relation, lhs.b, rhs.b)) return 0;
  const char* separator = ", but ";
  clear_error(binding->context);
  say(binding->context, "'%s' requires %s", binding->info->name, fact->text);
  say_symbols(binding, fact->lhs, &separator);
  say_symbols(binding, fact->rhs, &separator);
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
  /* Plain dims first: their values explain mismatches of compound ones best. */
  if (binding->num_unbound && for_each_dim(binding, bind_plain)) return 1;
  for (int32_t before = -1; binding->num_unbound && binding->num_unbound != before;) {
    before = binding->num_unbound;
    if (for_each_dim(binding, bind_linear)) return 1;
  }
  if (for_each_dim(binding, check_dim)) return 1;
  for (int32_t f = 0; f < binding->info->num_facts; f++)
    if (check_fact(binding, &binding->info->facts[f])) return 1;
  return 0;
}

static int32_t check_number(RxContext* context, const char* function, const char* what, int32_t got,
                            int32_t want) {
  if (got == want) return 0;
  clear_error(context);
  say(context, "'%s' has %d %s%s, but got %d", function, want, what, want == 1 ? "" : "s", got);
  return 1;
}

static int bind_quickly(const RxFunction* info, const DLTensor* args, int is_checked,
                        int64_t* symbols);

/* Solves with a text for what is wrong. */
static int32_t bind_slowly(RxContext* context, const RxFunction* info, const DLTensor* args,
                           int64_t* symbols) {
  int64_t number = info->num_symbols;
  Origin* origins = rx_scratch_push(number * (int64_t)(sizeof(Origin) + 2));
  uint8_t* bound = (uint8_t*)(origins + number);
  memset(bound, 0, (size_t)(2 * number));
  for (int64_t s = 0; s < number; s++) symbols[s] = -1;
  Binding binding = {context, info,           args,    symbols,
                     bound,   bound + number, origins, info->num_symbols};
  int32_t failed = solve(&binding);
  rx_scratch_pop(origins);
  return failed;
}

/* Notes what later runs of the call may rely on. */
static void keep(RxCall* call, const RxFunction* info, const int64_t* symbols) {
  call->known = info->num_symbols <= RX_KEPT_SYMBOLS ? RX_SYMBOLS_KEPT : RX_ARGUMENTS_FIT;
  for (int64_t i = 0; i < info->num_open; i++) /* the values of a shape may change in place */
    if (info->args[info->open[i]].kind == RX_SHAPE) call->known = RX_ARGUMENTS_FIT;
  if (call->known == RX_SYMBOLS_KEPT)
    for (int32_t s = 0; s < info->num_symbols; s++) call->symbols[s] = symbols[s];
}

int32_t rx_bind(RxContext* context, const RxFunction* info, const DLTensor* args, int32_t num_args,
                int32_t num_results, int64_t* symbols) {
  RxCall* call = context->call;
  context->call = NULL;
  int32_t known = call ? call->known : RX_NOTHING;
  clear_error(context);
  if (known == RX_SYMBOLS_KEPT) {
    for (int32_t s = 0; s < info->num_symbols; s++) symbols[s] = call->symbols[s];
    return 0;
  }
  if (known == RX_NOTHING) {
    if (info->uses_tiles && ask_for_tiles(context)) return 1;
    if (check_number(context, info->name, "argument", num_args, info->num_args)) return 1;
    if (check_number(context, info->name, "result", num_results, info->num_results)) return 1;
    for (int32_t i = 0; i < num_args; i++)
      if (check_argument(context, info, &args[i], i)) return 1;
  }
  if (!bind_quickly(info, args, known != RX_NOTHING, symbols) &&
      bind_slowly(context, info, args, symbols))
    return 1;
  if (call && known == RX_NOTHING) keep(call, info, symbols);
  return 0;
}
