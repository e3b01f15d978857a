// Integers of up to 32 bits, and indices, of which those that are not known to be small saturate.

fn i32_extend(x: i32, bits: u32) -> i32 {
  return (x << (32u - bits)) >> (32u - bits);
}

fn i32_floordivs(a: i32, b: i32) -> i32 {
  let r = a % b;
  return a / b - i32(r != 0 && ((r ^ b) < 0));
}

fn i32_ceildivs(a: i32, b: i32) -> i32 {
  let r = a % b;
  return a / b + i32(r != 0 && ((r ^ b) >= 0));
}

fn u32_ceildiv(a: u32, b: u32) -> u32 {
  return a / b + u32(a % b != 0u);
}

// Rounded to nearest, ties to even: WGSL allows either neighbour.
fn u32_to_f32(x: u32) -> f32 {
  let shift = 8u - min(countLeadingZeros(x), 8u);
  let half = (1u << shift) >> 1u;
  let kept = x >> shift;
  let rest = x & ((1u << shift) - 1u);
  let up = shift > 0u && (rest > half || (rest == half && (kept & 1u) == 1u));
  return f32(kept + u32(up)) * f32(1u << shift);
}

fn i32_to_f32(x: i32) -> f32 {
  let y = u32_to_f32(u32(abs(x)));
  return select(y, -y, x < 0);
}

fn index_add(a: i32, b: i32) -> i32 {
  let sum = a + b;
  let limit = select(2147483647, -2147483647, a < 0);
  return select(sum, limit, ((a ^ sum) & (b ^ sum)) < 0);
}

fn index_sub(a: i32, b: i32) -> i32 {
  return index_add(a, -max(b, -2147483647));
}

fn index_mul(a: i32, b: i32) -> i32 {
  let m = u32_mul_wide(u32(abs(max(a, -2147483647))), u32(abs(max(b, -2147483647))));
  let size = select(i32(m.x & 0x7fffffffu), 2147483647, m.y != 0u || m.x > 0x7fffffffu);
  return select(size, -size, (a ^ b) < 0);
}

fn index_from_i64(a: vec2<u32>) -> i32 {
  let low = bitcast<i32>(a.x);
  let fits = a.y == bitcast<u32>(low >> 31u);
  return select(select(2147483647, -2147483647, (a.y >> 31u) == 1u), low, fits);
}

fn index_from_u64(a: vec2<u32>) -> i32 {
  return select(2147483647, bitcast<i32>(a.x), a.y == 0u && a.x < 0x80000000u);
}
