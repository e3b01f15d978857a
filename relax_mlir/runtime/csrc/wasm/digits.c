/* The shortest decimal digits of a float: as `digits.c` writes them, from exact decimal expansions.
 *
 * A float and the midpoints to its neighbours are integers times powers of two, whose digits end. */

enum { MOST_DIGITS = 800 };

/* 0.d1d2d3... * 10^point, d1 > 0. */
typedef struct {
  int32_t count, point;
  uint8_t digits[MOST_DIGITS]; /* zeros behind `count` */
} Decimal;

/* Multiplies by a small number; what is carried becomes a leading digit, or several. */
static void scale(Decimal* x, uint32_t by) {
  uint32_t carry = 0;
  for (int32_t i = x->count; i--;) {
    carry += x->digits[i] * by;
    x->digits[i] = (uint8_t)(carry % 10);
    carry /= 10;
  }
  for (; carry; carry /= 10) {
    memmove(x->digits + 1, x->digits, (size_t)x->count++);
    x->digits[0] = (uint8_t)(carry % 10);
    x->point++;
  }
  while (x->count && !x->digits[x->count - 1]) x->count--;
}

/* Half of it. */
static void halve(Decimal* x) {
  uint32_t rest = 0;
  for (int32_t i = 0; i < x->count || rest; i++) {
    if (i == x->count) x->digits[x->count++] = 0;
    rest = rest * 10 + x->digits[i];
    x->digits[i] = (uint8_t)(rest >> 1);
    rest &= 1;
  }
  if (x->count && !x->digits[0]) {
    memmove(x->digits, x->digits + 1, (size_t)--x->count);
    x->point--;
  }
}

/* mantissa * 2^exponent, of which the mantissa is not zero. */
static void expand(Decimal* x, uint64_t mantissa, int32_t exponent) {
  *x = (Decimal){.count = 0};
  for (uint64_t rest = mantissa; rest; rest /= 10) x->count++;
  x->point = x->count;
  for (int32_t i = x->count; i--; mantissa /= 10) x->digits[i] = (uint8_t)(mantissa % 10);
  while (x->count && !x->digits[x->count - 1]) x->count--;
  for (; exponent > 0; exponent--) scale(x, 2);
  for (; exponent < 0; exponent++) halve(x);
}

static int compare(const Decimal* x, const Decimal* y) {
  if (x->point != y->point) return x->point < y->point ? -1 : 1;
  int32_t count = x->count > y->count ? x->count : y->count;
  for (int32_t i = 0; i < count; i++) {
    int a = i < x->count ? x->digits[i] : 0, b = i < y->count ? y->digits[i] : 0;
    if (a != b) return a < b ? -1 : 1;
  }
  return 0;
}

/* Rounds to so many digits, to nearest even. */
static void round_digits(Decimal* x, int32_t precision) {
  if (x->count <= precision) return;
  int is_tie = x->digits[precision] == 5 && x->count == precision + 1;
  int is_odd = precision && x->digits[precision - 1] & 1;
  int is_up = is_tie ? is_odd : x->digits[precision] >= 5;
  x->count = precision;
  int32_t at = precision;
  while (is_up && at && x->digits[at - 1] == 9) x->count = --at;
  if (is_up && at) x->digits[at - 1]++;
  if (is_up && !at) {
    x->digits[0] = 1;
    x->count = 1;
    x->point++;
  }
  while (x->count && !x->digits[x->count - 1]) x->count--;
}

static void copy_decimal(Decimal* to, const Decimal* from) { memcpy(to, from, sizeof *to); }

/* As %g: positional from 1e-4 up to `precision` digits, else with an exponent. */
static void write_decimal(char* out, const Decimal* x, int32_t precision) {
  Line line = {out, 32, 0};
  int32_t exponent = x->point - 1;
  int is_positional = exponent >= -4 && exponent < precision;
  int32_t whole = is_positional ? x->point : 1; /* digits in front of the point */
  if (whole <= 0) put_text(&line, "0.");
  for (int32_t i = whole; i < 0; i++) put_char(&line, '0');
  for (int32_t i = 0; i < x->count || i < whole; i++) {
    if (i && i == whole) put_char(&line, '.');
    put_char(&line, (char)('0' + (i < x->count ? x->digits[i] : 0)));
  }
  if (!is_positional) {
    put_text(&line, exponent < 0 ? "e-" : "e+");
    uint32_t size = (uint32_t)(exponent < 0 ? -exponent : exponent);
    if (size < 10) put_char(&line, '0');
    put_integer(&line, size, 10);
  }
  out[line.length] = 0;
}

/* Writes a float that is not zero, positive and finite: mantissa * 2^exponent, which is the least of
 * its binade if the neighbour below is half as far as the one above. */
static void write_shortest(char* out, uint64_t mantissa, int32_t exponent, int is_least,
                           int32_t most_digits) {
  static Decimal exact, low, high, rounded;
  expand(&exact, mantissa, exponent);
  expand(&high, 2 * mantissa + 1, exponent - 1);
  expand(&low, is_least ? 4 * mantissa - 1 : 2 * mantissa - 1, exponent - (is_least ? 2 : 1));
  int least = mantissa & 1; /* rounds to even: at its midpoints, a number with an odd mantissa loses */
  int32_t precision = 6;
  for (;; precision++) {
    copy_decimal(&rounded, &exact);
    round_digits(&rounded, precision);
    if (precision >= most_digits) break;
    if (compare(&rounded, &low) >= least && compare(&rounded, &high) <= -least) break;
  }
  write_decimal(out, &rounded, precision);
}

/* As few digits as tell the number from others of its type, 6 at least; `digits` has room for 32. */
static void write_float(char* digits, double x, int32_t bits) {
  uint64_t word;
  memcpy(&word, &x, sizeof word);
  if (x == x && word >> 63) *digits++ = '-';
  if (x != x || x - x != 0 || x == 0) {
    memcpy(digits, x != x ? "nan" : x == 0 ? "0" : "inf", 4);
    digits[x == 0 ? 1 : 3] = 0;
    return;
  }
  /* Of the narrower type the mantissa is shorter, and the least exponent greater. */
  int32_t dropped = bits == 32 ? 29 : 0, least = bits == 32 ? -149 : -1074;
  int32_t exponent = (int32_t)(word >> 52 & 2047);
  uint64_t mantissa = word & (((uint64_t)1 << 52) - 1);
  if (exponent) mantissa |= (uint64_t)1 << 52;
  exponent = (exponent ? exponent : 1) - 1075 + dropped;
  mantissa >>= dropped;
  if (exponent < least) {
    mantissa >>= least - exponent;
    exponent = least;
  }
  int is_least = mantissa == (uint64_t)1 << (52 - dropped) && exponent > least;
  write_shortest(digits, mantissa, exponent, is_least, bits == 16 ? 6 : 17);
}
