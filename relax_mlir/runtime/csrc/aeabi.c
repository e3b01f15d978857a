/* What LLVM calls on 32-bit Arm, where the C compiler's library would have it: divisions of 64-bit
 * integers, and their conversions from and to floats. Floats are passed in integer registers.
 *
 * Source: Run-time ABI for the Arm architecture, section 5.
 */
#ifdef __arm__
#define RX_AEABI __attribute__((used, pcs("aapcs")))

/* Quotient and remainder, which are returned in r0 to r3 as a vector of that size is. */
typedef uint64_t Divided __attribute__((vector_size(16)));

/* A quotient of 0 if `y` is 0. */
static Divided divided(uint64_t x, uint64_t y) {
  if (!(x >> 32) && !(y >> 32)) {
    uint32_t low = (uint32_t)x, by = (uint32_t)y, quotient = by ? low / by : 0;
    return (Divided){quotient, low - quotient * by};
  }
  if (!y || x < y) return (Divided){0, x};
  uint64_t quotient = 0;
  for (int shift = __builtin_clzll(y) - __builtin_clzll(x); shift >= 0; shift--) {
    quotient <<= 1;
    if (x >> shift < y) continue;
    x -= y << shift;
    quotient |= 1;
  }
  return (Divided){quotient, x};
}

RX_AEABI Divided __aeabi_uldivmod(uint64_t x, uint64_t y) { return divided(x, y); }

static uint64_t magnitude(int64_t x) { return x < 0 ? -(uint64_t)x : (uint64_t)x; }

RX_AEABI Divided __aeabi_ldivmod(int64_t x, int64_t y) {
  Divided sizes = divided(magnitude(x), magnitude(y));
  uint64_t quotient = sizes[0], rest = sizes[1];
  return (Divided){(x < 0) != (y < 0) ? -quotient : quotient, x < 0 ? -rest : rest};
}

/* Each part is exact; the sum is rounded once. */
RX_AEABI double __aeabi_ul2d(uint64_t x) {
  return (double)(uint32_t)(x >> 32) * 0x1p32 + (double)(uint32_t)x;
}
RX_AEABI double __aeabi_l2d(int64_t x) {
  return (double)(int32_t)(x >> 32) * 0x1p32 + (double)(uint32_t)x;
}

/* Bits that f64 would round away become one that says whether there are any: it rounds for f32. */
static uint64_t for_float(uint64_t x) {
  if (x < (uint64_t)1 << 53) return x;
  return (x & ~(uint64_t)0x7ff) | (x & 0x7ff ? 0x800 : 0);
}
RX_AEABI float __aeabi_ul2f(uint64_t x) { return (float)__aeabi_ul2d(for_float(x)); }
RX_AEABI float __aeabi_l2f(int64_t x) {
  float size = (float)__aeabi_ul2d(for_float(magnitude(x)));
  return x < 0 ? -size : size;
}

/* Towards zero; the nearest integer that exists if there is none, 0 for NaN. */
RX_AEABI uint64_t __aeabi_d2ulz(double x) {
  if (!(x > 0)) return 0;
  if (x >= 0x1p64) return UINT64_MAX;
  uint32_t high = (uint32_t)(x * 0x1p-32);
  return (uint64_t)high << 32 | (uint32_t)(x - (double)high * 0x1p32);
}
RX_AEABI int64_t __aeabi_d2lz(double x) {
  if (x >= 0x1p63) return INT64_MAX;
  if (x <= -0x1p63) return INT64_MIN;
  return x < 0 ? -(int64_t)__aeabi_d2ulz(-x) : (int64_t)__aeabi_d2ulz(x);
}
RX_AEABI uint64_t __aeabi_f2ulz(float x) { return __aeabi_d2ulz(x); }
RX_AEABI int64_t __aeabi_f2lz(float x) { return __aeabi_d2lz(x); }

RX_AEABI uint16_t __aeabi_d2h(double x) { return half_bits(__truncdfhf2(x)); }
RX_AEABI uint16_t __aeabi_f2h(float x) { return float_bits_to_half(float_bits(x)); }
RX_AEABI float __aeabi_h2f(uint16_t x) { return bits_float(half_to_float_bits(x)); }
#endif
