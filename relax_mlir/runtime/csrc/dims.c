/* Symbolic dims: evaluation, solving and printing of postfix programs. */

/* A value a*s + b, where s is the only symbol without a value; `fault` says why there is none. */
typedef struct {
  int64_t a, b;
  const char* fault;
} Linear;

typedef struct {
  const int64_t* symbols;
  const uint8_t* bound; /* per symbol: it has a value */
  int32_t unbound;      /* the symbol without a value that was met, or -1 */
} Scope;

static const char undetermined[] = "does not determine its symbols";
static const char bad_divisor[] = "divides by a number that is not positive";
static const char malformed[] = "is malformed";

static int64_t floor_div(int64_t x, int64_t y) { return x / y - (x % y < 0); } /* y > 0 */

static Linear combine(int64_t opcode, Linear x, Linear y) {
  if (x.fault) return x;
  if (y.fault) return y;
  switch (opcode) {
    case RX_ADD:
      return (Linear){x.a + y.a, x.b + y.b, NULL};
    case RX_SUB:
      return (Linear){x.a - y.a, x.b - y.b, NULL};
    case RX_MUL:
      if (x.a && y.a) return (Linear){0, 0, undetermined};
      return (Linear){x.a * y.b + y.a * x.b, x.b * y.b, NULL};
  }
  if (x.a || y.a) return (Linear){0, 0, undetermined};
  switch (opcode) {
    case RX_FLOORDIV:
      return y.b <= 0 ? (Linear){0, 0, bad_divisor} : (Linear){0, floor_div(x.b, y.b), NULL};
    case RX_MOD:
      return y.b <= 0 ? (Linear){0, 0, bad_divisor}
                      : (Linear){0, x.b - y.b * floor_div(x.b, y.b), NULL};
    case RX_MIN:
      return x.b < y.b ? x : y;
    case RX_MAX:
      return x.b > y.b ? x : y;
  }
  return (Linear){0, 0, malformed};
}

static Linear symbol_value(Scope* scope, int32_t symbol) {
  if (scope->bound[symbol]) return (Linear){0, scope->symbols[symbol], NULL};
  if (scope->unbound >= 0 && scope->unbound != symbol) return (Linear){0, 0, undetermined};
  scope->unbound = symbol;
  return (Linear){1, 0, NULL};
}

/* Evaluates the expression that ends at *end and moves *end to its start. */
static Linear evaluate_back(Scope* scope, const int64_t* program, int64_t* end) {
  if (*end < 2) return (Linear){0, 0, malformed};
  *end -= 2;
  int64_t opcode = program[*end], operand = program[*end + 1];
  if (opcode == RX_CONST) return (Linear){0, operand, NULL};
  if (opcode == RX_SYMBOL) return symbol_value(scope, (int32_t)operand);
  Linear y = evaluate_back(scope, program, end);
  Linear x = evaluate_back(scope, program, end);
  return combine(opcode, x, y);
}

static Linear evaluate(Scope* scope, RxDim dim) {
  int64_t end = dim.count;
  scope->unbound = -1;
  return evaluate_back(scope, dim.program, &end);
}

static int is_symbol(RxDim dim) { return dim.count == 2 && dim.program[0] == RX_SYMBOL; }
static int is_const(RxDim dim) { return dim.count == 2 && dim.program[0] == RX_CONST; }

/* Start of the expression that ends at `end`. */
static int64_t start_of(const int64_t* program, int64_t end) {
  int64_t opcode = program[end - 2];
  if (opcode == RX_CONST || opcode == RX_SYMBOL) return end - 2;
  return start_of(program, start_of(program, end - 2));
}

static const char* const infix[] = {[RX_ADD] = " + ",
                                    [RX_SUB] = " - ",
                                    [RX_MUL] = "*",
                                    [RX_FLOORDIV] = " floordiv ",
                                    [RX_MOD] = " mod "};

/* Prints the expression that ends at `end`, in parentheses if it binds weaker than `level`; the
 * constant at `negated`, if it is not -1, with its sign changed. */
static void print_back(RxContext* context, const char* const* names, const int64_t* program,
                       int64_t end, int level, int64_t negated) {
  int64_t opcode = program[end - 2], operand = program[end - 1];
  if (opcode == RX_CONST) {
    say(context, "%lld", (long long)(end - 2 == negated ? -operand : operand));
    return;
  }
  if (opcode == RX_SYMBOL) {
    say(context, "%s", names[operand]);
    return;
  }
  int64_t start = start_of(program, end), middle = start_of(program, end - 2);
  if (opcode == RX_MIN || opcode == RX_MAX) {
    say(context, opcode == RX_MIN ? "min(" : "max(");
    print_back(context, names, program, middle, 0, -1);
    say(context, ", ");
    print_back(context, names, program, end - 2, 0, -1);
    say(context, ")");
    return;
  }
  if (opcode == RX_MUL && program[start] == RX_CONST && program[start + 1] == -1 &&
      middle == start + 2) {
    if (start != negated) say(context, "-");
    print_back(context, names, program, end - 2, start == negated ? 2 : 3, -1);
    return;
  }
  int own = opcode == RX_ADD || opcode == RX_SUB ? 1 : 2;
  int joins = opcode == RX_ADD || (opcode == RX_MUL && program[end - 4] == RX_MUL);
  int left_joins = opcode != RX_MUL || program[middle - 2] == RX_MUL;
  /* A term that begins with a negative number is subtracted. */
  int subtracts = opcode == RX_ADD && program[middle] == RX_CONST && program[middle + 1] < 0 &&
                  (end - 2 == middle + 2 || program[end - 4] == RX_MUL);
  if (own < level) say(context, "(");
  print_back(context, names, program, middle, left_joins ? own : own + 1, negated);
  say(context, "%s", subtracts ? " - " : infix[opcode]);
  print_back(context, names, program, end - 2, joins ? own : own + 1, subtracts ? middle : -1);
  if (own < level) say(context, ")");
}

static void print_dim(RxContext* context, const char* const* names, RxDim dim) {
  print_back(context, names, dim.program, dim.count, 0, -1);
}
