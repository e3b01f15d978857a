/* Symbolic dims: evaluation, solving and printing of postfix programs.
 *
 * Symbols and dims are integers of [0, 2^63). Expressions are computed exactly, in 128 bits, so
 * that no comparison is modulo 2^64; a value that does not fit is a fault.
 */

#ifdef __SIZEOF_INT128__
typedef __int128 Wide;
typedef unsigned __int128 UnsignedWide;
#else /* 32-bit targets */
typedef _BitInt(128) Wide;
typedef unsigned _BitInt(128) UnsignedWide;
#endif

/* A value a*s + b, where s is the only unbound symbol; `fault` is the reason if it has none. */
typedef struct {
  Wide a, b;
  const char* fault;
} Linear;

static const char undetermined[] = "does not determine its symbols";
static const char bad_divisor[] = "divides by a number that is not positive";
static const char beyond_wide[] = "is beyond 2^127";
static const char malformed[] = "is malformed";

static int fits_int64(Wide value) { return value == (int64_t)value; }

/* Long division, since the C library has no 128-bit one. x >= 0, y > 0. */
static Wide divide_wide(Wide x, Wide y) {
  if (fits_int64(x) && fits_int64(y)) return (int64_t)x / (int64_t)y;
  UnsignedWide rest = 0, quotient = 0;
  for (int bit = 126; bit >= 0; bit--) {
    rest = rest << 1 | (unsigned)(x >> bit & 1);
    if (rest < (UnsignedWide)y) continue;
    rest -= (UnsignedWide)y;
    quotient |= (UnsignedWide)1 << bit;
  }
  return (Wide)quotient;
}

/* For y > 0. */
static Wide floor_div(Wide x, Wide y) { return x < 0 ? ~divide_wide(~x, y) : divide_wide(x, y); }
static Wide modulo(Wide x, Wide y) {
  return x < 0 ? y - 1 - modulo(~x, y) : x - y * divide_wide(x, y);
}

static Linear faulty(const char* fault) { return (Linear){0, 0, fault}; }

static Linear add(Linear x, Linear y) {
  Linear sum = {.fault = NULL};
  if (__builtin_add_overflow(x.a, y.a, &sum.a) || __builtin_add_overflow(x.b, y.b, &sum.b))
    return faulty(beyond_wide);
  return sum;
}

static Linear subtract(Linear x, Linear y) {
  Linear rest = {.fault = NULL};
  if (__builtin_sub_overflow(x.a, y.a, &rest.a) || __builtin_sub_overflow(x.b, y.b, &rest.b))
    return faulty(beyond_wide);
  return rest;
}

static Linear multiply(Linear x, Linear y) {
  if (x.a && y.a) return faulty(undetermined);
  Linear product = {.fault = NULL};
  Wide a = x.a ? x.a : y.a, by = x.a ? y.b : x.b;
  if (__builtin_mul_overflow(a, by, &product.a) || __builtin_mul_overflow(x.b, y.b, &product.b))
    return faulty(beyond_wide);
  return product;
}

static Linear combine(int64_t opcode, Linear x, Linear y) {
  if (x.fault) return x;
  if (y.fault) return y;
  if (opcode == RX_ADD) return add(x, y);
  if (opcode == RX_SUB) return subtract(x, y);
  if (opcode == RX_MUL) return multiply(x, y);
  if (x.a || y.a) return faulty(undetermined);
  if ((opcode == RX_FLOORDIV || opcode == RX_MOD) && y.b <= 0) return faulty(bad_divisor);
  switch (opcode) {
    case RX_FLOORDIV:
      return (Linear){0, floor_div(x.b, y.b), NULL};
    case RX_MOD:
      return (Linear){0, modulo(x.b, y.b), NULL};
    case RX_MIN:
      return x.b < y.b ? x : y;
    case RX_MAX:
      return x.b > y.b ? x : y;
  }
  return faulty(malformed);
}

/* Evaluates the expression that ends at *end and moves *end to its start. */
static Linear evaluate_back(const int64_t* symbols, const int64_t* program, int64_t* end,
                            int32_t* unbound) {
  if (*end < 2) return faulty(malformed);
  *end -= 2;
  int64_t opcode = program[*end], operand = program[*end + 1];
  if (opcode == RX_CONST) return (Linear){0, operand, NULL};
  if (opcode == RX_SYMBOL && symbols[operand] >= 0) return (Linear){0, symbols[operand], NULL};
  if (opcode == RX_SYMBOL) {
    if (*unbound >= 0 && *unbound != operand) return faulty(undetermined);
    *unbound = (int32_t)operand;
    return (Linear){1, 0, NULL};
  }
  Linear y = evaluate_back(symbols, program, end, unbound);
  Linear x = evaluate_back(symbols, program, end, unbound);
  return combine(opcode, x, y);
}

/* The value of a dim under `symbols`, where negative values are unbound symbols; *unbound is the
 * one that the dim mentions, or -1. */
static Linear evaluate(const int64_t* symbols, RxDim dim, int32_t* unbound) {
  int64_t end = dim.count;
  *unbound = -1;
  return evaluate_back(symbols, dim.program, &end, unbound);
}

/* The same, but every symbol must be bound. */
static Linear evaluate_known(const int64_t* symbols, RxDim dim) {
  int32_t unbound;
  Linear value = evaluate(symbols, dim, &unbound);
  return unbound >= 0 && !value.fault ? faulty(undetermined) : value;
}

static int is_symbol(RxDim dim) { return dim.count == 2 && dim.program[0] == RX_SYMBOL; }
static int is_const(RxDim dim) { return dim.count == 2 && dim.program[0] == RX_CONST; }

/* Start of the expression that ends at `end`. */
static int64_t start_of(const int64_t* program, int64_t end) {
  int64_t opcode = program[end - 2];
  if (opcode == RX_CONST || opcode == RX_SYMBOL) return end - 2;
  return start_of(program, start_of(program, end - 2));
}

/* Prints 128 bits, for which the C library has no format. */
static void say_wide(RxContext* context, Wide value) {
  char digits[48];
  int at = sizeof digits - 1;
  UnsignedWide rest = value < 0 ? -(UnsignedWide)value : (UnsignedWide)value;
  digits[at] = 0;
  do {
    Wide tenth = divide_wide((Wide)(rest >> 1), 5);
    digits[--at] = (char)('0' + (int)(rest - 10 * (UnsignedWide)tenth));
    rest = (UnsignedWide)tenth;
  } while (rest);
  say(context, value < 0 ? "-%s" : "%s", digits + at);
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
    say_wide(context, end - 2 == negated ? -(Wide)operand : operand);
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
  /* A term with a negative leading constant is subtracted. */
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
