// Integers of 64 bits as their words, the low one first.

fn i64_from_i32(x: i32) -> vec2<u32> {
  return vec2<u32>(bitcast<u32>(x), bitcast<u32>(x >> 31u));
}

fn i64_add(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  let low = a.x + b.x;
  return vec2<u32>(low, a.y + b.y + u32(low < a.x));
}

fn i64_neg(a: vec2<u32>) -> vec2<u32> {
  return i64_add(~a, vec2<u32>(1u, 0u));
}

fn i64_sub(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  return vec2<u32>(a.x - b.x, a.y - b.y - u32(a.x < b.x));
}

// The product of two words.
fn u32_mul_wide(a: u32, b: u32) -> vec2<u32> {
  let al = a & 0xffffu; let ah = a >> 16u;
  let bl = b & 0xffffu; let bh = b >> 16u;
  let low = al * bl;
  let middle = ah * bl + (low >> 16u);
  let other = al * bh + (middle & 0xffffu);
  return vec2<u32>((other << 16u) | (low & 0xffffu), ah * bh + (middle >> 16u) + (other >> 16u));
}

fn i64_mul(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  let low = u32_mul_wide(a.x, b.x);
  return vec2<u32>(low.x, low.y + a.x * b.y + a.y * b.x);
}

fn i64_shl(a: vec2<u32>, by: u32) -> vec2<u32> {
  let n = by & 31u;
  let low = a.x << n;
  let high = (a.y << n) | ((a.x >> 1u) >> (31u - n));
  return select(select(vec2<u32>(low, high), vec2<u32>(0u, low), by >= 32u), vec2<u32>(), by >= 64u);
}

fn i64_shru(a: vec2<u32>, by: u32) -> vec2<u32> {
  let n = by & 31u;
  let high = a.y >> n;
  let low = (a.x >> n) | ((a.y << 1u) << (31u - n));
  return select(select(vec2<u32>(low, high), vec2<u32>(high, 0u), by >= 32u), vec2<u32>(), by >= 64u);
}

fn i64_shrs(a: vec2<u32>, by: u32) -> vec2<u32> {
  let sign = bitcast<u32>(bitcast<i32>(a.y) >> 31u);
  let some = min(by, 63u);
  let moved = i64_shru(a, some);
  let filled = i64_shl(vec2<u32>(sign), 64u - some);
  return moved | filled;
}

fn i64_eq(a: vec2<u32>, b: vec2<u32>) -> bool {
  return all(a == b);
}

fn i64_ltu(a: vec2<u32>, b: vec2<u32>) -> bool {
  return (a.y < b.y) | ((a.y == b.y) & (a.x < b.x));
}

fn i64_lts(a: vec2<u32>, b: vec2<u32>) -> bool {
  return i64_ltu(a ^ vec2<u32>(0u, 0x80000000u), b ^ vec2<u32>(0u, 0x80000000u));
}

fn i64_clz(a: vec2<u32>) -> u32 {
  return select(countLeadingZeros(a.y), 32u + countLeadingZeros(a.x), a.y == 0u);
}

// Quotient in xy, remainder in zw; a division by zero has the quotient -1.
fn i64_divide(a: vec2<u32>, b: vec2<u32>) -> vec4<u32> {
  if (a.y == 0u && b.y == 0u && b.x != 0u) {
    return vec4<u32>(a.x / b.x, 0u, a.x % b.x, 0u);
  }
  var quotient = vec2<u32>();
  var rest = vec2<u32>();
  for (var i = 63; i >= 0; i--) {
    let out = rest.y >> 31u;
    rest = i64_shl(rest, 1u);
    rest.x |= i64_shru(a, u32(i)).x & 1u;
    if (out == 1u || !i64_ltu(rest, b)) {
      rest = i64_sub(rest, b);
      quotient |= i64_shl(vec2<u32>(1u, 0u), u32(i));
    }
  }
  return vec4<u32>(quotient, rest);
}

fn i64_divu(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  return i64_divide(a, b).xy;
}

fn i64_remu(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  return i64_divide(a, b).zw;
}

fn i64_abs(a: vec2<u32>) -> vec2<u32> {
  return select(a, i64_neg(a), (a.y >> 31u) == 1u);
}

fn i64_divs(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  let q = i64_divide(i64_abs(a), i64_abs(b)).xy;
  return select(q, i64_neg(q), ((a.y ^ b.y) >> 31u) == 1u);
}

fn i64_rems(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  let r = i64_divide(i64_abs(a), i64_abs(b)).zw;
  return select(r, i64_neg(r), (a.y >> 31u) == 1u);
}

fn i64_floordivs(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  let r = i64_rems(a, b);
  let below = any(r != vec2<u32>()) && ((r.y ^ b.y) >> 31u) == 1u;
  return i64_sub(i64_divs(a, b), vec2<u32>(u32(below), 0u));
}

fn i64_ceildivs(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  let r = i64_rems(a, b);
  let above = any(r != vec2<u32>()) && ((r.y ^ b.y) >> 31u) == 0u;
  return i64_add(i64_divs(a, b), vec2<u32>(u32(above), 0u));
}

fn i64_ceildivu(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  let d = i64_divide(a, b);
  return i64_add(d.xy, vec2<u32>(u32(any(d.zw != vec2<u32>())), 0u));
}

fn i64_maxs(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  return select(a, b, i64_lts(a, b));
}

fn i64_mins(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  return select(b, a, i64_lts(a, b));
}

fn i64_maxu(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  return select(a, b, i64_ltu(a, b));
}

fn i64_minu(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  return select(b, a, i64_ltu(a, b));
}

fn i64_ctpop(a: vec2<u32>) -> vec2<u32> {
  return vec2<u32>(countOneBits(a.x) + countOneBits(a.y), 0u);
}

fn i64_ctlz(a: vec2<u32>) -> vec2<u32> {
  return vec2<u32>(i64_clz(a), 0u);
}

fn i64_cttz(a: vec2<u32>) -> vec2<u32> {
  let low = countTrailingZeros(a.x);
  return vec2<u32>(select(low, 32u + countTrailingZeros(a.y), a.x == 0u), 0u);
}

// Rounded to nearest, ties to even.
fn i64_to_f32_unsigned(a: vec2<u32>) -> f32 {
  if (a.y == 0u) { return u32_to_f32(a.x); }
  let shift = 32u - countLeadingZeros(a.y);
  let kept = i64_shru(a, shift).x;
  let lost = any(i64_shl(i64_shru(a, shift), shift) != a);
  return u32_to_f32(kept | u32(lost)) * bitcast<f32>((127u + shift) << 23u);
}

fn i64_to_f32(a: vec2<u32>) -> f32 {
  let x = i64_to_f32_unsigned(i64_abs(a));
  return select(x, -x, (a.y >> 31u) == 1u);
}

// Towards zero; what does not fit is the nearest value that does.
fn i64_from_f32_unsigned(x: f32) -> vec2<u32> {
  let bits = bitcast<u32>(x);
  let exponent = i32((bits >> 23u) & 0xffu) - 150;
  if (bits >= 0x80000000u || exponent < -23) { return vec2<u32>(); }
  if (exponent > 40) { return select(vec2<u32>(0xffffffffu), vec2<u32>(), bits > 0x7f800000u); }
  let mantissa = vec2<u32>((bits & 0x7fffffu) | 0x800000u, 0u);
  if (exponent < 0) { return i64_shru(mantissa, u32(-exponent)); }
  return i64_shl(mantissa, u32(exponent));
}

fn i64_from_f32(x: f32) -> vec2<u32> {
  let m = i64_from_f32_unsigned(bitcast<f32>(bitcast<u32>(x) & 0x7fffffffu));
  let is_negative = (bitcast<u32>(x) >> 31u) == 1u;
  if ((m.y >> 31u) == 1u) {
    return select(vec2<u32>(0xffffffffu, 0x7fffffffu), vec2<u32>(0u, 0x80000000u), is_negative);
  }
  return select(m, i64_neg(m), is_negative);
}
