/* Functions on numbers that LLVM calls, for which WebAssembly has no instructions.
 *
 * `used` keeps them through dead code elimination: instruction selection adds the calls after it. */
#define RX_NUMBERS __attribute__((used, no_builtin))

typedef unsigned __int128 Natural;

/* The product of two words, of which there is no instruction. */
static Natural product(uint64_t x, uint64_t y) {
  uint64_t mask = 0xffffffff, xl = x & mask, xh = x >> 32, yl = y & mask, yh = y >> 32;
  uint64_t low = xl * yl, middle = xh * yl + (low >> 32), other = xl * yh + (middle & mask);
  uint64_t high = xh * yh + (middle >> 32) + (other >> 32);
  return (Natural)high << 64 | (other << 32 | (low & mask));
}

RX_NUMBERS __int128 __multi3(__int128 x, __int128 y) {
  uint64_t xl = (uint64_t)x, yl = (uint64_t)y, xh = (uint64_t)(x >> 64), yh = (uint64_t)(y >> 64);
  return (__int128)(product(xl, yl) + ((Natural)(xl * yh + xh * yl) << 64));
}

typedef union {
  Natural whole;
  __int128 integer;
  uint64_t words[2]; /* the low one first */
} Words;

/* Shifts by 0 to 127. */
RX_NUMBERS Natural __ashlti3(Natural x, int32_t by) {
  Words from = {x}, to;
  if (!by) return x;
  to.words[0] = by < 64 ? from.words[0] << by : 0;
  to.words[1] = by < 64 ? from.words[1] << by | from.words[0] >> (64 - by)
                        : from.words[0] << (by - 64);
  return to.whole;
}

RX_NUMBERS Natural __lshrti3(Natural x, int32_t by) {
  Words from = {x}, to;
  if (!by) return x;
  to.words[1] = by < 64 ? from.words[1] >> by : 0;
  to.words[0] = by < 64 ? from.words[0] >> by | from.words[1] << (64 - by)
                        : from.words[1] >> (by - 64);
  return to.whole;
}

RX_NUMBERS __int128 __ashrti3(__int128 x, int32_t by) {
  Words shifted = {__lshrti3((Natural)x, by)}, sign = {0};
  if (x < 0 && by) sign.whole = __ashlti3(~(Natural)0, 128 - by);
  shifted.words[0] |= sign.words[0];
  shifted.words[1] |= sign.words[1];
  return shifted.integer;
}

/* The product modulo 2^128, and whether it differs from the exact one. */
RX_NUMBERS __int128 __muloti4(__int128 x, __int128 y, int32_t* overflow) {
  Words a = {x < 0 ? -(Natural)x : (Natural)x}, b = {y < 0 ? -(Natural)y : (Natural)y};
  int is_negative = (x < 0) != (y < 0);
  Words low = {product(a.words[0], b.words[0])};
  Natural cross = product(a.words[1], b.words[0]) + product(a.words[0], b.words[1]);
  Words high = {cross + low.words[1]};
  low.words[1] = high.words[0];
  Natural most = ((Natural)1 << 127) - !is_negative;
  *overflow = (a.words[1] && b.words[1]) || high.words[1] || low.whole > most;
  return (__int128)(is_negative ? -low.whole : low.whole);
}

static uint64_t double_bits(double x) {
  uint64_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}

/* x * 2^exponent, for results that are floats and exponents of [-1200, 1200]. */
static double times_power(double x, int32_t exponent) {
  int32_t half = exponent / 2, rest = exponent - half;
  uint64_t words[2] = {(uint64_t)(half + 1023) << 52, (uint64_t)(rest + 1023) << 52};
  double powers[2];
  memcpy(powers, words, sizeof powers);
  return x * powers[0] * powers[1];
}

/* A finite number other than 0, without its sign, as mantissa * 2^exponent; the mantissa has 53
 * bits. */
static uint64_t split(double x, int32_t* exponent) {
  uint64_t bits = double_bits(x) & ~((uint64_t)1 << 63), mantissa = bits & (((uint64_t)1 << 52) - 1);
  *exponent = (int32_t)(bits >> 52) - 1075;
  if (bits >> 52) return mantissa | (uint64_t)1 << 52;
  int32_t shift = __builtin_clzll(mantissa) - 11;
  *exponent = -1074 - shift;
  return mantissa << shift;
}

/* Divides by a power of two; the last bit is set if any that is lost was. */
static Natural shift_sticky(Natural x, int32_t by) {
  if (by > 127) return x != 0;
  return x >> by | ((x & (((Natural)1 << by) - 1)) != 0);
}

/* The float next to total * 2^exponent, to even if two are. */
static double round_natural(Natural total, int32_t exponent) {
  uint64_t high = (uint64_t)(total >> 64);
  int32_t bits = 128 - (high ? __builtin_clzll(high) : 64 + __builtin_clzll((uint64_t)total));
  int32_t shift = bits - 53 < -1074 - exponent ? -1074 - exponent : bits - 53;
  if (shift <= 0) return times_power((double)(uint64_t)total, exponent);
  if (shift > bits + 1) return 0;
  Natural one = (Natural)1 << shift, rest = total & (one - 1), half = one >> 1;
  uint64_t kept = (uint64_t)(total >> shift);
  if (rest > half || (rest == half && (kept & 1))) kept++;
  exponent += shift;
  return exponent > 971 ? __builtin_inf() : times_power((double)kept, exponent);
}

/* x * y + z, rounded once. */
RX_NUMBERS double fma(double x, double y, double z) {
  int32_t ex, ey, ez;
  if (x - x != 0 || y - y != 0 || z - z != 0 || x == 0 || y == 0) return x * y + z;
  uint64_t mx = split(x, &ex), my = split(y, &ey);
  int minus = (double_bits(x) ^ double_bits(y)) >> 63 != 0, minus_z = double_bits(z) >> 63 != 0;
  Natural p = product(mx, my) << 20, other = 0;
  int32_t exponent = ex + ey - 20;
  if (z != 0) {
    other = split(z, &ez);
    int32_t up = ez - exponent;
    if (up > 73) { /* the product is far less */
      p = shift_sticky(p, up - 73);
      exponent += up - 73;
      up = 73;
    }
    other = up < 0 ? shift_sticky(other, -up) : other << up;
  }
  if (minus == minus_z || other == 0) {
    double sum = round_natural(p + other, exponent);
    return minus ? -sum : sum;
  }
  if (p == other) return 0;
  double rest = round_natural(p > other ? p - other : other - p, exponent);
  return minus == (p > other) ? -rest : rest;
}

/* The rest of the division that truncates; exact. */
RX_NUMBERS double fmod(double x, double y) {
  int32_t ex, ey;
  if (x - x != 0 || y != y || y == 0) return x * y / (x * y);
  if (x == 0 || __builtin_fabs(x) < __builtin_fabs(y)) return x;
  uint64_t mx = split(x, &ex), my = split(y, &ey);
  for (; ex > ey; ex--) {
    if (mx >= my) mx -= my;
    mx <<= 1;
  }
  if (mx >= my) mx -= my;
  return __builtin_copysign(times_power((double)mx, ey), x);
}

RX_NUMBERS float fmodf(float x, float y) { return (float)fmod(x, y); }

/* The greater and the lesser of two numbers, or the one that is a number. */
RX_NUMBERS double fmax(double x, double y) { return x != x || x < y ? y : x; }
RX_NUMBERS double fmin(double x, double y) { return x != x || x > y ? y : x; }
RX_NUMBERS float fmaxf(float x, float y) { return x != x || x < y ? y : x; }
RX_NUMBERS float fminf(float x, float y) { return x != x || x > y ? y : x; }

/* To nearest, halves away from zero. */
RX_NUMBERS double round(double x) {
  double whole = __builtin_trunc(x);
  double step = __builtin_fabs(x - whole) >= 0.5 ? 1 : 0;
  return x - x == 0 ? __builtin_copysign(__builtin_fabs(whole) + step, x) : x;
}

RX_NUMBERS float roundf(float x) { return (float)round(x); }
