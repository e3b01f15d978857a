/* Conversions that LLVM calls on targets without instructions for f16 and bf16. Rounding is to
 * nearest even.
 *
 * `used` keeps them through dead code elimination: instruction selection adds the calls after it.
 */
#define RX_LIBCALL __attribute__((used))

static uint32_t float_bits(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}

static float bits_float(uint32_t bits) {
  float x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

static uint32_t half_to_float_bits(uint16_t half) {
  uint32_t sign = (uint32_t)(half & 0x8000) << 16, exponent = half >> 10 & 31,
           mantissa = half & 1023;
  if (exponent == 31) return sign | 0x7f800000 | mantissa << 13;
  if (exponent) return sign | (exponent + 112) << 23 | mantissa << 13;
  return sign | float_bits((float)mantissa * 0x1p-24f);
}

static uint16_t float_bits_to_half(uint32_t bits) {
  uint32_t sign = bits >> 16 & 0x8000, size = bits & 0x7fffffff;
  if (size > 0x7f800000) return (uint16_t)(sign | 0x7e00 | (size >> 13 & 1023));
  if (size >= 0x477ff000) return (uint16_t)(sign | 0x7c00);
  /* Subnormal: the ulp of 0.5f is that of f16's subnormals. */
  if (size < 0x38800000)
    return (uint16_t)(sign | (float_bits(bits_float(size) + 0.5f) - 0x3f000000));
  return (uint16_t)(sign | (size - 0x38000000 + 0xfff + (size >> 13 & 1)) >> 13);
}

static uint16_t float_bits_to_bfloat(uint32_t bits) {
  if ((bits & 0x7fffffff) > 0x7f800000) return (uint16_t)(bits >> 16 | 0x40);
  return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

/* Rounds to odd, so that a second rounding to fewer bits is exact. */
static uint32_t double_to_odd_float_bits(double x) {
  float nearest = (float)x;
  uint32_t bits = float_bits(nearest);
  if ((double)nearest == x || x != x || (bits & 1)) return bits;
  int away = x < 0 ? (double)nearest < x : (double)nearest > x;
  return away ? bits - 1 : bits + 1;
}

/* These types are passed in floating-point registers where the target supports them. */
#ifdef __wasm__
typedef uint16_t Half;
typedef uint16_t BFloat;
#else
typedef _Float16 Half;
typedef __bf16 BFloat;
#endif

static uint16_t half_bits(Half x) {
  uint16_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}

static Half bits_half(uint16_t bits) {
  Half x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

static BFloat bits_bfloat(uint16_t bits) {
  BFloat x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

RX_LIBCALL float __extendhfsf2(Half x) { return bits_float(half_to_float_bits(half_bits(x))); }
RX_LIBCALL Half __truncsfhf2(float x) { return bits_half(float_bits_to_half(float_bits(x))); }
RX_LIBCALL Half __truncdfhf2(double x) {
  return bits_half(float_bits_to_half(double_to_odd_float_bits(x)));
}
RX_LIBCALL BFloat __truncsfbf2(float x) { return bits_bfloat(float_bits_to_bfloat(float_bits(x))); }
RX_LIBCALL BFloat __truncdfbf2(double x) {
  return bits_bfloat(float_bits_to_bfloat(double_to_odd_float_bits(x)));
}
