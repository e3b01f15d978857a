// Floats of 32 bits, where WGSL leaves open what NaN, infinities and signs of zero do.

// A float that no compiler sees: WGSL has no constants that are infinite or NaN.
fn f32_of_bits(bits: u32) -> f32 {
  return bitcast<f32>(bits | params.zero);
}

// The same number: compilers may not reorder sums across it, as WGSL lets them do.
fn f32_rounded(x: f32) -> f32 {
  return bitcast<f32>(bitcast<u32>(x) | params.zero);
}

fn f32_is_nan(x: f32) -> bool {
  return (bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u;
}

// Whether `fma` rounds once on the device, which WGSL leaves open.
override is_fused: bool = true;

// a * b + c: the product exactly, then a sum that is rounded once, but for the rarest cases.
fn f32_fma(a: f32, b: f32, c: f32) -> f32 {
  if (is_fused) { return fma(a, b, c); }
  let product = a * b;
  let a_high = a * 4097.0 - (a * 4097.0 - a);
  let b_high = b * 4097.0 - (b * 4097.0 - b);
  let a_low = a - a_high;
  let b_low = b - b_high;
  let lost = ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low;
  let sum = product + c;
  let of_c = sum - product;
  let sum_lost = (product - (sum - of_c)) + (c - of_c);
  let rest = sum_lost + lost;
  let result = select(sum + rest, sum, rest == 0.0); // of -0 too
  // Where a part overflows, the product is not small enough for what is lost to matter.
  let is_finite = (bitcast<u32>(result) & 0x7f800000u) != 0x7f800000u;
  return select(sum, result, is_finite);
}

// Numbers below the normal ones are not taken for zero, as devices may do.
fn f32_equal(a: f32, b: f32) -> bool {
  let bits = vec2<u32>(bitcast<u32>(a), bitcast<u32>(b));
  let size = bits & vec2<u32>(0x7fffffffu);
  let same = bits.x == bits.y || (size.x | size.y) == 0u;
  return same && size.x <= 0x7f800000u && size.y <= 0x7f800000u;
}

// Increases with the number, and from -0 to 0.
fn f32_order(x: f32) -> i32 {
  let bits = bitcast<i32>(x);
  return bits ^ ((bits >> 31u) & 0x7fffffff);
}

fn f32_maxnum(a: f32, b: f32) -> f32 {
  let greater = select(b, a, f32_order(a) > f32_order(b));
  return select(select(greater, b, f32_is_nan(a)), a, f32_is_nan(b));
}

fn f32_minnum(a: f32, b: f32) -> f32 {
  let less = select(b, a, f32_order(a) < f32_order(b));
  return select(select(less, b, f32_is_nan(a)), a, f32_is_nan(b));
}

fn f32_maximum(a: f32, b: f32) -> f32 {
  let greater = select(b, a, f32_order(a) > f32_order(b));
  return select(select(greater, b, f32_is_nan(b)), a, f32_is_nan(a));
}

fn f32_minimum(a: f32, b: f32) -> f32 {
  let less = select(b, a, f32_order(a) < f32_order(b));
  return select(select(less, b, f32_is_nan(b)), a, f32_is_nan(a));
}

fn f32_abs(x: f32) -> f32 {
  return bitcast<f32>(bitcast<u32>(x) & 0x7fffffffu);
}

fn f32_copysign(a: f32, b: f32) -> f32 {
  return bitcast<f32>((bitcast<u32>(a) & 0x7fffffffu) | (bitcast<u32>(b) & 0x80000000u));
}

// The remainder of a division that is rounded towards zero, exactly: a long division.
fn f32_rem(x: f32, y: f32) -> f32 {
  let sign = bitcast<u32>(x) & 0x80000000u;
  let a = bitcast<u32>(x) & 0x7fffffffu;
  let b = bitcast<u32>(y) & 0x7fffffffu;
  if (a >= 0x7f800000u || b > 0x7f800000u || b == 0u) { return f32_of_bits(0x7fc00000u); }
  if (a < b) { return x; }
  let from_exponent = max(a >> 23u, 1u);
  let to_exponent = max(b >> 23u, 1u);
  var rest = select(0x800000u, 0u, a < 0x800000u) | (a & 0x7fffffu);
  let divisor = select(0x800000u, 0u, b < 0x800000u) | (b & 0x7fffffu);
  for (var e = from_exponent; e > to_exponent; e--) {
    rest = (rest % divisor) << 1u;
  }
  rest = rest % divisor;
  if (rest == 0u) { return bitcast<f32>(sign); }
  let shift = min(countLeadingZeros(rest) - 8u, to_exponent - 1u);
  let moved = rest << shift;
  let exponent = select(to_exponent - shift, 0u, moved < 0x800000u);
  return bitcast<f32>(sign | (exponent << 23u) | (moved & 0x7fffffu));
}
