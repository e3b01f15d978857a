/* The fast path of `rx_bind`: binds and checks in one pass, without messages. */

/* Binds or compares a dim that is a constant or a symbol; 0 if it differs. */
static int accept_simple(RxDim dim, int64_t actual, int64_t* symbols) {
  int64_t operand = dim.program[1];
  if (dim.program[0] == RX_CONST) return actual == operand;
  if (symbols[operand] < 0) symbols[operand] = actual;
  return actual >= 0 && symbols[operand] == actual;
}

/* Binds and checks constant and plain dims, or, if `is_compound`, the others. */
static int accept_dims(const RxFunction* info, const DLTensor* args, int64_t i, int is_compound,
                       int64_t* symbols) {
  const RxArg* arg = &info->args[i];
  const int64_t* actual = arg->kind == RX_SHAPE ? args[i].data : args[i].shape;
  for (int32_t d = 0; d < num_dims(arg); d++) {
    if (!arg->dims[d].count || (arg->dims[d].count > 2) != is_compound) continue;
    if (!is_compound && !accept_simple(arg->dims[d], actual[d], symbols)) return 0;
    if (!is_compound) continue;
    Linear want = evaluate_known(symbols, arg->dims[d]);
    if (want.fault || want.b != actual[d]) return 0;
  }
  return 1;
}

static int accept_facts(const RxFunction* info, const int64_t* symbols) {
  for (int32_t f = 0; f < info->num_facts; f++) {
    const RxFact* fact = &info->facts[f];
    Linear lhs = evaluate_known(symbols, fact->lhs), rhs = evaluate_known(symbols, fact->rhs);
    if (lhs.fault || rhs.fault || !holds(fact->relation, lhs.b, rhs.b)) return 0;
  }
  return 1;
}

/* Binds unbound symbols, and checks dims and facts; if `is_checked`, only of the arguments that
 * mention symbols. 0: a check failed, or a symbol needs solving. */
static int accept(const RxFunction* info, const DLTensor* args, int is_checked, int64_t* symbols) {
  int64_t count = is_checked ? info->num_open : info->num_args;
  for (int is_compound = 0; is_compound < 2; is_compound++)
    for (int64_t i = 0; i < count; i++)
      if (!accept_dims(info, args, is_checked ? info->open[i] : i, is_compound, symbols)) return 0;
  return accept_facts(info, symbols);
}

static int bind_quickly(const RxFunction* info, const DLTensor* args, int is_checked,
                        int64_t* symbols) {
  for (int32_t s = 0; s < info->num_symbols; s++) symbols[s] = -1;
  return accept(info, args, is_checked, symbols);
}
