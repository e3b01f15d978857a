// Floats of 64 bits, as the words of their bits, the low one first; correctly rounded.
//
// Drivers inline these functions, and some take minutes to compile many `&&` and early returns: `&`,
// `select`, and shifts without branches keep code with 20 of them to seconds.

const F64_NAN = vec2<u32>(0u, 0x7ff80000u);

fn f64_abs(x: vec2<u32>) -> vec2<u32> {
  return vec2<u32>(x.x, x.y & 0x7fffffffu);
}

fn f64_neg(x: vec2<u32>) -> vec2<u32> {
  return vec2<u32>(x.x, x.y ^ 0x80000000u);
}

fn f64_copysign(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  return vec2<u32>(a.x, (a.y & 0x7fffffffu) | (b.y & 0x80000000u));
}

fn f64_is_nan(x: vec2<u32>) -> bool {
  return i64_ltu(vec2<u32>(0u, 0x7ff00000u), f64_abs(x));
}

fn f64_is_zero(x: vec2<u32>) -> bool {
  return (x.x | (x.y & 0x7fffffffu)) == 0u;
}

// Increases with the number, and from -0 to 0, as a signed integer.
fn f64_order(x: vec2<u32>) -> vec2<u32> {
  let sign = bitcast<u32>(bitcast<i32>(x.y) >> 31u);
  return x ^ vec2<u32>(sign, sign & 0x7fffffffu);
}

fn f64_are_ordered(a: vec2<u32>, b: vec2<u32>) -> bool {
  return !(f64_is_nan(a) | f64_is_nan(b));
}

fn f64_are_zero(a: vec2<u32>, b: vec2<u32>) -> bool {
  return f64_is_zero(a) & f64_is_zero(b);
}

// Ordered comparisons.
fn f64_lt(a: vec2<u32>, b: vec2<u32>) -> bool {
  return i64_lts(f64_order(a), f64_order(b)) & f64_are_ordered(a, b) & !f64_are_zero(a, b);
}

fn f64_eq(a: vec2<u32>, b: vec2<u32>) -> bool {
  return (all(a == b) | f64_are_zero(a, b)) & f64_are_ordered(a, b);
}

fn f64_maximum(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  let greater = select(b, a, i64_lts(f64_order(b), f64_order(a)));
  return select(select(greater, b, f64_is_nan(b)), a, f64_is_nan(a));
}

fn f64_minimum(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  let less = select(b, a, i64_lts(f64_order(a), f64_order(b)));
  return select(select(less, b, f64_is_nan(b)), a, f64_is_nan(a));
}

fn f64_maxnum(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  let greater = select(b, a, i64_lts(f64_order(b), f64_order(a)));
  return select(select(greater, b, f64_is_nan(a)), a, f64_is_nan(b));
}

fn f64_minnum(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  let less = select(b, a, i64_lts(f64_order(a), f64_order(b)));
  return select(select(less, b, f64_is_nan(a)), a, f64_is_nan(b));
}

// The last bit says whether bits were lost.
fn u64_shr_jam(a: vec2<u32>, by: u32) -> vec2<u32> {
  let moved = i64_shru(a, by);
  return vec2<u32>(moved.x | u32(any(i64_shl(moved, by) != a)), moved.y);
}

// sign * significand * 2^(exponent - 1084), whose leading bit is bit 62, as a float: Berkeley
// SoftFloat's roundPackToF64.
fn f64_round(sign: u32, exponent: i32, significand: vec2<u32>) -> vec2<u32> {
  var e = exponent;
  var s = significand;
  if (e < 0) {
    s = u64_shr_jam(s, u32(min(-e, 64)));
    e = 0;
  }
  let is_tie = (s.x & 0x3ffu) == 0x200u;
  s = i64_add(s, vec2<u32>(0x200u, 0u));
  if (e > 0x7fd || (e == 0x7fd && (s.y >> 31u) == 1u)) { return vec2<u32>(0u, sign | 0x7ff00000u); }
  s = i64_shru(s, 10u);
  s.x &= ~u32(is_tie);
  if (all(s == vec2<u32>())) { e = 0; }
  return vec2<u32>(s.x, s.y + (u32(e) << 20u) + sign);
}

// Any significand but zero: moved until its leading bit is bit 62.
fn f64_normalized(sign: u32, exponent: i32, significand: vec2<u32>) -> vec2<u32> {
  let zeros = i64_clz(significand);
  let s = u64_shr_jam(significand, u32(zeros == 0u));
  return f64_round(sign, exponent + 1 - i32(zeros), i64_shl(s, max(zeros, 1u) - 1u));
}

fn f64_exponent(x: vec2<u32>) -> i32 {
  let stored = i32((x.y >> 20u) & 0x7ffu);
  if (stored != 0) { return stored; }
  return 12 - i32(i64_clz(vec2<u32>(x.x, x.y & 0xfffffu)));
}

// The bits of a finite number, leading bit 52.
fn f64_significand(x: vec2<u32>) -> vec2<u32> {
  let bits = vec2<u32>(x.x, x.y & 0xfffffu);
  if ((x.y & 0x7ff00000u) != 0u) { return bits | vec2<u32>(0u, 0x100000u); }
  return i64_shl(bits, i64_clz(bits) - 11u);
}

fn u128_shr_jam(a: vec4<u32>, by: u32) -> vec4<u32> {
  if (by == 0u) { return a; }
  if (by >= 128u) { return vec4<u32>(u32(any(a != vec4<u32>())), 0u, 0u, 0u); }
  if (by >= 64u) {
    let high = u64_shr_jam(a.zw, by - 64u);
    return vec4<u32>(high.x | u32(any(a.xy != vec2<u32>())), high.y, 0u, 0u);
  }
  let low = u64_shr_jam(a.xy, by) | i64_shl(a.zw, 64u - by);
  return vec4<u32>(low, i64_shru(a.zw, by));
}

fn u128_shl(a: vec4<u32>, by: u32) -> vec4<u32> {
  if (by == 0u) { return a; }
  if (by >= 64u) { return vec4<u32>(0u, 0u, i64_shl(a.xy, by - 64u)); }
  return vec4<u32>(i64_shl(a.xy, by), i64_shl(a.zw, by) | i64_shru(a.xy, 64u - by));
}

fn u128_ltu(a: vec4<u32>, b: vec4<u32>) -> bool {
  return i64_ltu(a.zw, b.zw) || (i64_eq(a.zw, b.zw) && i64_ltu(a.xy, b.xy));
}

fn u128_add(a: vec4<u32>, b: vec4<u32>) -> vec4<u32> {
  let low = i64_add(a.xy, b.xy);
  return vec4<u32>(low, i64_add(i64_add(a.zw, b.zw), vec2<u32>(u32(i64_ltu(low, a.xy)), 0u)));
}

fn u128_sub(a: vec4<u32>, b: vec4<u32>) -> vec4<u32> {
  let borrow = vec2<u32>(u32(i64_ltu(a.xy, b.xy)), 0u);
  return vec4<u32>(i64_sub(a.xy, b.xy), i64_sub(i64_sub(a.zw, b.zw), borrow));
}

fn u64_mul_wide(a: vec2<u32>, b: vec2<u32>) -> vec4<u32> {
  let low = u32_mul_wide(a.x, b.x);
  let one = i64_add(u32_mul_wide(a.x, b.y), vec2<u32>(low.y, 0u));
  let other = i64_add(u32_mul_wide(a.y, b.x), vec2<u32>(one.x, 0u));
  let high = i64_add(u32_mul_wide(a.y, b.y), i64_add(vec2<u32>(one.y, 0u), vec2<u32>(other.y, 0u)));
  return vec4<u32>(low.x, other.x, high);
}

// a * b + c, rounded once.
fn f64_fma(a: vec2<u32>, b: vec2<u32>, c: vec2<u32>) -> vec2<u32> {
  let product_sign = (a.y ^ b.y) & 0x80000000u;
  let sign_c = c.y & 0x80000000u;
  let infinite = vec3<bool>((a.y & 0x7ff00000u) == 0x7ff00000u, (b.y & 0x7ff00000u) == 0x7ff00000u,
                            (c.y & 0x7ff00000u) == 0x7ff00000u);
  if (any(infinite)) {
    if (f64_is_nan(a) || f64_is_nan(b) || f64_is_nan(c)) { return F64_NAN; }
    if (!infinite.x && !infinite.y) { return c; }
    if (f64_is_zero(a) || f64_is_zero(b)) { return F64_NAN; }
    if (infinite.z && sign_c != product_sign) { return F64_NAN; }
    return vec2<u32>(0u, product_sign | 0x7ff00000u);
  }
  if (f64_is_zero(a) || f64_is_zero(b)) {
    if (!f64_is_zero(c)) { return c; }
    return vec2<u32>(0u, product_sign & sign_c);
  }
  // Both with the unit bit 124: the product has its leading bit there, or one above.
  var e = f64_exponent(a) + f64_exponent(b) - 0x3ff;
  var p = u64_mul_wide(i64_shl(f64_significand(a), 10u), i64_shl(f64_significand(b), 10u));
  var sign = product_sign;
  if (!f64_is_zero(c)) {
    let exponent_c = f64_exponent(c);
    var q = u128_shl(vec4<u32>(f64_significand(c), 0u, 0u), 72u);
    if (exponent_c > e) {
      p = u128_shr_jam(p, u32(exponent_c - e));
      e = exponent_c;
    } else {
      q = u128_shr_jam(q, u32(e - exponent_c));
    }
    if (sign_c == product_sign) {
      p = u128_add(p, q);
    } else if (u128_ltu(p, q)) {
      p = u128_sub(q, p);
      sign = sign_c;
    } else {
      p = u128_sub(p, q);
    }
    if (all(p == vec4<u32>())) { return vec2<u32>(); }
  }
  let zeros = select(i64_clz(p.zw), 64u + i64_clz(p.xy), all(p.zw == vec2<u32>()));
  p = u128_shl(u128_shr_jam(p, u32(zeros == 0u)), max(zeros, 1u) - 1u);
  let top = vec2<u32>(p.z | u32(any(p.xy != vec2<u32>())), p.w);
  return f64_round(sign, e + 2 - i32(zeros), top);
}

fn f64_is_finite(x: vec2<u32>) -> bool {
  return (x.y & 0x7ff00000u) != 0x7ff00000u;
}

// Less code than `f64_fma`.
fn f64_mul(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  let sign = (a.y ^ b.y) & 0x80000000u;
  let is_zero = f64_is_zero(a) || f64_is_zero(b);
  if (!f64_is_finite(a) || !f64_is_finite(b)) {
    let is_nan = is_zero || f64_is_nan(a) || f64_is_nan(b);
    return select(vec2<u32>(0u, sign | 0x7ff00000u), F64_NAN, is_nan);
  }
  if (is_zero) { return vec2<u32>(0u, sign); }
  let p = u64_mul_wide(i64_shl(f64_significand(a), 10u), i64_shl(f64_significand(b), 11u));
  let top = vec2<u32>(p.z | u32(any(p.xy != vec2<u32>())), p.w);
  return f64_normalized(sign, f64_exponent(a) + f64_exponent(b) - 0x3ff, top);
}

fn f64_add(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  let is_less = i64_ltu(f64_abs(a), f64_abs(b));
  let x = select(a, b, is_less);
  let y = select(b, a, is_less);
  let differ = ((a.y ^ b.y) >> 31u) == 1u;
  if (!f64_is_finite(x)) {
    return select(x, F64_NAN, f64_is_nan(x) || (differ && !f64_is_finite(y)));
  }
  if (f64_is_zero(y)) {
    return select(x, vec2<u32>(0u, a.y & b.y), f64_is_zero(x));
  }
  let e = f64_exponent(x);
  let s = i64_shl(f64_significand(x), 9u);
  let t = u64_shr_jam(i64_shl(f64_significand(y), 9u), u32(e - f64_exponent(y)));
  let sum = i64_add(s, select(t, i64_neg(t), differ));
  if (all(sum == vec2<u32>())) { return sum; }
  return f64_normalized(x.y & 0x80000000u, e, sum);
}

fn f64_sub(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  return f64_add(a, f64_neg(b));
}

fn f64_div(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  let sign = (a.y ^ b.y) & 0x80000000u;
  let a_infinite = (a.y & 0x7ff00000u) == 0x7ff00000u;
  let b_infinite = (b.y & 0x7ff00000u) == 0x7ff00000u;
  if (f64_is_nan(a) || f64_is_nan(b) || (a_infinite && b_infinite)) { return F64_NAN; }
  if (f64_is_zero(a) && f64_is_zero(b)) { return F64_NAN; }
  if (a_infinite || f64_is_zero(b)) { return vec2<u32>(0u, sign | 0x7ff00000u); }
  if (b_infinite || f64_is_zero(a)) { return vec2<u32>(0u, sign); }
  let divisor = f64_significand(b);
  var rest = f64_significand(a);
  var e = f64_exponent(a) - f64_exponent(b) + 0x3fe;
  if (i64_ltu(rest, divisor)) {
    rest = i64_shl(rest, 1u);
    e -= 1;
  }
  var quotient = vec2<u32>();
  for (var i = 0; i < 63; i++) {
    quotient = i64_shl(quotient, 1u);
    if (!i64_ltu(rest, divisor)) {
      rest = i64_sub(rest, divisor);
      quotient.x |= 1u;
    }
    rest = i64_shl(rest, 1u);
  }
  quotient.x |= u32(any(rest != vec2<u32>()));
  return f64_round(sign, e, quotient);
}

fn f64_sqrt(x: vec2<u32>) -> vec2<u32> {
  if (f64_is_zero(x) || f64_is_nan(x)) { return x; }
  if ((x.y >> 31u) == 1u) { return F64_NAN; }
  if ((x.y & 0x7ff00000u) == 0x7ff00000u) { return x; }
  let e = f64_exponent(x) - 0x3ff;
  let odd = u32(e & 1);
  // Two bits of the number make one of the root.
  var digits = i64_shl(f64_significand(x), 10u + odd);
  var rest = vec2<u32>();
  var root = vec2<u32>();
  for (var i = 0; i < 56; i++) {
    rest = i64_shl(rest, 2u);
    rest.x |= digits.y >> 30u;
    digits = i64_shl(digits, 2u);
    let trial = vec2<u32>((root.x << 2u) | 1u, i64_shl(root, 2u).y);
    root = i64_shl(root, 1u);
    if (!i64_ltu(rest, trial)) {
      rest = i64_sub(rest, trial);
      root.x |= 1u;
    }
  }
  root = i64_shl(root, 7u);
  root.x |= u32(any(rest != vec2<u32>()));
  return f64_round(0u, ((e - i32(odd)) / 2) + 0x3fe, root);
}

fn f64_rem(x: vec2<u32>, y: vec2<u32>) -> vec2<u32> {
  if (!f64_is_finite(x) || f64_is_nan(y) || f64_is_zero(y)) { return F64_NAN; }
  if (i64_ltu(f64_abs(x), f64_abs(y))) { return x; }
  let divisor = f64_significand(y);
  let least = f64_exponent(y);
  var rest = f64_significand(x);
  for (var e = f64_exponent(x); e >= least; e--) {
    if (!i64_ltu(rest, divisor)) { rest = i64_sub(rest, divisor); }
    if (e > least) { rest = i64_shl(rest, 1u); }
  }
  let sign = x.y & 0x80000000u;
  if (all(rest == vec2<u32>())) { return vec2<u32>(0u, sign); }
  return f64_normalized(sign, least - 1 + 10, rest);
}

fn f64_trunc(x: vec2<u32>) -> vec2<u32> {
  let e = i32((x.y >> 20u) & 0x7ffu) - 0x3ff;
  if (e < 0) { return vec2<u32>(0u, x.y & 0x80000000u); }
  if (e >= 52) { return x; }
  return x & i64_shl(vec2<u32>(0xffffffffu), u32(52 - e));
}

fn f64_floor(x: vec2<u32>) -> vec2<u32> {
  let t = f64_trunc(x);
  if (f64_lt(x, t)) { return f64_sub(t, vec2<u32>(0u, 0x3ff00000u)); }
  return t;
}

fn f64_ceil(x: vec2<u32>) -> vec2<u32> {
  return f64_neg(f64_floor(f64_neg(x)));
}

fn f64_roundeven(x: vec2<u32>) -> vec2<u32> {
  if ((x.y & 0x7ff00000u) >= 0x43300000u) { return x; }
  let magic = vec2<u32>(0u, 0x43300000u);
  return f64_copysign(f64_sub(f64_add(f64_abs(x), magic), magic), x);
}

fn f64_from_u64(a: vec2<u32>) -> vec2<u32> {
  if (all(a == vec2<u32>())) { return a; }
  return f64_normalized(0u, 0x3ff + 61, a);
}

fn f64_from_i64(a: vec2<u32>) -> vec2<u32> {
  let x = f64_from_u64(i64_abs(a));
  return vec2<u32>(x.x, x.y | (a.y & 0x80000000u));
}

fn f64_to_u64(x: vec2<u32>) -> vec2<u32> {
  let e = i32((x.y >> 20u) & 0x7ffu) - 0x3ff;
  if ((x.y >> 31u) == 1u || e < 0 || f64_is_nan(x)) { return vec2<u32>(); }
  if (e > 63) { return vec2<u32>(0xffffffffu); }
  if (e > 52) { return i64_shl(f64_significand(x), u32(e - 52)); }
  return i64_shru(f64_significand(x), u32(52 - e));
}

fn f64_to_i64(x: vec2<u32>) -> vec2<u32> {
  let m = f64_to_u64(f64_abs(x));
  let is_negative = (x.y >> 31u) == 1u;
  if ((m.y >> 31u) == 1u) {
    return select(vec2<u32>(0xffffffffu, 0x7fffffffu), vec2<u32>(0u, 0x80000000u), is_negative);
  }
  return select(m, i64_neg(m), is_negative);
}

fn f64_from_f32(x: f32) -> vec2<u32> {
  let bits = bitcast<u32>(x);
  let sign = bits & 0x80000000u;
  var exponent = (bits >> 23u) & 0xffu;
  var mantissa = bits & 0x7fffffu;
  if (exponent == 0xffu) { exponent = 0x47fu; }
  if (exponent == 0u) {
    if (mantissa == 0u) { return vec2<u32>(0u, sign); }
    let zeros = countLeadingZeros(mantissa) - 8u;
    mantissa = (mantissa << zeros) & 0x7fffffu;
    exponent = 1u - zeros;
  }
  return vec2<u32>(mantissa << 29u, sign | ((exponent + 896u) << 20u) | (mantissa >> 3u));
}

fn f64_to_f32(x: vec2<u32>) -> f32 {
  let sign = x.y & 0x80000000u;
  let exponent = i32((x.y >> 20u) & 0x7ffu);
  if (f64_is_nan(x)) { return f32_of_bits(sign | 0x7fc00000u); }
  if (exponent > 0x47e) { return f32_of_bits(sign | 0x7f800000u); }
  if (exponent < 0x368) { return bitcast<f32>(sign); }
  // 24 bits and 29 that are rounded away; fewer are left of subnormal numbers.
  let shift = u32(29 + max(0x381 - exponent, 0));
  let s = f64_significand(x);
  let kept = i64_shru(s, shift).x;
  let rest = i64_sub(s, i64_shl(vec2<u32>(kept, 0u), shift));
  let half = i64_shl(vec2<u32>(1u, 0u), shift - 1u);
  let up = u32(i64_ltu(half, rest) || (i64_eq(half, rest) && (kept & 1u) == 1u));
  let base = u32(max(exponent - 0x381, 0)) << 23u;
  return f32_of_bits(sign | (base + kept + up));
}
