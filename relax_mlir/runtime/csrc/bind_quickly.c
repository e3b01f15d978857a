/* Symbols and checks of arguments in one pass, which notes nothing for messages. */

enum { MOST_OPERANDS = 8 };

static int is_within(int64_t opcode, int64_t x, int64_t y, int64_t* value) {
  switch (opcode) {
    case RX_ADD:
      *value = x + y;
      return 1;
    case RX_SUB:
      *value = x - y;
      return 1;
    case RX_MUL:
      *value = x * y;
      return 1;
    case RX_FLOORDIV:
    case RX_MOD:
      if (y <= 0) return 0;
      *value = opcode == RX_FLOORDIV ? floor_div(x, y) : x - y * floor_div(x, y);
      return 1;
    case RX_MIN:
      *value = x < y ? x : y;
      return 1;
    case RX_MAX:
      *value = x > y ? x : y;
      return 1;
  }
  return 0;
}

/* Computes a dim whose symbols all have values; 0 if it cannot. */
static int compute(const int64_t* symbols, RxDim dim, int64_t* value) {
  int64_t stack[MOST_OPERANDS];
  int top = 0;
  for (int64_t at = 0; at < dim.count; at += 2) {
    int64_t opcode = dim.program[at], operand = dim.program[at + 1];
    if (opcode == RX_CONST || opcode == RX_SYMBOL) {
      if (top == MOST_OPERANDS) return 0;
      stack[top++] = opcode == RX_CONST ? operand : symbols[operand];
      if (opcode == RX_SYMBOL && symbols[operand] < 0) return 0;
    } else {
      if (top < 2 || !is_within(opcode, stack[top - 2], stack[top - 1], &stack[top - 2])) return 0;
      top--;
    }
  }
  *value = stack[0];
  return top == 1;
}

/* Binds or compares a dim that is a number or a symbol; 0 if it differs. */
static int accept_simple(RxDim dim, int64_t actual, int64_t* symbols) {
  int64_t operand = dim.program[1];
  if (dim.program[0] == RX_CONST) return actual == operand;
  if (symbols[operand] < 0) symbols[operand] = actual;
  return actual >= 0 && symbols[operand] == actual;
}

/* Numbers and symbols first; `is_compound` asks for the others. */
static int accept_dims(const RxFunction* info, const DLTensor* args, int64_t i, int is_compound,
                       int64_t* symbols) {
  const RxArg* arg = &info->args[i];
  const int64_t* actual = arg->kind == RX_SHAPE ? args[i].data : args[i].shape;
  for (int32_t d = 0; d < num_dims(arg); d++) {
    int64_t want;
    if (!arg->dims[d].count || (arg->dims[d].count > 2) != is_compound) continue;
    if (!is_compound && !accept_simple(arg->dims[d], actual[d], symbols)) return 0;
    if (is_compound && !(compute(symbols, arg->dims[d], &want) && want == actual[d])) return 0;
  }
  return 1;
}

static int accept_facts(const RxFunction* info, const int64_t* symbols) {
  int64_t lhs, rhs;
  for (int32_t f = 0; f < info->num_facts; f++) {
    const RxFact* fact = &info->facts[f];
    if (!compute(symbols, fact->lhs, &lhs) || !compute(symbols, fact->rhs, &rhs)) return 0;
    if (!holds(fact->relation, lhs, rhs)) return 0;
  }
  return 1;
}

/* Gives symbols their values and checks dims and facts; only of the arguments that mention symbols
 * if `is_checked`. 0: something is wrong, or not so simple. */
static int bind_quickly(const RxFunction* info, const DLTensor* args, int is_checked,
                        int64_t* symbols) {
  int64_t number = is_checked ? info->num_open : info->num_args;
  for (int32_t s = 0; s < info->num_symbols; s++) symbols[s] = -1;
  for (int is_compound = 0; is_compound < 2; is_compound++)
    for (int64_t i = 0; i < number; i++)
      if (!accept_dims(info, args, is_checked ? info->open[i] : i, is_compound, symbols)) return 0;
  return accept_facts(info, symbols);
}
